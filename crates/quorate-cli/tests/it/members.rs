//! Whole reviews whose members are processes: that they work, that members that hang end with their deadline, and that
//! nothing is left running however the review ends (X6).

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::shell;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use shell::running_processes;
use support::council::{COUNCIL, ROSTER};
use support::{TestDir, finish, has_program, wait_until};

const SOON: Duration = Duration::from_secs(20);
/// Two seconds between SIGTERM and SIGKILL, and room for a busy machine.
const GONE: Duration = Duration::from_secs(4);

/// A number of seconds that only this test's processes sleep.
fn long() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("600.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a_shell_script_can_sit_on_a_council() {
    let place = TestDir::shell("env > env-$member; answer", "env = [\"FRIEND\"]");
    let child = place
        .command(&["review", "draft.md", "--format", "json"])
        .env("FRIEND", "yes")
        .env("API_TOKEN", "secret")
        .env("QUORATE_TRUST", "1")
        .env("QUORATE_OF_OURS", "yes")
        .spawn();
    let report = finish(child.expect("the binary runs")).assert_code(0).json();
    assert_eq!(
        (&report["verdict"], &report["model_asked"], &report["executor"]),
        (&json!("SHIP"), &json!(true), &json!("shell"))
    );
    assert_eq!((place.calls().len(), &report["spent"]["calls"]), (9, &json!(9)));
    // X10
    let env = place.read("env-skeptic");
    let has = |name: &str| env.lines().any(|line| line.starts_with(&format!("{name}=")));
    assert!(
        has("PATH") && has("HOME") && has("FRIEND") && has("QUORATE_INVOCATION") && !has("API_TOKEN"),
        "{env}"
    );
    assert!(env.lines().any(|line| line == "QUORATE_MEMBER=skeptic"), "{env}");
    assert_eq!(env.lines().filter(|line| line.starts_with("QUORATE_")).count(), 2, "{env}");
}

/// Runs a command line of a shell in a terminal of its own, as a person does; gives what the terminal shows.
fn in_terminal(place: &TestDir, line: &str) -> Option<String> {
    let quorate = place.command(&[]);
    let mut script = Command::new("script");
    script.args(["-qec", &line.replace("QUORATE", &quorate.get_program().to_string_lossy()), "shown"]);
    script.current_dir(place.root()).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
    script.envs(quorate.get_envs().filter_map(|(name, value)| Some((name, value?))));
    match script.status() {
        Ok(_) => Some(place.read("shown")),
        Err(why) => {
            eprintln!("SKIPPED: `script` cannot be started: {why}");
            None
        }
    }
}

#[test]
fn nothing_that_is_started_can_write_to_the_terminal() {
    // X6
    let place = TestDir::shell("echo forged > /dev/tty && touch wrote; touch asked; answer", "");
    // The terminal's record names this command, so the word is put together.
    let review = "printf 'dir%s' ect > /dev/tty; QUORATE review draft.md > report";
    let Some(shown) = in_terminal(&place, review) else { return };
    assert!(shown.contains("direct"), "the terminal works: {shown}");
    assert!(place.path("asked").exists() && !place.path("wrote").exists(), "{shown}");
    assert!(!shown.contains("forged"), "{shown}");
    assert_eq!((place.calls().len(), place.read("report").contains("SHIP")), (9, true));
    // Neither can a command that prints a key.
    let key = "echo forged > /dev/tty && touch wrote; touch asked; exit 1";
    std::fs::remove_file(place.path("asked")).unwrap();
    place.write("quorate.toml", format!("[keys]\nsigning = {{command = [\"sh\", \"-c\", \"{key}\"]}}\n"));
    let shown = in_terminal(&place, "QUORATE keys list").unwrap_or_default();
    assert!(place.path("asked").exists() && !place.path("wrote").exists(), "{shown}");
    assert!(!shown.contains("forged"), "{shown}");
}

#[test]
fn members_that_fail_are_quoted_and_do_not_agree() {
    for (body, status, quote) in [
        (
            "[ $member = evidence ] && { echo 'no credit left' >&2; exit 3; }; answer",
            "failed",
            "no credit left",
        ),
        ("[ $member = evidence ] && exit 0; answer", "failed", ""),
        ("[ $member = evidence ] && { answer; exit 1; }; answer", "failed", ""),
        ("[ $member = evidence ] && kill -9 $$; answer", "failed", ""),
    ] {
        let place = TestDir::shell(body, "");
        let ran = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0);
        let deliberator = &ran.json()["deliberators"][2];
        assert_eq!(
            (&deliberator["round2"]["status"], &deliberator["counted"]),
            (&json!(status), &json!("missing")),
            "{body}"
        );
        assert_eq!(ran.json()["partial"], true);
        let log = std::fs::read_to_string(place.path(".quorate/council_log.jsonl")).unwrap();
        assert!(log.contains(quote), "{log}");
    }
}

