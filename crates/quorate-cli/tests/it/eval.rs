//! `quorate eval`: what an evaluation judges, where it keeps it, and that nothing recorded is asked for again.

use std::process::Stdio;
use std::time::Duration;

use crate::support;
use crate::support::records;
use records::{consultations, of_kind};
use serde_json::{Value, json};
use support::council::{COUNCIL, all_ship, all_ship_except};
use support::{CommandOutput, TestDir};

const DRAFT: &str = "# Rooms\n\nThe meeting moved to Tuesday at ten.\n\n- Bring a pen.\n- Bring a cup.\n";

fn place(answers: &Value, settings: &str) -> TestDir {
    let place = TestDir::scripted_slowly(answers, settings);
    place.write("draft.md", DRAFT);
    place
}

fn coherence(place: &TestDir, more: &[&str]) -> CommandOutput {
    place.run(&[&["eval", "coherence", "draft.md", "--format", "json"], more].concat()).assert_code(0)
}

#[test]
fn variants_are_judged_in_a_ledger_of_their_own() {
    let place = place(&all_ship(), "");
    let report = coherence(&place, &["--kinds", "wrong_sum,placeholder"]).json();
    assert_eq!(report["schema"], "quorate.coherence/v1");
    // The draft, the same again, the list in another order, a padded draft, and two defects with their twins.
    assert_eq!((report["drafts"].as_u64(), report["texts"].as_u64()), (Some(1), Some(8)));
    assert_eq!(report["council"]["flips"]["of"], 1);
    assert_eq!(report["council"]["changes"]["of"], 2);
    assert_eq!(
        report["council"]["recall"],
        json!({"hits": 0, "of": 2, "share": 0.0, "interval": report["council"]["recall"]["interval"]})
    );
    // Eight reviews of nine calls, and four controls of four: their first answers are shared. The second answers do not
    // differ, so that the adjudicator's question does not either.
    assert_eq!(report["spent"]["calls"], 8 * 9 + 4 * 4);
    assert_eq!(report["kinds"].as_array().map(Vec::len), Some(2));
    assert!(!place.path(".quorate/ledger.db").exists() && place.log().is_empty());
    let ledger = place.path(".quorate/eval/ledger.db");
    let runs = records::runs(&ledger);
    assert_eq!(runs.len(), 12);
    // No record tells a member what was done to the text.
    for (run, _) in &runs {
        for record in records::records(&ledger, run) {
            let text = json!(record.data).to_string();
            assert!(!text.contains("wrong_sum") && !text.contains("twin"), "{text}");
        }
    }
    place.run(&["ledger", "verify", "--ledger", ".quorate/eval/ledger.db"]).assert_code(0);
}

#[test]
fn a_repeated_command_asks_nothing_that_is_recorded() {
    let place = place(&all_ship(), "");
    let first = coherence(&place, &["--kinds", "insult"]).json();
    // No member can answer any more.
    place.answers(&json!({}));
    let again = coherence(&place, &["--kinds", "insult"]).json();
    assert_eq!(first, again);
}

#[test]
fn a_killed_evaluation_continues_without_a_repeated_call() {
    let place = place(&all_ship(), "delay = \"5ms\"");
    let arguments = ["eval", "coherence", "draft.md", "--kinds", "insult", "--jobs", "2", "--quiet"];
    for kill in 0..20 {
        let mut command = place.command(&arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(30 + 17 * kill));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
    }
    let report = coherence(&place, &["--kinds", "insult"]).json();
    assert_eq!(report["texts"], 6);
    let ledger = place.path(".quorate/eval/ledger.db");
    let runs = records::runs(&ledger);
    assert_eq!(runs.len(), 8, "six texts, and two controls");
    for (run, outcome) in runs {
        let records = records::records(&ledger, &run);
        assert_eq!(outcome.as_deref(), Some("SHIP"), "{run}");
        let counts = consultations(&records);
        assert_eq!(counts.len(), 9, "{counts:?}");
        assert!(counts.values().all(|count| *count == 1), "{counts:?}");
        assert_eq!(of_kind(&records, "outcome").len(), 1);
    }
}

