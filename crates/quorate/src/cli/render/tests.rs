//! Every kind of report in the formats for people, and what the other formats must hold.

use quorate_diagnostics::Body;
use quorate_diagnostics::codes;
use quorate_diagnostics::render::Colour;

use super::fixture::{found, hold, incomplete, one_round, open, revise, ship};
use super::*;

#[test]
fn human_ship() {
    insta::assert_snapshot!(human(&ship(), Look::default()), @"");
}

#[test]
fn human_revise() {
    insta::assert_snapshot!(human(&revise(), Look::default()), @"");
}

#[test]
fn human_hold_with_an_ungrounded_block_and_an_override() {
    insta::assert_snapshot!(human(&hold(), Look::default()), @"");
}

#[test]
fn human_incomplete() {
    insta::assert_snapshot!(human(&incomplete(), Look::default()), @"");
}

#[test]
fn human_open() {
    insta::assert_snapshot!(human(&open(), Look::default()), @"");
}

#[test]
fn human_of_one_round_without_its_text() {
    insta::assert_snapshot!(human(&one_round(), Look::default()), @"");
}

#[test]
fn human_narrow() {
    insta::assert_snapshot!(human(&revise(), Look { width: 64, ..Look::default() }), @"");
}

#[test]
fn lines_fit_and_end_without_spaces() {
    for report in [ship(), revise(), hold(), incomplete(), open(), one_round()] {
        for width in [40, 60, 80, 100, 120] {
            let shown = human(&report, Look { width, ..Look::default() });
            for line in shown.lines() {
                assert_eq!(line, line.trim_end(), "{shown}");
                assert!(line.chars().count() <= width, "{} > {width}: {line}\n{shown}", line.chars().count());
            }
        }
    }
}

#[test]
fn colours_add_nothing_but_colours() {
    for report in [ship(), revise(), hold(), incomplete(), open(), one_round()] {
        let coloured = human(&report, Look { colour: Colour::On, ..Look::default() });
        let plain = anstream::adapter::strip_str(&coloured).to_string();
        let plain: String = plain.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        assert_eq!(plain, human(&report, Look::default()));
    }
    let coloured = human(&hold(), Look { colour: Colour::On, ..Look::default() });
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
    let shown = human(&report, Look::default());
    let brief = shown.split("Brief: ").nth(1).and_then(|rest| rest.split("Revision brief").next()).unwrap();
    insta::assert_snapshot!(brief, @"");
}

#[test]
fn many_findings_are_cut() {
    let text: String = (0..50).map(|number| format!("word{number:02}\n")).collect();
    let mut report = revise();
    report.text = Some(text.as_str().into());
    report.findings = (0..50).map(|number| found(&text, "skeptic", &format!("word{number:02}"), "No.", None)).collect();
    let shown = human(&report, Look::default());
    let more = "  … and 30 more findings beyond the first 20 places: `quorate show r7k2m9q4xa1bc --format json` lists\n  all.\n";
    assert!(shown.contains(more), "{shown}");
    assert!(shown.contains(" 20. ") && !shown.contains(" 21. "), "{shown}");
    assert!(markdown(&report).contains("30 more findings"));
}

#[test]
fn markdown_revise() {
    insta::assert_snapshot!(markdown(&revise()), @"");
}

#[test]
fn markdown_hold() {
    insta::assert_snapshot!(markdown(&hold()), @"");
}

#[test]
fn github_has_an_annotation_for_each_finding_and_the_verdict() {
    insta::assert_snapshot!(github(&hold()), @"");
    let mut report = revise();
    report.artifact = "-".to_owned();
    report.findings.truncate(1);
    report.findings[0].issue = "50%\n::error::no".to_owned();
    insta::assert_snapshot!(github(&report), @"");
}

#[test]
fn json_is_the_object_of_the_report() {
    let report = revise();
    let shown = json(&report);
    assert!(shown.ends_with("}\n"));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), report.json());
}

#[test]
fn diagnostics_in_every_format() {
    let mut said = Diagnostics::new();
    assert_eq!(diagnostics(&said, Format::Markdown, Look::default()), "");
    said.refuse(codes::USAGE, Body::new("no `file` was named"));
    let shown = |format| diagnostics(&said, format, Look::default());
    assert_eq!(shown(Format::Human), "refusal[quorate:usage]: no `file` was named\n\n");
    assert_eq!(shown(Format::Markdown), "```text\nrefusal[quorate:usage] no `file` was named\n```\n");
    assert!(shown(Format::Json).starts_with("{\"diagnostics\":["));
    assert!(shown(Format::Sarif).contains("\"version\": \"2.1.0\""));
    assert!(shown(Format::Github).starts_with("::error "));
}
