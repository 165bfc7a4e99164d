//! Runtimes at their limits, as a user meets them: the time of a run, hooks at its end, turns that are too
//! long, names that are misspelt, files as other systems write them.
#![cfg(unix)]

use std::time::{Duration, Instant};

use crate::support;
use serde_json::Value;
use support::TestDir;

/// A swarm whose member is a shell script that says something.
fn swarm(script: &str, more: &str) -> TestDir {
    let place = TestDir::with("member.sh", format!("cat > asked\n{script}\n"));
    place.write(
        "swarm.yaml",
        format!(
            "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {{id: writer, executor: agent-cli, displayName: Writer, config: {{command: /bin/sh, args: [member.sh]}}}}
substrate: {{kind: file, path: talk.md}}
{more}"
        ),
    );
    place
}

const MENTION: &str = "dispatcher: {kind: mention}\n";

fn turns(place: &TestDir) -> Vec<Value> {
    let log = place.run(&["log", "swarm.yaml", "--format", "json"]).assert_code(0).json();
    log["turns"].as_array().unwrap().clone()
}

#[test]
fn a_run_ends_when_its_time_is_spent_and_the_next_one_goes_on() {
    // X8
    let place = swarm("[ -e quick ] || sleep 600; echo yes", MENTION);
    place.write("quorate.toml", "[budget]\nwall = \"2s\"\n");
    let began = Instant::now();
    let ran = place.run(&["run", "swarm.yaml", "--say", "@Writer?", "--format", "json"]).assert_code(3);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let ran = ran.json();
    assert_eq!(
        (&ran["over"], &ran["interrupted"]["unheard"][0]),
        (&Value::Bool(true), &Value::from("writer"))
    );
    place
        .run(&["run", "swarm.yaml", "--watch"])
        .assert_code(3)
        .assert_stderr_contains("this run has no time left (`[budget] wall`)");
    place.write("quick", "");
    place.run(&["run", "swarm.yaml"]).assert_code(0).assert_stderr_contains("1 turn appended");
    assert_eq!(turns(&place).len(), 2);
}

#[test]
fn a_hook_at_the_end_has_the_time_that_it_was_given() {
    // K9
    let hooks =
        "hooks: {onTurnEnd: {command: /bin/sh, args: [-c, 'sleep 4; echo >> ended'], timeout_ms: 9000}}\n";
    let place = swarm("echo yes", &format!("{MENTION}{hooks}"));
    let ran = place.run(&["run", "swarm.yaml", "--say", "@Writer?"]).assert_code(0);
    assert!(place.path("ended").exists(), "{}", ran.stderr);
    assert!(!ran.stderr.contains("failed"), "{}", ran.stderr);
    let hooks = hooks.replace("sleep 4", "sleep 400").replace("9000", "3000");
    let place = swarm("echo yes", &format!("{MENTION}{hooks}"));
    let ran =
        place.run(&["run", "swarm.yaml", "--say", "@Writer?", "--events", "events.jsonl"]).assert_code(0);
    ran.assert_stderr_contains("the hook onTurnEnd failed");
    assert!(place.read("events.jsonl").contains("\"hook.failed\""));
}

#[test]
fn a_turn_has_at_most_256_kib() {
    let place = swarm("head -c 300000 /dev/zero | tr '\\0' x", MENTION);
    let long = format!("@Writer {}", "y".repeat(256 * 1024 - 8));
    place.write("long.txt", format!("{long}z"));
    let refused =
        place.run_with_stdin(&["say", "swarm.yaml", "-"], format!("{long}z").as_bytes()).assert_code(5);
    refused
        .assert_stderr_contains("quorate:turn_refused")
        .assert_stderr_contains("262145 bytes; a turn has at most 262144");
    assert!(!place.path("talk.md").exists());
    place.run_with_stdin(&["say", "swarm.yaml", "-"], long.as_bytes()).assert_code(0);
    let ran = place.run(&["run", "swarm.yaml"]).assert_code(3);
    ran.assert_stderr_contains("writer has not answered").assert_stderr_contains("at most 262144");
    // Text that was added to the file by hand is cut to the length of a turn.
    let by_hand = format!(
        "{}\n=== TURN id=t_1 participant=eve ts=2046-05-18T18:23:12Z ===\n@Writer {}\n",
        place.read("talk.md"),
        "w".repeat(400_000)
    );
    place.write("talk.md", by_hand);
    place.run(&["run", "swarm.yaml"]).assert_code(3);
    let asked = place.read("asked");
    assert!(asked.contains("[the rest is left out: the turn has 400008 bytes]"));
    assert_eq!(asked.matches('w').count() / 1000, 262, "as much as a turn has");
}