#[test]
fn a_member_that_hangs_ends_at_its_deadline_with_all_that_it_started() {
    let long = long();
    // One that ends when it is asked to, with a child that left its group.
    let place = TestDir::shell(
        &format!("if [ $member = skeptic ]; then setsid sleep {long} & sleep {long}; fi; answer"),
        "timeout = \"1s\"",
    );
    let started = Instant::now();
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    assert!(
        started.elapsed() < Duration::from_millis(2 * 1_000 + 2 * 2_000 + 2_500),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(running_processes(&long), 0);
    assert_eq!(report["deliberators"][0]["round1"]["status"], "timed_out");
    assert_eq!(report["deliberators"][0]["counted"], "missing");
}

#[test]
fn a_member_that_ignores_sigterm_gets_two_seconds() {
    let long = long();
    let place = TestDir::shell(
        &format!(
            "if [ $step/$member = r1/skeptic ]; then trap '' TERM; sleep {long}; sleep {long}; fi; answer"
        ),
        "timeout = \"1s\"",
    );
    let started = Instant::now();
    place.run(&["review", "draft.md"]).assert_code(0);
    assert!(started.elapsed() < Duration::from_millis(1_000 + 2_000 + 2_500), "{:?}", started.elapsed());
    assert_eq!(running_processes(&long), 0);
}

/// A review whose four members hang, one of them deaf to SIGTERM and one with a child in a session of its own.
fn hanging(long: &str) -> (TestDir, std::process::Child) {
    let place = TestDir::shell(
        &format!(
            "[ $member = evidence ] && trap '' TERM; [ $member = strategy ] && setsid sleep {long} & sleep {long}; sleep {long}"
        ),
        "",
    );
    let child = place.start(&["review", "draft.md"]);
    wait_until(SOON, "five sleepers", || running_processes(long) >= 5);
    (place, child)
}

#[test]
fn nothing_outlives_a_review_that_was_killed() {
    let long = long();
    let (place, mut child) = hanging(&long);
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    wait_until(GONE, "the end of all members", || running_processes(&long) == 0);
    place.member("answer");
    let run = place.only_run();
    place.run(&["resume", &run]).assert_code(0);
}

#[test]
fn nothing_outlives_a_review_that_was_interrupted() {
    for signal in [Signal::INT, Signal::TERM] {
        let long = long();
        let (place, child) = hanging(&long);
        let asked = Instant::now();
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let ran = finish(child).assert_code(130);
        assert!(asked.elapsed() < GONE, "{:?}", asked.elapsed());
        wait_until(GONE, "the end of all members", || running_processes(&long) == 0);
        let command = format!("quorate resume {}", place.only_run());
        assert_eq!(ran.stderr.lines().last(), Some(&*command), "{ran:?}");
    }
}

#[test]
fn who_has_answered_is_not_asked_again() {
    // X7, by what members saw and not by what we say
    let long = long();
    let place = TestDir::shell(
        &format!("if [ $step = r2 ] && [ $member = strategy ]; then sleep {long}; fi; answer"),
        "",
    );
    let mut child = place.start(&["review", "draft.md"]);
    wait_until(SOON, "a member that hangs", || running_processes(&long) == 1 && place.calls().len() == 8);
    let three_answered = || place.run(&["runs"]).code == 0 && answered(&place) == 7;
    wait_until(SOON, "seven answers", three_answered);
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    place.member("answer");
    place.run(&["resume", &place.only_run()]).assert_code(0);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for call in place.calls() {
        *counts.entry(call).or_default() += 1;
    }
    for member in ROSTER {
        assert_eq!(counts[&format!("r1/{member}")], 1);
        assert_eq!(counts[&format!("r2/{member}")], if member == "strategy" { 2 } else { 1 });
    }
    assert_eq!(place.calls().len(), 10);
}

/// How many answers the run here has.
fn answered(place: &TestDir) -> usize {
    let report = place.run(&["show", &place.only_run(), "--format", "json"]).assert_code(0).json();
    let deliberators = report["deliberators"].as_array().expect("deliberators");
    let rounds = deliberators.iter().flat_map(|deliberator| [&deliberator["round1"], &deliberator["round2"]]);
    rounds.filter(|answer| answer["status"] == "answered").count()
}

#[test]
fn a_timeout_quotes_what_the_member_said_last() {
    let place = TestDir::shell(
        "[ $member = evidence ] && { printf '\\033[31m429 Too Many Requests\\n' >&2; sleep 60; }; answer",
        "timeout = \"1s\"",
    );
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    assert_eq!(report["deliberators"][2]["round2"]["status"], "timed_out");
    let log = place.read(".quorate/council_log.jsonl");
    assert!(log.contains("its last lines on stderr: 429 Too Many Requests"), "{log}");
    assert!(!log.contains("[31m"), "{log}");
}

#[test]
fn what_a_failed_attempt_cost_counts() {
    // X8
    let place = TestDir::shell(
        "if [ $step/$member = r1/skeptic ] && [ ! -e failed ]; then touch failed; \
         echo '{\"is_error\": true, \"result\": \"529\", \"total_cost_usd\": 0.5, \
         \"usage\": {\"input_tokens\": 100, \"output_tokens\": 1}}'; exit 1; fi; \
         printf '{\"structured_output\": %s, \"total_cost_usd\": 0.25, \"modelUsage\": {\"big-1\": {}}, \
         \"usage\": {\"input_tokens\": 10, \"cache_read_input_tokens\": 3, \"output_tokens\": 2}}\\n' \"$(answer)\"",
        "output = \"claude-json\"\nretries = 1",
    );
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    let spent = &report["spent"];
    assert_eq!((&spent["calls"], &spent["tokens_in"]), (&json!(10), &json!(100 + 9 * 13)));
    assert_eq!((&spent["tokens_cached"], &spent["tokens_out"]), (&json!(27), &json!(19)));
    assert_eq!(spent["money"], json!({"amount": "2.75", "currency": "USD"}));
    let shown = place.run(&["show", &place.only_run(), "--format", "json"]).assert_code(0).json();
    assert_eq!(shown["spent"], *spent);
}

#[test]
fn at_most_max_processes_run_at_once_and_waiting_does_not_count() {
    let body = "mkdir -p live; : > live/$$; ls live | wc -l >> peak; sleep 0.8; rm live/$$; answer";
    // The fourth of a round waits longer than its own timeout.
    let place = TestDir::shell(body, "timeout = \"2s\"\nmax_processes = 1");
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    assert_eq!(report["partial"], false);
    assert!(place.read("peak").lines().all(|line| line.trim() == "1"), "{}", place.read("peak"));
    // All drafts of a sweep share the room.
    let place = TestDir::shell(&body.replace("0.8", "0.1"), "max_processes = 3");
    for name in ["a.md", "b.md", "c.md"] {
        place.write(&format!("drafts/{name}"), format!("The meeting of {name} moved to Tuesday.\n"));
    }
    let rules = "tier_rules:\n  tier_1: {draft: ['*.md']}\nwatch: {paths: [./drafts/]}\n";
    place.write("council.yaml", format!("{COUNCIL}{rules}"));
    place.run(&["sweep", "--since", "all", "--jobs", "3"]).assert_code(0);
    let peaks: Vec<u32> = place.read("peak").lines().filter_map(|line| line.trim().parse().ok()).collect();
    assert!(peaks.len() >= 27 && peaks.iter().all(|peak| *peak <= 3), "{peaks:?}");
    assert!(peaks.contains(&3), "{peaks:?}");
}

#[test]
fn the_time_of_a_run_ends_also_while_members_wait_for_room() {
    let place = TestDir::shell("sleep 60; answer", "max_processes = 1\n[budget]\nwall = \"1s\"");
    let started = Instant::now();
    place.run(&["review", "draft.md"]).assert_code(3);
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert_eq!(place.calls().len(), 1, "{:?}", place.calls());
}

#[test]
fn a_parent_that_ignores_the_end_of_children_changes_nothing() {
    if !has_program("python3") {
        return;
    }
    let long = long();
    let place = TestDir::shell(
        &format!("[ $step/$member = r1/skeptic ] && {{ setsid sleep {long} & sleep {long}; }}; answer"),
        "timeout = \"2s\"",
    );
    let command = place.command(&["review", "draft.md", "--format", "json"]);
    let mut deaf = std::process::Command::new("python3");
    let start = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])";
    deaf.args(["-c", start]).arg(command.get_program()).args(command.get_args());
    deaf.current_dir(place.root()).env("QUORATE_TRUST", "1").stdin(std::process::Stdio::null());
    deaf.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let report = finish(deaf.spawn().expect("python3 is there")).assert_code(0).json();
    let status =
        |deliberator: usize, round: &str| report["deliberators"][deliberator][round]["status"].clone();
    assert_eq!((status(0, "round1"), status(0, "round2")), (json!("timed_out"), json!("answered")));
    assert!((1..4).all(|deliberator| status(deliberator, "round1") == "answered"), "{report}");
    assert_eq!(running_processes(&long), 0);
}

