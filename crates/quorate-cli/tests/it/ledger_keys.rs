//! The ledger's key through the real binary: ledgers that share it, keys that are lost, and old ones that come back. What is
//! written verifies, and no key counts that only the ledger itself speaks for (D3, D12).

use crate::support;
use serde_json::{Value, json};
use support::council::all_ship;
use support::{CommandOutput, TestDir, finish};

const LEDGER: &str = ".quorate/ledger.db";
const OTHER: &str = ".quorate/other.db";
const KEY: &str = ".quorate/keys/ledger.ed25519";
const CHECKPOINTS: &str = ".quorate/keys/checkpoints";
const REASON: &str = "the disk with the old key failed";

fn review(place: &TestDir, ledger: &str, name: &str) {
    place.write(name, format!("{name} says that the meeting moved.\n"));
    place.run(&["review", name, "--ledger", ledger]).assert_code(0);
}

fn verify(place: &TestDir, ledger: &str, exit: i32) -> Value {
    place.run(&["ledger", "verify", "--ledger", ledger, "--format", "json"]).assert_code(exit).json()
}

fn accept_key(place: &TestDir, more: &[&str]) -> CommandOutput {
    place.run(&[&["ledger", "accept-key", "--reason", REASON, "--format", "json"], more].concat())
}

/// Signing, exporting and proving, as they depend on the ledger's key.
fn all_work(place: &TestDir, ledger: &str) {
    verify(place, ledger, 0);
    place.run(&["ledger", "checkpoint", "--ledger", ledger]).assert_code(0);
    let export = place.run(&["ledger", "export", "--ledger", ledger]).assert_code(0).stdout;
    place.write("export.jsonl", export);
    let key = place.run(&["keys", "export", "ledger"]).assert_code(0).stdout;
    place.write("ledger.pub", key);
    place.run(&["ledger", "check-export", "export.jsonl", "--key", "ledger.pub"]).assert_code(0);
    let proof = place.run(&["ledger", "prove", "latest", "--ledger", ledger]).assert_code(0).stdout;
    place.write("proof.json", proof);
    place.run(&["ledger", "check-proof", "proof.json", "--key", "ledger.pub"]).assert_code(0);
}

/// Copies a ledger's file, and what SQLite has beside it.
fn copy_ledger(from: &TestDir, to: &TestDir) {
    for end in ["", "-wal", "-shm"] {
        let (from, to) = (from.path(&format!("{LEDGER}{end}")), to.path(&format!("{LEDGER}{end}")));
        let _ = std::fs::remove_file(&to);
        if from.exists() {
            std::fs::copy(from, to).expect("copied");
        }
    }
}

fn remove(place: &TestDir, name: &str) {
    std::fs::remove_file(place.path(name)).expect("removed");
}

/// A reviewed place whose key was lost and replaced, without a word of it to the ledger.
fn replaced() -> TestDir {
    let place = TestDir::scripted(&all_ship());
    review(&place, LEDGER, "one.md");
    remove(&place, KEY);
    place.run(&["keys", "init"]).assert_code(0);
    place
}

#[test]
fn ledgers_of_one_directory_go_on_after_each_rotation() {
    let place = TestDir::scripted(&all_ship());
    for ledger in [LEDGER, OTHER] {
        review(&place, ledger, "one.md");
    }
    for (ledger, beside) in [(LEDGER, OTHER), (OTHER, LEDGER), (LEDGER, OTHER), (LEDGER, OTHER)] {
        place.run(&["keys", "rotate", "ledger", "--ledger", ledger]).assert_code(0);
        verify(&place, beside, 0);
    }
    for ledger in [OTHER, LEDGER] {
        // The first record by the new key need not be a checkpoint.
        place.run(&["ledger", "hold", "latest", "--reason", "a claim", "--ledger", ledger]).assert_code(0);
        all_work(&place, ledger);
        review(&place, ledger, "two.md");
        all_work(&place, ledger);
        let report = verify(&place, ledger, 0);
        assert_eq!((&report["keys"]["own"], &report["accepted_keys"]), (&json!(true), &json!([])));
    }
}

#[test]
fn a_lost_key_is_replaced_by_a_person() {
    let place = replaced();
    place
        .run(&["keys", "rotate", "ledger"])
        .assert_code(5)
        .assert_stderr_contains("quorate:ledger_unsigned")
        .assert_stderr_contains("ledger_key_missing");
    verify(&place, LEDGER, 1);
    place.run(&["ledger", "accept-key", "--reason", " "]).assert_code(64);
    let accepted = accept_key(&place, &[]).assert_code(0).json();
    assert_eq!(accepted["accepted"].as_array().map(Vec::len), Some(1));
    all_work(&place, LEDGER);
    review(&place, LEDGER, "two.md");
    all_work(&place, LEDGER);
    let report = verify(&place, LEDGER, 0);
    let said = &report["accepted_keys"][0];
    assert_eq!((&said["by"], &said["reason"]), (&json!("ada"), &json!(REASON)));
    place.run(&["ledger", "verify"]).assert_code(0).assert_stdout_contains(REASON);
    assert_eq!(accept_key(&place, &[]).assert_code(0).json()["accepted"], json!([]));
    place.run(&["keys", "rotate", "ledger"]).assert_code(0);
    all_work(&place, LEDGER);
    // One copy of the checkpoints suffices: in the user's directory or beside the key.
    for dir in [".local/state/quorate/checkpoints", ".quorate/keys/checkpoints"] {
        std::fs::rename(place.path(dir), place.path("away")).expect("moved");
        verify(&place, LEDGER, 0);
        std::fs::rename(place.path("away"), place.path(dir)).expect("moved");
    }
    for dir in [".local/state/quorate/checkpoints", ".quorate/keys/checkpoints"] {
        std::fs::remove_dir_all(place.path(dir)).expect("removed");
    }
    verify(&place, LEDGER, 1);
}