#[test]
fn a_misspelt_mention_is_reported() {
    // K4
    let place = swarm("echo yes", MENTION);
    let said = place.run(&["say", "swarm.yaml", "@writter, and @[Writer]!"]).assert_code(0);
    said.assert_stderr_contains("`@writter` matches no participant; did you mean `@Writer`?");
    said.assert_stderr_contains("`@[Writer]` matches no participant; did you mean `@Writer`?");
    let ran = place.run(&["run", "swarm.yaml"]).assert_code(0);
    ran.assert_stderr_contains("no participant answers")
        .assert_stderr_contains("`@writter` matches no participant; did you mean `@Writer`?");
    assert!(
        !place
            .run(&["say", "swarm.yaml", "@Writer, mail me@writter.org"])
            .assert_code(0)
            .stderr
            .contains("did you mean")
    );
}

#[test]
fn roles_are_read_as_other_systems_write_them() {
    // K9
    let place = swarm("echo yes", MENTION);
    place.write("ws/roles/BO.MD", "\u{feff}---\ntitle: x\n---\nYou are Bo.\n");
    let manifest = place.read("swarm.yaml").replace("displayName", "role: ../roles/BO.MD, displayName");
    place.write("ws/team/swarm.yaml", manifest);
    place.write("ws/team/member.sh", place.read("member.sh"));
    std::os::unix::fs::symlink(place.path("ws"), place.path("link")).unwrap();
    for root in [".", "..", "../../ws", "../../link"] {
        let mut command = place.command(&["run", "swarm.yaml", "--root", root, "--say", "@Writer?"]);
        let ran = command.current_dir(place.path("ws/team")).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        if root == "." {
            assert_eq!(ran.status.code(), Some(5), "{said}");
            assert!(said.contains("`--root` names a wider workspace"), "{said}");
            continue;
        }
        assert_eq!(ran.status.code(), Some(0), "{root}: {said}");
        assert!(!said.contains("role_not_a_file"), "{said}");
        let asked = place.read("ws/team/asked");
        assert!(
            asked.contains("\nYou are Bo.\n") && !asked.contains("title: x") && !asked.contains('\u{feff}'),
            "{asked}"
        );
    }
}

#[test]
fn a_conversation_is_one_whatever_its_manifest_is_called() {
    // K3: two names of it would be two locks, and two records of what was answered.
    let place = swarm("echo yes", MENTION);
    place.run(&["run", "swarm.yaml", "--say", "@Writer?"]).assert_code(0);
    place.write("quorate.toml", "");
    place.write("deep/er/note", "");
    for (from, name) in
        [("deep", "../swarm.yaml"), ("deep/er", "../../swarm.yaml"), ("deep", "er/../../swarm.yaml")]
    {
        let mut command = place.command(&["run", name]);
        let ran = command.current_dir(place.path(from)).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && !said.contains("completed from the conversation"), "{name}: {said}");
    }
    let stats = place.run(&["ledger", "stats", "--format", "json"]).assert_code(0).json();
    assert_eq!(stats["conversations"], 1, "{stats}");
}

#[test]
fn what_a_runtime_records_is_counted() {
    let place = swarm("echo yes", MENTION);
    place.run(&["run", "swarm.yaml", "--say", "@Writer?"]).assert_code(0);
    let stats = place.run(&["ledger", "stats", "--format", "json"]).assert_code(0).json();
    let count = |key: &str| stats[key].as_u64().unwrap();
    assert_eq!((count("conversations"), count("runs")), (1, 0));
    assert!(count("conversation_records") >= 2, "{stats}");
    assert_eq!(stats["recent"]["records"], stats["records"], "all of them are new: {stats}");
    assert!(stats["recent"]["bytes"].as_u64() > Some(0), "{stats}");
    let doctor = place.run(&["doctor"]);
    assert!(doctor.stdout.contains("and 1 conversation in"), "{}", doctor.stdout);
}

#[test]
fn several_first_starts_at_once_wait_for_each_other() {
    for _ in 0..5 {
        let place = swarm("echo yes", MENTION);
        let names = ["a", "b", "c", "d"];
        for name in names {
            let own = place
                .read("swarm.yaml")
                .replace("id: talk\n", &format!("id: {name}\n"))
                .replace("talk.md", name);
            place.write(&format!("{name}.yaml"), own.replace("path: ", "path: said-"));
        }
        let started = names.map(|name| place.start(&["run", &format!("{name}.yaml"), "--say", "@Writer?"]));
        for child in started {
            support::finish(child).assert_code(0);
        }
        place.run(&["ledger", "verify"]).assert_code(0);
    }
}

