//! A database with rewritten statements: rules and triggers that keep rows from the tables, or in them. The ledger
//! acknowledges nothing that is not stored. Needs the server that `scripts/services start postgres` starts.

#![cfg(feature = "postgres")]

use std::sync::Arc;

use crate::postgres::support;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind, Ledger as _, LedgerError};
use quorate_ledger::retention::RetentionSettings;
use quorate_ledger::signing::{ExternalKeys, SecretKey};
use quorate_ledger::store::WipeMode;
use quorate_ledger::{Store, keys};
use serde_json::json;
use support::Database;

const NOTHING: &str =
    "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'";

fn entry(run: &str, kind: Kind) -> Entry {
    let sha256 = sha256_hex(text(run).as_bytes());
    let data = json!({
        "inputs": [{"kind": "artifact", "name": "a.md", "sha256": sha256}],
        "subject": "a.md", "artifact_type": "text", "artifact_sha256": sha256, "log_path": "", "run": "r1",
        "fingerprint": {"council": "c1"},
    });
    Entry { kind, at_ms: 5, data: data.as_object().cloned().unwrap_or_default() }
}

fn text(run: &str) -> String {
    format!("the artifact of {run}")
}

fn append(run: &str, from: u64, kind: Kind) -> Append {
    let body = Body { sha256: sha256_hex(text(run).as_bytes()), text: text(run).into() };
    Append { bodies: vec![body], ..Append::one(&run.into(), from, entry(run, kind), Durability::Synced) }
}

/// Why a write was refused.
fn refused<T>(done: Result<T, LedgerError>, table: &str) -> String {
    let error = done.map(drop).expect_err(table);
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}

/// Whether an error says that a table did not store the one row of a write.
fn is_missed(said: &str, table: &str) -> bool {
    said.contains(&format!("the table `{table}`")) && said.contains(" 0 of 1 rows")
}

#[tokio::test]
async fn rows_that_a_table_does_not_take_are_missed_at_once() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    database.run(NOTHING).await;
    database.run("CREATE TABLE elsewhere (LIKE record)").await;
    let key = Arc::new(SecretKey::generate());
    let keeps_away = [
        ("RULE away AS ON INSERT TO record DO INSTEAD NOTHING", "RULE away ON record", "record"),
        (
            "RULE away AS ON INSERT TO record DO INSTEAD INSERT INTO elsewhere VALUES (NEW.*)",
            "RULE away ON record",
            "record",
        ),
        (
            "TRIGGER away BEFORE INSERT ON record FOR EACH ROW EXECUTE FUNCTION nothing()",
            "TRIGGER away ON record",
            "record",
        ),
        (
            "TRIGGER away BEFORE INSERT ON run FOR EACH ROW EXECUTE FUNCTION nothing()",
            "TRIGGER away ON run",
            "run",
        ),
        (
            "TRIGGER away BEFORE INSERT ON body FOR EACH ROW EXECUTE FUNCTION nothing()",
            "TRIGGER away ON body",
            "body",
        ),
        (
            "TRIGGER away BEFORE INSERT ON signature FOR EACH ROW EXECUTE FUNCTION nothing()",
            "TRIGGER away ON signature",
            "signature",
        ),
    ];
    let signers = vec![key.public()];
    store.set_external_keys(move || Ok(ExternalKeys { keyring: None, signers: signers.clone() }));
    for (at, (made, dropped, table)) in keeps_away.into_iter().enumerate() {
        let run = format!("s{at}");
        store.sign_run(&run.as_str().into(), key.clone());
        database.run(&format!("CREATE {made}")).await;
        let said = refused(store.append(append(&run, 0, Kind::RunOpened)).await, made);
        // Postgres itself refuses to return rows that a rule redirected.
        assert!(is_missed(&said, table) || said.contains("RETURNING"), "{made}: {said}");
        database.run(&format!("DROP {dropped}")).await;
        assert_eq!(database.count(&format!("record WHERE run = '{run}'")).await, 0, "{made}");
        assert_eq!(store.append(append(&run, 0, Kind::RunOpened)).await.unwrap(), 1, "{made}");
    }
    for table in ["checkpoint", "tile"] {
        database.run(&trigger(table, "INSERT")).await;
        let said = refused(store.seal(&[], 2_000, true, Durability::Synced).await, table);
        assert!(is_missed(&said, table), "{said}");
        assert!(store.has_appended(), "what was not sealed is still to be sealed");
        database.run(&format!("DROP TRIGGER away ON {table}")).await;
    }
    store.seal(&[], 2_000, true, Durability::Synced).await.unwrap();
    assert!(!store.has_appended());
    database.run(&trigger("held", "INSERT")).await;
    let said = refused(store.append_ledger_record(entry("r1", Kind::Held), &key_of(&store)).await, "held");
    assert!(is_missed(&said, "held"), "{said}");
    store.close().await;
}

#[tokio::test]
async fn what_a_table_keeps_is_not_called_erased() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    for (from, kind) in [Kind::RunOpened, Kind::Attempt, Kind::RunEnded].into_iter().enumerate() {
        store.append(append("r1", from as u64, kind)).await.unwrap();
    }
    database.run(NOTHING).await;
    for (table, verb) in [("record", "UPDATE"), ("body", "DELETE")] {
        database.run(&trigger(table, verb)).await;
        let said = refused(erase(&store).await, table);
        assert!(said.contains(&format!("`{table}` still contains the erased rows")), "{said}");
        assert_eq!(database.count("record WHERE kind = 'ledger.erased'").await, 0);
        database.run(&format!("DROP TRIGGER away ON {table}")).await;
    }
    erase(&store).await.unwrap();
    assert_eq!(database.count("record WHERE kind = 'attempt' AND data IS NULL").await, 1);
    store.close().await;
}

fn trigger(table: &str, verb: &str) -> String {
    format!("CREATE TRIGGER away BEFORE {verb} ON {table} FOR EACH ROW EXECUTE FUNCTION nothing()")
}

async fn erase(store: &Store) -> Result<(), LedgerError> {
    let unsaid = |_: &quorate_kernel::record::RunOpened| Some(1);
    let now_ms = 10 * 86_400_000;
    let plan = store
        .plan_erasure(&RetentionSettings { now_ms, default_days: &unsaid, conversation_days: None })
        .await?;
    assert!(!plan.erasures.is_empty());
    store.erase(plan, now_ms, WipeMode::InPlace, Some(&*key_of(store))).await.map(drop)
}

/// The ledger's key.
fn key_of(store: &Store) -> Arc<SecretKey> {
    let keys = keys::KeyDirectory::new(store.dir());
    Arc::new(keys.load(keys::KeyPurpose::Ledger).expect("readable").expect("it is there"))
}
