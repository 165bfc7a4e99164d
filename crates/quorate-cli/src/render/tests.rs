//! Properties of all formats: widths, colours, unusual text, many findings; and the formats of other tools.

use quorate_diagnostics::Body;
use quorate_diagnostics::codes;
use quorate_diagnostics::render::Colour;

use super::fixture::{found, hold, incomplete, one_round, open, revise, ship};
use super::*;

#[test]
fn lines_fit_and_end_without_spaces() {
    for report in [ship(), revise(), hold(), incomplete(), open(), one_round()] {
        for width in [40, 60, 80, 100, 120] {
            let text = human(&report, Extent::Full, TextOptions { width, ..TextOptions::default() });
            for line in text.lines() {
                assert_eq!(line, line.trim_end(), "{text}");
                if line.contains(" | ") && width < 60 {
                    // Quoted source is cut no shorter than this.
                    continue;
                }
                assert!(line.chars().count() <= width, "{} > {width}: {line}\n{text}", line.chars().count());
            }
        }
    }
}

#[test]
fn colours_add_nothing_but_colours() {
    for report in [ship(), revise(), hold(), incomplete(), open(), one_round()] {
        let coloured =
            human(&report, Extent::Full, TextOptions { colour: Colour::On, ..TextOptions::default() });
        let plain = anstream::adapter::strip_str(&coloured).to_string();
        let plain: String = plain.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        assert_eq!(plain, human(&report, Extent::Full, TextOptions::default()));
    }
    let coloured = human(&hold(), Extent::Full, TextOptions { colour: Colour::On, ..TextOptions::default() });
    assert!(coloured.starts_with("\u{1b}[1m\u{1b}[31mHOLD\u{1b}[0m  "), "{coloured:?}");
}

