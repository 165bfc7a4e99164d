//! One document in three forms, and hostile text in each of them.

use quorate_diagnostics::render::TextOptions;

use super::*;

fn sample() -> Doc {
    let mut doc = Doc::new();
    doc.title(Text::toned(Tone::Fair, "REVISE").and("  ").and(Text::code("a|b.md")));
    doc.line("1 of 4 objects.");
    doc.heading("Places");
    let mut body = Doc::new();
    body.passage("we *always* win");
    body.items(["name the <study>"]);
    doc.numbered([Entry { line: Text::strong("evidence").and(" blocks"), body }]);
    doc.heading("Members");
    let mut table = Table::new(["member", "model", "calls"]).numeric();
    table.row(["skeptic", "", "2"]);
    doc.table(table.filled());
    doc.diagram("graph TD\n".to_owned());
    doc
}

#[test]
fn one_document_has_three_forms() {
    let plain = TextOptions { width: 60, ..TextOptions::default() };
    let text = "REVISE  a|b.md\n1 of 4 objects.\n\nPlaces\n\n  1. evidence blocks\n     │ we *always* win\n     - name the <study>\n\n\
                Members\n  member   calls\n  ──────────────\n  skeptic  2\n";
    assert_eq!(sample().text(plain), text);
    let markdown = "## REVISE  `a│b.md`\n\n1 of 4 objects.\n\n### Places\n\n1. **evidence** blocks\n\n   > we \\*always\\* win\n\n   - name \
                    the &lt;study&gt;\n\n### Members\n\n| member | calls |\n| --- | ---: |\n| skeptic | 2 |\n\n```mermaid\ngraph TD\n```\n";
    assert_eq!(sample().markdown(), markdown);
    let html = sample().html();
    for part in [
        "<h1><span class=\"fair\">REVISE</span>  <code>a|b.md</code></h1>",
        "<li><strong>evidence</strong> blocks<blockquote class=\"prose\">we *always* win</blockquote>",
        "<li>name the &lt;study&gt;</li>",
        "<th scope=\"col\" class=\"number\">calls</th>",
    ] {
        assert!(html.contains(part), "{html}");
    }
    assert!(!html.contains("graph TD"), "{html}");
}

#[test]
fn foreign_text_stays_text() {
    let mut doc = Doc::new();
    doc.title("<b>\u{1b}[31m\u{202e}x");
    doc.line("- # @octocat `a`");
    doc.passage("a\n# b");
    doc.verbatim("", "```\n<script>");
    for written in [doc.text(TextOptions::default()), doc.markdown(), doc.html()] {
        assert!(!written.contains(['\u{1b}', '\u{202e}']), "{written}");
    }
    assert!(!doc.html().contains("<script>") && !doc.html().contains("<b>"), "{}", doc.html());
    assert!(doc.markdown().contains("````") && !doc.markdown().contains("@octocat"), "{}", doc.markdown());
}

