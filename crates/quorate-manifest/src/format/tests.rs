//! Formatted texts: order, comments, spacing, unchanged values.

mod generated;
mod orders;

use super::*;

const ORDER: Order = Order::new(&[
    ("", "first second list map last"),
    ("list[]", "id name"),
    ("map", "a b"),
    ("any.inner", "x y"),
]);

#[track_caller]
fn formats(text: &str, expected: &str) {
    let formatted = format(text, &ORDER).expect("YAML");
    assert_eq!(formatted, expected, "of {text:?}");
    assert_eq!(format(&formatted, &ORDER).as_deref(), Ok(expected), "again");
}

#[track_caller]
fn formats_as_is(text: &str) {
    formats(text, text);
}

#[track_caller]
fn formats_frontmatter(text: &str, expected: &str) {
    let formatted = frontmatter(text, &ORDER).expect("frontmatter");
    assert_eq!(formatted, expected, "of {text:?}");
    assert_eq!(frontmatter(&formatted, &ORDER).as_deref(), Ok(expected), "again");
}

#[test]
fn known_keys_come_first_in_their_order() {
    formats("second: 2\nother: 0\nfirst: 1\nanother: 0\n", "first: 1\nsecond: 2\nother: 0\nanother: 0\n");
    formats("list:\n  - name: n\n    id: i\n  - id: j\n", "list:\n  - id: i\n    name: n\n  - id: j\n");
    formats("any:\n  inner:\n    y: 1\n    x: 2\n", "any:\n  inner:\n    x: 2\n    y: 1\n");
    formats("\"second\": 2\n'first': 1\n", "'first': 1\n\"second\": 2\n");
    formats_as_is("list:\n  id: 1\n  a: 2\n  name: 3\nmap.x:\n  b: 1\n  a: 2\n");
}

#[test]
fn empty_values_are_values() {
    formats("second:\nfirst:  \nlist:\n-\n-  \nmap: ~\n", "first:\nsecond:\nlist:\n  -\n  -\nmap: ~\n");
    formats("last: # c\nfirst: null\n", "first: null\nlast: # c\n");
}

#[test]
fn comments_go_with_their_entries() {
    formats(
        "# on the second\nsecond: 2 # beside\n# on the first\n\n# and on\nfirst: 1\n",
        "# on the first\n\n# and on\nfirst: 1\n# on the second\nsecond: 2 # beside\n",
    );
    formats(
        "map:\n    # on b\n    b: 1\n    # on a\n    a: 2\n    # at the end\nfirst: 1\n",
        "first: 1\nmap:\n  # on a\n  a: 2\n  # on b\n  b: 1\n  # at the end\n",
    );
    formats(
        "second:\n  # of nothing\nfirst: 1   # one\n           # line more\n# end\n",
        "first: 1   # one\n           # line more\nsecond:\n  # of nothing\n# end\n",
    );
    formats("last: 1\n  # deeper\nfirst: 1\n", "first: 1\nlast: 1\n  # deeper\n");
    formats(
        "last: # beside\n    # between\n    text\nfirst: 1\n",
        "first: 1\nlast: # beside\n  # between\n  text\n",
    );
    formats("map: # beside\n  # on b\n  b: 1\n  a: 1\n", "map: # beside\n  a: 1\n  # on b\n  b: 1\n");
}

#[test]
fn comments_at_the_head_stay_there() {
    formats("# head\n\nsecond: 2\nfirst: 1\n", "# head\n\nfirst: 1\nsecond: 2\n");
    formats(
        "\n# head\n\n\n# more head\n\n# on the second\nsecond: 2\nfirst: 1\n",
        "# head\n\n# more head\n\nfirst: 1\n# on the second\nsecond: 2\n",
    );
    formats(
        "# yaml-language-server: $schema=x\n# on the second\nsecond: 2\nfirst: 1\n",
        "# yaml-language-server: $schema=x\nfirst: 1\n# on the second\nsecond: 2\n",
    );
    formats("map:\n  # head\n\n  b: 1\n  a: 1\n", "map:\n  # head\n\n  a: 1\n  b: 1\n");
    formats("\n# nothing \n\n\n# else\n\n", "# nothing\n\n# else\n");
    formats("", "");
}

#[test]
fn comments_of_items() {
    formats(
        "list:\n# on the item\n- name: n # name\n  # on the id\n  id: i\n  # end\n# on the next\n- j\n",
        "list:\n  # on the item\n  # on the id\n  - id: i\n    name: n # name\n    # end\n  # on the next\n  - j\n",
    );
    formats("list:\n-\n  # on b\n  b: 1\n", "list:\n  # on b\n  - b: 1\n");
    formats(
        "list:\n- # dash\n  # on b\n  b: 1\n  id: 2\n",
        "list:\n  - # dash\n    id: 2\n    # on b\n    b: 1\n",
    );
    formats("list:\n- - a\n  -\n    # c\n    - b\n", "list:\n  - - a\n    # c\n    - - b\n");
    formats(
        "list:\n- a\n# - b\n#   more\n# last\nlast: 1\n",
        "list:\n  - a\n  # - b\n  #   more\n# last\nlast: 1\n",
    );
}

