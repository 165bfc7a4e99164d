//! kill -9 of the real binary at points spread over a run, then taking it up again; Ctrl-C and SIGTERM.
//!
//! `QUORATE_KILLS=from..to/step` kills at those milliseconds instead, and past the end of the run starts over;
//! `scripts/soak` does.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support;
use crate::support::records;
use quorate_kernel::ports::ledger::Record;
use records::{block_on, consultations, of_kind, operators_called_from, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};
use support::council::{ROSTER, all_ship, all_ship_except};
use support::{TestDir, finish, wait_until};

const POINTS: u64 = 24;
const SOON: Duration = Duration::from_secs(20);

/// A council whose members take their time, one of whom has to be asked twice, and whose verdict is REVISE.
fn slow() -> TestDir {
    let block = json!({"would_block": true, "irreducible": false});
    let answers = all_ship_except(json!({
        "r1/evidence": ["no JSON", {"would_block": true}],
        "r2/evidence": block, "r2/skeptic": block, "r2/strategy": block,
        "adjudicate": {"verdict": "REVISE", "reasoning": "Three block, and a revision would do."},
    }));
    TestDir::scripted_slowly(&answers, "delay = \"30ms\"")
}

/// The milliseconds after which the process is killed.
fn points(whole: Duration) -> Vec<u64> {
    let whole = u64::try_from(whole.as_millis()).expect("not so long");
    let read = |text: String| -> Option<Vec<u64>> {
        let (from, rest) = text.split_once("..")?;
        let (to, step) = rest.split_once('/').unwrap_or((rest, "1"));
        Some(
            (from.parse().ok()?..to.parse().ok()?)
                .step_by(step.parse().ok()?)
                .map(|ms: u64| ms % (whole + 20))
                .collect(),
        )
    };
    match std::env::var("QUORATE_KILLS") {
        Ok(text) => read(text).expect("QUORATE_KILLS is from..to/step, in milliseconds"),
        Err(_) => (0..POINTS).map(|point| point * (whole + 10) / (POINTS - 1)).collect(),
    }
}

fn ids(records: &[Record]) -> BTreeSet<String> {
    of_kind(records, "consultation").iter().map(|one| text(&one["invocation"])).collect()
}

/// Says at which point a test failed.
struct Point(u64);

impl Drop for Point {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("killed after {} ms", self.0);
        }
    }
}

/// Starts a review, kills it, resumes it and checks the ledger and the log.
fn killed_after(ms: u64, verdict: &Value) {
    let _point = Point(ms);
    let place = slow();
    let mut child = place.start(&["review", "draft.md"]);
    std::thread::sleep(Duration::from_millis(ms));
    child.kill().expect("it is ours");
    child.wait().expect("it ends");

    let ledger = place.path(".quorate/ledger.db");
    let runs = records::runs(&ledger);
    let Some((run, decided)) = runs.first() else {
        // The kill came before run.opened was durable: neither a run nor a line exists.
        assert!(place.log().is_empty());
        assert!(!ledger.is_file() || place.runs().is_empty());
        return;
    };
    assert_eq!(runs.len(), 1);
    let before = records::records(&ledger, run);
    let answered = ids(&before);
    if decided.is_none() {
        place.run(&["resume", run]).assert_code(1);
    }
    assert_eq!(place.runs()[0]["verdict"], *verdict);
    let after = records::records(&ledger, run);
    assert_eq!(after[..before.len()], before, "a record was changed");
    let counts = consultations(&after);
    let whole = ROSTER.iter().flat_map(|member| [format!("r1/{member}"), format!("r2/{member}")]);
    let whole: BTreeSet<String> = whole.chain(["adjudicate".to_owned()]).collect();
    assert_eq!(counts.keys().cloned().collect::<BTreeSet<_>>(), whole);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    let again: Vec<String> =
        operators_called_from(&after, before.len()).into_iter().filter(|id| answered.contains(id)).collect();
    assert_eq!(again, Vec::<String>::new(), "paid for twice");
    assert_eq!(place.log().len(), 1);
    assert_eq!(of_kind(&after, "outcome").len(), 1);
    place.run(&["replay", run]).assert_code(0);
    assert_eq!(integrity(&ledger), "ok");
}

