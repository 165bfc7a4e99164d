//! A conversation that was changed after its turns were answered (D15): every command that reads the whole of it names
//! the change with its line, and no participant is shown it.

use std::path::Path;

use crate::support;
use quorate_kernel::entropy::sha256_hex;
use support::{CommandOutput, TestDir, records};

const CODE: &str = "quorate:conversation_altered";
const SUBSTRATES: [&str; 2] = ["{kind: file, path: talk.md}", "{kind: sqlite, path: talk.db}"];

/// A conversation of three questions, each with an answer.
fn answered(substrate: &str) -> TestDir {
    let place = TestDir::with("say.sh", "cat >> prompts.txt\nprintf 'I say %s' \"$1\"\n");
    let participant = |id: &str, name: &str| {
        let config = format!("{{command: /bin/sh, args: [say.sh, {id}]}}");
        format!("  - {{id: {id}, executor: agent-cli, displayName: {name}, config: {config}}}")
    };
    place.write(
        "swarm.yaml",
        format!(
            "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nparticipants:\n{}\n{}\n\
             substrate: {substrate}\ndispatcher: {{kind: mention}}\n",
            participant("ada", "Ada"),
            participant("bo", "Bo"),
        ),
    );
    for text in ["@Ada what is first?", "@Bo what is second?", "@Ada what is third?"] {
        run(&place, &["--say", text]).assert_code(0);
    }
    place
}

fn run(place: &TestDir, more: &[&str]) -> CommandOutput {
    place.run(&[&["run", "swarm.yaml"], more].concat())
}

fn turn_id(participant: &str, time: &str, content: &str) -> String {
    format!("t_{}", &sha256_hex(format!("{participant}\0{time}\0{content}").as_bytes())[..12])
}

/// A turn of a journal: its header, its note if it has one, and its content.
#[derive(Debug, Clone)]
struct Stored {
    id: String,
    participant: String,
    time: String,
    note: Option<String>,
    content: String,
}

impl Stored {
    fn with_new_id(mut self) -> Self {
        self.id = turn_id(&self.participant, &self.time, &self.content);
        self
    }
}

fn journal(path: &Path) -> Vec<Stored> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut turns: Vec<Stored> = Vec::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix("=== TURN id=").and_then(|rest| rest.strip_suffix(" ===")) {
            let words: Vec<&str> = header.split(' ').collect();
            turns.push(Stored {
                id: words[0].to_owned(),
                participant: words[1].strip_prefix("participant=").unwrap().to_owned(),
                time: words[2].strip_prefix("ts=").unwrap().to_owned(),
                note: None,
                content: String::new(),
            });
        } else if line.starts_with("<!-- quorate:") {
            turns.last_mut().unwrap().note = Some(line.to_owned());
        } else {
            turns.last_mut().unwrap().content = line.to_owned();
        }
    }
    turns
}

fn write_journal(place: &TestDir, turns: &[Stored]) {
    let text = turns.iter().map(|Stored { id, participant, time, note, content }| {
        let note = note.as_ref().map_or_else(String::new, |note| format!("{note}\n"));
        format!("=== TURN id={id} participant={participant} ts={time} ===\n{note}{content}\n")
    });
    place.write("talk.md", text.collect::<String>());
}

/// Every command that reads the whole conversation names the change, and no participant sees it.
fn assert_found(place: &TestDir, case: &str, has_line: bool) {
    let log = place.run(&["log", "swarm.yaml"]);
    assert!(log.code == 1 && log.stderr.contains(CODE), "{case}: {log:?}");
    let check = place.run(&["check", "swarm.yaml", "--format", "concise"]);
    assert!(check.code == 1 && check.stdout.contains(CODE), "{case}: {check:?}");
    let verify = place.run(&["ledger", "verify"]);
    assert!(verify.code == 1 && verify.stderr.contains(CODE), "{case}: {verify:?}");
    if has_line {
        let named = check.stdout.lines().any(|line| line.starts_with("talk.md:") && line.contains(CODE));
        assert!(named && verify.stderr.contains("talk.md:"), "{case}: {check:?} {verify:?}");
    }
    let prompts = place.read("prompts.txt");
    let ran = run(place, &["--say", "@Bo and @Ada, go on"]);
    assert!(ran.code == 1 && ran.stderr.contains(CODE), "{case}: {ran:?}");
    assert_eq!(place.read("prompts.txt"), prompts, "{case}: a participant was asked");
}

