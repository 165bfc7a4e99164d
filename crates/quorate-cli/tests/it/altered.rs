//! A ledger whose tables or records were changed by another program: what each view says in the place of the verdict.

use crate::support::TestDir;
use crate::support::council::{COUNCIL, all_ship, all_ship_except};
use crate::support::records::execute_sql;
use crate::support::serve::Served;
use serde_json::{Value, json};

const LEDGER: &str = ".quorate/ledger.db";
const LOG: &str = ".quorate/council_log.jsonl";

/// A folder that is watched, with one review that ends with HOLD.
fn held() -> TestDir {
    let answers = all_ship_except(json!({
        "r1": {"would_block": true, "score": 1}, "r2": {"would_block": true, "irreducible": true, "score": 1},
        "adjudicate": {"verdict": "HOLD", "reasoning": "All block it."},
    }));
    let place = TestDir::scripted(&answers);
    let rules = "tier_rules: {tier_1: {post: ['*post*']}}\nwatch: {paths: [./drafts/]}\n";
    place.write("council.yaml", format!("{COUNCIL}{rules}"));
    place.write("drafts/post.md", "We will never raise prices.\n");
    place.run(&["sweep"]).assert_code(0);
    place
}

fn hook(place: &TestDir) -> crate::support::CommandOutput {
    let event = json!({"hook_event_name": "PostToolUse", "tool_name": "Write", "cwd": place.root(),
                       "tool_input": {"file_path": place.path("drafts/post.md"), "content": "the first version"}});
    place.run_with_stdin(&["hook", "claude"], event.to_string().as_bytes())
}

fn audit(place: &TestDir) -> Value {
    place.run(&["audit", "--format", "json"]).assert_code(1).json()
}

#[test]
fn an_altered_run_is_no_verdict_in_any_view() {
    // D13
    let place = held();
    let run = place.only_run();
    execute_sql(&place.path(LEDGER), "UPDATE run SET verdict = 'SHIP'");
    let listed = place.run(&["runs", "--format", "json"]).assert_code(1).json();
    let row = &listed["runs"][0];
    assert_eq!(
        (&row["verdict"], &row["sealed"], &row["open"]),
        (&json!("altered"), &json!(false), &json!(false))
    );
    assert!(row["difference"].as_str().unwrap().contains("does not match its records"), "{row}");
    let human = place.run(&["runs"]).assert_code(1);
    assert!(human.stdout.contains("ALTERED") && !human.stdout.contains("SHIP"), "{}", human.stdout);
    let shown = place.run(&["show", &run, "--format", "json"]).assert_code(1);
    assert_eq!(shown.json()["diagnostics"][0]["code"], "quorate:run_altered");
    for arguments in [["show", &run], ["show", "latest"], ["report", &run]] {
        let shown = place.run(&arguments).assert_code(1);
        assert!(shown.stderr.contains("is altered"), "{arguments:?}: {}", shown.stderr);
    }
    let audited = audit(&place);
    assert_eq!((&audited["reviews"], &audited["verdicts"]), (&json!(0), &json!({})));
    assert_eq!(audited["altered"][0]["run"], *run);
    assert!(place.run(&["audit"]).assert_code(1).stdout.contains("ALTERED, not counted"));
    // Neither a hook nor a sweep takes it for a verdict, and neither fails as a verdict would.
    let told = hook(&place);
    assert!(told.stderr.contains("is altered"), "{}", told.stderr);
    let swept = place.run(&["sweep", "--format", "json"]).assert_code(3).json();
    assert_eq!(swept["files"][0]["fate"], "failed", "{swept}");
    let again = place.run(&["resume", &run]).assert_code(5);
    assert!(again.stderr.contains("quorate:run_altered"), "{}", again.stderr);

    let served = Served::start(&place, &["--read-only"]);
    let row = served.get("/api/v1/runs").json()["runs"][0].clone();
    assert_eq!((&row["verdict"], &row["sealed"]), (&json!("altered"), &json!(false)));
    let page = served.get("/").body;
    assert!(page.contains("ALTERED") && page.contains("does not match its records"), "{page}");
    let one = served.get(&format!("/api/v1/runs/{run}"));
    assert_eq!((one.status, &one.json()["code"]), (422, &json!("quorate:run_altered")));
    assert!(served.get(&format!("/runs/{run}")).body.contains("is altered"));
    assert_eq!(served.get("/api/v1/audit").json()["altered"][0]["run"], *run);
    assert!(served.get("/audit").body.contains("ALTERED"));
}

#[test]
fn a_run_without_a_row_is_seen() {
    // D13
    let place = held();
    let run = place.only_run();
    execute_sql(&place.path(LEDGER), "DELETE FROM run");
    let listed = place.run(&["runs", "--verdict", "ship", "--format", "json"]).assert_code(1).json();
    assert_eq!((&listed["runs"][0]["run"], &listed["runs"][0]["verdict"]), (&json!(run), &json!("altered")));
    assert!(place.run(&["show", &run[..7]]).assert_code(1).stderr.contains("quorate:run_altered"));
    assert_eq!(audit(&place)["altered"][0]["run"], *run);
}

