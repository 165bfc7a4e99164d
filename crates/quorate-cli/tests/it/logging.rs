//! The log on standard error: `-v`, `QUORATE_LOG`, lines of JSON, and what never is in it.

use std::process::Command;

use crate::support;
use serde_json::{Value, json};
use support::council::{all_ship, all_ship_except};
use support::{CommandOutput, TestDir};

const TEXT: &str = "The walrus moved the meeting to Tuesday at ten.\n";

fn place() -> TestDir {
    let place = TestDir::scripted(&all_ship());
    place.write("draft.md", TEXT);
    place
}

fn run(command: &mut Command) -> CommandOutput {
    CommandOutput::from_output(command.output().unwrap())
}

#[test]
fn more_is_logged_the_more_is_asked_for_and_never_on_standard_output() {
    let place = place();
    let quiet = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0);
    assert_eq!(quiet.stderr, "");
    let runs = place.run(&["review", "draft.md", "--format", "json", "-v"]).assert_code(0);
    assert_eq!(runs.json()["verdict"], "SHIP");
    for logged in ["opened", "member=skeptic", "verdict=\"SHIP\"", "executor=scripted"] {
        runs.assert_stderr_contains(logged);
    }
    assert!(!runs.stderr.contains("append"), "{}", runs.stderr);
    let calls = place.run(&["-vv", "review", "draft.md", "--format", "json"]).assert_code(0);
    assert!(calls.stderr.contains("attempt=1") && calls.stderr.contains("append"), "{}", calls.stderr);
    place.run(&["review", "draft.md", "-v", "--quiet"]).assert_code(64);
}

#[test]
fn a_variable_filters_and_lines_can_be_json() {
    let place = place();
    let mut command = place.command(&["review", "draft.md"]);
    let json =
        run(command.env("QUORATE_LOG", "quorate=debug").env("QUORATE_LOG_FORMAT", "json")).assert_code(0);
    let events: Vec<Value> = json.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let member =
        |event: &&Value| event["span"]["member"] == "skeptic" && event["fields"]["status"].is_string();
    let answered = events.iter().find(member).expect("a member's answer");
    assert_eq!(answered["level"], "INFO");
    assert!(answered["spans"][0]["run"].as_str().unwrap().starts_with('r'), "{answered}");
    let mut command = place.command(&["review", "draft.md"]);
    let none = run(command.env("QUORATE_LOG", "hyper=info")).assert_code(0);
    assert!(!none.stderr.contains("skeptic"), "{}", none.stderr);
    for (name, value) in [("QUORATE_LOG", "quorate=loud"), ("QUORATE_LOG_FORMAT", "xml")] {
        let mut command = place.command(&["review", "draft.md", "-v"]);
        run(command.env(name, value)).assert_code(64).assert_stderr_contains(value);
    }
}

#[test]
fn no_text_and_no_secret_is_logged() {
    let place = TestDir::scripted(&all_ship_except(json!({"r1/skeptic": "no JSON, said the walrus"})));
    place.write("draft.md", TEXT);
    let mut command = place.command(&["review", "draft.md"]);
    command.env("QUORATE_LOG", "trace").env("WALRUS_TOKEN", "draft.md-and-more");
    let logged = run(&mut command).stderr;
    assert!(logged.contains("why=\"re-prompt\""), "{logged}");
    for never in ["walrus", "Tuesday", "You are", "draft.md-and-more"] {
        assert!(!logged.contains(never), "{never}: {logged}");
    }
}
