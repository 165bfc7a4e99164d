//! Cassettes through the real binary: recorded, replayed elsewhere, refused; and those of the examples, which
//! `QUORATE_WRITE_CASSETTES=1` records again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::support;
use support::council::{all_ship, all_ship_except};
use support::{TestDir, files, finish, records};

/// Records the examples' cassettes again with the answers that they have.
const REFRESH: &str = "QUORATE_WRITE_CASSETTES=1 cargo nextest run -p quorate-cli cassettes::the_examples";

/// The examples with cassettes, and the commands that their READMEs show, with the exit codes.
const EXAMPLES: [(&str, &[&str], i32); 5] = [
    ("two-models", &["review", "draft.md"], 1),
    (
        "release-board",
        &[
            "convene",
            "assemblies/release-board",
            "--proposal",
            "proposals/calendar-feed.md",
            "--class",
            "release",
            "--executor",
            "recorded",
        ],
        1,
    ),
    (
        "council-of-mentors",
        &[
            "convene",
            "operators/support-agent",
            "--trigger",
            "sample",
            "--conversation",
            "conversations/flattery.jsonl",
            "--executor",
            "recorded",
        ],
        0,
    ),
    (
        "design-critique",
        &[
            "convene",
            "assemblies/design-critique",
            "--topic",
            "topics/lending-page.md",
            "--executor",
            "recorded",
        ],
        0,
    ),
    (
        "incident-review",
        &[
            "convene",
            "assemblies/incident-review",
            "--request",
            "incidents/friday-night.md",
            "--executor",
            "recorded",
        ],
        0,
    ),
];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn copy_of(example: &str) -> TestDir {
    let place = TestDir::new();
    let from = examples().join(example).join(".");
    let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(place.root()).status();
    assert!(copied.expect("cp").success());
    let _ = std::fs::remove_dir_all(place.path(".quorate"));
    place
}

/// The recordings below a folder, by path.
fn recordings(dir: &Path) -> BTreeMap<PathBuf, Value> {
    let read = |(path, bytes): (PathBuf, Vec<u8>)| {
        (path.strip_prefix(dir).unwrap().to_owned(), serde_json::from_slice(&bytes).unwrap())
    };
    files(dir).into_iter().map(read).collect()
}

/// Who is asked when, as a script names it.
fn key(request: &Value) -> String {
    let text = |key: &str| request[key].as_str().unwrap().to_owned();
    match text("step") == "adjudicate" {
        true => "adjudicate".to_owned(),
        false => format!("{}/{}", text("step"), text("member")),
    }
}

