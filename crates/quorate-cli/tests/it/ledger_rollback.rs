//! Rollback protection through the real binary (D12): a ledger that does not lead to the last checkpoint that its key signed
//! on this machine does not verify, and is not signed on until a person says why.

use std::path::PathBuf;

use crate::support;
use crate::support::records;
use records::block_on;
use serde_json::json;
use sqlx::{Connection as _, Row as _, SqliteConnection};
use support::TestDir;
use support::council::{COUNCIL, all_ship};

const LEDGER: &str = ".quorate/ledger.db";
const COPIES: [&str; 2] = [".quorate/keys/checkpoints", ".local/state/quorate/checkpoints"];

/// The one copy in a directory of copies.
fn copy(place: &TestDir, dir: &str) -> PathBuf {
    let files =
        std::fs::read_dir(place.path(dir)).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut notes = files.filter(|path| path.extension().is_some_and(|extension| extension == "note"));
    let note = notes.next().expect("a copy");
    assert_eq!(notes.next(), None, "one ledger has one copy");
    note
}

fn copies(place: &TestDir) -> [String; 2] {
    COPIES.map(|dir| std::fs::read_to_string(copy(place, dir)).expect("readable"))
}

fn review(place: &TestDir, name: &str) {
    place.write(name, format!("{name} says that the meeting moved.\n"));
    place.run(&["review", name]).assert_code(0);
}

/// Two reviews, and the ledger's bytes after the first of them.
fn rolled_back() -> (TestDir, Vec<u8>) {
    let place = TestDir::scripted(&all_ship());
    review(&place, "one.md");
    let before = std::fs::read(place.path(LEDGER)).expect("readable");
    review(&place, "two.md");
    (place, before)
}

fn restore(place: &TestDir, bytes: &[u8]) {
    for file in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(place.path(&format!("{LEDGER}{file}")));
    }
    std::fs::write(place.path(LEDGER), bytes).expect("writable");
}

fn verify(place: &TestDir, more: &[&str], exit: i32) -> serde_json::Value {
    place.run(&[&["ledger", "verify", "--format", "json"], more].concat()).assert_code(exit).json()
}

fn first_of(report: &serde_json::Value) -> (String, String) {
    let text = |key: &str| report["divergences"][0][key].as_str().unwrap_or_default().to_owned();
    (text("kind"), text("part"))
}

#[test]
fn a_ledger_that_lost_a_run_is_not_signed_on() {
    // D12
    let (place, before) = rolled_back();
    let report = verify(&place, &["--strict"], 0);
    assert_eq!(report["kept"]["copies"], 2);
    // The log has the second run's line, so the log is restored as well.
    let log = place.read(".quorate/council_log.jsonl");
    place.write(".quorate/council_log.jsonl", format!("{}\n", log.lines().next().expect("a line")));
    restore(&place, &before);
    for gone in [None, Some(COPIES[0])] {
        if let Some(dir) = gone {
            std::fs::remove_dir_all(place.path(dir)).expect("removed");
        }
        assert_eq!(first_of(&verify(&place, &[], 1)), ("cut".into(), "kept checkpoint".into()));
        place
            .run(&["ledger", "checkpoint"])
            .assert_code(5)
            .assert_stderr_contains("quorate:ledger_corrupt")
            .assert_stderr_contains("accept-rollback");
        place.run(&["ledger", "export"]).assert_code(1).assert_stderr_contains("quorate:ledger_corrupt");
        // A review reports it once.
        let reviewed = place.run(&["review", "one.md", "--type", "blog_post"]);
        assert_eq!(reviewed.stderr.contains("quorate:checkpoint_missing"), gone.is_none(), "{reviewed:?}");
        restore(&place, &before);
    }
    // With neither copy nothing tells, and that is said.
    std::fs::remove_dir_all(place.path(COPIES[1])).expect("removed");
    let human = place.run(&["ledger", "verify"]).assert_code(0).stdout;
    assert!(human.contains("this machine keeps no checkpoint of the ledger"), "{human}");
    // It is the last sentence.
    let (_, last) = human.rsplit_once("\n- ").expect("a sentence");
    assert!(last.lines().skip(1).all(|line| line.starts_with("  ")), "{human}");
    let last = last.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(last.starts_with("not detectable here: whether records were cut off at the end, "), "{human}");
    let end = ", and a ledger rewritten by a person with the ledger's key and access to every copy";
    assert!(last.ends_with(end), "{human}");
    let strict = verify(&place, &["--strict"], 1);
    assert_eq!(first_of(&strict), ("removed".into(), "kept checkpoint".into()));
    place
        .run(&["review", "one.md", "--type", "blog_post"])
        .assert_stderr_contains("quorate:ledger_first_use");
    assert_eq!(verify(&place, &["--strict"], 0)["kept"]["copies"], 2);
}

