//! Workspaces that share a ledger in a database, on one machine: each signs with its own key and writes its own log, whatever
//! paths the record of a run names. Needs the server that `scripts/services start postgres` starts.

#![cfg(feature = "postgres")]

use std::future::Future;

use crate::support;
use crate::support::postgres as server;
use serde_json::{Value, json};
use server::Database;
use support::council::{all_ship, all_ship_except};
use support::{CommandOutput, TestDir, finish};

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A workspace whose ledger is the database, and whose reviews are signed.
fn workspace(database: &Database, answers: &Value) -> TestDir {
    let place = TestDir::scripted(answers);
    let toml = place.read("quorate.toml");
    place
        .write("quorate.toml", format!("ledger = \"{}\"\n{toml}[keys]\nsign = \"required\"\n", database.url));
    place
}

/// As in reality, what one workspace has can be read from the other: both are of one user.
fn run_with(place: &TestDir, ledger_key: Option<&str>, arguments: &[&str]) -> CommandOutput {
    let mut command = place.command(arguments);
    if let Some(key) = ledger_key {
        command.env("QUORATE_LEDGER_KEY", key.trim());
    }
    finish(command.spawn().expect("the binary runs"))
}

fn overrides(run: &str) -> [&str; 8] {
    ["override", run, "--by", "ada", "--verdict", "ship", "--reason", "Cleared."]
}

/// The lines of the override, and all lines.
fn lines(place: &TestDir) -> (usize, usize) {
    let log = place.log();
    (log.iter().filter(|line| line["event"] == "override").count(), log.len())
}

/// How many of a run's records a key has signed.
fn signers(database: &Database, run: &str, key: &str) -> i64 {
    wait(database.count(&format!("signature WHERE run = '{run}' AND key = '{key}'")))
}

#[test]
fn an_override_is_signed_by_the_workspace_that_it_is_given_in() {
    // D3, D10
    let Some(database) = wait(Database::new()) else { return };
    let one = workspace(&database, &all_ship());
    one.run(&["keys", "init"]).assert_code(0);
    let run = one.review(&["draft.md"])["run"].as_str().expect("an id").to_owned();
    let ledger_key = one.read(".quorate/keys/ledger.ed25519");
    let records = || wait(database.count("record"));
    let before = records();
    // Without a key of its own, although the one of the run's workspace lies where the record says.
    let two = workspace(&database, &all_ship());
    let overridden = || run_with(&two, Some(&ledger_key), &overrides(&run));
    overridden().assert_code(5).assert_stderr_contains("quorate:signing_key_missing");
    // With an untrusted one.
    let theirs = two.run(&["keys", "init", "--format", "json"]).assert_code(0).json();
    let theirs = theirs["signing"]["id"].as_str().expect("an id").to_owned();
    overridden().assert_code(5).assert_stderr_contains("quorate:signing_key_missing");
    two.write("keyring.toml", format!("{}{}", one.read("keyring.toml"), two.read("keyring.toml")));
    overridden().assert_code(5).assert_stderr_contains("quorate keys vouch");
    assert_eq!((records(), lines(&one), lines(&two)), (before, (0, 1), (0, 0)), "nothing was written");
    // With one that the run's key vouches for.
    one.write("keyring.toml", two.read("keyring.toml"));
    one.run(&["keys", "vouch", &theirs]).assert_code(0);
    two.write("keyring.toml", one.read("keyring.toml"));
    overridden().assert_code(0).assert_stderr_contains("quorate:log_elsewhere");
    assert!(signers(&database, &run, &theirs) > 0, "its own key signed");
    assert_eq!((lines(&one), lines(&two)), ((0, 1), (1, 1)), "each has its own log");
    two.run(&["audit"]).assert_code(0);
    for place in [&one, &two] {
        run_with(place, Some(&ledger_key), &["ledger", "verify"]).assert_code(0);
    }
    // The line is held where it stands, and missed there alone.
    let log = two.read(".quorate/council_log.jsonl");
    two.write(".quorate/council_log.jsonl", "");
    run_with(&two, Some(&ledger_key), &["ledger", "verify"])
        .assert_code(1)
        .assert_stderr_contains("no line for its override");
    one.run(&["ledger", "verify"]).assert_code(0);
    two.write(".quorate/council_log.jsonl", log);
    // Where it was revoked it signs no more.
    one.run(&["keys", "revoke", &theirs, "--at", "30m"]);
    two.write("keyring.toml", one.read("keyring.toml"));
    let before = records();
    overridden().assert_code(5).assert_stderr_contains("quorate:signing_key_missing");
    assert_eq!(records(), before);
}

#[test]
fn a_run_is_resumed_with_the_keys_and_the_log_of_the_workspace_that_resumes_it() {
    // D10, X7: its council is the one that it was started with.
    let Some(database) = wait(Database::new()) else { return };
    let failing =
        all_ship_except(json!({"r1": {"fails": true}, "r1/skeptic": "no JSON", "r2/skeptic": "no JSON"}));
    let one = workspace(&database, &failing);
    one.run(&["keys", "init"]).assert_code(0);
    one.run(&["review", "draft.md"]);
    let run = one.only_run();
    one.answers(&all_ship());
    let ledger_key = one.read(".quorate/keys/ledger.ed25519");
    let two = workspace(&database, &all_ship());
    let before = wait(database.count("record"));
    run_with(&two, Some(&ledger_key), &["resume", &run])
        .assert_code(5)
        .assert_stderr_contains("quorate:signing_key_missing");
    assert_eq!((wait(database.count("record")), lines(&one).1), (before, 1));
    // The same key is there, as a person who works in both has it.
    std::fs::create_dir_all(two.path(".quorate/keys")).expect("a directory");
    std::fs::copy(one.path(".quorate/keys/signing.ed25519"), two.path(".quorate/keys/signing.ed25519"))
        .expect("copied");
    two.write("keyring.toml", one.read("keyring.toml"));
    run_with(&two, Some(&ledger_key), &["resume", &run])
        .assert_code(0)
        .assert_stderr_contains("quorate:log_elsewhere");
    assert_eq!((lines(&one).1, lines(&two).1), (1, 1));
    for place in [&one, &two] {
        run_with(place, Some(&ledger_key), &["ledger", "verify"]).assert_code(0);
    }
}

#[test]
fn an_unsigned_checkpoint_is_signed_by_the_machine_that_has_the_key() {
    // D2
    let Some(database) = wait(Database::new()) else { return };
    let one = workspace(&database, &all_ship());
    one.run(&["keys", "init"]).assert_code(0);
    one.run(&["review", "draft.md"]).assert_code(0);
    let two = workspace(&database, &all_ship());
    let toml = two.read("quorate.toml").replace("required", "none");
    two.write("quorate.toml", toml);
    two.run(&["review", "draft.md"]).assert_code(0).assert_stderr_contains("quorate:ledger_key_missing");
    one.run(&["ledger", "verify", "--strict"])
        .assert_code(1)
        .assert_stderr_contains("quorate ledger checkpoint");
    let sealed = one.run(&["ledger", "checkpoint"]).assert_code(0);
    assert!(sealed.stdout.contains("\u{2014} quorate/"), "{}", sealed.stdout);
    one.run(&["ledger", "verify", "--strict"]).assert_code(0);
    let again = one.run(&["ledger", "checkpoint"]).assert_code(0);
    assert_eq!(again.stdout, sealed.stdout, "once");
}
