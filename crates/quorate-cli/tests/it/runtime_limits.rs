//! What would take everything: hooks that are slower than the conversation, events that are not read, a ledger that does
//! not close, answers that nest without end, drafts that do not fit into memory.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sqlx::{Connection as _, SqliteConnection};
use support::{CommandOutput, QUORATE, TestDir, finish, wait_until};

const SOON: Duration = Duration::from_secs(40);

/// A swarm whose member is a shell script that answers in JSON.
fn swarm(script: &str, more: &str) -> TestDir {
    let place = TestDir::with("member.sh", format!("cat > /dev/null\n{script}\n"));
    place.write(
        "swarm.yaml",
        format!(
            "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - id: ada
    executor: agent-cli
    displayName: Ada
    config: {{command: /bin/sh, args: [member.sh], answer: json}}
substrate: {{kind: file, path: talk.md}}
{more}"
        ),
    );
    place
}

const MENTION: &str = "dispatcher: {kind: mention}\n";
const YES: &str = "echo '{\"content\": \"yes\"}'";

fn say(place: &TestDir, times: usize) {
    let journal: String = (0..times)
        .map(|at| format!("=== TURN id=t_{at} participant=user ts=2026-05-18T18:23:12Z ===\n@Ada {at}\n"))
        .collect();
    place.write("talk.md", journal);
}

fn talk(place: &TestDir) -> Vec<Value> {
    let log = place.run(&["log", "swarm.yaml", "--format", "json"]).assert_code(0).json();
    log["turns"].as_array().unwrap().clone()
}

/// The binary, started by a shell that does something before.
fn start_after(place: &TestDir, before: &str, arguments: &str) -> Child {
    let mut command = place.command(&[]);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("{before}; exec {QUORATE} {arguments}")])
        .current_dir(place.root())
        .env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_clear();
    shell.env("QUORATE_TRUST", "1").stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    shell.spawn().unwrap()
}