#[test]
fn an_unaltered_conversation_gives_no_report() {
    // D15
    for substrate in SUBSTRATES {
        let place = answered(substrate);
        place.run(&["say", "swarm.yaml", "@Bo and now?"]).assert_code(0);
        for _ in 0..2 {
            place.run(&["log", "swarm.yaml"]).assert_code(0);
            place.run(&["check", "swarm.yaml"]).assert_code(0);
            place.run(&["ledger", "verify"]).assert_code(0);
            run(&place, &[]).assert_code(0);
        }
    }
}

#[test]
fn an_altered_journal_is_named_and_never_shown_to_a_participant() {
    // D15
    let original = answered(SUBSTRATES[0]);
    let turns = journal(&original.path("talk.md"));
    assert_eq!(turns.len(), 6, "{turns:?}");
    type Change = fn(&mut Vec<Stored>);
    fn ivo(id: Option<&str>) -> Stored {
        let turn = Stored {
            id: id.unwrap_or_default().to_owned(),
            participant: "ivo".to_owned(),
            time: "2026-11-28T07:00:00.000Z".to_owned(),
            note: None,
            content: "@Ada FORGED".to_owned(),
        };
        if id.is_some() { turn } else { turn.with_new_id() }
    }
    let cases: [(&str, bool, Change); 18] = [
        ("an answer", true, |turns| turns[1].content = "FORGED".into()),
        ("an answer with its id", true, |turns| {
            turns[1].content = "FORGED".into();
            turns[1] = turns[1].clone().with_new_id();
        }),
        ("an answer with its id, without its note", true, |turns| {
            turns[3].content = "FORGED".into();
            turns[3].note = None;
            turns[3] = turns[3].clone().with_new_id();
        }),
        // The last settled turn is gone, and another one stands in its place.
        ("the last answer with its id", false, |turns| {
            turns[5].content = "FORGED".into();
            turns[5] = turns[5].clone().with_new_id();
        }),
        ("the last answer with its id, without its note", false, |turns| {
            turns[5].content = "FORGED".into();
            turns[5].note = None;
            turns[5] = turns[5].clone().with_new_id();
        }),
        ("a question", true, |turns| turns[2].content = "@Bo FORGED".into()),
        ("a question with its id", true, |turns| {
            turns[2].content = "@Bo FORGED".into();
            turns[2] = turns[2].clone().with_new_id();
        }),
        ("an author", true, |turns| turns[1].participant = "bo".into()),
        ("an author with the id", true, |turns| {
            turns[1].participant = "bo".into();
            turns[1] = turns[1].clone().with_new_id();
        }),
        ("a time", true, |turns| turns[0].time = "2026-11-28T07:00:00.000Z".into()),
        ("a time with the id", true, |turns| {
            turns[0].time = "2026-11-28T07:00:00.000Z".into();
            turns[0] = turns[0].clone().with_new_id();
        }),
        ("an answer is gone", false, |turns| drop(turns.remove(1))),
        ("a question is gone", false, |turns| drop(turns.remove(2))),
        ("two turns are exchanged", true, |turns| turns.swap(1, 3)),
        ("a note is gone", true, |turns| turns[3].note = None),
        ("a note is another", true, |turns| {
            turns[3].note = turns[3].note.clone().map(|note| note.replace("turn/t_", "turn/t_0"));
        }),
        ("a mention is inserted", true, |turns| turns.insert(1, ivo(None))),
        ("a mention with a chosen id is inserted", true, |turns| turns.insert(0, ivo(Some("t_1")))),
    ];
    for (case, has_line, change) in cases {
        let mut altered = turns.clone();
        change(&mut altered);
        write_journal(&original, &altered);
        assert_found(&original, case, has_line);
        write_journal(&original, &turns);
    }
    // Restored, it is what it was.
    for command in [&["log", "swarm.yaml"][..], &["check", "swarm.yaml"], &["ledger", "verify"]] {
        original.run(command).assert_code(0);
    }
    run(&original, &[]).assert_code(0);
}

