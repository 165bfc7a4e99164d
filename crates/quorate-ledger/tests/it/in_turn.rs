//! Processes that need the same file at once take turns: opening a new one, and writing while another rewrites it. A
//! process that leaves a transaction open does not block the others.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _, LedgerError};
use quorate_ledger::Store;
use serde_json::{Map, json};
use sqlx::{Connection as _, SqliteConnection};
use tokio::time::{Instant, timeout};

fn append(run: &str, from: u64) -> Append {
    let data = Map::from_iter([("n".to_owned(), json!(from))]);
    Append::one(&run.into(), from, Entry { kind: Kind::Rule, at_ms: 1_000, data }, Durability::Synced)
}

async fn sqlite(path: &Path) -> SqliteConnection {
    SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.expect("it opens")
}

#[test]
fn many_first_starts_at_once_each_open_the_ledger() {
    // D1
    const STARTS: usize = 6;
    for round in 0..25 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        let ready = Arc::new(Barrier::new(STARTS));
        let starts: Vec<_> = (0..STARTS)
            .map(|at| {
                let (path, ready) = (path.clone(), ready.clone());
                std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    ready.wait();
                    runtime.block_on(async {
                        let store = Store::open(&path).await.map_err(|error| format!("{error:?}"))?.store;
                        if let Some(why) = store.read_only_reason() {
                            return Err(why.to_owned());
                        }
                        let appended = store.append(append(&format!("r{at}"), 0)).await;
                        appended.map_err(|error| error.to_string())?;
                        store.close().await;
                        Ok(())
                    })
                })
            })
            .collect();
        for start in starts {
            start.join().unwrap().unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }
}

#[tokio::test]
async fn a_writer_outlives_a_rewriting_of_the_file() {
    // Longer than any single wait for a lock.
    const REWRITING: Duration = Duration::from_secs(33);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = Store::open(&path).await.unwrap().store;
    store.append(append("r1", 0)).await.unwrap();
    let mut other = sqlite(&path).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let began = Instant::now();
    let rewritten = async {
        tokio::time::sleep(REWRITING).await;
        sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    };
    let ((), appended, opened) = tokio::join!(rewritten, store.append(append("r1", 1)), Store::open(&path));
    assert_eq!(appended.unwrap(), 2);
    assert!(began.elapsed() >= REWRITING);
    // A file that another process is writing to is not mistaken for a read-only one.
    let other = opened.unwrap().store;
    assert_eq!(other.read_only_reason(), None);
    other.append(append("r2", 0)).await.unwrap();
}

#[tokio::test]
async fn a_seal_that_fails_lets_others_write_and_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let (one, two) = (Store::open(&path).await.unwrap().store, Store::open(&path).await.unwrap().store);
    for n in 0..3 {
        one.append(append("r1", n)).await.unwrap();
    }
    let mut changed = sqlite(&path).await;
    sqlx::raw_sql("UPDATE record SET seq = 9 WHERE n = 2").execute(&mut changed).await.unwrap();
    let failed = one.seal(&[], 2_000, false, Durability::Synced).await.unwrap_err();
    assert!(failed.to_string().contains("it is at position 9"), "{failed}");
    assert!(one.has_appended(), "closing seals it");
    // Nothing is appended after the gap, and the refusal is immediate.
    let refused =
        timeout(Duration::from_secs(5), two.append(append("r2", 0))).await.expect("the lock is free");
    assert!(matches!(refused, Err(LedgerError::Corrupt { .. })), "{refused:?}");
    sqlx::raw_sql("UPDATE record SET seq = seq - 6 WHERE seq > 8").execute(&mut changed).await.unwrap();
    changed.close().await.unwrap();
    timeout(Duration::from_secs(5), two.append(append("r2", 0))).await.expect("the lock is free").unwrap();
    one.seal(&[], 2_000, false, Durability::Synced).await.unwrap();
    assert!(!one.has_appended());
}

#[tokio::test]
async fn a_stream_is_followed_by_what_came_since() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let store = Store::open(&path).await.unwrap().store;
    let run = "overlays/a".into();
    let nothing = store.records_after(&run, &Default::default()).await.unwrap().expect("nothing was seen");
    assert_eq!(nothing, Default::default());
    for n in 0..3 {
        store.append(append(&run, n)).await.unwrap();
    }
    let (first, seen) = store.records_after(&run, &nothing.1).await.unwrap().expect("it goes on");
    assert_eq!(first, store.records(&run).await.unwrap());
    assert_eq!(
        store.records_after(&run, &seen).await.unwrap().expect("it goes on"),
        (Vec::new(), seen.clone())
    );
    store.append(append(&run, 3)).await.unwrap();
    // The follower does not read records again, so it would miss a change here.
    let mut changed = sqlite(&path).await;
    sqlx::raw_sql("UPDATE record SET data = '{}' WHERE n < 3").execute(&mut changed).await.unwrap();
    assert!(store.records(&run).await.is_err());
    let (second, seen) = store.records_after(&run, &seen).await.unwrap().expect("it goes on");
    assert_eq!((second.len(), second[0].n, seen.next()), (1, 3, 4));
    // If the last known record was replaced or removed, a projection of it is invalid.
    sqlx::raw_sql("UPDATE record SET head = replace(head, 'rule', 'ruse') WHERE n = 3")
        .execute(&mut changed)
        .await
        .unwrap();
    assert_eq!(store.records_after(&run, &seen).await.unwrap(), None);
    sqlx::raw_sql("DELETE FROM record WHERE n = 3").execute(&mut changed).await.unwrap();
    assert_eq!(store.records_after(&run, &seen).await.unwrap(), None);
}
