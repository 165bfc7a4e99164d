//! Hostile commands (X5, X6, X10): real commands that do everything wrong that a command can. In each case the
//! attempt ends within its timeout and two seconds, and nothing is left running.

mod cli_script;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cli_script::{CliScript, HUGE, TIMEOUT, count_processes};
use quorate_adapters::executor::agent_cli;
use quorate_kernel::ports::executor::Failure;
use serde_json::json;

/// A little room for a machine that is busy with other tests.
const SLACK: Duration = Duration::from_millis(700);
/// Between being asked and being killed.
const GRACE: Duration = Duration::from_secs(2);

/// The command ends by the deadline, or by the kill after it, without a reply.
#[track_caller]
fn times_out(name: &str) {
    let (result, took) = CliScript::new(name).ask("prompt");
    assert_eq!(result, Err(Failure::TimedOut));
    assert!(took >= TIMEOUT, "{took:?}");
    assert!(took <= TIMEOUT + GRACE + SLACK, "{took:?}");
}

/// The command answers, and is not waited for longer than it takes.
#[track_caller]
fn answers(name: &str, prompt: &str, expected: &str) {
    let (result, took) = CliScript::new(name).ask(prompt);
    assert_eq!(result.map(|reply| reply.text.trim().to_owned()), Ok(expected.to_owned()));
    assert!(took < TIMEOUT, "{took:?}");
}

/// The command fails on its own, before the deadline.
#[track_caller]
fn fails(name: &str, says: &str) {
    let (result, took) = CliScript::new(name).ask("prompt");
    let failure = result.expect_err("it should fail").to_string();
    assert!(failure.contains(says), "{failure}");
    assert!(took < TIMEOUT + GRACE + SLACK, "{took:?}");
}

#[test]
fn one_byte_a_second() {
    times_out("drips");
}

#[test]
fn a_flood_on_stdout_is_cut_off() {
    fails("floods_stdout", "more than 4 MiB");
}

#[test]
fn a_flood_on_stderr_does_not_block_it_nor_fill_us() {
    times_out("floods_stderr");
}

#[test]
fn a_hanging_command_ends_at_the_deadline_when_asked() {
    let (result, took) = CliScript::new("hangs").ask("prompt");
    assert_eq!(result, Err(Failure::TimedOut));
    assert!(took >= TIMEOUT && took < TIMEOUT + SLACK, "{took:?}");
}

#[test]
fn a_command_that_ignores_sigterm_gets_its_two_seconds_and_is_killed() {
    let (result, took) = CliScript::new("ignores_term").ask("prompt");
    assert_eq!(result, Err(Failure::TimedOut));
    assert!(took >= TIMEOUT + GRACE && took < TIMEOUT + GRACE + SLACK, "{took:?}");
}