fn signal(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn hooks_that_are_slower_than_the_conversation_cost_no_turn() {
    // K2
    let hooks = "hooks: {onTurnEnd: {command: /bin/sh, args: [-c, 'sleep 1; echo >> ended']}, \
                 onMention: {command: /bin/sh, args: [-c, 'sleep 1; echo >> ended']}}\n";
    for descriptors in [64, 100] {
        let place = swarm(YES, &format!("{MENTION}{hooks}"));
        say(&place, 60);
        let ran = finish(start_after(&place, &format!("ulimit -n {descriptors}"), "run swarm.yaml"));
        ran.assert_code(0).assert_stderr_contains("60 turns appended");
        assert!(place.path("ended").exists(), "hooks were called");
    }
}

#[test]
fn a_models_empty_selection_is_not_paid_again_after_a_crash() {
    // K5
    let place = swarm(YES, "dispatcher: {kind: llm-router, executor: router}\nhooks: {}\n");
    place.write(
        "router.sh",
        "cat > /dev/null; echo >> calls; [ $(wc -l < calls) = 4 ] && kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)\necho '{\"next\": []}'",
    );
    place.write(
        "quorate.toml",
        "[executors.router]\nkind = \"agent-cli\"\ncommand = \"/bin/sh\"\nargs = [\"router.sh\"]\n",
    );
    say(&place, 6);
    let killed = place.run(&["run", "swarm.yaml"]);
    assert_eq!(killed.code, 128 + 9, "{killed:?}");
    place.run(&["run", "swarm.yaml"]).assert_code(0);
    // Three before, the one that was killed, and the three that were left.
    assert_eq!(place.read("calls").lines().count(), 7);
    place.assert_no_new_turns(&["swarm.yaml"]);
}

#[test]
fn events_whose_reader_leaves_are_over_and_the_run_goes_on() {
    let place = swarm(YES, MENTION);
    say(&place, 20);
    assert!(Command::new("mkfifo").arg(place.path("events")).status().unwrap().success());
    let child = place.start(&["run", "swarm.yaml", "--events", "events"]);
    let mut line = String::new();
    BufReader::with_capacity(64, std::fs::File::open(place.path("events")).unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("\"kind\""), "{line}");
    let ran = finish(child).assert_code(0);
    ran.assert_stderr_contains("20 turns appended")
        .assert_stderr_contains("cannot write events to events: Broken pipe")
        .assert_stderr_contains("the run continues without");
}

#[test]
fn events_that_are_not_read_keep_no_turn_waiting() {
    let place = swarm("", "dispatcher: {kind: mention}\n");
    place.write(
        "swarm.yaml",
        place.read("swarm.yaml").replace("executor: agent-cli", "executor: script").replace(
            "config: {command: /bin/sh, args: [member.sh], answer: json}",
            "config: {path: answers.json}",
        ),
    );
    place.write("answers.json", "{\"ada\": \"yes\"}");
    say(&place, 1_500);
    assert!(Command::new("mkfifo").arg(place.path("events")).status().unwrap().success());
    let child = place.start(&["run", "swarm.yaml", "--events", "events"]);
    let mut events = std::fs::File::open(place.path("events")).unwrap();
    let ran = finish(child).assert_code(0);
    ran.assert_stderr_contains("1500 turns appended")
        .assert_stderr_contains("events could not be written: the reader does not read");
    let mut read = Vec::new();
    events.read_to_end(&mut read).unwrap();
    assert!(read.len() >= 4_096, "what was in the pipe is there");
}

#[test]
fn events_destroy_no_other_file() {
    let place = swarm(YES, MENTION);
    say(&place, 1);
    place.run(&["run", "swarm.yaml", "--events", "events.jsonl"]).assert_code(0);
    place.write("key", [7u8; 32]);
    place.write("blank", "\n");
    let other = ["swarm.yaml", "member.sh", "talk.md", "key", "blank"];
    for file in other {
        let before = std::fs::read(place.path(file)).unwrap();
        let ran = place.run(&["run", "swarm.yaml", "--events", file]).assert_code(64);
        ran.assert_stderr_contains("quorate:events_unwritable")
            .assert_stderr_contains("other text than events");
        assert!(std::fs::read(place.path(file)).unwrap() == before, "{file} was changed");
    }
    let grown = place.read("talk.md")
        + "=== TURN id=t_more participant=user ts=2026-05-19T18:23:12Z ===\n@Ada more\n";
    place.write("talk.md", grown);
    let before = place.read("events.jsonl").lines().count();
    place.run(&["run", "swarm.yaml", "--events", "events.jsonl"]).assert_code(0);
    assert!(place.read("events.jsonl").lines().count() > before);
}

#[test]
fn a_pipe_that_nothing_reads_keeps_no_run_waiting() {
    let place = swarm(YES, MENTION);
    say(&place, 1);
    assert!(Command::new("mkfifo").arg(place.path("events")).status().unwrap().success());
    let ran = place.run(&["run", "swarm.yaml", "--events", "events"]).assert_code(0);
    ran.assert_stderr_contains("1 turn appended")
        .assert_stderr_contains("events could not be written: the reader does not read");
}

#[test]
fn a_log_that_is_followed_ends_when_its_reader_leaves() {
    let place = swarm(YES, MENTION);
    say(&place, 3);
    let mut child = place.start(&["log", "swarm.yaml", "--follow"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    let started = Instant::now();
    wait_until(SOON, "the end", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success(), "{:?}", started.elapsed());
}

/// A conversation that waits for new turns, and another process that writes to its ledger and keeps it locked.
fn locked(place: &TestDir) -> (Child, tokio::runtime::Runtime, SqliteConnection) {
    say(place, 1);
    let child = place.start(&["run", "swarm.yaml", "--watch"]);
    let recorded = || place.run(&["log", "swarm.yaml", "--records"]).stdout.contains("turn");
    wait_until(SOON, "an answer that is recorded", recorded);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ledger = format!("sqlite:{}", place.path(".quorate/ledger.db").display());
    let mut other = runtime.block_on(SqliteConnection::connect(&ledger)).unwrap();
    runtime.block_on(sqlx::query("BEGIN IMMEDIATE").execute(&mut other)).unwrap();
    (child, runtime, other)
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let place = swarm(YES, MENTION);
    let (mut child, _runtime, _other) = locked(&place);
    signal(&child);
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it waits for its ledger");
    let started = Instant::now();
    signal(&child);
    assert_eq!(finish(child).code, 130);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn a_second_signal_ends_members_that_do_not_want_to() {
    let place = swarm("trap '' TERM; echo $$ > asked; while true; do sleep 0.1; done", MENTION);
    say(&place, 1);
    let child = place.start(&["run", "swarm.yaml"]);
    wait_until(SOON, "a participant that is asked", || {
        place.path("asked").exists() && !place.read("asked").is_empty()
    });
    let member = Pid::from_raw(place.read("asked").trim().parse().unwrap()).unwrap();
    signal(&child);
    signal(&child);
    std::thread::sleep(Duration::from_millis(50));
    let _ = kill_process(Pid::from_child(&child), Signal::INT);
    assert_eq!(finish(child).code, 130);
    let is_there = || {
        std::fs::read(format!("/proc/{}/cmdline", member.as_raw_nonzero())).is_ok_and(|line| !line.is_empty())
    };
    assert!(!is_there(), "the member is ended before the process is");
}

#[test]
fn a_ledger_that_does_not_answer_keeps_no_command_for_long() {
    let place = swarm(YES, MENTION);
    let (child, _runtime, other) = locked(&place);
    let started = Instant::now();
    signal(&child);
    let ran = finish(child).assert_code(130);
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
    ran.assert_stderr_contains("the ledger did not take the last records in time");
    drop(other);
    place.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn an_answer_that_nests_too_deep_is_none_and_spoils_nothing() {
    // X4
    for levels in [65, 100, 124, 125, 126, 130] {
        let nested = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let place = swarm("cat answer", MENTION);
        place
            .write("answer", format!("{{\"content\": \"secret\", \"stateUpdate\": {{\"deep\": {nested}}}}}"));
        say(&place, 1);
        place.run(&["run", "swarm.yaml"]).assert_code(3).assert_stderr_contains("ada has not answered");
        assert_eq!(talk(&place).len(), 1);
        assert!(!place.read("talk.md").contains("quorate"), "{levels}");
        place.write(
            "answer",
            "{\"content\": \"sound\", \"stateUpdate\": {\"n\": [1]}, \"meta\": {\"a\": [[2]]}}",
        );
        place.run(&["run", "swarm.yaml", "--say", "@Ada again"]).assert_code(0);
        assert_eq!(talk(&place)[2]["content"], "sound");
        place.run(&["ledger", "verify"]).assert_code(0);
    }
}

#[test]
fn a_sweep_holds_the_texts_of_the_reviews_that_it_holds() {
    let place = TestDir::shell("sleep 60", "");
    place.write(
        "council.yaml",
        format!(
            "{}tier_classifier: {{default_tier: 1}}\nwatch: {{paths: [./drafts/]}}\n",
            support::council::COUNCIL
        ),
    );
    const EACH: usize = 1_500_000;
    let line = "The meeting moved to Tuesday at ten, and the team was not told of it in time.\n";
    for at in 0..160 {
        place.write(&format!("drafts/{at}.md"), format!("{at}\n{}", line.repeat(EACH / line.len())));
    }
    let child = place.start(&["sweep", "--since", "all", "--jobs", "1", "--executor", "shell"]);
    wait_until(Duration::from_secs(120), "the first review", || !place.calls().is_empty());
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    println!("peak {} MB with 160 drafts of {EACH} bytes", peak / 1_000);
    signal(&child);
    let ended: CommandOutput = finish(child);
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(peak < 160_000, "{peak} kB for drafts of 240 MB");
}