#[test]
fn what_is_shown_has_its_count_and_its_range() {
    let place = place(&all_ship_except(json!({"r1/skeptic": {"would_block": true, "score": 1}})), "");
    let shown = place.run(&["eval", "coherence", "draft.md", "--kinds", "insult"]).assert_code(0);
    for text in [
        "1 draft with variants: 6 texts, judged by scripted. 62 calls",
        "council",
        "0 of 1 (0–79%)",
        "skeptic",
        "insult",
        "control: without reading them",
        "is not shown: it takes at least 6",
    ] {
        shown.assert_stdout_contains(text);
    }
    shown.assert_stderr_contains("6 texts: 64 calls");
    let markdown = place.run(&["eval", "coherence", "draft.md", "--kinds", "insult", "--format", "markdown"]);
    markdown.assert_code(0).assert_stdout_contains("| skeptic |");
}

#[test]
fn a_council_of_one_round_has_figures_and_no_control() {
    let place = place(&all_ship(), "");
    place.write("council.yaml", format!("{COUNCIL}protocol: {{rounds: 1}}\n"));
    let report = coherence(&place, &["--kinds", "insult"]).json();
    assert_eq!((report["round2"].is_null(), report["spent"]["calls"].as_u64()), (true, Some(6 * 5)));
    assert_eq!(
        (report["members"][0]["flips"]["of"].as_u64(), report["members"][0]["missing"].as_u64()),
        (Some(1), Some(0))
    );
}

#[test]
fn a_text_counts_once_and_standard_input_is_refused() {
    let place = place(&all_ship(), "");
    place.write("copy.md", DRAFT);
    place.write("table.md", "| a | b |\n|---|---|\n| 1 | 2 |\n");
    let arguments = [
        "eval",
        "coherence",
        "draft.md",
        "copy.md",
        "table.md",
        "--kinds",
        "insult,insult",
        "--format",
        "json",
    ];
    let report = place.run(&arguments).assert_code(0).json();
    // Six texts of the draft; the table, the same again and a padded one.
    assert_eq!((report["drafts"].as_u64(), report["texts"].as_u64()), (Some(2), Some(9)));
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("1 draft with the text of another one")
            && notes.contains("1 draft without a paragraph"),
        "{notes}"
    );
    place.run(&["eval", "coherence", "-"]).assert_refused(64, "quorate:usage");
}

#[test]
fn a_control_is_not_the_council_when_it_is_resumed() {
    let place = place(&all_ship(), "");
    coherence(&place, &["--kinds", "insult"]);
    let ledger = place.path(".quorate/eval/ledger.db");
    let opened = |run: &str| json!(records::records(&ledger, run)[0].data)["fingerprint"]["council"].clone();
    let councils: std::collections::BTreeSet<String> =
        records::runs(&ledger).iter().map(|(run, _)| opened(run).to_string()).collect();
    assert_eq!(councils.len(), 2, "the council and its control: {councils:?}");
}

#[test]
fn a_dry_run_asks_no_one_and_bad_requests_are_refused() {
    let place = place(&all_ship(), "");
    let dry = coherence(&place, &["--kinds", "insult", "--dry-run"]).json();
    assert_eq!((dry["texts"].as_u64(), dry["calls"].as_u64()), (Some(6), Some(64)));
    assert!(!place.path(".quorate").exists());
    let without = coherence(&place, &["--kinds", "insult", "--dry-run", "--no-control"]).json();
    assert_eq!(without["calls"], 54);
    let unknown = place.run(&["eval", "coherence", "draft.md", "--kinds", "insults"]);
    unknown.assert_refused(64, "quorate:usage").assert_stderr_contains("insult");
    place.run(&["eval", "coherence", "none.md"]).assert_refused(4, "quorate:artifact_missing");
}