#[test]
fn an_altered_database_is_named_and_never_shown_to_a_participant() {
    // D15
    let place = answered(SUBSTRATES[1]);
    let database = place.path("talk.db");
    let forged = turn_id("ivo", "2026-11-28T07:00:00.000Z", "@Ada FORGED");
    let insert = format!(
        "UPDATE turn SET n = n + 10 WHERE n > 2; INSERT INTO turn (conversation, n, id, participant, timestamp, content, meta) \
         VALUES ('talk', 3, '{forged}', 'ivo', '2026-11-28T07:00:00.000Z', '@Ada FORGED', '{{}}')"
    );
    for (case, change) in [
        ("content", "UPDATE turn SET content = 'FORGED' WHERE n = 2"),
        ("author", "UPDATE turn SET participant = 'bo' WHERE n = 2"),
        ("content and id", "UPDATE turn SET content = 'FORGED', id = 't_1' || id WHERE n = 4"),
        ("metadata", "UPDATE turn SET meta = '{\"sure\":true}' WHERE n = 4"),
        ("stamp", "UPDATE turn SET stamp = NULL, stamp_key = NULL WHERE n = 4"),
        ("order", "UPDATE turn SET n = 100 WHERE n = 2;UPDATE turn SET n = 2 WHERE n = 3"),
        ("removed", "DELETE FROM turn WHERE n = 3"),
        ("inserted", insert.as_str()),
    ] {
        crate::support::records::execute_sql(&database, "PRAGMA wal_checkpoint(TRUNCATE)");
        let whole = std::fs::read(&database).unwrap();
        change.split(';').for_each(|statement| records::execute_sql(&database, statement));
        assert_found(&place, case, false);
        std::fs::write(&database, whole).unwrap();
        for beside in ["talk.db-wal", "talk.db-shm"] {
            let _ = std::fs::remove_file(place.path(beside));
        }
    }
}

#[test]
fn what_a_person_accepts_is_not_shown_to_a_participant_either() {
    // D15
    let place = answered(SUBSTRATES[0]);
    let mut turns = journal(&place.path("talk.md"));
    turns[1].content = "FORGED".to_owned();
    write_journal(&place, &turns);
    run(&place, &[]).assert_code(1);
    run(&place, &["--from-now"]).assert_code(0).assert_stderr_contains("does not have the author");
    for _ in 0..2 {
        place.write("prompts.txt", "");
        run(&place, &["--say", "@Bo what is new?"]).assert_code(0);
        let prompts = place.read("prompts.txt");
        assert!(prompts.contains("what is new?") && !prompts.contains("FORGED"), "{prompts}");
        for command in [&["log", "swarm.yaml"][..], &["check", "swarm.yaml"], &["ledger", "verify"]] {
            place.run(command).assert_code(0);
        }
    }
    // A later change is still found.
    let mut turns = journal(&place.path("talk.md"));
    turns[7].content = "FORGED".to_owned();
    write_journal(&place, &turns);
    assert_found(&place, "after it was accepted", true);
}

#[test]
fn a_conversation_that_was_cut_is_taken_up_by_a_person_alone() {
    // D15
    let place = answered(SUBSTRATES[0]);
    let turns = journal(&place.path("talk.md"));
    write_journal(&place, &turns[..5]);
    for _ in 0..2 {
        assert_found(&place, "the end was cut", false);
    }
    run(&place, &["--from-now"]).assert_code(0);
    place.run(&["check", "swarm.yaml"]).assert_code(0);
}

#[test]
fn a_copy_of_a_journal_is_a_conversation_of_its_own() {
    let place = answered(SUBSTRATES[0]);
    place.write("copy.md", place.read("talk.md"));
    place.write("copy.yaml", place.read("swarm.yaml").replace("talk.md", "copy.md"));
    place.run(&["check", "copy.yaml"]).assert_code(0);
    place.run(&["run", "copy.yaml"]).assert_code(0);
    place.run(&["ledger", "verify"]).assert_code(0);
    // The ids of the copied turns are compared all the same.
    place.write("copy.md", place.read("copy.md").replace("I say bo", "FORGED"));
    place.run(&["check", "copy.yaml"]).assert_code(1).assert_stdout_contains(CODE);
}
