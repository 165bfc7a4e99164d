//! Checkpoints of a ledger on disk: which records they cover, that the stored tree matches the records, and that an
//! older file opens and can be sealed.

use std::path::Path;
use std::sync::Arc;

use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _, LedgerError};
use quorate_ledger::merkle::leaf;
use quorate_ledger::note::Checkpoint;
use quorate_ledger::prove::SignedCheckpoint;
use quorate_ledger::runs::RunFilter;
use quorate_ledger::signing::SecretKey;
use quorate_ledger::{Store, keys};
use quorate_protocol::Name;
use serde_json::{Map, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use crate::merkle_tree::{MerkleTree, root};

fn entry(n: u64) -> Entry {
    let data = Map::from_iter([("n".to_owned(), json!(n))]);
    Entry { kind: Kind::Rule, at_ms: 1_000, data }
}

async fn open(path: &Path) -> Store {
    Store::open(path).await.expect("it opens").store
}

async fn append(store: &Store, run: &str, from: u64, count: u64) {
    let append = Append {
        run: run.into(),
        from,
        entries: (from..from + count).map(entry).collect(),
        bodies: Vec::new(),
        durability: Durability::Written,
    };
    assert_eq!(store.append(append).await.expect("appended"), from + count);
}

async fn heads(path: &Path) -> Vec<String> {
    let url = format!("sqlite://{}", path.display());
    let mut sqlite = SqliteConnection::connect(&url).await.expect("it opens");
    let rows =
        sqlx::query("SELECT head FROM record ORDER BY seq").fetch_all(&mut sqlite).await.expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

fn ledger_key(path: &Path) -> Arc<SecretKey> {
    let keys = keys::KeyDirectory::new(path.parent().expect("it lies somewhere"));
    Arc::new(keys.load(keys::KeyPurpose::Ledger).expect("readable").expect("made with the ledger"))
}

#[tokio::test]
async fn a_checkpoint_is_over_all_records_in_their_order() {
    // D2
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    let key = ledger_key(&path);
    let mut next = 0;
    for count in [1, 254, 1, 3, 300, 65, 1024] {
        append(&store, "r1", next, count).await;
        next += count;
        let sealed = store.seal(&[Arc::clone(&key)], 2_000, false, Durability::Synced).await.unwrap();
        assert!(sealed.is_new);
        let tree: MerkleTree = heads(&path).await[..usize::try_from(sealed.tree.size).unwrap()]
            .iter()
            .map(|head| leaf(head.as_bytes()))
            .collect();
        assert_eq!(root(&tree, sealed.tree.size), sealed.tree.root);
        let opened = SignedCheckpoint::open(sealed.note.as_deref().unwrap(), &sealed.keys).unwrap();
        assert_eq!((opened.tree, &opened.origin), (sealed.tree, &sealed.origin));
        let again = store.seal(&[Arc::clone(&key)], 3_000, false, Durability::Synced).await.unwrap();
        assert!(!again.is_new, "nothing came since");
        assert_eq!((again.tree, again.note), (sealed.tree, sealed.note));
        assert_eq!(store.unsealed_records().await.unwrap(), 0);
    }
    store.close().await;
}

#[tokio::test]
async fn a_spoilt_stored_tree_is_made_anew_and_changed_records_are_not_sealed() {
    // D2
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    append(&store, "r1", 0, 600).await;
    store.seal(&[], 2_000, false, Durability::Synced).await.unwrap();
    let mut sqlite = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query("UPDATE tile SET hashes = x'00' WHERE level = 8").execute(&mut sqlite).await.unwrap();
    append(&store, "r1", 600, 2).await;
    let sealed = store.seal(&[], 2_000, false, Durability::Synced).await.unwrap();
    assert_eq!(sealed.tree.size, 603);
    assert_eq!(sealed.note, None, "without a key, no signature");

    sqlx::query("UPDATE record SET head = replace(head, 'rule', 'ruin') WHERE seq = 3")
        .execute(&mut sqlite)
        .await
        .unwrap();
    sqlx::query("DELETE FROM tile").execute(&mut sqlite).await.unwrap();
    append(&store, "r1", 602, 1).await;
    let refused = store.seal(&[], 2_000, false, Durability::Synced).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Corrupt { .. }), "{refused}");
    append(&store, "r1", 603, 1).await;
    store.close().await;
}

