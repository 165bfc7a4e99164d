//! Several machines that open an empty database at once, rows that another program put into its tables, and the
//! server's facts. Needs the server that `scripts/services start postgres` starts.

#![cfg(feature = "postgres")]

use crate::postgres::support;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _, LedgerError};
use quorate_ledger::Store;
use quorate_ledger::store::lease::LockOutcome;
use serde_json::{Map, json};
use support::Database;

fn rule(from: u64) -> Append {
    let data = Map::from_iter([("n".to_owned(), json!(from))]);
    Append::one(&"r1".into(), from, Entry { kind: Kind::Rule, at_ms: 1_000, data }, Durability::Synced)
}

fn text(error: &dyn std::error::Error) -> String {
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}

#[tokio::test]
async fn an_empty_database_is_opened_by_many_at_once() {
    for _ in 0..4 {
        let Some(database) = Database::new().await else { return };
        let machines = ["one", "two", "three", "four"];
        let addresses = machines.map(|machine| database.address(machine));
        let [one, two, three, four] = addresses.each_ref().map(|address| Box::pin(Store::open_at(address)));
        let (one, two, three, four) = tokio::join!(one, two, three, four);
        let stores = [one, two, three, four].map(|opened| opened.expect("it opens").store);
        let made = addresses.map(|address| address.dir().join("keys/ledger.ed25519").exists());
        assert_eq!(made.iter().filter(|made| **made).count(), 1, "one of them made the ledger: {made:?}");
        for (from, store) in (0..).zip(&stores) {
            assert_eq!(store.append(rule(from)).await.unwrap(), from + 1);
        }
        for store in stores {
            store.close().await;
        }
    }
}

#[tokio::test]
async fn nothing_is_appended_behind_a_place_without_a_record() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    store.append(rule(0)).await.unwrap();
    store.seal(&[], 2_000, false, Durability::Synced).await.unwrap();
    store.append(rule(1)).await.unwrap();
    for place in ["100000", "9223372036854775807"] {
        let insert = format!("INSERT INTO record VALUES ({place}, 'x', 0, 'rule', '{{}}', '{{}}')");
        database.run(&insert).await;
        // A store that has the ledger open, and one that opens it now.
        let late = database.open("there").await;
        for store in [&store, &late] {
            let refused = store.append(rule(2)).await.unwrap_err();
            assert!(matches!(refused, LedgerError::Corrupt { .. }), "{refused}");
            assert!(
                refused.to_string().contains(&format!("x/0 is corrupt: it is at position {place}")),
                "{refused}"
            );
            let refused = store.seal(&[], 2_000, true, Durability::Synced).await.unwrap_err();
            assert!(matches!(refused, LedgerError::Corrupt { .. }), "{refused}");
            assert!(matches!(store.lock_run(&"r1".into()).await, Err(LedgerError::Corrupt { .. })));
        }
        late.close().await;
        assert_eq!(database.count("record").await, 4);
        database.run("DELETE FROM record WHERE run = 'x'").await;
    }
    assert_eq!(store.append(rule(2)).await.unwrap(), 3);
    // A record missing from the middle is reported as well.
    database.run("DELETE FROM record WHERE run = 'r1' AND n = 1").await;
    let late = database.open("there").await;
    assert!(matches!(late.append(rule(3)).await, Err(LedgerError::Corrupt { .. })));
    late.close().await;
    store.close().await;
}

#[tokio::test]
async fn a_place_that_is_the_last_of_all_is_no_panic() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    database
        .run("INSERT INTO run VALUES (9223372036854775807, 'x', 0, '', '', '', '', '', NULL, NULL, NULL, 0)")
        .await;
    let data = json!({"subject": "a.md", "artifact_type": "text", "artifact_sha256": "aa", "log_path": ""});
    let entry =
        Entry { kind: Kind::RunOpened, at_ms: 5, data: data.as_object().cloned().unwrap_or_default() };
    let refused = store.append(Append::one(&"r1".into(), 0, entry, Durability::Synced)).await.unwrap_err();
    assert!(refused.to_string().contains("a row at the last of all places"), "{refused}");
    store.close().await;
}

#[tokio::test]
async fn a_lease_that_a_trigger_changes_is_no_other_machines() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    for does in ["RETURN NULL", "NEW.until_ms := 0; RETURN NEW", "NEW.owner := ''other''; RETURN NEW"] {
        database
            .run(&format!(
                "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {does}; END'; \
                 CREATE TRIGGER meddles BEFORE INSERT OR UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION meddle()"
            ))
            .await;
        let refused = store.lock_run(&"r1".into()).await.unwrap_err();
        let said = text(&refused);
        assert!(said.contains("the table `lease`") && said.contains(" 0 of 1 rows"), "{does}: {said}");
        database.run("DROP FUNCTION meddle CASCADE; DELETE FROM lease").await;
    }
    assert!(matches!(store.lock_run(&"r1".into()).await, Ok(LockOutcome::Acquired(_))));
    store.close().await;
}

#[tokio::test]
async fn what_the_server_says_has_no_line_of_its_source() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    database.run("ALTER TABLE record RENAME TO gone").await;
    let refused = store.append(rule(0)).await.unwrap_err();
    let said = text(&refused);
    assert!(said.contains("\"record\" does not exist"), "{said}");
    assert!(!said.contains(" at line "), "{said}");
    store.close().await;
}
