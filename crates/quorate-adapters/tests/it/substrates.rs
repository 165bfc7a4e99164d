//! Every substrate that needs no other side, checked against the port's contract.
use std::path::Path;
use std::sync::Arc;

use quorate_adapters::default_registry;
use quorate_adapters::substrate::memory::Memory;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::Substrate;
use quorate_testkit::conformance::build_adapter;
use quorate_testkit::conformance::substrate::{self, Open, answer, new_turn, read_all};
use serde_json::{Value, json};

fn try_open(kind: &str, dir: &Path, block: Value) -> Result<Arc<dyn Substrate>, ConfigError> {
    let new = default_registry().expect("no kind twice").substrates[kind].clone();
    build_adapter(&new, dir, &block)
}

fn open(kind: &str, dir: &Path, block: Value) -> Arc<dyn Substrate> {
    try_open(kind, dir, block).expect("a block that fits")
}

/// Opens conversations of a kind, each in a folder of its own.
fn conversations(kind: &'static str, block: Value) -> impl Fn() -> Box<Open> {
    move || {
        let (dir, block) = (tempfile::tempdir().expect("a folder"), block.clone());
        Box::new(move || open(kind, dir.path(), block.clone()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_what_a_substrate_must() {
    substrate::all(|| {
        let memory = Arc::new(Memory::new("conformance"));
        Box::new(move || memory.clone())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_does_what_a_substrate_must() {
    substrate::all(conversations("file", json!({"kind": "file", "path": "talk/conversation.md"}))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_sync_does_what_a_substrate_must() {
    substrate::all(conversations("file", json!({"path": "c.md", "sync": false}))).await;
}

/// A runtime on one thread, which a waiting reader must not keep busy.
#[tokio::test]
async fn a_file_does_what_a_substrate_must_on_one_thread() {
    substrate::all(conversations("file", json!({"path": "c.md", "sync": false}))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_does_what_a_substrate_must() {
    substrate::all(conversations("sqlite", json!({"kind": "sqlite", "path": "talk/c.db"}))).await;
}

#[tokio::test]
async fn a_database_without_sync_does_what_a_substrate_must_on_one_thread() {
    let block = json!({"path": "c.db", "sync": false, "conversation": "a conversation"});
    substrate::all(conversations("sqlite", block)).await;
}

/// Two conversations in one database know nothing of each other, and a store of states may be beside them.
#[tokio::test]
async fn a_database_has_several_conversations() {
    let dir = tempfile::tempdir().unwrap();
    let one = open("sqlite", dir.path(), json!({"path": "c.db"}));
    let other = open("sqlite", dir.path(), json!({"path": "c.db", "conversation": "other"}));
    assert!(one.about().place.ends_with("c.db#conformance"), "{}", one.about().place);
    assert_ne!(one.about().place, other.about().place);
    let first = one.append(new_turn("ann", "hello")).await.unwrap().turn;
    let twin = other.append(new_turn("ann", "hello")).await.unwrap();
    assert!(twin.fresh && twin.turn == first, "each has its own ids");
    assert!(one.append(answer("bea", "yes", &first.id)).await.unwrap().fresh);
    assert!(other.append(answer("bea", "no", &first.id)).await.unwrap().fresh, "and keys");
    assert_eq!(read_all(&*one, 9).await.len(), 2);
    assert!(!one.read(Some(&"t_000000000000".into()), 1).await.unwrap().known);
}

#[tokio::test]
async fn a_file_that_is_something_else_is_left_as_it_is() {
    use sqlx::{ConnectOptions as _, Connection as _};
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("text.db"), "not a database, but somebody's text; ".repeat(100)).unwrap();
    for (name, sql) in [
        ("tables.db", "CREATE TABLE turn (x TEXT)"),
        ("version.db", "PRAGMA user_version = 1"),
        ("other.db", "PRAGMA application_id = 7; PRAGMA user_version = 1"),
        ("newer.db", "PRAGMA application_id = 0x51746c6b; PRAGMA user_version = 2"),
    ] {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.path().join(name));
        let mut connection = options.create_if_missing(true).connect().await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
    for name in ["text.db", "tables.db", "version.db", "other.db", "newer.db"] {
        let before = std::fs::read(dir.path().join(name)).unwrap();
        let substrate = open("sqlite", dir.path(), json!({"path": name}));
        let refused = [
            substrate.append(new_turn("ann", "hello")).await.unwrap_err(),
            substrate.read(None, 5).await.unwrap_err(),
            substrate.changed().await.unwrap_err(),
        ];
        for error in refused {
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.to_string().contains("Quorate does not change it"), "{error}");
        }
        assert_eq!(std::fs::read(dir.path().join(name)).unwrap(), before, "{name}");
    }
}

/// A database that is deleted while it is open is created again, not written to while unlinked.
#[tokio::test]
async fn a_deleted_database_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let substrate = open("sqlite", dir.path(), json!({"path": "c.db"}));
    let gone = substrate.append(new_turn("ann", "gone")).await.unwrap().turn;
    for name in ["c.db", "c.db-wal", "c.db-shm"] {
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
    substrate.append(new_turn("ann", "here")).await.unwrap();
    let page = open("sqlite", dir.path(), json!({"path": "c.db"})).read(Some(&gone.id), 9).await.unwrap();
    assert!(!page.known && page.turns.len() == 1 && &*page.turns[0].content == "here", "{page:?}");
}

#[test]
fn blocks_that_do_not_fit_are_refused_by_key() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, block, key, says) in [
        ("file", json!({"kind": "file"}), "path", "`path` is missing"),
        ("file", json!({"path": ""}), "path", "empty"),
        ("file", json!({"path": "."}), "path", "is a folder"),
        ("file", json!({"path": 3}), "path", "must be a text"),
        ("file", json!({"path": "c.md", "sync": "no"}), "sync", "true or false"),
        ("file", json!({"path": "c.md", "snyc": true}), "snyc", "did you mean `sync`?"),
        ("sqlite", json!({"kind": "sqlite"}), "path", "`path` is missing"),
        ("sqlite", json!({"path": "."}), "path", "is a folder"),
        ("sqlite", json!({"path": "c.db", "conversation": 1}), "conversation", "must be a text"),
        ("sqlite", json!({"path": "c.db", "table": "x"}), "table", "unknown key"),
        ("memory", json!({"path": "c.md"}), "path", "unknown key"),
    ] {
        let refused = try_open(kind, dir.path(), block.clone()).err().unwrap_or_else(|| panic!("{block}"));
        let text = format!("{} {}", refused.message, refused.help.unwrap_or_default());
        assert_eq!(refused.key.as_deref(), Some(key), "{text}");
        assert!(text.contains(says), "{text}");
    }
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "building makes nothing");
}

/// The same turns are the same transcript wherever they are kept.
#[tokio::test]
async fn a_transcript_is_the_same_on_every_substrate() {
    let dir = tempfile::tempdir().unwrap();
    let mut transcripts = Vec::new();
    for (kind, block) in
        [("memory", json!({})), ("file", json!({"path": "c.md"})), ("sqlite", json!({"path": "c.db"}))]
    {
        let substrate = open(kind, dir.path(), block);
        let first = substrate.append(new_turn("ann", "@bea\n\nhello\n")).await.unwrap().turn;
        substrate.append(answer("bea", "=== TURN", &first.id)).await.unwrap();
        for _ in 0..3 {
            substrate.append(new_turn("ann", "@bea\n\nhello\n")).await.unwrap();
        }
        transcripts.push(read_all(&*substrate, 2).await);
    }
    assert_eq!(transcripts[0][2].timestamp.as_ref(), "2026-05-18T18:23:11.505Z", "one millisecond on");
    assert_eq!(transcripts[0][4].timestamp.as_ref(), "2026-05-18T18:23:11.507Z");
    assert!(transcripts.windows(2).all(|pair| pair[0] == pair[1]), "{transcripts:#?}");
}
