//! A ledger in a Postgres database through the real binary: two machines (directories) that share one, a driver that is
//! killed, and a server that goes away. Needs the server that `scripts/services start postgres` starts, named by
//! `QUORATE_TEST_POSTGRES`.

#![cfg(feature = "postgres")]

use std::future::Future;
use std::time::{Duration, Instant};

use crate::support;
use crate::support::postgres as server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use server::Database;
use support::council::{all_ship, all_ship_except};
use support::{CommandOutput, TestDir, assembly, finish, wait_until};

const SOON: Duration = Duration::from_secs(20);

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn database() -> Option<Database> {
    wait(Database::new())
}

/// A machine: it finds the ledger by its environment.
struct Machine<'a> {
    place: TestDir,
    database: &'a Database,
    key: Option<String>,
}

impl<'a> Machine<'a> {
    fn new(place: TestDir, database: &'a Database) -> Self {
        Machine { place, database, key: None }
    }

    fn start(&self, arguments: &[&str]) -> std::process::Child {
        let mut command = self.place.command(arguments);
        command.env("QUORATE_LEDGER", &self.database.url);
        if let Some(key) = &self.key {
            command.env("QUORATE_LEDGER_KEY", key);
        }
        command.spawn().expect("the binary runs")
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        finish(self.start(arguments))
    }

    fn runs(&self) -> Vec<serde_json::Value> {
        let listed = self.run(&["runs", "--format", "json"]).assert_code(0).json();
        listed["runs"].as_array().expect("a list").clone()
    }
}

/// Nothing is said beside the result.
fn quiet(ran: &CommandOutput) {
    assert!(!ran.stderr.contains("warning["), "{}", ran.stderr);
}

#[test]
fn two_machines_share_a_ledger() {
    let Some(database) = database() else { return };
    let one = Machine::new(TestDir::scripted(&all_ship()), &database);
    let mut two = Machine::new(TestDir::scripted(&all_ship()), &database);
    quiet(&one.run(&["review", "draft.md"]).assert_code(0));
    assert_eq!(one.place.log().len(), 1);
    assert!(!one.place.path(".quorate/ledger.db").exists(), "nothing of the ledger is on this machine");

    // The second sees it, and has another log.
    let first = two.runs()[0]["run"].as_str().unwrap().to_owned();
    let shown = two.run(&["show", &first, "--format", "json"]).assert_code(0).json();
    assert_eq!(shown["verdict"], "SHIP");
    two.run(&["replay", &first]).assert_code(0);
    assert!(two.place.log().is_empty());

    // Without the ledger's key its records are sealed without a signature, which is said; with it they are signed.
    two.run(&["review", "draft.md"]).assert_code(0).assert_stderr_contains("quorate:ledger_key_missing");
    two.key = Some(one.place.read(".quorate/keys/ledger.ed25519").trim().to_owned());
    // It keeps no checkpoint of the ledger yet, which is said once.
    two.run(&["ledger", "hold", &first]).assert_code(0).assert_stderr_contains("quorate:ledger_first_use");
    quiet(&two.run(&["review", "draft.md", "--format", "json"]).assert_code(0));
    assert_eq!(two.place.log().len(), 2);
    assert_eq!(one.runs().len(), 3);

    let sealed = two.run(&["ledger", "checkpoint", "--format", "json"]).assert_code(0).json();
    for machine in [&one, &two] {
        let verified = machine.run(&["ledger", "verify"]);
        quiet(&verified.assert_code(0));
        machine.run(&["ledger", "stats", "--format", "json"]).assert_code(0);
        machine.run(&["audit"]).assert_code(0);
        machine.run(&["doctor"]).assert_code(0);
        let exported = machine.run(&["ledger", "export", "--format", "jsonl"]).assert_code(0).stdout;
        assert!(exported.contains(&first), "{exported}");
    }
    assert!(sealed["size"].as_u64().is_some_and(|size| size > 10), "{sealed}");
    let proof = two.run(&["ledger", "prove", &first]).assert_code(0).stdout;
    one.place.write("proof.json", proof);
    let key = one.run(&["keys", "export", "ledger", "--format", "note"]).assert_code(0).stdout;
    one.run(&["ledger", "check-proof", "proof.json", "--key", key.trim()]).assert_code(0);
    two.run(&["ledger", "hold", &first]).assert_code(0);
    one.run(&["ledger", "gc", "--dry-run"]).assert_code(0);
    one.run(&["ledger", "verify"]).assert_code(0);
}