#[test]
fn a_key_that_only_the_ledger_speaks_for_does_not_count() {
    // The attacker can write the ledger's file, and has keys of their own.
    let place = TestDir::scripted(&all_ship());
    review(&place, LEDGER, "one.md");
    let attacker = TestDir::scripted(&all_ship());
    std::fs::create_dir_all(attacker.path(".quorate")).expect("made");
    copy_ledger(&place, &attacker);
    attacker.run(&["keys", "init"]).assert_code(0);
    accept_key(&attacker, &[]).assert_code(0);
    verify(&attacker, LEDGER, 0);
    copy_ledger(&attacker, &place);
    let report = verify(&place, LEDGER, 1);
    assert_eq!(report["divergences"][0]["part"], "checkpoint");
    // One who can write the whole directory puts the acceptance beside it, with the key or without.
    let name = std::fs::read_dir(attacker.path(CHECKPOINTS)).expect("read");
    let mut names = name.filter_map(|entry| entry.expect("read").file_name().into_string().ok());
    let accepted = names.find(|name| name.ends_with(".accepted")).expect("there is one");
    let own_key = place.read(KEY);
    for key in [Some(attacker.read(KEY)), None] {
        place
            .write(&format!("{CHECKPOINTS}/{accepted}"), attacker.read(&format!("{CHECKPOINTS}/{accepted}")));
        key.map_or_else(|| remove(&place, KEY), |key| place.write(KEY, key));
        let report = verify(&place, LEDGER, 1);
        assert_eq!(report["divergences"][0]["part"], "checkpoint");
        place.run(&["ledger", "verify", "--strict"]).assert_code(1);
    }
    remove(&place, &format!("{CHECKPOINTS}/{accepted}"));
    place.write(KEY, own_key);
    for command in [
        &["ledger", "checkpoint"][..],
        &["ledger", "export"],
        &["ledger", "prove", "latest"],
        &["keys", "rotate", "ledger"],
        &["ledger", "accept-key", "--reason", "whatever"],
    ] {
        assert_ne!(place.run(command).code, 0, "{command:?}");
    }
    verify(&place, LEDGER, 1);
}

#[test]
fn every_machine_accepts_for_itself() {
    let place = replaced();
    accept_key(&place, &[]).assert_code(0);
    let other = TestDir::scripted(&all_ship());
    std::fs::create_dir_all(other.path(".quorate")).expect("made");
    copy_ledger(&place, &other);
    let secret = place.read(KEY);
    let with_key = |arguments: &[&str]| {
        let mut command = other.command(arguments);
        command.env("QUORATE_LEDGER_KEY", secret.trim());
        finish(command.spawn().expect("the binary runs"))
    };
    with_key(&["ledger", "verify"]).assert_code(1).assert_stderr_contains("ledger_key_missing");
    with_key(&["ledger", "export"]).assert_code(1);
    with_key(&["ledger", "accept-key", "--reason", "ada told me"]).assert_code(0);
    with_key(&["ledger", "verify"]).assert_code(0).assert_stdout_contains("ada told me");
    with_key(&["ledger", "export"]).assert_code(0);
}

#[test]
fn an_old_key_that_comes_back_does_not_sign() {
    let place = TestDir::scripted(&all_ship());
    review(&place, LEDGER, "one.md");
    let old = place.read(KEY);
    place.run(&["keys", "rotate", "ledger"]).assert_code(0);
    let new = place.read(KEY);
    place.write(KEY, &old);
    place.write("two.md", "The meeting moved again.\n");
    place.run(&["review", "two.md"]).assert_code(0).assert_stderr_contains("is an old key");
    place.run(&["keys", "rotate", "ledger"]).assert_code(5);
    for beside in [true, false] {
        if !beside {
            std::fs::remove_dir_all(place.path(".quorate/keys/retired")).expect("removed");
        }
        let refused = accept_key(&place, &[]).assert_code(5);
        assert!(refused.stdout.contains("is an old key"), "{}", refused.stdout);
    }
    place.write(KEY, &new);
    all_work(&place, LEDGER);
}

#[test]
fn a_ledger_is_restored_whose_key_is_lost_too() {
    let place = TestDir::scripted(&all_ship());
    review(&place, LEDGER, "one.md");
    let backup = TestDir::new();
    std::fs::create_dir_all(backup.path(".quorate")).expect("made");
    copy_ledger(&place, &backup);
    let log = place.read(".quorate/council_log.jsonl");
    review(&place, LEDGER, "two.md");
    copy_ledger(&backup, &place);
    place.write(".quorate/council_log.jsonl", log);
    remove(&place, KEY);
    place.run(&["ledger", "accept-rollback", "--reason", "restored"]).assert_code(5);
    place.run(&["keys", "init"]).assert_code(0);
    accept_key(&place, &[]).assert_code(0).assert_stderr_contains("accept-rollback");
    verify(&place, LEDGER, 1);
    place.run(&["ledger", "accept-rollback", "--reason", "restored"]).assert_code(0);
    all_work(&place, LEDGER);
}