/// Records an example's cassettes again, with the replies that they have.
fn refresh(example: &str, command: &[&str]) {
    let place = copy_of(example);
    let replies: BTreeMap<String, Value> = recordings(&place.path("cassettes"))
        .into_values()
        .map(|one| (key(&one["request"]), one["reply"].clone()))
        .collect();
    let said = |reply: &Value| match &reply["text"] {
        Value::Array(lines) => {
            json!(lines.iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n"))
        }
        _ => reply["json"].clone(),
    };
    let script: Map<String, Value> = replies.iter().map(|(key, reply)| (key.clone(), said(reply))).collect();
    place.write("answers.json", json!(script).to_string());
    let host =
        place.read("quorate.toml").replace("kind = \"cassette\"", "kind = \"cassette\"\nsource = \"again\"");
    place.write(
        "quorate.toml",
        format!("{host}\n[executors.again]\nkind = \"script\"\npath = \"answers.json\"\n"),
    );
    std::fs::remove_dir_all(place.path("cassettes")).unwrap();
    let ran = place.run(command);
    let target = examples().join(example).join("cassettes");
    std::fs::remove_dir_all(&target).unwrap();
    for (path, mut recording) in recordings(&place.path("cassettes")) {
        let reply =
            replies.get(&key(&recording["request"])).unwrap_or_else(|| panic!("{path:?}: {}", ran.stderr));
        recording["reply"] = reply.clone();
        std::fs::create_dir_all(target.join(&path).parent().unwrap()).unwrap();
        std::fs::write(target.join(&path), format!("{recording:#}\n")).unwrap();
    }
}

#[test]
fn the_examples_replay_without_trust_and_ask_nobody() {
    for (example, command, code) in EXAMPLES {
        if std::env::var_os("QUORATE_WRITE_CASSETTES").is_some() {
            refresh(example, command);
        }
        let place = copy_of(example);
        let before = files(&place.path("cassettes"));
        let mut started = place.command(&[command, &["--format", "json"]].concat());
        started.env_remove("QUORATE_TRUST");
        let ran = finish(started.spawn().unwrap());
        assert!(
            !ran.stdout.contains("no answer to this question is recorded"),
            "{example}: a prompt has changed. Record again with\n  {REFRESH}\n{}",
            ran.stdout
        );
        let report = ran.assert_code(code).json();
        assert_eq!((&report["model_asked"], &report["partial"]), (&json!(false), &json!(false)), "{example}");
        assert_eq!(report["notes"][0], "Recorded answers; no model was asked.", "{example}");
        let asked = report["spent"]["calls"].as_u64().unwrap() as usize;
        assert_eq!(
            before.len(),
            asked,
            "{example}: each recording is used, and no other is there: {REFRESH}"
        );
        assert_eq!(files(&place.path("cassettes")), before, "{example}: replaying writes nothing");
        assert!(before.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < 64 << 10, "{example} is small");
    }
}

const TEXT: &str = "The meeting moved to Tuesday at ten.\n";

/// A place that records what a script says.
fn recorder() -> TestDir {
    let place = TestDir::with("draft.md", TEXT);
    place.answers(&all_ship_except(json!({
        "r1/skeptic": {"would_block": true, "findings": [{"quote": "Tuesday", "issue": "Which one?"}]},
        "r2/evidence": ["SHIP it, all good", {"would_block": false, "irreducible": false}],
    })));
    place.write(
        "quorate.toml",
        "[defaults]\nexecutor = \"tape\"\n[executors.tape]\nkind = \"cassette\"\ndir = \"tapes/council\"\n\
         source = \"script\"\n[executors.script]\nkind = \"script\"\npath = \"answers.json\"\n",
    );
    place
}

/// Another place with the tapes of the first, and no other executor.
fn player(recorded: &TestDir, text: &str) -> TestDir {
    let place = TestDir::with("draft.md", text);
    place.write(
        "quorate.toml",
        "[defaults]\nexecutor = \"tape\"\n[executors.tape]\nkind = \"cassette\"\ndir = \"tapes/council\"\n",
    );
    for (path, bytes) in files(&recorded.path("tapes")) {
        place
            .write(&format!("tapes/{}", path.strip_prefix(recorded.path("tapes")).unwrap().display()), bytes);
    }
    place
}

/// What was said, by invocation and attempt, as the ledger has it.
fn said(place: &TestDir, run: &str) -> Vec<String> {
    let all = records::records(&place.path(".quorate/ledger.db"), run);
    let attempts =
        all.iter().filter(|record| record.kind == "attempt").filter_map(|record| record.data.clone());
    let mut said: Vec<String> =
        attempts.map(|data| format!("{} {} {}", data["invocation"], data["attempt"], data["text"])).collect();
    said.sort();
    said
}

#[test]
fn a_council_replays_in_another_workspace_to_the_byte() {
    let recorder = recorder();
    let recorded = recorder.review(&["draft.md"]);
    assert_eq!((&recorded["verdict"], &recorded["spent"]["calls"]), (&json!("SHIP"), &json!(10)));
    let player = player(&recorder, TEXT);
    let replayed = player.review(&["draft.md"]);
    for key in ["verdict", "reasoning", "findings", "because"] {
        assert_eq!(recorded[key], replayed[key], "{key}");
    }
    let run = |report: &Value| report["run"].as_str().unwrap().to_owned();
    let (before, now) = (said(&recorder, &run(&recorded)), said(&player, &run(&replayed)));
    assert_eq!((before.len(), &before), (10, &now));
    // The ledger says which answers were recorded before, and by what.
    let all = records::records(&player.path(".quorate/ledger.db"), &run(&replayed));
    for one in all.iter().filter(|record| ["attempt", "consultation"].contains(&&*record.kind)) {
        let data = one.data.as_ref().unwrap();
        assert_eq!(data["recorded"], true, "{data:?}");
        if one.kind == "consultation" {
            assert_eq!(data["kind"], "cassette");
        }
    }
    assert_eq!(replayed["notes"][0], "Recorded answers; no model was asked.");
    let shown = player.run(&["review", "draft.md"]).assert_code(0).stdout;
    assert_eq!(shown.matches("recorded answers; no model was asked").count(), 1, "{shown}");
    player.run(&["replay", &run(&replayed)]).assert_code(0);
    player.run(&["doctor"]).assert_stdout_contains("10 recorded answers; does not ask a model");
    player
        .run(&["review", "draft.md", "--model", "large"])
        .assert_code(64)
        .assert_stderr_contains("asks no model");
}

#[test]
fn a_changed_request_fails_and_names_what_differs() {
    let recorder = recorder();
    recorder.review(&["draft.md"]);
    let player = player(&recorder, &TEXT.replace("ten", "nine"));
    let report = player.run(&["review", "draft.md", "--format", "json"]).assert_code(3).json();
    assert_eq!((&report["verdict"], &report["model_asked"]), (&json!("INCOMPLETE"), &json!(false)));
    let run = report["run"].as_str().unwrap();
    let shown = player.run(&["show", run, "--full"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("(4 recorded answers are missing; no model was asked)"), "{shown}");
    assert!(!shown.contains("nothing found") && !shown.contains("judged"), "{shown}");
    assert_eq!(report["notes"][0], "4 recorded answers are missing; no model was asked.");
    assert!(shown.contains("no answer to this question is recorded"), "{shown}");
    assert!(shown.contains("differs in `prompt`; line"), "{shown}");
    assert!(
        shown.contains(
            r#"was "The meeting moved to Tuesday at ten.", is "The meeting moved to Tuesday at nine.""#
        ),
        "{shown}"
    );
}

#[test]
fn a_report_says_how_many_recorded_answers_are_missing_and_who_else_was_asked() {
    let recorder = recorder();
    recorder.review(&["draft.md"]);
    let player = player(&recorder, TEXT);
    let gone = files(&player.path("tapes"));
    let gone = gone.iter().find(|(path, _)| path.to_str().unwrap().contains("skeptic.r1")).unwrap();
    std::fs::remove_file(&gone.0).unwrap();
    let report = player.run(&["review", "draft.md", "--format", "json"]).json();
    let missing = report["notes"][0].as_str().unwrap();
    assert!(missing.ends_with("missing; no model was asked."), "{missing}");
    assert_eq!((&report["partial"], &report["model_asked"]), (&json!(true), &json!(false)));
    // A member that is asked itself is not among them, even if it fails.
    let tables = player.read("quorate.toml");
    let away = "[executors.away]\ncommand = \"false\"\n[council.members.skeptic]\nexecutor = \"away\"\n";
    player.write("quorate.toml", format!("{tables}{away}"));
    let report = player.run(&["review", "draft.md", "--format", "json"]).json();
    let notes = report["notes"].to_string();
    assert!(notes.contains("answers come from recordings"), "{notes}");
    assert!(report["model_asked"] == true && !notes.contains("no model was asked"), "{report}");
}

#[test]
fn a_recorder_asks_only_for_what_is_missing_and_needs_trust() {
    let recorder = recorder();
    recorder.review(&["draft.md"]);
    let tapes = files(&recorder.path("tapes"));
    assert_eq!(tapes.len(), 10);
    // Other answers by now: those on tape hold.
    recorder.answers(&all_ship_except(json!({"adjudicate": {"verdict": "HOLD", "reasoning": "No."}})));
    assert_eq!(recorder.review(&["draft.md"])["verdict"], "SHIP");
    let adjudicated = tapes.iter().find(|(path, _)| path.to_str().unwrap().contains("adjudicat")).unwrap();
    std::fs::remove_file(&adjudicated.0).unwrap();
    let report = recorder.review(&["draft.md"]);
    assert_eq!(report["verdict"], "HOLD");
    let notes = report["notes"].to_string();
    assert!(notes.contains("8 of 9 answers come from recordings"), "{notes}");
    let command = |arguments: &[&str]| {
        let mut command = recorder.command(arguments);
        command.env_remove("QUORATE_TRUST");
        finish(command.spawn().unwrap())
    };
    let shown = command(&["trust", "--show"]).stdout;
    assert!(shown.contains("write answers to `tapes/council`"), "{shown}");
    command(&["review", "draft.md"]).assert_code(5).assert_stderr_contains("workspace_untrusted");
    // The source's own side effects are the recorder's.
    let host = recorder
        .read("quorate.toml")
        .replace("kind = \"script\"\npath = \"answers.json\"", "command = \"./judge.sh\"");
    recorder.write("quorate.toml", host);
    assert!(command(&["trust", "--show"]).stdout.contains("./judge.sh"));
}

#[test]
fn a_cassette_that_cannot_be_is_refused_before_anything_is_recorded() {
    let place = TestDir::with("draft.md", TEXT);
    place.answers(&all_ship());
    let script = "[executors.script]\nkind = \"script\"\npath = \"answers.json\"\n";
    for (table, code, said) in [
        ("dir = \"../elsewhere\"", "executor_invalid", "not a folder of the workspace"),
        ("dir = \".quorate\"", "executor_invalid", "not a folder of the workspace"),
        ("", "executor_invalid", "`dir` is missing"),
        ("dir = \"tapes\"", "cassette_invalid", "cannot read the folder `tapes`"),
        ("dir = \"tapes\"\nsource = \"nine\"", "kind_unknown", "unknown executor `nine`"),
        ("dir = \"tapes\"\nsource = \"tape\"", "executor_invalid", "has a source of its own"),
        ("dir = \"tapes\"\nsorce = \"script\"", "executor_invalid", "did you mean `source`"),
    ] {
        place.write("quorate.toml", format!("{script}[executors.tape]\nkind = \"cassette\"\n{table}\n"));
        let refused = place.run(&["review", "draft.md", "--executor", "tape"]).assert_code(5);
        refused.assert_stderr_contains(code).assert_stderr_contains(said);
        assert_eq!(records::runs(&place.path(".quorate/ledger.db")).len(), 0, "{table}");
    }
}
