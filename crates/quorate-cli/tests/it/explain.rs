//! Every code of `quorate explain`: its page's files are written to a directory of their own, its commands are run
//! there, and what they say has the code in it. `support/console.rs` says how a page is read.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::console;
use crate::{suggestions, support};
use console::Part;
use quorate_diagnostics::codes;
use support::TestDir;

/// Codes whose pages cannot be run from here, and why.
const NOT_RUN: [(&str, &str); 29] = [
    ("quorate:bug", "needs an error in the program"),
    ("quorate:request_incomplete", "needs a server"),
    ("quorate:path_reserved", "needs a server"),
    ("quorate:run_not_held", "needs a server"),
    ("assembly_overlay_lock_violation", "is a record, not a diagnostic"),
    ("quorate:run_open", "needs a process that was killed"),
    ("quorate:fingerprint_changed", "needs a process that was killed"),
    ("quorate:run_moved", "needs two processes at the same moment"),
    ("quorate:ledger_in_doubt", "needs a server that falls silent in the middle of a commit"),
    ("quorate:run_altered", "needs a ledger that was changed past the program"),
    ("quorate:ledger_corrupt", "needs a ledger that was changed past the program"),
    ("quorate:signer_unknown", "needs a key that has gone missing"),
    ("quorate:replay_differs", "needs a ledger that was changed past the program"),
    ("quorate:erasure_unfinished", "needs a process that reads the ledger meanwhile"),
    ("quorate:runtime_busy", "needs two processes at the same moment"),
    ("quorate:conversation_lost", "needs a server that shows a part of a conversation"),
    ("quorate:turn_refused", "needs a substrate that cannot hold a turn"),
    ("quorate:orchestrator_coexists", "needs the feature mcp"),
    ("quorate:log_behind", "needs a disk that fills up between two writes"),
    ("quorate:feature_missing", "needs a program that was built without it"),
    ("quorate:operator_failed", "needs an MCP client"),
    ("quorate:job_ended", "needs an MCP client"),
    ("quorate:jobs_busy", "needs an MCP client"),
    ("quorate:queue_invalid", "needs a database"),
    ("quorate:task_unsigned", "needs a database"),
    ("quorate:input_not_artifact", "needs a ledger that was changed past the program"),
    ("quorate:queue_busy", "needs a database"),
    ("quorate:queue_full", "needs a database"),
    ("quorate:run_queued", "needs a database"),
];

/// Codes whose pages need `quorate mcp`.
const MCP: [&str; 7] = [
    "quorate:mcp_exposed",
    "quorate:mcp_unusable",
    "quorate:address_unusable",
    "quorate:path_outside",
    "quorate:conversation_unknown",
    "quorate:job_unknown",
    "quorate:key_taken",
];

/// Codes whose pages need a ledger in a database.
const POSTGRES: [&str; 2] = ["quorate:ledger_address", "quorate:queue_unavailable"];

/// All codes of diagnostics with their severity, as `quorate explain` lists them.
fn listed() -> BTreeMap<String, String> {
    let (mut codes, outcomes) = all_listed();
    codes.retain(|code, _| !outcomes.contains(code));
    codes
}

/// All codes with their severity, and those that are codes of outcomes.
fn all_listed() -> (BTreeMap<String, String>, Vec<String>) {
    let list = TestDir::new().run(&["explain"]).assert_code(0).stdout;
    let entries = list.lines().map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        (words.next().unwrap(), words.next().unwrap())
    });
    let codes: BTreeMap<String, String> = entries.collect();
    assert_eq!(codes.len(), list.lines().count(), "a code is listed twice");
    let outcomes = codes.iter().filter(|(_, severity)| *severity == "outcome").map(|(code, _)| code.clone());
    let outcomes = outcomes.collect();
    (codes, outcomes)
}

/// The parts of a code's page.
fn parts(code: &str) -> Vec<Part> {
    console::parts(&TestDir::new().run(&["explain", code]).assert_code(0).stdout)
}