/// Starts a process that leaves group and session, has no environment, and outlives its parents.
fn escaped(long: &str) -> String {
    format!(
        "(env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM HUP; sleep {long} & sleep 600.{long}' \
         </dev/null >/dev/null 2>&1 &)"
    )
}

#[test]
fn a_process_that_left_group_session_and_parents_is_ended_too() {
    // X6
    let long = long();
    let place = TestDir::shell(
        &format!("[ $step/$member = r1/skeptic ] && {{ {}; sleep 0.3; }}; answer", escaped(&long)),
        "",
    );
    let child = place.start(&["review", "draft.md"]);
    wait_until(SOON, "the sleeper", || {
        running_processes(&long) >= 1 || !place.calls().is_empty() && place.calls().len() >= 9
    });
    finish(child).assert_code(0);
    assert_eq!(running_processes(&long), 0);
}

#[test]
fn a_child_that_was_there_before_is_not_ended() {
    // X6
    let (before, after) = (long(), long());
    let place = TestDir::shell(&format!("[ $member = skeptic ] && {}; answer", escaped(&after)), "");
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "(sleep \"$1\" & sleep \"$1\") >/dev/null 2>&1 & shift; exec \"$@\"", "sh", &before])
        .args([support::QUORATE, "review", "draft.md"])
        .current_dir(place.root())
        .env("QUORATE_TRUST", "1")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    finish(shell.spawn().expect("sh")).assert_code(0);
    assert_eq!(running_processes(&before), 2);
    shell::kill(&before);
    shell::kill(&after);
}