fn integrity(ledger: &std::path::Path) -> String {
    block_on(async {
        let url = format!("sqlite://{}", ledger.display());
        let mut connection = SqliteConnection::connect(&url).await.expect("it opens");
        let row = sqlx::query("PRAGMA integrity_check").fetch_one(&mut connection).await.expect("it answers");
        row.get(0)
    })
}

#[test]
fn a_kill_at_any_point_costs_what_was_under_way_and_nothing_else() {
    // X7
    let undisturbed = slow();
    let started = Instant::now();
    let verdict =
        undisturbed.run(&["review", "draft.md", "--format", "json"]).assert_code(1).json()["verdict"].clone();
    let points = points(started.elapsed());
    let halves = points.chunks(points.len().div_ceil(2).max(1));
    std::thread::scope(|scope| {
        for half in halves {
            scope.spawn(|| half.iter().for_each(|ms| killed_after(*ms, &verdict)));
        }
    });
}

#[test]
fn a_second_kill_while_resuming_costs_nothing_either() {
    let place = slow();
    let ledger = place.path(".quorate/ledger.db");
    let mut child = place.start(&["review", "draft.md"]);
    wait_until(SOON, "a run", || !records::runs(&ledger).is_empty());
    for ms in [60, 90, 120] {
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        child = place.start(&["resume", &place.only_run()]);
    }
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    let run = place.only_run();
    assert!([1, 5].contains(&place.run(&["resume", &run]).code), "it goes on, or had come to its end");
    let records = records::records(&ledger, &run);
    assert!(consultations(&records).values().all(|count| *count == 1));
    assert_eq!((consultations(&records).len(), place.log().len()), (9, 1));
    // X8: what was under way when it died counts as spent
    let spent =
        place.run(&["show", &run, "--format", "json"]).assert_code(0).json()["spent"]["calls"].as_u64();
    assert!(spent >= Some(10), "{spent:?}");
    place.run(&["replay", &run]).assert_code(0);
}

#[test]
fn ctrl_c_sigterm_and_sighup_say_how_to_go_on() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = TestDir::scripted(&all_ship_except(json!({"r2": {"$timeout": true}})));
        let child = place.start(&["review", "draft.md"]);
        let ledger = place.path(".quorate/ledger.db");
        let round_1_is_over = || {
            let runs = records::runs(&ledger);
            runs.first().is_some_and(|(run, _)| consultations(&records::records(&ledger, run)).len() == 4)
        };
        wait_until(SOON, "the end of round 1", round_1_is_over);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let asked = Instant::now();
        let ran = finish(child).assert_code(130);
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        assert!(ran.stdout.is_empty());
        let run = place.only_run();
        ran.assert_stderr_contains(&format!("quorate resume {run}"));
        assert!(place.log().is_empty());
        place.answers(&all_ship());
        let report = place.run(&["resume", &run, "--format", "json"]).assert_code(0).json();
        assert_eq!((&report["verdict"], place.log().len()), (&json!("SHIP"), 1));
    }
}

/// A review that waits for the log's lock when its outcome is recorded already, and the lock.
fn decided_but_not_logged(place: &TestDir, arguments: &[&str]) -> (std::process::Child, std::fs::File) {
    let log = place.path(".quorate/council_log.jsonl");
    std::fs::create_dir_all(place.path(".quorate")).expect("it can be made");
    let lock = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("it can be made");
    lock.lock().expect("no other process has it");
    let child = place.start(arguments);
    let ledger = place.path(".quorate/ledger.db");
    wait_until(SOON, "an outcome", || records::runs(&ledger).iter().any(|(_, decided)| decided.is_some()));
    (child, lock)
}

