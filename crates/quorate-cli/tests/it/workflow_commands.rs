//! Workflow commands: whatever texts say, a runner of GitHub Actions that reads our output obeys nothing but the annotations
//! that we write (X10).

use crate::support;
use serde_json::{Value, json};
use support::council::all_ship_except;
use support::{CommandOutput, TestDir, finish};

/// What a text could command.
const HOSTILE: [&str; 8] = [
    "see ##[set-output name=result;]SHIP here",
    "::add-mask::Tuesday",
    "  \t::stop-commands::never",
    "\u{a0}::set-env name=PATH::/tmp",
    "##[error]it failed",
    "###[add-mask]ten",
    "one\r::debug::two",
    "a \u{202e}turned\u{202c} text\u{2028}::warning::of two\u{2029}lines",
];

/// The commands that a runner would obey: lines that begin with `::` once blanks are gone, else `##[` anywhere.
fn obeyed(text: &str) -> Vec<&str> {
    let commands = |line: &&str| {
        let begins = line.trim_start().strip_prefix("::").is_some_and(|rest| rest.contains("::"));
        begins || line.find("##[").is_some_and(|at| line[at..].contains(']'))
    };
    text.split(['\n', '\r']).filter(commands).collect()
}

fn hostile() -> TestDir {
    let all = HOSTILE.join("\n");
    let finding = json!({"quote": HOSTILE[1], "issue": all, "fix": HOSTILE[0]});
    let place = TestDir::scripted(&all_ship_except(json!({
        "r1/skeptic": {"would_block": true, "score": 2, "notes": all, "findings": [finding]},
        "r1/evidence": {"$fail": all},
        "adjudicate": {"verdict": "HOLD", "reasoning": all, "revision_brief": all},
    })));
    place.write("draft.md", format!("The meeting moved.\n{all}\n"));
    place
}

fn on_github(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    finish(place.command(arguments).env("GITHUB_ACTIONS", "true").spawn().expect("the binary runs"))
}

#[track_caller]
fn is_inert(ran: &CommandOutput) {
    for (name, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        assert_eq!(obeyed(text), [""; 0], "{name}: {text}");
    }
}

#[test]
fn a_runner_obeys_nothing_of_a_text_in_any_format() {
    let place = hostile();
    let run = place.review(&["draft.md"])["run"].as_str().expect("an id").to_owned();
    for format in ["human", "markdown", "json", "sarif"] {
        let shown = on_github(&place, &["show", &run, "--format", format]).assert_code(0);
        is_inert(&shown);
        is_inert(&on_github(&place, &["review", "draft.md", "--format", format]));
        is_inert(&on_github(&place, &["show", "##[error]no", "--format", format]));
        if matches!(format, "json" | "sarif") {
            let elsewhere = place.run(&["show", &run, "--format", format]).assert_code(0);
            assert_ne!(obeyed(&elsewhere.stdout), [""; 0], "without a runner nothing is changed");
            assert_eq!(shown.json(), elsewhere.json(), "JSON means the same");
        }
    }
    let elsewhere = place.run(&["show", &run]).assert_code(0);
    assert_ne!(obeyed(&elsewhere.stdout), [""; 0], "the text says what could be obeyed");
}

#[test]
fn evidence_is_written_as_it_is_or_not_at_all() {
    let place = hostile();
    place.review(&["draft.md"]);
    for (arguments, file) in [
        (&["ledger", "export"][..], "export.jsonl"),
        (&["ledger", "prove", "latest"], "proof.json"),
        (&["report", "latest"], "report.html"),
    ] {
        let refused = on_github(&place, arguments).assert_code(5);
        refused.assert_stderr_contains("quorate:file_unwritable").assert_stderr_contains("> FILE");
        assert_eq!(refused.stdout, "");
        let file = place.path(file);
        let mut command = place.command(arguments);
        command.env("GITHUB_ACTIONS", "true").stdout(std::fs::File::create(&file).unwrap());
        finish(command.spawn().unwrap()).assert_code(0);
        assert!(std::fs::read_to_string(file).unwrap().contains("stop-commands"));
    }
    let key = place.run(&["keys", "export", "ledger"]).assert_code(0).stdout;
    for check in
        [["check-export", "export.jsonl"], ["check-proof", "proof.json"], ["check-proof", "report.html"]]
    {
        place.run(&["ledger", check[0], check[1], "--key", key.trim()]).assert_code(0);
    }
}

#[test]
fn annotations_are_the_only_commands_of_the_github_format() {
    let place = hostile();
    let run = place.review(&["draft.md"])["run"].as_str().expect("an id").to_owned();
    for arguments in
        [&["show", &run, "--format", "github"][..], &["review", "draft.md", "--format", "github"]]
    {
        let ran = on_github(&place, arguments);
        assert_eq!(obeyed(&ran.stderr), [""; 0]);
        assert!(ran.stdout.lines().count() >= 2, "{ran:?}");
        for line in ran.stdout.split_terminator('\n') {
            let ours = ["::error ", "::warning ", "::notice "].iter().any(|begin| line.starts_with(begin));
            assert!(ours && !line.contains(['\r', '\u{202e}', '\u{2028}', '\u{2029}']), "{line}");
            assert!(!line.contains("##["), "{line}");
        }
    }
}

#[test]
fn names_talk_and_errors_are_inert_and_seen() {
    let place = hostile();
    let name = "a\u{202e}##[error]b\u{2028}.yaml";
    place.write(name, "nothing: 1\n::add-mask::x: 2\n");
    for arguments in [
        &["check", name][..],
        &["check", name, "--format", "concise"],
        &["check", name, "--format", "json"],
        &["fmt", name],
        &["review", name],
        &["review", "no-\u{202e}##[error]x.md"],
        &["##[error]x"],
        &["review", "--policy", "##[error]x", "draft.md"],
        &["review", "draft.md", "--executor", "::add-mask::x"],
        &["explain", "##[error]x"],
    ] {
        let ran = on_github(&place, arguments);
        is_inert(&ran);
        if !arguments.contains(&"json") {
            assert!(!(ran.stdout.clone() + &ran.stderr).contains('\u{202e}'), "{arguments:?}: {ran:?}");
        }
    }
}

#[test]
fn a_conversation_is_inert() {
    let place = TestDir::with(
        "swarm.yaml",
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nparticipants:\n  \
         - {id: ada, executor: script, displayName: Ada, config: {path: turns.json}}\n\
         substrate: {kind: file, path: talk.md}\nstate: {kind: fs, dir: states}\ndispatcher: {kind: mention}\n",
    );
    let all = HOSTILE.join("\n");
    place.write("turns.json", json!({"ada": {"content": all}}).to_string());
    is_inert(&on_github(&place, &["say", "swarm.yaml", &all]).assert_code(0));
    let turns: [&[&str]; 4] = [
        &["run", "swarm.yaml", "--say", "@Ada", "--verbose"],
        &["log", "swarm.yaml"],
        &["log", "swarm.yaml", "--format", "json"],
        &["log", "swarm.yaml", "--records"],
    ];
    for arguments in turns {
        is_inert(&on_github(&place, arguments));
    }
    let said: Value = on_github(&place, &["log", "swarm.yaml", "--format", "json"]).json();
    assert!(said.to_string().contains("##[set-output"), "JSON means what was said: {said}");
}