#[test]
fn a_tool_that_a_cli_refused_is_recorded_and_noted() {
    let place = TestDir::shell(
        "echo 'Warning: no stdin data received in 3s'; \
         printf '{\"type\": \"result\", \"result\": %s, \"permission_denials\": [{\"tool_name\": \"Bash\"}]}\\n' \"$(answer)\"",
        "output = \"claude-json\"",
    );
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    let note = "The program of skeptic refused its model these tools: `Bash`.";
    assert!(report["notes"].as_array().expect("notes").contains(&json!(note)), "{report}");
    let shown = place.run(&["show", &place.only_run(), "--full"]).assert_code(0).stdout;
    assert!(shown.contains("The program of skeptic refused its model these tools"), "{shown}");
}

#[test]
fn an_error_of_a_cli_is_quoted_with_its_subtype() {
    let place = TestDir::shell(
        "[ $member = evidence ] && { echo '{\"type\": \"result\", \"subtype\": \"error_max_turns\", \"errors\": [\"after 5 turns\"], \
         \"structured_output\": {\"would_block\": false}}'; exit; }; \
         printf '{\"type\": \"result\", \"result\": %s}\\nnpm notice New version\\n' \"$(answer)\"",
        "output = \"claude-json\"",
    );
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    assert_eq!(report["deliberators"][2]["round1"]["status"], "failed");
    let shown = place.run(&["show", &place.only_run(), "--full"]).assert_code(0).stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("reports an error: error_max_turns: after 5 turns"), "{shown}");
}

#[test]
fn no_prompt_contains_content_credentials() {
    let place = TestDir::shell("answer", "");
    let draft = place.read("draft.md");
    let bytes = b"C2PATXT\0\x01\0\0\x0f\xa0".iter().copied().chain(std::iter::repeat_n(0x41, 4_000));
    let selector = |byte: u8| match byte {
        0..=15 => char::from_u32(0xfe00 + u32::from(byte)),
        _ => char::from_u32(0xe0100 + u32::from(byte) - 16),
    };
    let marked = format!("{}\u{feff}{}\n", draft.trim_end(), bytes.filter_map(selector).collect::<String>());
    place.write("draft.md", &marked);
    let report = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    let note = "The draft carries C2PA content credentials (4,014 invisible characters), which were left out of the prompts. \
                Quorate did not check what they hold.";
    let notes = report["notes"].as_array().expect("notes");
    assert_eq!(notes.iter().filter(|one| *one == note).count(), 1, "{report}");
    for format in ["human", "markdown", "github", "gitlab", "sarif"] {
        let shown = place.run(&["show", &place.only_run(), "--format", format]).stdout;
        assert!(!shown.contains('\u{e0131}'), "{format}");
    }
    let prompts = place.prompts().join("\n");
    assert!(prompts.contains("The meeting moved") && !prompts.contains('\u{e0131}'), "{prompts}");
    place.run(&["replay", &place.only_run()]).assert_code(0);
    place.run(&["ledger", "verify"]).assert_code(0);
}