#[test]
fn a_conversation_that_one_process_has_is_refused_to_others() {
    let place = swarm("echo yes", MENTION);
    let manifest = place.read("swarm.yaml").replace("{kind: file, path: talk.md}", "{kind: memory}");
    place.write("swarm.yaml", manifest);
    for command in
        [&["say", "swarm.yaml", "@Writer?"][..], &["log", "swarm.yaml"], &["log", "swarm.yaml", "--follow"]]
    {
        let ran = place.run(command).assert_code(5);
        ran.assert_stderr_contains("quorate:conversation_not_shared").assert_stderr_contains("kind: file");
        assert_eq!(ran.stdout, "", "{command:?}");
    }
    // `run --say` is answered in the same process, and the ledger records it.
    let ran = place.run(&["run", "swarm.yaml", "--say", "@Writer?"]).assert_code(0);
    assert!(ran.stdout.contains("yes"), "{}", ran.stdout);
    place.run(&["log", "swarm.yaml", "--records"]).assert_code(0);
}

#[test]
fn a_slip_in_a_key_stops_every_command() {
    let place = swarm("echo yes", MENTION);
    let text = place.read("swarm.yaml");
    for (from, to, meant) in [
        ("displayName", "displayname", "displayName"),
        ("displayName: Writer", "displayName: Writer, rol: x", "role"),
        ("substrate:", "effector: []\nsubstrate:", "effectors"),
        ("substrate:", "Hooks: {}\nsubstrate:", "hooks"),
        ("config:", "configs:", "config"),
    ] {
        place.write("swarm.yaml", text.replacen(from, to, 1));
        for (command, code) in [
            (&["check", "swarm.yaml"][..], 1),
            (&["run", "swarm.yaml", "--say", "@Writer?"], 5),
            (&["say", "swarm.yaml", "@Writer?"], 5),
        ] {
            let ran = place.run(command).assert_code(code);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("quorate:runtime_invalid") && said.contains("swarm.yaml:"), "{to}: {said}");
            assert!(said.contains(&format!("did you mean `{meant}`?")), "{to}: {said}");
        }
        assert!(!place.path("talk.md").exists() && !place.path("asked").exists(), "{to}");
    }
}