#[tokio::test]
async fn a_run_that_begins_signed_stays_signed() {
    // D3
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    let (run, other): (Name, Name) = ("r1".into(), "r2".into());
    store.sign_run(&run, Arc::new(SecretKey::generate()));
    append(&store, "r1", 0, 3).await;
    append(&store, "r2", 0, 1).await;
    store.sign_run(&other, Arc::new(SecretKey::generate()));
    append(&store, "r2", 1, 1).await;
    assert!(store.is_signed(&run).await.unwrap());
    assert!(!store.is_signed(&other).await.unwrap(), "it began without");
    store.close().await;

    let store = open(&path).await;
    let refused = store.append(Append::one(&run, 3, entry(3), Durability::Synced)).await.unwrap_err();
    assert!(matches!(refused, LedgerError::NoSigningKey { .. }), "{refused}");
    store.sign_run(&run, Arc::new(SecretKey::generate()));
    append(&store, "r1", 3, 1).await;
    store.close().await;
}

#[tokio::test]
async fn a_ledger_of_schema_1_opens_and_is_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let mut sqlite =
        SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.unwrap();
    sqlx::raw_sql(include_str!("fixtures/schema-1.sql")).execute(&mut sqlite).await.unwrap();
    sqlite.close().await.unwrap();

    let store = open(&path).await;
    let runs = store.runs(10).await.unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(store.records(&runs[0].run).await.unwrap().len(), 25);
    let sealed = store.seal(&[], 2_000, false, Durability::Synced).await.unwrap();
    assert_eq!(sealed.tree.size, 25);
    store.close().await;
}

#[tokio::test]
async fn the_runs_of_an_older_ledger_have_their_origin() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let mut sqlite =
        SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.unwrap();
    sqlx::raw_sql(include_str!("fixtures/schema-1.sql")).execute(&mut sqlite).await.unwrap();
    let store = open(&path).await;
    let producer = "UPDATE record SET data = json_set(data, '$.producer', json('{\"operator\": \"ada\", \"trying\": []}')) WHERE n = 0";
    sqlx::raw_sql(producer).execute(&mut sqlite).await.unwrap();
    let origin = async |store: &Store| {
        let listed = store.listed_runs(&RunFilter::default(), 10).await.unwrap();
        (listed[0].mode.clone(), listed[0].producer.clone().unwrap_or_default())
    };
    assert_eq!(origin(&store).await, ("council".to_owned(), String::new()));
    store.close().await;
    // In the state that the version before this table left.
    sqlx::raw_sql("DROP TABLE run_origin; PRAGMA user_version = 3").execute(&mut sqlite).await.unwrap();
    let read = Store::open_read_only(&path.as_path().into()).await.unwrap();
    assert_eq!(origin(&read).await, ("council".to_owned(), "ada".to_owned()));
    read.close().await;
    let version = sqlx::query("PRAGMA user_version").fetch_one(&mut sqlite).await.unwrap();
    assert_eq!(version.get::<i64, _>(0), 3, "reading changes nothing");
    // A body that is not JSON has no origin, and stops nothing.
    sqlx::raw_sql("UPDATE record SET data = 'no JSON' WHERE n = 0").execute(&mut sqlite).await.unwrap();
    let store = open(&path).await;
    assert_eq!(origin(&store).await, (String::new(), String::new()));
    store.close().await;
}

#[tokio::test]
async fn a_ledger_of_a_newer_schema_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    append(&store, "r1", 0, 3).await;
    store.close().await;
    let mut sqlite = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut sqlite).await.unwrap();
    sqlite.close().await.unwrap();

    let store = open(&path).await;
    assert_eq!(store.records(&"r1".into()).await.unwrap().len(), 3);
    let refused =
        store.append(Append::one(&"r1".into(), 3, entry(3), Durability::Written)).await.unwrap_err();
    assert!(refused.to_string().contains("version 99"), "{refused}");
    assert!(store.read_only_reason().is_some());
    store.close().await;
    assert_eq!(heads(&path).await.len(), 3);
}