#[test]
fn a_prompt_that_nobody_reads_does_not_block_an_answer() {
    answers("never_reads", &HUGE, r#"{"ok": true}"#);
}

#[test]
fn a_prompt_that_nobody_reads_does_not_block_the_deadline() {
    let (result, _) = CliScript::new("never_reads_nor_answers").ask(&HUGE);
    assert_eq!(result, Err(Failure::TimedOut));
}

#[test]
fn a_closed_stdin_is_no_failure() {
    answers("closes_stdin", &HUGE, r#"{"ok": true}"#);
}

#[test]
fn a_huge_prompt_arrives_whole() {
    answers("counts_its_prompt", &HUGE, &format!("{{\"bytes\": {}}}", HUGE.len()));
}

#[test]
fn an_empty_prompt_is_an_end_of_file() {
    answers("counts_its_prompt", "", r#"{"bytes": 0}"#);
}

#[test]
fn a_grandchild_that_holds_stdout_does_not_delay_the_answer() {
    answers("leaves_a_grandchild", "prompt", r#"{"ok": true}"#);
}

#[test]
fn a_grandchild_in_its_own_session_is_found() {
    answers("leaves_a_session", "prompt", r#"{"ok": true}"#);
}

#[test]
fn a_grandchild_without_environment_is_found() {
    answers("leaves_a_nameless_session", "prompt", r#"{"ok": true}"#);
}

#[test]
fn a_daemon_is_found() {
    answers("leaves_a_daemon", "prompt", r#"{"ok": true}"#);
}

#[test]
fn a_command_may_signal_its_own_group() {
    answers("signals_its_group", "prompt", r#"{"ok": true}"#);
}

#[test]
fn a_process_that_replaces_itself_is_caught_up_with() {
    answers("replaces_itself", "prompt", r#"{"ok": true}"#);
}

#[test]
fn a_command_that_kills_its_guard_ends_with_its_group() {
    let script = CliScript::new("kills_its_guard");
    let failure = script.ask_within("prompt", TIMEOUT).expect_err("it has no guard").to_string();
    assert!(failure.contains("was killed by signal 9"), "{failure}");
    // Nothing waits for the processes of the group.
    assert_gone_within(&script.marker, SLACK);
}

#[test]
fn a_tree_is_felled_whole() {
    times_out("forks_a_tree");
}

#[test]
fn who_keeps_forking_is_caught_up_with() {
    times_out("breeds");
}

#[test]
fn a_limit_message_is_a_failure() {
    fails("limit_message", "the usage limit is reached");
}

#[test]
fn an_empty_output_is_a_failure() {
    fails("says_nothing", "printed nothing: nothing to say");
}

#[test]
fn an_exit_code_outweighs_an_answer() {
    fails("fails_with_json", "ended with exit code 1: could not save the session");
}

#[test]
fn a_signal_is_a_failure() {
    fails("kills_itself", "was killed by signal 11");
}

#[test]
fn bytes_that_are_no_text_are_a_failure() {
    fails("not_utf8", "not UTF-8 (at byte 11)");
}

#[test]
fn an_answer_is_none_until_the_command_has_ended() {
    times_out("answers_and_hangs");
}

#[test]
fn a_stopped_command_is_ended_too() {
    times_out("stops_itself");
}

#[test]
fn a_deadline_that_has_passed_starts_nothing() {
    let script = CliScript::new("hangs");
    let before = Instant::now();
    assert_eq!(script.ask_within("prompt", Duration::ZERO), Err(Failure::TimedOut));
    assert!(before.elapsed() < SLACK);
}

#[test]
fn a_dropped_future_ends_what_it_started() {
    for name in ["hangs", "ignores_term", "forks_a_tree"] {
        let script = CliScript::new(name);
        cli_script::runtime().block_on(async {
            let mut asked = Box::pin(script.invoke("prompt", Duration::from_secs(60)));
            while count_processes(&script.marker) == 0 {
                let ended = tokio::time::timeout(Duration::from_millis(10), &mut asked).await;
                assert!(ended.is_err(), "{name}: {ended:?}");
            }
        });
        assert_gone_within(&script.marker, GRACE + SLACK);
    }
}

#[test]
fn a_dropped_runtime_ends_what_it_started() {
    let script = Arc::new(CliScript::new("forks_a_tree"));
    let runtime = cli_script::runtime();
    let asked = Arc::clone(&script);
    runtime.spawn(async move { asked.invoke("prompt", Duration::from_secs(60)).await });
    runtime.block_on(async {
        while count_processes(&script.marker) < 8 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    drop(runtime);
    agent_cli::wait_for_members(GRACE + SLACK);
    assert_eq!(count_processes(&script.marker), 0);
}

#[test]
fn many_at_once_do_not_take_each_other_for_their_own() {
    let scripts: Vec<_> = (0..4)
        .flat_map(|_| ["leaves_a_daemon", "hangs", "counts_its_prompt", "leaves_a_session"])
        .map(CliScript::new)
        .collect();
    let results = cli_script::runtime().block_on(futures_of(&scripts));
    for (script, result) in scripts.iter().zip(results) {
        match script.name.as_str() {
            "hangs" => assert_eq!(result, Err(Failure::TimedOut)),
            name => assert!(result.is_ok(), "{name}: {result:?}"),
        }
        assert_eq!(count_processes(&script.marker), 0);
    }
}

#[test]
fn no_other_process_is_ended() {
    let marker = cli_script::marker();
    let mut bystander = std::process::Command::new("sleep")
        .arg(&marker)
        .env("QUORATE_INVOCATION", "0.0")
        .spawn()
        .expect("sleep");
    answers("leaves_a_daemon", "prompt", r#"{"ok": true}"#);
    times_out("hangs");
    assert_eq!(count_processes(&marker), 1);
    bystander.kill().expect("it still runs");
    bystander.wait().expect("it is ours");
}

// X10
#[test]
fn a_variable_that_is_not_listed_stays_here() {
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
        assert!(std::env::var_os(name).is_some(), "cargo sets {name} for tests");
    }
    let seen = |block| {
        let reply = CliScript::with("shows_its_environment", block).ask("prompt").0.expect("it ends well");
        reply.text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let names = seen(json!({"env": ["CARGO_PKG_NAME"]}));
    assert!(names.contains(&"CARGO_PKG_NAME".to_owned()) && names.contains(&"PATH".to_owned()), "{names:?}");
    assert!(names.contains(&"QUORATE_INVOCATION".to_owned()), "{names:?}");
    assert!(!names.contains(&"CARGO_MANIFEST_DIR".to_owned()), "{names:?}");
    let names = seen(json!({"env": ["CARGO_PKG_NAME", "PATH"], "env_clear": true}));
    let shells_own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let given: Vec<_> = names.iter().filter(|name| !shells_own.contains(&name.as_str())).collect();
    assert_eq!(given, ["CARGO_PKG_NAME", "PATH", "QUORATE_INVOCATION", "QUORATE_MEMBER"]);
}

#[test]
fn a_preset_reads_what_its_command_prints() {
    let (result, _) =
        CliScript::with("plays_claude", json!({"preset": "claude", "model": "big"})).ask("prompt");
    let reply = result.expect("it plays by the rules");
    assert_eq!((reply.text.as_str(), reply.model.as_deref()), (r#"{"ok":true}"#, Some("big-1")));
    assert_eq!((reply.usage.tokens_in, reply.usage.tokens_out), (Some(7), Some(2)));
    let (result, _) = CliScript::with("plays_codex", json!({"preset": "codex"})).ask("{\"echoed\": 1}");
    let reply = result.expect("it plays by the rules");
    assert_eq!((reply.text.as_str(), reply.usage.tokens_in), ("{\"echoed\": 1}", Some(5)));
}

#[test]
fn a_cli_that_does_not_know_a_judges_flags_is_not_asked() {
    // X15
    let script = CliScript::with("knows_no_flags", json!({"preset": "claude"}));
    let failure = script.ask("prompt").0.expect_err("it does not know the flags").to_string();
    for part in ["unknown option '--safe-mode'", "tried with `2.1.197`", "quorate doctor"] {
        assert!(failure.contains(part), "{failure}");
    }
    let failure = script.inspect().expect_err("it lacks flags").to_string();
    assert!(failure.contains("0.9.1 does not know `--tools`"), "{failure}");
    let script =
        CliScript::with("plays_codex", json!({"preset": "codex", "args": ["--enable", "shell_tool"]}));
    let failure = script.ask("prompt").0.expect_err("it would have a shell").to_string();
    assert!(failure.contains("`--enable` in `args`"), "{failure}");
    // A command other than codex prints no catalog.
    let failure =
        CliScript::with("says_nothing", json!({"preset": "codex"})).ask("prompt").0.expect_err("no catalog");
    assert!(failure.to_string().contains("catalog of models"), "{failure}");
}

async fn futures_of(scripts: &[CliScript]) -> Vec<cli_script::CallResult> {
    let mut pending: Vec<_> =
        scripts.iter().map(|script| Box::pin(script.invoke("prompt", TIMEOUT))).collect();
    let mut results: Vec<Option<cli_script::CallResult>> = scripts.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in pending.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *result = Some(ready);
            }
        }
        if results.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[track_caller]
fn assert_gone_within(marker: &str, limit: Duration) {
    let stop = Instant::now() + limit;
    while count_processes(marker) > 0 {
        assert!(Instant::now() < stop, "{} processes are left", count_processes(marker));
        std::thread::sleep(Duration::from_millis(20));
    }
}