#[test]
fn spacing() {
    formats("first:    1   \n\n\n\nsecond:\t2\n\n\n", "first: 1\n\nsecond: 2\n");
    formats("  first :   1\n  last: 2", "first: 1\nlast: 2\n");
    formats(
        "map:\n\n    a:\n        - x\n\n\n        -   y\n    b: {z:  1}\n",
        "map:\n  a:\n    - x\n\n    - y\n  b: {z:  1}\n",
    );
    formats("- a\n-   b: 1\n    c: 2\n", "- a\n- b: 1\n  c: 2\n");
    formats("second: 2\n\nfirst: 1\nlast: 3\n", "first: 1\n\nsecond: 2\nlast: 3\n");
    formats("first: 1\r\nlast: 2\r\n", "first: 1\nlast: 2\n");
    formats("\u{feff}first: 1", "first: 1\n");
    formats(
        "# above\n\n---  # beside\n\nlast: 1\nfirst: 2\n\n...   # end\n\n\n# more\n",
        "# above\n---  # beside\nfirst: 2\nlast: 1\n...   # end\n\n# more\n",
    );
}

#[test]
fn block_scalars_keep_their_content() {
    formats(
        "map:\n    b: |\n            text  \n              more\n\n            end\n\n\n    a: >-\n     x\nfirst: 1\n",
        "first: 1\nmap:\n  a: >-\n    x\n\n  b: |\n    text  \n      more\n\n    end\n",
    );
    formats("last: |+\n x\n\n\nfirst: 1\n", "first: 1\nlast: |+\n  x\n\n\n");
    formats("last: 1\n\nfirst: |+\n  x\n", "first: |+\n  x\nlast: 1\n");
    formats("map:\n    a: |2 # c\n        x\n    # end\n", "map:\n  a: |2 # c\n      x\n  # end\n");
    formats(
        "map:\n  a: |\n      x\n   # not deeper\n  b: 1\n",
        "map:\n  a: |\n    x\n  # not deeper\n  b: 1\n",
    );
    formats(
        "first:\n    |\n    x\nlast: |\nlist:\n- |\n x\n",
        "first:\n  |\n  x\nlist:\n  - |\n    x\nlast: |\n",
    );
    formats("first: |\n  # text\n   \n\n   \nlast: 1", "first: |\n  # text\n   \n\n   \nlast: 1\n");
}

#[test]
fn other_values_of_several_lines_keep_their_shape() {
    formats("map:\n    a: one\n        two\n\n        three\n", "map:\n  a: one\n    two\n\n    three\n");
    formats("first:\n   \"one\n     two \\\n   three\"\n", "first:\n  \"one\n    two \\\n  three\"\n");
    formats("first: 'one  \n  two'   # c\n", "first: 'one\n  two'   # c\n");
    formats_as_is("first: \"one \\ \n  two\"\n");
    formats(
        "list:\n-   [a,   # c\n\n\n     b  \n    ]  # d\n",
        "list:\n  - [a,   # c\n\n       b\n      ]  # d\n",
    );
    formats(
        "map:\n    a:\n        {x: 1,\n         y: \"p\n\n\n         q\"}\n",
        "map:\n  a:\n    {x: 1,\n     y: \"p\n\n\n     q\"}\n",
    );
    formats_as_is("first: [ b,a ]\nlast: {  b: 1, a: 2 }\n");
}

#[test]
fn what_is_no_block_stands_as_it_is() {
    for text in ["{b: 1,  a: 2}", "text  ", "? second\n: 1\nfirst: 2\n", "first: 1\rlast: 2\r"] {
        formats_as_is(text);
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    let problems = format("first: 1\nfirst: 2\n", &ORDER).expect_err("twice");
    assert_eq!((problems.len(), problems[0].span.clone()), (1, 9..14));
    let text = "\u{feff}# yaml-language-server: x\r\n---\r\nfirst: 1\r\nfirst: 2\r\n---\r\n";
    let problems = frontmatter(text, &ORDER).expect_err("twice");
    assert_eq!(&text[problems[0].span.clone()], "first");
    let related = problems[0].related.clone().expect("the other").0;
    assert_eq!(&text[related.start..problems[0].span.start], "first: 1\r\n");
    for text in ["", "# Title\n", "---\nfirst: 1\n", "---\nfirst: [\n---\n"] {
        assert!(frontmatter(text, &ORDER).is_err(), "{text:?}");
    }
}

#[test]
fn frontmatter_is_formatted_and_the_body_stands() {
    formats_frontmatter(
        "---\n\nlast: 1\n# on the first\nfirst: 2\n\n---\n\n# Title  \n\n\ntext\t\n\n\n",
        "---\n# on the first\nfirst: 2\nlast: 1\n---\n\n# Title  \n\n\ntext\t\n",
    );
    formats_frontmatter(
        "\u{feff}---\r\nlast: 1\r\n--- \r\na\r\n\r\nb\r\n\r\n",
        "---\nlast: 1\n---\na\r\n\r\nb\r\n",
    );
    formats_frontmatter("---\n---", "---\n---\n");
    formats_frontmatter("---\nfirst: 1\n---\ntext", "---\nfirst: 1\n---\ntext\n");
    formats_frontmatter(
        "\n# yaml-language-server: x \n\n---\nlast: 1\nfirst: 2\n---\n\n",
        "# yaml-language-server: x\n---\nfirst: 2\nlast: 1\n---\n",
    );
    formats_frontmatter(
        "---\n# yaml-language-server: x\nlast: 1\nfirst: 2\n---\n",
        "---\n# yaml-language-server: x\nfirst: 2\nlast: 1\n---\n",
    );
}