/// Runs a page in a place, and gives all that its commands said.
fn run(code: &str, place: &TestDir) -> String {
    let mut all = String::new();
    for said in console::run(&parts(code), place.root()) {
        console::compare(code, &said);
        all.push_str(&said.output);
    }
    all
}

fn write(place: &TestDir, part: &Part) {
    if let Part::File { path, text } = part {
        place.write(path, text);
    }
}

#[test]
fn every_page_shows_what_happens() {
    let codes = listed();
    let mut not_run: BTreeSet<&str> = NOT_RUN.iter().map(|(code, _)| *code).collect();
    if !cfg!(feature = "mcp") {
        not_run.extend(MCP);
    }
    if !cfg!(feature = "postgres") {
        not_run.extend(POSTGRES);
    }
    for code in &not_run {
        assert!(codes.contains_key(*code), "unknown code {code}");
    }
    let runs = |code: &str| !not_run.contains(code) && console::can_run(&parts(code));
    let mut pasted = 0;
    for (code, severity) in codes.iter().filter(|(code, _)| runs(code)) {
        let place = TestDir::new();
        let all = run(code, &place);
        let head = format!("{severity}[{code}]");
        assert!(all.contains(&head), "no command of the page of {code} says {head}:\n{all}");
        pasted += suggestions::paste_all(&all, &place);
    }
    assert!(pasted > 25, "{pasted} suggested commands");
}

#[test]
fn the_page_of_a_record_shows_a_run_that_has_it() {
    let code = "assembly_overlay_lock_violation";
    let place = TestDir::new();
    let said = run(code, &place);
    assert!(said.contains(&format!("\"code\": \"{code}\"")), "{said}");
}

#[test]
fn check_says_each_code_with_the_severity_that_is_listed() {
    let codes = listed();
    for code in codes.keys() {
        let place = TestDir::new();
        for part in parts(code) {
            write(&place, &part);
        }
        let said = place.run(&["check", ".", "--format", "json"]).json();
        for one in said["diagnostics"].as_array().expect("diagnostics") {
            let (found, severity) = (one["code"].as_str().unwrap(), one["severity"].as_str().unwrap());
            // `check` warns of what another command refuses.
            let refused_later = [
                codes::XREF_PLANNED.as_str(),
                codes::SIGNING_KEY_MISSING.as_str(),
                codes::ASSEMBLY_SIGNING_UNSUPPORTED.as_str(),
            ];
            let is_early = refused_later.contains(&found) && severity == "warning";
            assert!(is_early || codes.get(found).is_some_and(|listed| listed == severity), "{code}: {one}");
        }
    }
}

#[test]
fn the_codes_of_outcomes_are_explained_too() {
    let place = TestDir::new();
    let outcomes = all_listed().1;
    for (code, said) in [
        ("HOLD", "Exit code 2"),
        ("INCOMPLETE", "Exit code 3"),
        ("REVISE", "Exit code 1"),
        ("SHIP", "Exit code 0"),
        ("all_refused", "refused"),
        ("budget_exhausted", "--max-calls"),
        ("fail_fast", "fail_fast_on_runtime_error"),
        ("first_round", "round 1"),
        ("lock_unchecked", "[embedder]"),
        ("locked", "locked trait"),
        ("missing_could_block", "resume"),
        ("missing_votes", "resume"),
        ("no_adjudication", "adjudicator"),
        ("no_answer", "resume"),
        ("no_output", "root"),
        ("no_voters", "class"),
        ("no_votes", "resume"),
        ("out_of_reach", "cannot reach"),
        ("rule_failed", "custom rule"),
        ("second_round", "round 2"),
    ] {
        assert!(outcomes.iter().any(|listed| listed == code), "{code} is not listed");
        let ran = place.run(&["explain", code]).assert_code(0);
        assert!(
            ran.stdout.contains("is an outcome, not a diagnostic") && ran.stdout.contains(said),
            "{}",
            ran.stdout
        );
    }
    assert!(place.run(&["explain", "hold"]).assert_code(0).stdout.contains("Exit code 2"));
    place.run(&["explain", "budget_exhaustd"]).assert_code(4);
}
