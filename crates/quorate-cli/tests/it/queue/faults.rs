//! Workers that die, hang or are stopped, and tasks that are damaged.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Machine, SOON, database, signal, wait};
use crate::support::shim::Shim;

use crate::support::council::all_ship;
use crate::support::{finish, wait_until};

#[test]
fn the_run_of_a_worker_that_was_killed_is_continued_by_another() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    let run = machine.enqueue(&[])[0]["run"].as_str().unwrap().to_owned();
    let slow = Machine::new(&database, &all_ship(), "delay = \"400ms\"");
    let child = slow.start(&["worker"]);
    // Some members have answered.
    let answered = || {
        wait(async { database.count(&format!("record WHERE run = '{run}' AND kind = 'consultation'")).await })
    };
    wait_until(SOON, "a member has answered", || wait(database.count("record")) > 0 && answered() > 0);
    signal(&child, Signal::KILL);
    let killed = Instant::now();
    finish(child);
    let before = answered();
    assert!((1..9).contains(&before), "{before} answers");
    let other = Machine::new(&database, &all_ship(), "delay = \"400ms\"");
    let ended = other.work(&[]);
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(25), "taken over and ended after {took:.1?}");
    assert_eq!(
        (&ended[0]["end"], &ended[0]["outcome"], &ended[0]["attempt"]),
        (&json!("done"), &json!("SHIP"), &json!(2))
    );
    // Nothing that was answered is asked again, and the run is one as any other.
    assert_eq!(answered(), 9);
    other.run(&["replay", &run]).assert_code(0);
    machine.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn a_worker_that_was_silent_for_too_long_writes_nothing_more() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    let run = machine.enqueue(&[])[0]["run"].as_str().unwrap().to_owned();
    let silent = Machine::new(&database, &all_ship(), "delay = \"600ms\"");
    let child = silent.start(&["worker", "--until-empty", "--format", "json"]);
    let records = || wait(database.count(&format!("record WHERE run = '{run}'")));
    wait_until(SOON, "its run has begun", || records() > 0);
    signal(&child, Signal::STOP);
    // Its lease ends.
    wait(database.run("UPDATE lease SET until_ms = 0"));
    let other = Machine::new(&database, &all_ship(), "delay = \"600ms\"");
    let ended = other.work(&[]);
    assert_eq!(ended[0]["end"], "done", "{ended:?}");
    let all = records();
    signal(&child, Signal::CONT);
    let continued = finish(child).assert_code(0);
    assert_eq!(records(), all);
    let lines: Vec<Value> =
        continued.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["end"], "lost", "{lines:?}");
    machine.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn a_worker_that_hangs_does_not_keep_one_beside_it_from_its_runs() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    let run = machine.enqueue(&[])[0]["run"].as_str().unwrap().to_owned();
    let worker = Machine::new(&database, &all_ship(), "delay = \"300ms\"");
    let hanging = worker.start(&["worker"]);
    wait_until(SOON, "its run has begun", || {
        wait(database.count(&format!("record WHERE run = '{run}'"))) > 0
    });
    signal(&hanging, Signal::STOP);
    wait(database.run("UPDATE lease SET until_ms = 0"));
    assert_eq!(worker.work(&[])[0]["end"], "done");
    signal(&hanging, Signal::KILL);
    finish(hanging);
}

#[test]
fn a_task_that_was_changed_in_the_database_is_dead_and_stalls_nothing() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 4);
    machine.enqueue(&[]);
    for change in [
        "UPDATE task SET body = '{' WHERE subject = 'drafts/00.md'",
        "UPDATE task SET body = jsonb_set(CAST(body AS JSONB), '{redactions}', '18446744073709551615') WHERE subject = 'drafts/01.md'",
        "UPDATE task_text SET text = text || '.' WHERE text LIKE 'The meeting number 2 %'",
    ] {
        wait(database.run(change));
    }
    let mut ended = machine.run(&["worker", "--until-empty", "--format", "json"]).assert_code(3);
    ended.stdout = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|end| {
            format!("{} {} {}\n", end["subject"].as_str().unwrap(), end["end"].as_str().unwrap(), end["why"])
        })
        .collect();
    for (draft, end) in [
        ("00", "dead \"quorate:queue_invalid"),
        ("01", "dead \"quorate:queue_invalid"),
        ("02", "dead \"quorate:queue_invalid"),
        ("03", "done"),
    ] {
        ended.assert_stdout_contains(&format!("drafts/{draft}.md {end}"));
    }
    assert_eq!(wait(database.count("run")), 1);
}