#[test]
fn garbage_in_a_copy_stops_signing() {
    // D12
    let (place, _) = rolled_back();
    for dir in COPIES {
        let path = copy(&place, dir);
        let kept = std::fs::read(&path).expect("readable");
        for garbage in ["", "nonsense\n"] {
            std::fs::write(&path, garbage).expect("writable");
            assert_eq!(first_of(&verify(&place, &[], 1)), ("changed".into(), "kept checkpoint".into()));
            place
                .run(&["ledger", "checkpoint"])
                .assert_code(5)
                .assert_stderr_contains("quorate:ledger_corrupt");
        }
        // A note of the right size that another key signed, with another root.
        let forged = String::from_utf8(kept.clone()).expect("text");
        let root = forged.lines().nth(2).expect("a root").to_owned();
        let forged = forged.replacen(&root, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 1);
        std::fs::write(&path, forged).expect("writable");
        verify(&place, &[], 1);
        place.run(&["ledger", "checkpoint"]).assert_code(5).assert_stderr_contains("quorate:ledger_corrupt");
        std::fs::write(&path, kept).expect("writable");
        verify(&place, &["--strict"], 0);
    }
}

#[test]
fn two_ledgers_of_a_directory_do_not_know_each_other() {
    // D12
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    for ledger in ["a.db", "b.db", "a.db"] {
        place.run(&["review", "draft.md", "--ledger", ledger, "--type", "post"]);
        place.run(&["ledger", "verify", "--strict", "--ledger", ledger]).assert_code(0);
    }
    for ledger in ["a.db", "b.db"] {
        place.run(&["ledger", "checkpoint", "--ledger", ledger]).assert_code(0);
    }
    // A swapped one is found, and so is a missing one.
    std::fs::copy(place.path("a.db"), place.path("b.db")).expect("copied");
    let taken = place.run(&["ledger", "verify", "--ledger", "b.db"]).assert_code(1);
    taken.assert_stderr_contains("another ledger has replaced");
    std::fs::remove_file(place.path("a.db")).expect("removed");
    let begun = place.run(&["review", "draft.md", "--ledger", "a.db", "--type", "post"]);
    begun.assert_stderr_contains("quorate:checkpoint_missing");
    place.run(&["ledger", "verify", "--ledger", "a.db"]).assert_code(1);
}

/// A review that is recorded and not sealed, since another ledger was kept here; then a person accepts that.
fn is_told_and_goes_on(place: &TestDir) {
    let reviewed = place.run(&["review", "one.md", "--type", "blog_post"]);
    reviewed
        .assert_stderr_contains("quorate:checkpoint_missing")
        .assert_stderr_contains("another ledger has replaced")
        .assert_stderr_contains("accept-rollback --reason");
    let found = place.run(&["ledger", "verify"]).assert_code(1);
    found
        .assert_stderr_contains("another ledger has replaced")
        .assert_stderr_contains("accept-rollback --reason");
    place.run(&["ledger", "accept-rollback", "--reason", "The workspace was made anew."]).assert_code(0);
    verify(place, &["--strict"], 0);
    review(place, "three.md");
    verify(place, &["--strict"], 0);
}

#[test]
fn a_ledger_with_keys_of_its_own_does_not_take_anothers_place() {
    // D12: all of `.quorate/` is that of another workspace, and only the state directory knows.
    let place = TestDir::scripted(&all_ship());
    review(&place, "one.md");
    let other = TestDir::scripted(&all_ship());
    review(&other, "one.md");
    std::fs::rename(place.path(".quorate"), place.path("before")).expect("moved");
    let mut copy = std::process::Command::new("cp");
    let copied = copy.arg("-a").arg(other.path(".quorate")).arg(place.root());
    assert!(copied.status().expect("it runs").success());
    let report = verify(&place, &[], 1);
    assert!(report["divergences"].to_string().contains("another ledger has replaced"), "{report}");
    place.run(&["ledger", "checkpoint"]).assert_code(5).assert_stderr_contains("accept-rollback");
    is_told_and_goes_on(&place);
}

#[test]
fn a_workspace_that_is_deleted_is_not_begun_anew_unnoticed() {
    // D12
    for gone in [".quorate/keys/checkpoints", ".quorate"] {
        let (place, _) = rolled_back();
        for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm", "council_log.jsonl"] {
            let _ = std::fs::remove_file(place.path(&format!(".quorate/{file}")));
        }
        std::fs::remove_dir_all(place.path(gone)).expect("removed");
        is_told_and_goes_on(&place);
    }
    // Garbage in the ledger's place is set aside, and that is no way around it.
    let (place, _) = rolled_back();
    restore(&place, &[7; 9000]);
    std::fs::remove_file(place.path(".quorate/council_log.jsonl")).expect("removed");
    is_told_and_goes_on(&place);
}