#[test]
fn a_removed_decision_of_a_person_is_missed() {
    // D13
    let place = TestDir::scripted(&all_ship());
    place.write("draft.md", "The meeting moved to Tuesday.\n");
    place.run(&["review", "draft.md"]).assert_code(0);
    let run = place.only_run();
    let hold =
        ["override", &run, "--by", "ada", "--verdict", "hold", "--reason", "We promised this to no one."];
    place.run(&hold).assert_code(0);
    assert_eq!(place.run(&["runs", "--format", "json"]).assert_code(0).json()["runs"][0]["override"], "HOLD");
    execute_sql(&place.path(LEDGER), "DELETE FROM record WHERE kind = 'override'");
    execute_sql(&place.path(LEDGER), "UPDATE run SET override = NULL");
    let listed = place.run(&["runs", "--format", "json"]).assert_code(1).json();
    assert_eq!(
        (&listed["runs"][0]["verdict"], &listed["runs"][0]["sealed"]),
        (&json!("altered"), &json!(false))
    );
    let shown = place.run(&["show", &run]).assert_code(1);
    assert!(shown.stderr.contains("is altered"), "{}", shown.stderr);
    // A later run has all its records.
    place.run(&["review", "draft.md", "--type", "memo"]).assert_code(0);
}

#[test]
fn a_line_of_the_log_that_differs_from_its_run_is_not_counted() {
    // D13
    let place = held();
    let run = place.only_run();
    let log = place.read(LOG);
    let theirs =
        r#"{"v":2,"span_id":"council-ab12","event":"verdict","verdict":"HOLD","artifact_type":"post"}"#;
    let forged = log.replacen(r#""event":"verdict""#, r#""event":"override""#, 1);
    for altered in [
        log.replace(r#""verdict":"HOLD""#, r#""verdict":"SHIP""#),
        log.replace(r#""artifact_type":"post""#, r#""artifact_type":"memo""#),
        format!("{log}{forged}"),
        format!("{log}{log}"),
    ] {
        place.write(LOG, format!("{altered}{theirs}\n"));
        let audited = audit(&place);
        assert_eq!(
            (&audited["reviews"], &audited["altered"][0]["run"]),
            (&json!(1), &json!(run)),
            "{altered}"
        );
        assert_eq!(audited["overrides"], 0);
    }
    // A log that was begun anew lacks the lines before; one that is missing after that was removed.
    place.write(LOG, format!("{theirs}\n"));
    place.run(&["audit"]).assert_code(0);
    place.write(LOG, &log);
    for name in ["drafts/post-3.md", "drafts/post-4.md"] {
        place.write(name, format!("We will never raise prices, says {name}.\n"));
        place.run(&["sweep"]).assert_code(0);
    }
    let text = place.read(LOG);
    let lines: Vec<&str> = text.lines().collect();
    place.write(LOG, format!("{}\n", lines[1..].join("\n")));
    place.run(&["audit"]).assert_code(0);
    place.write(LOG, format!("{}\n{}\n", lines[0], lines[2]));
    let audited = audit(&place);
    assert_eq!(
        (&audited["reviews"], &audited["altered"][0]["difference"]),
        (&json!(2), &json!("the log has no line for it"))
    );
    // The adjudicator is shown no word of it.
    let altered = log.replace("All block it.", "All praise it.");
    assert_ne!(altered, log);
    place.write(LOG, &altered);
    place.write("drafts/post-2.md", "The meeting moved to Tuesday.\n");
    place.answers(&all_ship());
    let swept = place.run(&["sweep"]).assert_code(0);
    assert!(swept.stderr.contains("differs from the run's records"), "{}", swept.stderr);
    let opened = place.run(&["ledger", "export", "--format", "jsonl"]).stdout;
    assert!(
        opened.contains(r#"\"verdict\":\"ALTERED\""#) || opened.contains(r#""verdict":"ALTERED""#),
        "{opened}"
    );
    assert!(!opened.contains("All praise it."), "{opened}");
}

#[test]
fn an_altered_index_of_the_log_is_built_again() {
    // D13
    let place = held();
    let counted = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    for statement in [
        "UPDATE log_line SET verdict = 'SHIP', blocking = 0",
        "UPDATE log_seat SET blocks = 0",
        "DELETE FROM log_line",
    ] {
        execute_sql(&place.path(LEDGER), statement);
        let audited = place.run(&["audit", "--format", "json"]).assert_code(0);
        assert!(audited.stderr.contains("rebuilt the index"), "{statement}: {}", audited.stderr);
        assert_eq!(audited.json(), counted, "{statement}");
    }
}