#[test]
fn a_task_that_kills_its_workers_is_dead_after_three() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    let run = machine.enqueue(&[])[0]["run"].as_str().unwrap().to_owned();
    let slow = Machine::new(&database, &all_ship(), "delay = \"30s\"");
    for attempt in 1..=3 {
        let child = slow.start(&["worker"]);
        wait_until(SOON, "it has the task", || {
            wait(database.count(&format!("task WHERE state = 'leased' AND attempts = {attempt}"))) == 1
                && wait(database.count(&format!("record WHERE run = '{run}'"))) > 0
        });
        signal(&child, Signal::KILL);
        finish(child);
        wait(database.run("UPDATE lease SET until_ms = 0"));
    }
    // The fourth asks no member: it would take half a minute.
    let ended = slow.work(&[]);
    assert_eq!(ended[0]["end"], "dead", "{ended:?}");
    let task = &machine.tasks()[0];
    assert_eq!((&task["state"], &task["attempts"]), (&json!("dead"), &json!(4)));
    assert!(task["error"].as_str().unwrap().contains("3 workers"), "{task}");
    let shown = machine.run(&["show", &run, "--format", "json"]).json();
    assert_eq!(shown["verdict"], "INCOMPLETE");
    machine.run(&["replay", &run]).assert_code(0);
    machine.run(&["ledger", "verify"]).assert_code(0);
    // A person does not resume it beside the queue, and has it tried again.
    machine.run(&["show", &run]).assert_stdout_contains("quorate queue retry");
    machine.run(&["resume", &run]).assert_code(5).assert_stderr_contains("quorate:run_queued");
    machine.run(&["queue", "retry", &run[..8]]).assert_code(0);
    let worker = Machine::new(&database, &all_ship(), "delay = \"1ms\"");
    // Its executor has other settings: the run does not continue with them.
    let ended = worker.work(&[]);
    assert_eq!(ended[0]["end"], "dead", "{ended:?}");
    assert!(ended[0]["why"].as_str().unwrap().contains("executors"), "{ended:?}");
}

/// The server's clock alone says how long a lease lasts: workers whose own are an hour before and after it leave each other
/// their runs, which take longer than a lease.
#[test]
fn clocks_that_differ_change_nothing() {
    let Some(database) = database() else { return };
    let folder = tempfile::tempdir().unwrap();
    let shim = match Shim::build(folder.path()) {
        Ok(shim) => shim,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let machine = Machine::with_drafts(&database, 2);
    machine.enqueue(&[]);
    let hour_ms = 3_600_000;
    let working = [hour_ms, -hour_ms].map(|offset_ms| {
        let worker = Machine::new(&database, &all_ship(), "delay = \"6s\"");
        let mut command =
            worker.place.command(&["worker", "--until-empty", "--slots", "1", "--format", "json"]);
        command.env("QUORATE_LEDGER", &database.url).env("QUORATE_TRUST", "1");
        shim.preload(&mut command, worker.place.root());
        Shim::clock(&mut command, offset_ms, 0);
        (command.spawn().unwrap(), worker)
    });
    for (child, _worker) in working {
        let lines = finish(child).assert_code(0).stdout;
        let ends: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(ends.len(), 1, "each has one: {lines}");
        assert_eq!((&ends[0]["end"], &ends[0]["attempt"]), (&json!("done"), &json!(1)), "{lines}");
    }
    machine.run(&["ledger", "verify"]).assert_code(0);
}

/// A server that says that its disk is full takes nothing more, and nothing is acknowledged; when there is room again the
/// run goes on.
#[test]
fn a_full_disk_of_the_server_stops_the_work_until_there_is_room() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 2);
    machine.enqueue(&[]);
    let worker = Machine::new(&database, &all_ship(), "delay = \"300ms\"");
    let child = worker.start(&["worker", "--slots", "1", "--format", "json"]);
    let answers = || wait(database.count("record WHERE kind = 'consultation'"));
    wait_until(SOON, "a member has answered", || answers() > 0);
    let tables = ["record", "body", "lease", "task"];
    let each = |statement: fn(&str) -> String| tables.map(statement).join("; ");
    wait(database.run(&format!(
        "CREATE FUNCTION full_disk() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN \
         RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$; {}",
        each(|table| format!(
            "CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION full_disk()"
        ))
    )));
    let (records, before) = (|| wait(database.count("record")), answers());
    let full = records();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(records(), full, "nothing is taken");
    assert!(before < 18, "there was more to do");
    wait(database.run(&each(|table| format!("DROP TRIGGER full_disk ON {table}"))));
    wait_until(Duration::from_secs(60), "it goes on", || machine.states() == ["done", "done"]);
    signal(&child, Signal::TERM);
    finish(child).assert_code(0);
    machine.run(&["ledger", "verify"]).assert_code(0);
    assert_eq!(wait(database.count("record WHERE kind = 'outcome'")), 2, "each is decided once");
}
