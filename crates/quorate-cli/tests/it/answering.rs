//! Who answers: the model that a person names, and programs that are not there.

use crate::support;
use serde_json::json;
use support::TestDir;
use support::council::{COUNCIL, all_ship};

const ANSWER: &str =
    r#"{"would_block": false, "irreducible": false, "score": 4, "verdict": "SHIP", "reasoning": "Fine."}"#;

fn executable(place: &TestDir, name: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(0o755)).expect("a file");
}

/// A program that answers as every member of a council that ships, and writes down how it was called.
fn program(place: &TestDir, name: &str) {
    let script = format!("#!/bin/sh\ncat > /dev/null\necho \"$@\" >> \"$HOME/calls\"\necho '{ANSWER}'\n");
    place.write(name, script);
    executable(place, name);
}

fn with_path(place: &TestDir, arguments: &[&str], path: &str) -> support::CommandOutput {
    let mut command = place.command(arguments);
    command.env("PATH", format!("{}:/usr/bin:/bin", place.path(path).display()));
    support::CommandOutput::from_output(command.output().expect("the binary runs"))
}

#[test]
fn a_model_is_named_where_the_executor_asks_one() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    program(&place, "bin/judge");
    place.write("quorate.toml", "[executors.own]\ncommand = \"bin/judge\"\nmodel = \"small\"\n");
    let named = ["review", "draft.md", "--executor", "own", "--format", "json"];
    place.run(&named).assert_code(0);
    assert!(place.read("calls").lines().all(|line| line == "--model small"), "{}", place.read("calls"));
    place.write("calls", "");
    let report = place.run(&[&named[..], &["--model", "large"]].concat()).assert_code(0).json();
    assert!(place.read("calls").lines().all(|line| line == "--model large"), "{}", place.read("calls"));
    assert_eq!(report["model_asked"], true);

    place.write("calls", "");
    place.write("council.yaml", format!("{COUNCIL}runtime: {{type: agent-cli, command: bin/judge}}\n"));
    place.run(&["review", "draft.md", "--model", "huge"]).assert_code(0);
    assert!(place.read("calls").lines().all(|line| line == "--model huge"), "{}", place.read("calls"));
}

#[test]
fn a_run_goes_on_with_the_model_that_it_was_started_with() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    program(&place, "bin/judge");
    place.write("quorate.toml", "[executors.own]\ncommand = \"bin/judge\"\n");
    let cut = ["review", "draft.md", "--executor", "own", "--model", "large", "--max-calls", "3"];
    place.run(&cut).assert_code(3);
    let run = place.only_run();
    place.run(&["resume", &run, "--max-calls", "30"]).assert_code(0);
    assert!(place.read("calls").lines().all(|line| line == "--model large"), "{}", place.read("calls"));
}

#[test]
fn an_executor_without_a_model_refuses_one() {
    let place = TestDir::scripted(&all_ship());
    place
        .run(&["review", "draft.md", "--model", "m"])
        .assert_code(64)
        .assert_stderr_contains("`scripted` asks no model");
    let ran = place.run(&["review", "draft.md", "--executor", "rubric", "--model", "m"]).assert_code(64);
    ran.assert_stderr_contains("--executor claude");
    assert!(!place.path(".quorate/ledger.db").exists() || place.runs().is_empty());
}

#[test]
fn a_preset_needs_no_table() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    let script = "#!/bin/sh\ncat > /dev/null\ncase \"$*\" in 'run llama3.2 '*) cat \"$(dirname \"$0\")/answer\";; *) exit 1;; esac\n";
    place.write("bin/ollama", script);
    place.write("bin/answer", ANSWER);
    executable(&place, "bin/ollama");
    let named = ["review", "draft.md", "--executor", "ollama-cli"];
    with_path(&place, &named, "bin").assert_code(5).assert_stderr_contains("--model llama3.2");
    with_path(&place, &[&named[..], &["--model", "llama3.2"]].concat(), "bin").assert_code(0);
}

#[test]
fn a_missing_program_is_refused_before_anything_is_recorded() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    for (preset, install) in [
        ("claude", "npm install -g @anthropic-ai/claude-code"),
        ("codex", "npm install -g @openai/codex"),
        ("gemini-cli", "npm install -g @google/gemini-cli"),
    ] {
        let ran = with_path(&place, &["review", "draft.md", "--executor", preset], "none").assert_code(5);
        ran.assert_stderr_contains("quorate:command_missing").assert_stderr_contains(install);
    }
    place.write("quorate.toml", "[executors.own]\ncommand = \"quorate-no-such-judge\"\n");
    let ran = with_path(&place, &["review", "draft.md", "--executor", "own"], "none").assert_code(5);
    ran.assert_stderr_contains("`quorate-no-such-judge`").assert_stderr_contains("PATH is ");
    place.write(
        "council.yaml",
        format!("{COUNCIL}watch: {{paths: [./drafts/]}}\ntier_classifier: {{default_tier: 1}}\n"),
    );
    place.write("drafts/a.md", "The meeting moved to Tuesday at ten.\n");
    with_path(&place, &["sweep", "--executor", "own"], "none")
        .assert_code(5)
        .assert_stderr_contains("quorate:command_missing");
    assert!(place.runs().is_empty());
}

#[test]
fn an_assembly_with_a_missing_program_is_not_convened() {
    let place = TestDir::new();
    place.run(&["init", "assembly", "--mode", "voting", "--name", "board"]).assert_code(0);
    place.write("proposal.md", "Resolution: the meeting moves to Tuesday at ten.\n");
    let named = ["convene", "assemblies/board", "--proposal", "proposal.md", "--executor", "claude"];
    with_path(&place, &named, "none").assert_code(5).assert_stderr_contains("quorate:command_missing");
    assert!(place.runs().is_empty());
}

#[test]
fn a_failure_of_all_members_is_reported_once() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write("bin/judge", "#!/bin/sh\necho 'the quota is spent' >&2\nexit 1\n");
    executable(&place, "bin/judge");
    place.write("quorate.toml", "[executors.own]\ncommand = \"bin/judge\"\n");
    let output = place.run(&["review", "draft.md", "--executor", "own"]).assert_code(3).stdout;
    assert_eq!(output.matches("the quota is spent").count(), 1, "{output}");
    let report = place.review(&["draft.md", "--executor", "own"]);
    assert_eq!(report["missing"].as_array().map(Vec::len), Some(4), "{}", json!(report["missing"]));
}