async fn change(path: &Path, statement: &'static str) {
    let mut sqlite =
        SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.expect("it is changed");
    sqlx::raw_sql(statement).execute(&mut sqlite).await.expect("it is changed");
    sqlite.close().await.expect("it is changed");
}

#[tokio::test]
async fn an_unsigned_checkpoint_is_signed_over_by_who_has_the_key() {
    // D2: nothing was appended since, but the existing records are unsigned.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = open(&path).await;
    let key = ledger_key(&path);
    append(&store, "r1", 0, 3).await;
    let unsigned = store.seal(&[], 2_000, false, Durability::Synced).await.unwrap();
    let again = store.seal(&[], 2_000, false, Durability::Synced).await.unwrap();
    assert_eq!((again.n, again.is_new), (unsigned.n, false), "without a key there is nothing to add");
    let signed = store.seal(&[Arc::clone(&key)], 2_000, false, Durability::Synced).await.unwrap();
    assert!(signed.is_new && signed.note.is_some());
    assert_eq!(signed.tree.size, unsigned.tree.size + 1);
    let again = store.seal(&[key], 2_000, false, Durability::Synced).await.unwrap();
    assert!(!again.is_new);
    store.close().await;
}

#[tokio::test]
async fn what_is_new_is_verified_before_it_is_sealed() {
    // D2: the same is true for unsigned runs.
    for statement in [
        "UPDATE record SET data = NULL WHERE seq = 6",
        "UPDATE record SET data = '{\"n\":9}' WHERE seq = 6",
        "UPDATE record SET head = replace(head, 'rule', 'ruin') WHERE seq = 6",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        let store = open(&path).await;
        let key = ledger_key(&path);
        append(&store, "r1", 0, 3).await;
        store.seal(&[Arc::clone(&key)], 2_000, false, Durability::Synced).await.unwrap();
        append(&store, "r1", 3, 3).await;
        change(&path, statement).await;
        let refused = store.seal(&[key], 2_000, false, Durability::Synced).await.unwrap_err();
        assert!(matches!(refused, LedgerError::Corrupt { .. }), "{statement}: {refused}");
        assert!(refused.to_string().contains("cannot seal it"), "{statement}: {refused}");
        store.close().await;
    }
}

#[tokio::test]
async fn nothing_is_appended_behind_a_place_without_a_record() {
    for statement in [
        "INSERT INTO record VALUES (100000, 'x', 0, 'rule', '{}', '{}')",
        "INSERT INTO record VALUES (9223372036854775807, 'x', 0, 'rule', '{}', '{}')",
        "DELETE FROM record WHERE seq = 2",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        let store = open(&path).await;
        append(&store, "r1", 0, 3).await;
        change(&path, statement).await;
        let late = open(&path).await;
        let refused = late.append(Append::one(&"r1".into(), 3, entry(3), Durability::Written)).await;
        assert!(matches!(refused, Err(LedgerError::Corrupt { .. })), "{statement}: {refused:?}");
        late.close().await;
        if statement.starts_with("INSERT") {
            // One statement, for a run with a known tail.
            let refused = store.append(Append::one(&"r1".into(), 3, entry(3), Durability::Written)).await;
            assert!(matches!(refused, Err(LedgerError::Corrupt { .. })), "{statement}: {refused:?}");
            change(&path, "DELETE FROM record WHERE run = 'x'").await;
            append(&store, "r1", 3, 1).await;
        }
        store.close().await;
    }
}

#[tokio::test]
async fn an_unsigned_checkpoint_says_what_its_note_would() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("ledger.db")).await;
    append(&store, "notes", 0, 3).await;
    let sealed = store.seal(&[], 2_000, false, Durability::Synced).await.unwrap();
    let read = Checkpoint::parse(&sealed.unsigned_text()).expect("a checkpoint");
    assert_eq!((read.origin(), *read.tree(), sealed.note), (&*sealed.origin, sealed.tree, None));
}