#[test]
fn a_reader_does_not_hold_it_back() {
    // D12
    let place = TestDir::scripted(&all_ship());
    review(&place, "one.md");
    let before = copies(&place);
    block_on(async {
        let url = format!("sqlite://{}", place.path(LEDGER).display());
        let mut reader = SqliteConnection::connect(&url).await.expect("it opens");
        sqlx::raw_sql("BEGIN").execute(&mut reader).await.expect("it begins");
        let rows = sqlx::query("SELECT COUNT(*) FROM record").fetch_one(&mut reader).await.expect("it reads");
        assert!(rows.get::<i64, _>(0) > 0);
        review(&place, "two.md");
        let after = copies(&place);
        assert_eq!(after[0], after[1]);
        assert_ne!(after[0], before[0]);
        assert_eq!(after[0], place.run(&["ledger", "checkpoint"]).assert_code(0).stdout);
        reader.close().await.expect("it closes");
    });
}

#[test]
fn a_restored_backup_is_accepted_with_a_reason() {
    // D12
    let (place, before) = rolled_back();
    place.run(&["ledger", "accept-rollback"]).assert_code(64);
    place.run(&["ledger", "accept-rollback", "--reason", " "]).assert_code(64);
    let nothing = place.run(&["ledger", "accept-rollback", "--reason", "why not", "--format", "json"]);
    assert_eq!(nothing.assert_code(0).json()["accepted"], false);
    let log = place.read(".quorate/council_log.jsonl");
    place.write(".quorate/council_log.jsonl", format!("{}\n", log.lines().next().expect("a line")));
    restore(&place, &before);
    let lost = copies(&place);
    let accepted = place.run(&["ledger", "accept-rollback", "--reason", "The disk failed; Monday's backup."]);
    assert!(accepted.assert_code(0).stdout.starts_with("accepted: it does not extend"));
    let report = verify(&place, &["--strict"], 0);
    let said = json!([{"record": "ledger/1", "by": "ada", "reason": "The disk failed; Monday's backup."}]);
    assert_eq!(report["rollbacks"], said);
    assert_ne!(copies(&place), lost);
    let aside = std::fs::read_dir(place.path(".quorate/aside")).expect("a directory").count();
    assert_eq!(aside, 2, "what was given up is not destroyed");
    let records = records::records(&place.path(LEDGER), "ledger");
    let accepted = records::of_kind(&records, "ledger.rolled_back");
    assert_eq!(accepted[0]["given_up"][0]["note"], json!(lost[0]));
    review(&place, "three.md");
    verify(&place, &["--strict"], 0);
}

#[test]
fn what_a_trusted_checkpoint_is_over_and_is_gone_was_cut() {
    // D2
    let (place, before) = rolled_back();
    place.write("checkpoint.txt", place.run(&["ledger", "checkpoint"]).assert_code(0).stdout);
    restore(&place, &before);
    COPIES.iter().for_each(|dir| std::fs::remove_dir_all(place.path(dir)).expect("removed"));
    let report = verify(&place, &["--since", "checkpoint.txt"], 1);
    let of = report["divergences"].as_array().expect("a list");
    let cut = of.iter().find(|one| one["part"] == "checkpoint").expect("it is said");
    assert_eq!(cut["kind"], "cut", "{report}");
    assert!(!report.to_string().contains("incomplete"), "{report}");
}

#[cfg(unix)]
#[test]
fn a_ledger_elsewhere_is_as_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = TestDir::with("quorate.toml", "ledger = \"data/l.db\"\n");
    place.write("draft.md", "The meeting moved to Tuesday at ten.\n");
    std::fs::create_dir(place.path("data")).expect("made");
    std::fs::set_permissions(place.path("data"), std::fs::Permissions::from_mode(0o755)).expect("set");
    block_on(async {
        place.run(&["review", "draft.md"]);
        let url = format!("sqlite://{}", place.path("data/l.db").display());
        // A connection that is open keeps what is beside the file.
        let mut reader = SqliteConnection::connect(&url).await.expect("it opens");
        sqlx::query("SELECT COUNT(*) FROM record").fetch_one(&mut reader).await.expect("it reads");
        place.run(&["review", "draft.md", "--type", "post"]);
        for name in ["l.db", "l.db-wal", "l.db-shm", "council_log.jsonl"] {
            let mode = std::fs::metadata(place.path("data").join(name)).expect(name).permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        reader.close().await.expect("it closes");
    });
    let other = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    other.write("council.yaml", format!("{COUNCIL}logging: {{log_path: logs/log.jsonl}}\n"));
    other.run(&["review", "draft.md", "--ledger", "there/l.db"]);
    for name in ["there", "logs", "there/live", "there/keys"] {
        let mode = std::fs::metadata(other.path(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
}

#[test]
fn what_a_killed_process_left_of_a_key_goes_at_the_next_start() {
    // D3
    let (place, _) = rolled_back();
    let left = ".quorate/keys/.new-a1b2c3";
    place.write(left, "quorate:ed25519:secret:…");
    place.run(&["runs"]).assert_code(0);
    assert!(!place.path(left).exists());
    assert!(place.path(".quorate/keys/ledger.ed25519").exists());
}