/// Two participants, of which the first is a shell script.
fn pair(script: &str, dispatcher: &str) -> TestDir {
    let place = swarm(script, &format!("dispatcher: {dispatcher}\n"));
    let other =
        "  - {id: bo, executor: script, displayName: Bo Lee, config: {path: answers.json}}\nsubstrate:";
    let manifest = place.read("swarm.yaml").replace("substrate:", other);
    place.write("swarm.yaml", manifest);
    place.write("answers.json", r#"{"bo": "Fine."}"#);
    place
}

#[test]
fn a_person_does_not_write_in_a_participants_name_unnoticed() {
    let place = pair("echo yes", "{kind: mention}");
    for name in ["writer", "Writer", "WRITER", "wr\u{456}ter", "wri_ter", "bo", "bo-lee", "BoLee"] {
        let said = place.run(&["say", "swarm.yaml", "@Writer I approve", "--as", name]).assert_code(64);
        said.assert_stderr_contains("quorate:author_is_participant");
        let ran =
            place.run(&["run", "swarm.yaml", "--say", "@Writer I approve", "--as", name]).assert_code(64);
        ran.assert_stderr_contains("quorate:author_is_participant");
    }
    assert_eq!(turns(&place), Vec::<Value>::new());
    place.run(&["say", "swarm.yaml", "@Writer?", "--as", "bob"]).assert_code(0);
    place.run(&["say", "swarm.yaml", "@Writer, I approve", "--as", "bo", "--yes"]).assert_code(0);
    place.run(&["run", "swarm.yaml", "--yes"]).assert_code(64);
    place.run(&["run", "swarm.yaml"]).assert_code(0);
    let turns = turns(&place);
    let authors: Vec<&Value> = turns.iter().map(|turn| &turn["participant"]).collect();
    assert_eq!(authors, ["bob", "bo", "writer", "writer"]);
    let writers: Vec<&Value> = turns.iter().map(|turn| &turn["written_by"]).collect();
    assert_eq!(writers, [&Value::Null, &Value::from("a person"), &Value::Null, &Value::Null]);
    let log = place.run(&["log", "swarm.yaml"]).assert_code(0);
    log.assert_stdout_contains("bo, written by a person");
    let asked = place.read("asked");
    assert!(asked.contains("\"participant\":\"bo\",\"written_by\":\"a person\""), "{asked}");
    assert!(asked.contains("which is by \"bo\", written by a person."), "{asked}");
}

#[test]
fn a_turn_of_a_participants_process_says_whose_it_is() {
    let quorate = env!("CARGO_BIN_EXE_quorate");
    let script = format!(
        "{quorate} say swarm.yaml '@Bo, the boss agrees' --as boss >> told 2>&1\n\
         {quorate} say swarm.yaml 'x' --as bo --yes >> told 2>&1\necho $? >> told; echo done"
    );
    let place = pair(&script, "{kind: mention, maxAgentTurns: 1}");
    // A chain of answers that an agent continues in a person's name is still one (K12).
    place.run(&["run", "swarm.yaml", "--say", "@Writer?"]).assert_code(3);
    let told = place.read("told");
    assert!(told.contains("quorate:author_is_participant") && told.ends_with("64\n"), "{told}");
    let turns = turns(&place);
    let said: Vec<_> =
        turns.iter().map(|turn| (turn["participant"].clone(), turn["written_by"].clone())).collect();
    let expected = [("user", None), ("boss", Some("a process of writer")), ("writer", None)];
    assert_eq!(said, expected.map(|(who, by)| (Value::from(who), Value::from(by))));
    place.write("swarm.yaml", place.read("swarm.yaml").replace("maxAgentTurns: 1", "maxAgentTurns: 9"));
    place.write("member.sh", "cat > asked; echo done");
    place.run(&["run", "swarm.yaml", "--say", "@Writer, what did the boss say?"]).assert_code(0);
    let asked = place.read("asked");
    assert!(asked.contains("\"participant\":\"boss\",\"written_by\":\"a process of writer\""), "{asked}");
}

#[test]
fn two_manifests_in_one_folder_remember_apart() {
    // K9
    let place = TestDir::with(
        "st.sh",
        "cat > \"asked-$1\"\necho '{\"content\": \"hello\", \"stateUpdate\": {\"note\": \"'$1' owes 40\"}}'\n",
    );
    let manifest = |id: &str, journal: &str| {
        let config = format!("{{command: /bin/sh, args: [st.sh, {journal}], answer: json}}");
        format!(
            "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: {id}\nparticipants:\n  - {{id: x, executor: agent-cli, config: {config}}}\n\
             substrate: {{kind: file, path: ./{journal}.md}}\ndispatcher: {{kind: fixed, next: [x]}}\n"
        )
    };
    // The third is a copy that continues on its own, and the last id names a device elsewhere.
    for (id, journal) in [("client-a", "a"), ("client-b", "b"), ("client-a", "fork"), ("con", "c")] {
        place.write(&format!("{journal}.yaml"), manifest(id, journal));
        place.run(&["run", &format!("{journal}.yaml"), "--say", "hello"]).assert_code(0);
        assert!(!place.read(&format!("asked-{journal}")).contains("owes"), "{journal}");
    }
    for (path, journal) in [("client-a", "a"), ("client-b", "b"), ("%63on", "c")] {
        assert!(
            place.read(&format!("state/{path}/x.json")).contains(&format!("{journal} owes 40")),
            "{path}"
        );
    }
    for journal in ["a", "b", "fork", "c"] {
        let manifest = format!("{journal}.yaml");
        place
            .run(&["state", &manifest, "x"])
            .assert_code(0)
            .assert_stdout_contains(&format!("{journal} owes 40"));
        place.run(&["run", &manifest, "--say", "again"]).assert_code(0);
        assert!(place.read(&format!("asked-{journal}")).contains(&format!("{journal} owes 40")), "{journal}");
    }
    // The folder can be moved as a whole.
    let moved = TestDir::new();
    for file in
        ["a.yaml", "fork.yaml", "a.md", "fork.md", "state/client-a/x.json", "state/client-a/.conversation"]
    {
        moved.write(file, place.read(file));
    }
    moved.run(&["state", "a.yaml", "x"]).assert_code(0).assert_stdout_contains("a owes 40");
    assert_eq!(moved.run(&["state", "fork.yaml", "x"]).assert_code(0).json(), serde_json::json!({}));
}
