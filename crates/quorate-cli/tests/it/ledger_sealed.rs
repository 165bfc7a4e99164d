//! `quorate ledger checkpoint` makes a checkpoint only over what `quorate ledger verify` accepts, the whole of it.

use crate::support;
use crate::support::records;
use sqlx::{Connection as _, Row as _, SqliteConnection};
use support::TestDir;
use support::council::all_ship;

const LEDGER: &str = ".quorate/ledger.db";

fn checkpoints(place: &TestDir) -> usize {
    records::of_kind(&records::records(&place.path(LEDGER), "ledger"), "checkpoint").len()
}

fn change(place: &TestDir, statements: &str) {
    records::execute_sql(&place.path(LEDGER), statements);
}

/// A ledger with two sealed reviews that are signed.
fn reviewed() -> (TestDir, String) {
    let place = TestDir::scripted(&all_ship());
    place.write("quorate.toml", format!("{}[keys]\nsign = \"required\"\n", place.read("quorate.toml")));
    place.run(&["keys", "init"]).assert_code(0);
    let run = records::text(&place.review(&["draft.md"])["run"]);
    place.write("draft.md", "Another draft.\n");
    place.review(&["draft.md"]);
    place.run(&["ledger", "verify"]).assert_code(0);
    (place, run)
}

#[test]
fn no_checkpoint_is_asked_for_and_made_over_what_does_not_verify() {
    // D2
    for statement in [
        "UPDATE record SET data = NULL WHERE kind = 'consultation' AND seq < 12",
        "DELETE FROM signature WHERE run <> 'ledger'",
        "DELETE FROM body",
        "UPDATE run SET verdict = 'HOLD'",
    ] {
        let place = reviewed().0;
        change(&place, statement);
        place.run(&["ledger", "verify"]).assert_code(1);
        let before = checkpoints(&place);
        for more in [&[][..], &["--accept-unsigned"]] {
            let refused = place.run(&[&["ledger", "checkpoint"], more].concat()).assert_code(5);
            refused
                .assert_stderr_contains("quorate:ledger_corrupt")
                .assert_stderr_contains("restore the ledger before making a checkpoint");
            assert_eq!(checkpoints(&place), before, "{statement}");
        }
    }
}

/// How many signatures the ledger's own stream has.
fn own_signatures(place: &TestDir) -> i64 {
    records::block_on(async {
        let url = format!("sqlite://{}", place.path(LEDGER).display());
        let mut sqlite = SqliteConnection::connect(&url).await.expect("it opens");
        let count = sqlx::query("SELECT COUNT(*) FROM signature WHERE run = 'ledger'");
        let count = count.fetch_one(&mut sqlite).await.expect("a number").get(0);
        sqlite.close().await.expect("it closes");
        count
    })
}

#[test]
fn what_is_unsigned_is_accepted_alone_and_not_along_with_what_was_altered() {
    // D11: a person vouches for what is not signed, and for nothing else.
    let (place, run) = reviewed();
    place.run(&["ledger", "hold", &run]).assert_code(0);
    change(&place, "DELETE FROM signature WHERE run = 'ledger'");
    place.run(&["ledger", "verify"]).assert_code(1);
    let before = checkpoints(&place);
    place.run(&["ledger", "checkpoint"]).assert_code(5).assert_stderr_contains("quorate:ledger_corrupt");
    // In a file of its own: a ledger has no table besides its own.
    let was = format!("ATTACH '{}' AS kept;", place.path("was.db").display());
    let taken =
        "CREATE TABLE kept.was AS SELECT seq, data FROM record; UPDATE record SET data = NULL WHERE seq = 4";
    change(&place, &format!("{was}{taken}"));
    for _ in 0..2 {
        place
            .run(&["ledger", "checkpoint", "--accept-unsigned"])
            .assert_code(5)
            .assert_stderr_contains("quorate:ledger_corrupt");
        assert_eq!((checkpoints(&place), own_signatures(&place)), (before, 0), "nothing was signed");
    }
    let back = "UPDATE record SET data = (SELECT data FROM kept.was WHERE was.seq = record.seq)";
    change(&place, &format!("{was}{back}"));
    place.run(&["ledger", "checkpoint", "--accept-unsigned"]).assert_code(0);
    assert_eq!((checkpoints(&place), own_signatures(&place)), (before, 1), "the hold was sealed before");
    place.run(&["ledger", "verify"]).assert_code(0);
}