/// Copies all tables into a schema of their own, or back from there, as a server does that is restored or fails over.
async fn copied(database: &Database, back: bool) {
    let (before, each) = match back {
        false => {
            ("CREATE SCHEMA before;", "EXECUTE format('CREATE TABLE before.%1$I AS TABLE public.%1$I', t);")
        }
        true => (
            "",
            "EXECUTE format('DELETE FROM public.%1$I', t); EXECUTE format('INSERT INTO public.%1$I SELECT * FROM before.%1$I', t);",
        ),
    };
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
    let statement =
        format!("{before} DO $$ DECLARE t text; BEGIN FOR t IN {tables} LOOP {each} END LOOP; END $$");
    database.run(&statement).await;
}

#[test]
fn a_server_that_lost_runs_is_not_signed_on() {
    // D12
    let Some(database) = database() else { return };
    let machine = Machine::new(TestDir::scripted(&all_ship()), &database);
    let reviews = |from: u32, to: u32| {
        for number in from..to {
            machine.place.write("draft.md", format!("Draft {number}.\n"));
            machine.run(&["review", "draft.md"]).assert_code(0);
        }
    };
    reviews(0, 2);
    wait(copied(&database, false));
    reviews(2, 5);
    machine.run(&["ledger", "verify", "--strict"]).assert_code(0);
    wait(copied(&database, true));
    assert_eq!(machine.runs().len(), 2);
    let verified = machine.run(&["ledger", "verify", "--format", "json"]).assert_code(1).json();
    let of = verified["divergences"].as_array().expect("a list");
    assert!(of.iter().any(|one| one["part"] == "kept checkpoint" && one["kind"] == "cut"), "{verified}");
    machine.run(&["ledger", "checkpoint"]).assert_code(5).assert_stderr_contains("quorate:ledger_corrupt");
    let before = wait(database.count("record WHERE kind = 'checkpoint'"));
    machine.place.write("draft.md", "Draft 6.\n");
    machine.run(&["review", "draft.md"]).assert_code(0).assert_stderr_contains("quorate:checkpoint_missing");
    assert_eq!(wait(database.count("record WHERE kind = 'checkpoint'")), before);
    machine.run(&["ledger", "accept-rollback", "--reason", "Failed over to the copy."]).assert_code(0);
    assert_eq!(wait(database.count("record WHERE kind = 'checkpoint'")), before + 1);
}