#[test]
fn foreign_text_stays_in_its_cell_and_its_element() {
    const HOSTILE: [&str; 4] = ["a\" onload=\"x", "<img src=x>|y\nz", "<i>", "\u{1b}[31m\u{202e}"];
    let mut doc = Doc::new();
    let mut table = Table::new(HOSTILE);
    table.row(HOSTILE);
    table.row(HOSTILE.map(Text::strong));
    table.row(HOSTILE.map(Text::code));
    table.row(["\n", " \n ", "\t", "\r\n"].map(Text::strong));
    doc.table(table);
    doc.items(HOSTILE);
    doc.facts(HOSTILE.map(|text| (text, text)));
    let mut inner = Doc::new();
    HOSTILE.iter().for_each(|text| inner.line(*text));
    doc.fold(HOSTILE.concat(), inner);
    doc.tree(HOSTILE.map(Entry::from));
    let html = doc.html();
    for tag in ["<img", "\" onload", "<i>"] {
        assert!(!html.contains(tag), "{tag} in {html}");
    }
    assert!(html.contains("<dt>&lt;i&gt;</dt><dd>&lt;i&gt;</dd>"), "{html}");
    for written in [doc.text(TextOptions::default()), doc.markdown(), html] {
        assert!(!written.contains(['\u{1b}', '\u{202e}']), "{written}");
    }
    insta::assert_snapshot!(doc.markdown(), @r#"
    | a" onload="x | &lt;img src=x&gt;\|y z | &lt;i&gt; | \[U+001B\]\[31m\[U+202E\] |
    | --- | --- | --- | --- |
    | a" onload="x | &lt;img src=x&gt;\|y z | &lt;i&gt; | \[U+001B\]\[31m\[U+202E\] |
    | a" onload="x | &lt;img src=x&gt;\|y z | &lt;i&gt; | \[U+001B\]\[31m\[U+202E\] |
    | `a" onload="x` | `<img src=x>│y z` | `<i>` | `[U+001B][31m[U+202E]` |
    |  |    |  |  |

    - a" onload="x
    - &lt;img src=x&gt;\|y z
    - &lt;i&gt;
    - \[U+001B\]\[31m\[U+202E\]

    - a" onload="x: a" onload="x
    - &lt;img src=x&gt;\|y z: &lt;img src=x&gt;\|y z
    - &lt;i&gt;: &lt;i&gt;
    - \[U+001B\]\[31m\[U+202E\]: \[U+001B\]\[31m\[U+202E\]

    <details>
    <summary>a&quot; onload=&quot;x&lt;img src=x&gt;|y z&lt;i&gt;[U+001B][31m[U+202E]</summary>

    a" onload="x

    &lt;img src=x&gt;\|y z

    &lt;i&gt;

    \[U+001B\]\[31m\[U+202E\]

    </details>

    - a" onload="x
    - &lt;img src=x&gt;\|y z
    - &lt;i&gt;
    - \[U+001B\]\[31m\[U+202E\]
    "#);
    insta::assert_snapshot!(doc.text(TextOptions::default()), @r#"
    a" onload="x  <img src=x>|y z  <i>  [U+001B][31m[U+202E]
    ────────────────────────────────────────────────────────
    a" onload="x  <img src=x>|y z  <i>  [U+001B][31m[U+202E]
    a" onload="x  <img src=x>|y z  <i>  [U+001B][31m[U+202E]
    a" onload="x  <img src=x>|y z  <i>  [U+001B][31m[U+202E]


    - a" onload="x
    - <img src=x>|y z
    - <i>
    - [U+001B][31m[U+202E]

    a" onload="x          a" onload="x
    <img src=x>|y z       <img src=x>|y z
    <i>                   <i>
    [U+001B][31m[U+202E]  [U+001B][31m[U+202E]

    a" onload="x<img src=x>|y z<i>[U+001B][31m[U+202E]
      a" onload="x
      <img src=x>|y z
      <i>
      [U+001B][31m[U+202E]

    ├─ a" onload="x
    ├─ <img src=x>|y z
    ├─ <i>
    └─ [U+001B][31m[U+202E]
    "#);
}

#[test]
fn a_deep_tree_fits_a_narrow_terminal() {
    let entry = |name: String, below: Vec<Entry>| {
        let mut entry = Entry::from(name.clone());
        entry.body.facts([("said", format!("It is {name}, and it goes on for more than a line."))]);
        entry.body.tree(below);
        entry
    };
    let branch = |below: Vec<Entry>, level: u32| {
        vec![entry(format!("n{level}"), below), entry(format!("leaf {level}"), Vec::new())]
    };
    let mut doc = Doc::new();
    doc.heading("Tree");
    doc.tree((0..5).rev().fold(Vec::new(), branch));
    insta::assert_snapshot!(doc.text(TextOptions { width: 40, ..TextOptions::default() }), @"
    Tree
      ├ n0
      │ said  It is n0, and it goes on for
      │       more than a line.
      │├ n1
      ││ said  It is n1, and it goes on for
      ││       more than a line.
      ││├ n2
      │││ said  It is n2, and it goes on for
      │││       more than a line.
      │││├ n3
      ││││ said  It is n3, and it goes on
      ││││       for more than a line.
      ││││├ n4
      │││││ said  It is n4, and it goes on
      │││││       for more than a line.
      ││││└ leaf 4
      ││││  said  It is leaf 4, and it goes
      ││││        on for more than a line.
      │││└ leaf 3
      │││  said  It is leaf 3, and it goes
      │││        on for more than a line.
      ││└ leaf 2
      ││  said  It is leaf 2, and it goes on
      ││        for more than a line.
      │└ leaf 1
      │  said  It is leaf 1, and it goes on
      │        for more than a line.
      └ leaf 0
        said  It is leaf 0, and it goes on
              for more than a line.
    ");
}