#[test]
fn odd_lines_are_quoted() {
    let text = "one\r\n\tsaid 日本 is \u{1b}[31mbest\u{202e} of all\r\nthree\r\n";
    let mut report = revise();
    report.text = Some(text.into());
    report.findings = vec![
        found(text, "skeptic", "日本 is", "wide | <b>", None),
        found(text, "skeptic", "best", "control\u{1b}[0m", None),
        found(text, "evidence", "all\r\nthree", "two lines", Some("one\nline")),
    ];
    let text = human(&report, Extent::Full, TextOptions::default());
    let brief = text.split("Brief: ").nth(1).and_then(|rest| rest.split("Revision brief").next()).unwrap();
    insta::assert_snapshot!(brief, @r#"
    3 findings

      1. skeptic (blocks)
          --> drafts/launch.md:2:7
           |
         2 |     said 日本 is ␛[31mbest� of all
           |          ^^^^^^^
         - wide | <b>

      2. skeptic (blocks)
          --> drafts/launch.md:2:18
           |
         2 |     said 日本 is ␛[31mbest� of all
           |                       ^^^^
         - control[U+001B][0m

      3. evidence (blocks)
          --> drafts/launch.md:2:27
           |
         2 |       said 日本 is ␛[31mbest� of all
           |  ________________________________^
         3 | | three
           | |_____^
         - two lines
           fix: one line
    "#);
}

#[test]
fn many_findings_are_cut() {
    let text: String = (0..50).map(|number| format!("word{number:02}\n")).collect();
    let mut report = revise();
    report.text = Some(text.as_str().into());
    report.findings =
        (0..50).map(|number| found(&text, "skeptic", &format!("word{number:02}"), "No.", None)).collect();
    let text = human(&report, Extent::Full, TextOptions::default());
    assert!(
        text.contains("  … and 30 more findings beyond the first 20 places: `quorate show r7k2m9q4xa1bc"),
        "{text}"
    );
    assert!(text.contains(" 20. ") && !text.contains(" 21. "), "{text}");
    assert!(markdown(&report, Extent::Screen).contains("30 more findings"));
}

#[test]
fn markdown_revise() {
    insta::assert_snapshot!(markdown(&revise(), Extent::Screen), @r#"
    ## REVISE (rubric: 5 findings; content not judged): `drafts/launch.md`

    2 of 4 block, 0 of them irreducibly; the adjudicator asks for REVISE; policy seed/2 makes that REVISE.

    | deliberator | round 1 | round 2 | score | block | irreducible | what changed |
    | --- | --- | --- | --- | --- | --- | --- |
    | skeptic | hold, blocks | revise, blocks | 2 | yes | no | hold → revise; no longer irreducible; concedes 2; escalates 1 |
    | voice\_identity | ship | ship | 4 | no | no | nothing |
    | evidence | revise | revise, blocks | 2.5 | yes | no | score 3 → 2.5; now blocks |
    | strategy | revise, blocks | revise | 3.5 | no | no | score 3 → 3.5; no longer blocks |

    - skeptic concedes: The register of the opening is the voice member's concern. (and 1 more)
    - skeptic escalates: Two others stopped at the same sentence.

    ### Reasoning

    The numbers carry the argument, and neither has a source.
    Two of four say so.

    - the growth has no base
    - the promise about the price binds the company longer than anybody can know today

    ### Brief: 5 findings

    1. `drafts/launch.md:3:1`, **skeptic** (blocks), **evidence** (blocks) and **strategy**

       > Revenue grew 90% last quarter

       - skeptic: Another cause is as likely.
       - evidence and strategy: A percentage without a base. **Fix:** Say 90% of what, and link the report.

    2. `drafts/launch.md:3:36`, **skeptic** (blocks)

       > all our customers

       - Those who left were not asked. **Fix:** Say how many of how many.

    3. `drafts/launch.md:6:10`, **strategy**

       > the price will never change

       - A promise that cannot be taken back. **Fix:** Say until when the price holds.

    ### Revision brief

    Name the base of the 90%. Drop the promise.

    ### Dissent

    Voice would ship it.

    ### Notes

    - No model was asked: the answers come from the \`rubric\` executor, which does not judge content.

    <sub>run r7k2m9q4xa1bc, 2026-03-04 05:05 UTC; blog\_post, tier 2; policy seed/2; executor rubric; 9 calls, 12 ms</sub>
    "#);
}

#[test]
fn markdown_hold() {
    insta::assert_snapshot!(markdown(&hold(), Extent::Screen), @r#"
    ## HOLD: `drafts/launch.md`

    3 of 4 block, 3 of them irreducibly; the adjudicator asks for HOLD; policy seed/2 makes that HOLD.

    A person decided **SHIP**: see below.

    | deliberator | round 1 | round 2 | score | block | irreducible | what changed |
    | --- | --- | --- | --- | --- | --- | --- |
    | skeptic | hold, blocks | hold, blocks | 1 | yes | yes | nothing |
    | voice\_identity | hold, blocks | hold, blocks | 1 | yes, ungrounded | yes | nothing |
    | evidence | hold, blocks | hold, blocks | 1 | yes | yes | nothing |
    | strategy | ship | ship | 4 | no | no | nothing |

    ### Brief: 2 findings

    1. `drafts/launch.md:4:44`, **evidence** (blocks)

       > 日本語も「速い」です。

       - Nobody measured it. **Fix:** Measure it.

    Ungrounded: these quotes are not in the text.

    2. **voice\_identity** (blocks)

       > we are the best &lt;in&gt; the world

       - A superlative.

    ### A person's decision

    ana decided **SHIP**; the council's verdict stays HOLD.

    The embargo ends today.

    ### Notes

    - Ungrounded: voice\_identity blocks without a quote from the text.

    <sub>run r7k2m9q4xa1bc, 2026-03-04 05:05 UTC; blog\_post, tier 2; policy seed/2; executor claude; 9 calls, 1 min 23 s</sub>
    "#);
}

#[test]
fn github_has_an_annotation_for_each_finding_and_the_verdict() {
    insta::assert_snapshot!(github(&hold()), @r#"
    ::error file=drafts/launch.md,title=council%3A HOLD::3 of 4 block, 3 of them irreducibly; the adjudicator asks for HOLD; policy seed/2 makes that HOLD.%0AA person (ana) decided SHIP: The embargo ends today.%0AUngrounded: voice_identity blocks without a quote from the text.%0ARun r7k2m9q4xa1bc
    ::error file=drafts/launch.md,line=4,col=44,title=council/evidence::Nobody measured it.%0AFix: Measure it.
    ::error file=drafts/launch.md,title=council/voice_identity::A superlative.%0AQuoted, but not in the text: "we are the%0Abest <in> the world"
    "#);
    let mut report = revise();
    report.artifact = "-".to_owned();
    report.findings.truncate(1);
    report.findings[0].issue = "50%\n::error::no".to_owned();
    insta::assert_snapshot!(github(&report), @"
    ::warning title=council%3A REVISE (rubric%3A 1 finding; content not judged)::2 of 4 block, 0 of them irreducibly; the adjudicator asks for REVISE; policy seed/2 makes that REVISE.%0AName the base of the 90%25. Drop the promise.%0ANo model was asked: the answers come from the `rubric` executor, which does not judge content.%0ARun r7k2m9q4xa1bc
    ::warning title=council/evidence::50%25%0A::error::no%0AFix: Say 90%25 of what, and link the report.
    ");
}

#[test]
fn json_is_the_object_of_the_report() {
    let report = revise();
    let text = json(&report);
    assert!(text.ends_with("}\n"));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), report.to_json());
}

#[test]
fn diagnostics_in_every_format() {
    let mut report = Diagnostics::new();
    assert_eq!(diagnostics(&report, Format::Markdown, TextOptions::default()), "");
    report.refuse(codes::USAGE, Body::new("no `file` was named"));
    let render = |format| diagnostics(&report, format, TextOptions::default());
    assert_eq!(render(Format::Human), "refusal[quorate:usage]: no `file` was named\n\n");
    assert_eq!(render(Format::Markdown), "```text\nrefusal[quorate:usage] no `file` was named\n```\n");
    assert!(render(Format::Json).starts_with("{\"diagnostics\":["));
    assert!(render(Format::Sarif).contains("\"version\": \"2.1.0\""));
    assert!(render(Format::Github).starts_with("::error "));
}