#[test]
fn what_another_ledger_exports_is_taken_in() {
    let Some(database) = database() else { return };
    let alone = TestDir::scripted(&all_ship());
    alone.run(&["review", "draft.md"]).assert_code(0);
    let exported = alone.run(&["ledger", "export", "--format", "jsonl"]).assert_code(0).stdout;
    let key = alone.run(&["keys", "export", "ledger", "--format", "note"]).assert_code(0).stdout;
    let machine = Machine::new(TestDir::scripted(&all_ship()), &database);
    machine.place.write("theirs.jsonl", exported);
    machine.run(&["ledger", "import", "theirs.jsonl", "--key", key.trim()]).assert_code(0);
    assert_eq!(machine.runs()[0]["run"], alone.runs()[0]["run"]);
    machine.run(&["ledger", "checkpoint"]).assert_code(0);
    machine.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn an_assembly_and_its_overlays_are_recorded() {
    let Some(database) = database() else { return };
    let place = TestDir::new();
    assembly::write(&place, "voting", &[("ada", ""), ("bob", "")], "");
    assembly::answers(
        &place,
        &json!({"ada": assembly::vote_answer("yes"), "bob": assembly::vote_answer("yes")}),
    );
    place.write("subject.md", "# A new region\n\nResolution: open it.\n");
    let machine = Machine::new(place, &database);
    let convened = machine.run(&["convene", "ASSEMBLY.md", "--proposal", "subject.md", "--format", "json"]);
    let convened = convened.assert_code(0).json();
    let shown =
        machine.run(&["show", convened["run"].as_str().unwrap(), "--format", "json"]).assert_code(0).json();
    assert_eq!(shown["outcome"], convened["outcome"]);
    machine.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn answers_that_are_not_kept_are_erased_from_the_tables() {
    // D5
    let Some(database) = database() else { return };
    let place = TestDir::new();
    let audit = "audit: {consultations: {enabled: false}}\n";
    assembly::write(&place, "voting", &[("ada", ""), ("bob", "")], audit);
    assembly::answers(
        &place,
        &json!({"ada": assembly::vote_answer("yes"), "bob": assembly::vote_answer("yes")}),
    );
    place.write("subject.md", "# A new region\n\nResolution: open it.\n");
    let machine = Machine::new(place, &database);
    machine.run(&["convene", "ASSEMBLY.md", "--proposal", "subject.md"]).assert_code(0);
    assert_eq!(wait(database.consultations()), 2);
    assert_eq!(wait(database.count("record WHERE kind = 'consultation' AND data IS NOT NULL")), 0);
    machine.run(&["ledger", "verify"]).assert_code(0);
    machine.run(&["ledger", "gc"]).assert_code(0);
}

#[test]
fn a_killed_drivers_run_is_taken_up_elsewhere_when_its_time_is_over() {
    // X7. It takes as long as a lease lasts, which the test checks.
    let Some(database) = database() else { return };
    let slow = "delay = \"400ms\"";
    let one = Machine::new(TestDir::scripted_slowly(&all_ship(), slow), &database);
    let two = Machine::new(TestDir::scripted(&all_ship()), &database);
    let mut child = one.start(&["review", "draft.md"]);
    wait_until(SOON, "a lease", || wait(database.count_or_none("lease")) == Some(1));
    wait_until(SOON, "a consultation", || wait(database.consultations()) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    // As though it had been on another machine: here its lock would have shown that it is dead.
    wait(database.run("UPDATE lease SET place = 'elsewhere'"));

    let run = two.runs()[0]["run"].as_str().unwrap().to_owned();
    let refused = two.run(&["resume", &run]).assert_code(5);
    refused
        .assert_stderr_contains("quorate:run_moved")
        .assert_stderr_contains("in progress on another machine, whose lease ends 20");
    let started = Instant::now();
    wait_until(SOON, "the end of the lease", || two.run(&["resume", &run]).code == 0);
    assert!(started.elapsed() < Duration::from_secs(17));
    let shown = two.run(&["show", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(shown["verdict"], "SHIP");
    assert_eq!(wait(database.consultations()), 9, "no member is asked twice");
    one.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn a_killed_drivers_run_is_taken_up_at_once_where_it_was_killed() {
    let Some(database) = database() else { return };
    let one = Machine::new(TestDir::scripted_slowly(&all_ship(), "delay = \"300ms\""), &database);
    let mut child = one.start(&["review", "draft.md"]);
    wait_until(SOON, "a consultation", || wait(database.consultations()) >= 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let run = one.runs()[0]["run"].as_str().unwrap().to_owned();
    one.run(&["resume", &run]).assert_code(0);
    assert_eq!(one.place.log().len(), 1);
}

#[test]
fn a_driver_whose_run_was_taken_writes_nothing_more() {
    let Some(database) = database() else { return };
    let one = Machine::new(TestDir::scripted_slowly(&all_ship(), "delay = \"500ms\""), &database);
    let child = one.start(&["review", "draft.md"]);
    wait_until(SOON, "a lease", || wait(database.count_or_none("lease")) == Some(1));
    wait_until(SOON, "the run", || wait(database.count_or_none("run")) == Some(1));
    wait(
        database.run("UPDATE lease SET owner = 'another', place = 'elsewhere', until_ms = until_ms + 60000"),
    );
    let before = wait(database.count("record"));
    let ended = finish(child).assert_code(5);
    ended.assert_stderr_contains("quorate:run_moved");
    let runs = one.runs();
    assert_eq!(runs[0]["verdict"], json!(null));
    // A write in progress may precede the takeover; the last record is the ledger's checkpoint.
    assert!(wait(database.count("record")) <= before + 2);
}

#[test]
fn a_witness_shows_what_a_failover_has_lost() {
    let Some(database) = database() else { return };
    let one = Machine::new(TestDir::scripted(&all_ship()), &database);
    one.run(&["review", "draft.md"]).assert_code(0);
    wait(copied(&database, false));
    one.run(&["review", "draft.md"]).assert_code(0);
    let sealed = one.run(&["ledger", "checkpoint", "--format", "json"]).assert_code(0).json();
    one.place.write("witness.txt", sealed["note"].as_str().expect("a signed note"));
    one.run(&["ledger", "verify", "--witness", "witness.txt"]).assert_code(0);
    wait(copied(&database, true));
    let verified = one.run(&["ledger", "verify", "--witness", "witness.txt"]).assert_code(1);
    let size = sealed["size"].as_u64().expect("a size");
    assert!(verified.stdout.contains(&format!("the witness has seen {size} records")), "{}", verified.stdout);
    let words: Vec<&str> = verified.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("a copy of the server that"), "{}", verified.stdout);
}

#[test]
fn a_run_goes_on_over_a_lost_connection() {
    let Some(database) = database() else { return };
    let one = Machine::new(TestDir::scripted_slowly(&all_ship(), "delay = \"300ms\""), &database);
    let child = one.start(&["review", "draft.md"]);
    for answers in [1, 5] {
        wait_until(SOON, "a consultation", || wait(database.consultations()) >= answers);
        wait(database.terminate_others());
    }
    finish(child).assert_code(0);
    assert_eq!(wait(database.consultations()), 9, "no member is asked twice");
    one.run(&["ledger", "verify"]).assert_code(0);
}

/// Stops the server's processes for a database, as though their machine had been; they go on when it is dropped.
struct Stopped(Vec<Pid>);

impl Stopped {
    fn all(database: &Database) -> Stopped {
        let pids: Vec<Pid> = wait(database.others()).into_iter().filter_map(Pid::from_raw).collect();
        assert!(!pids.is_empty());
        pids.iter().for_each(|pid| kill_process(*pid, Signal::STOP).expect("it runs as this user"));
        Stopped(pids)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}

/// A review on a slow council, of which something is recorded.
fn under_way(one: &Machine<'_>, database: &Database) -> std::process::Child {
    let child = one.start(&["review", "draft.md"]);
    wait_until(SOON, "a consultation", || wait(database.consultations()) >= 1);
    child
}

/// Nothing is lost and no member is asked twice, once the server continues.
fn can_be_resumed(one: &Machine<'_>, database: &Database) {
    let run = one.runs()[0]["run"].as_str().expect("an id").to_owned();
    one.run(&["resume", &run]).assert_code(0);
    assert_eq!(wait(database.consultations()), 9);
    one.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn signals_are_heard_while_a_server_says_nothing() {
    let Some(database) = database() else { return };
    for signal in [Signal::INT, Signal::TERM] {
        let one = Machine::new(TestDir::scripted_slowly(&all_ship(), "delay = \"300ms\""), &database);
        let child = under_way(&one, &database);
        let stopped = Stopped::all(&database);
        std::thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = finish(child).assert_code(130);
        // Closing and sealing have a short timeout of their own; the server's is 30 seconds.
        assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
        ended.assert_stderr_contains("quorate resume");
        drop(stopped);
        can_be_resumed(&one, &database);
        wait(database.run("TRUNCATE record, run, run_origin, body, tile, checkpoint, signature"));
    }
}

#[test]
fn a_runs_time_holds_while_a_server_says_nothing() {
    // X8
    let Some(database) = database() else { return };
    let one = Machine::new(TestDir::scripted_slowly(&all_ship(), "delay = \"300ms\""), &database);
    one.place.write("quorate.toml", format!("budget.wall = \"4s\"\n{}", one.place.read("quorate.toml")));
    let child = under_way(&one, &database);
    let stopped = Stopped::all(&database);
    let began = Instant::now();
    let ended = finish(child).assert_code(5);
    assert!(began.elapsed() < Duration::from_secs(26), "{:?}", began.elapsed());
    ended
        .assert_stderr_contains("quorate:ledger_in_doubt")
        .assert_stderr_contains("`budget.wall`")
        .assert_stderr_contains("`quorate resume r");
    drop(stopped);
    one.place.write("quorate.toml", one.place.read("quorate.toml").replace("budget.wall = \"4s\"\n", ""));
    can_be_resumed(&one, &database);
}

#[test]
fn an_address_with_invalid_parameters_is_refused() {
    let Some(database) = database() else { return };
    let place = TestDir::scripted(&all_ship());
    for (parameters, says) in [
        ("sslmod=verify-full", "unknown parameter `sslmod`"),
        ("sslmode=require&sslrootcert=ca.pem", "does not verify the certificate"),
        ("sslmode=disable&sslmode=require", "`sslmode` is given twice"),
        ("passwrod=s3cret", "unknown parameter `passwrod`"),
    ] {
        let url = format!("{}?{parameters}", database.url);
        for arguments in [&["review", "draft.md", "--ledger", &url][..], &["doctor", "--ledger", &url]] {
            let refused = place.run(arguments).assert_code(5);
            refused.assert_stderr_contains("quorate:ledger_address").assert_stderr_contains(says);
            assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
        }
    }
    assert_eq!(wait(database.count_or_none("record")), None, "nothing was connected to");
}

#[test]
fn an_address_is_named_in_a_file_or_a_flag_and_its_password_is_never_shown() {
    // X10
    let Some(database) = database() else { return };
    let place = TestDir::scripted(&all_ship_except(json!({"adjudicate": ["no", "no", "no"]})));
    let with_password = database.url.replace("quorate@", "quorate:s3cret-word@");
    let reviewed = place.run(&["review", "draft.md", "--ledger", &with_password]).assert_code(3);
    let shown = database.url.as_str();
    assert!(reviewed.stdout.contains(shown) || reviewed.stderr.contains(shown), "{reviewed:?}");
    for (name, ran) in [("review", reviewed), ("doctor", place.run(&["doctor", "--ledger", &with_password]))]
    {
        assert!(!format!("{ran:?}").contains("s3cret"), "{name}: {ran:?}");
    }
    let toml = place.read("quorate.toml");
    place.write("quorate.toml", format!("ledger = \"{}\"\n{toml}", database.url));
    assert_eq!(place.runs().len(), 1);
    let nowhere = place.run(&["runs", "--ledger", "postgres://ada:s3cret-word@127.0.0.1:1/q"]).assert_code(5);
    nowhere
        .assert_stderr_contains("quorate:ledger_unavailable")
        .assert_stderr_contains("postgres://ada@127.0.0.1:1/q");
    assert!(!nowhere.stderr.contains("s3cret"), "{}", nowhere.stderr);
    place
        .run(&["runs", "--ledger", "mysql://h/q"])
        .assert_code(5)
        .assert_stderr_contains("unsupported ledger address `mysql://`");
}

impl Database {
    /// How many rows a table has; 0 before the table exists.
    async fn count_or_none(&self, table: &str) -> Option<i64> {
        let there = self.count(&format!("pg_tables WHERE tablename = '{table}'")).await;
        if there == 0 { None } else { Some(self.count(table).await) }
    }

    async fn consultations(&self) -> i64 {
        if self.count_or_none("record").await.is_none() {
            return 0;
        }
        self.count("record WHERE kind = 'consultation'").await
    }
}