#[test]
fn an_interruption_behind_the_outcome_takes_no_verdict_back() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = TestDir::scripted(&all_ship());
        let (child, lock) = decided_but_not_logged(&place, &["review", "draft.md", "--format", "json"]);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        std::thread::sleep(Duration::from_millis(200));
        drop(lock);
        let ran = finish(child).assert_code(0);
        assert_eq!((&ran.json()["verdict"], place.log().len()), (&json!("SHIP"), 1));
    }
}

#[test]
fn an_interruption_behind_an_outcome_ends_the_batch_and_keeps_the_verdict() {
    for format in ["human", "json"] {
        let place = TestDir::scripted(&all_ship());
        place.write("second.md", "The meeting moved back to Monday at nine.\n");
        let arguments = ["review", "draft.md", "second.md", "--format", format];
        let (child, lock) = decided_but_not_logged(&place, &arguments);
        kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        std::thread::sleep(Duration::from_millis(200));
        drop(lock);
        let ran = finish(child).assert_code(130);
        if format == "json" {
            let report = ran.json();
            let ended = |at: usize| (&report["reviews"][at]["artifact"], &report["reviews"][at]["exit"]);
            assert_eq!((&report["exit"], report["reviews"].as_array().unwrap().len()), (&json!(130), 2));
            assert_eq!(
                (ended(0), ended(1)),
                ((&json!("draft.md"), &json!(0)), (&json!("second.md"), &json!(130)))
            );
            assert_eq!(report["reviews"][0]["verdict"], "SHIP");
        } else {
            assert!(ran.stdout.contains("\nSHIP  ") && ran.stdout.contains("draft.md"), "{ran:?}");
            assert!(!ran.stdout.contains("second.md"), "{ran:?}");
            ran.assert_stderr_contains("SHIP        draft.md")
                .assert_stderr_contains("interrupted  second.md");
        }
        let runs = records::runs(&place.path(".quorate/ledger.db"));
        assert_eq!((runs.len(), runs[0].1.is_some(), place.log().len()), (1, true, 1), "{ran:?}");
    }
}

#[test]
fn a_line_that_an_interruption_left_out_follows_at_the_next_start() {
    let place = TestDir::scripted(&all_ship());
    let (child, lock) = decided_but_not_logged(&place, &["review", "draft.md"]);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    finish(child).assert_code(0).assert_stderr_contains("is not logged yet");
    assert!(place.log().is_empty());
    drop(lock);
    let run = place.only_run();
    place.run(&["show", &run]).assert_code(0);
    assert_eq!(place.log().len(), 1);
}

/// The binary, about to be started by a shell after `first`.
fn after(place: &TestDir, first: &str, arguments: &[&str]) -> std::process::Command {
    let direct = place.command(arguments);
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(format!("{first}; exec \"$0\" \"$@\""));
    command.arg(direct.get_program()).args(direct.get_args()).env_clear();
    command.envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(place.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_hangup_that_nohup_has_ignored_ends_nothing() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"300ms\"");
    let child = after(&place, "trap '' HUP", &["review", "draft.md"]).spawn().expect("sh runs");
    let ledger = place.path(".quorate/ledger.db");
    wait_until(SOON, "a run", || !records::runs(&ledger).is_empty());
    kill_process(Pid::from_child(&child), Signal::HUP).expect("it runs");
    finish(child).assert_code(0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_is_heard_before_anything_is_read() {
    let place = TestDir::scripted(&all_ship());
    let catches = |pid: u32, signal: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(caught.trim(), 16).is_ok_and(|caught| caught & (1 << (signal - 1)) != 0)
    };
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let mut command = place.command(&["review", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary runs");
        // It waits for a text that never comes.
        let stdin = child.stdin.take();
        wait_until(SOON, "a handler", || catches(child.id(), number));
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        finish(child).assert_code(130);
        drop(stdin);
    }
}

#[test]
fn a_file_size_limit_is_an_error_and_not_the_end_of_the_process() {
    let place = TestDir::scripted(&all_ship());
    let child = after(&place, "ulimit -f 16", &["review", "draft.md"]).spawn().expect("sh runs");
    finish(child).assert_code(5).assert_stderr_contains("quorate:");
}
