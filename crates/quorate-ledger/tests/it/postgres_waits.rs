//! Every wait of a ledger in a Postgres database ends: for a silent server, for another's lock, for a connection to an
//! unreachable host. Needs the server that `scripts/services start postgres` starts.

#![cfg(feature = "postgres")]

use std::sync::Arc;
use std::time::Duration;

use crate::postgres::{proxy, support};
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _, LedgerError};
use quorate_ledger::Store;
use quorate_ledger::signing::{ExternalKeys, SecretKey};
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::store::lease::LockOutcome;
use serde_json::{Map, json};
use sqlx::{Connection as _, PgConnection};
use support::Database;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use proxy::{Forwarding, Proxy};

/// A wait that ends within this time did not time out.
const SOON: Duration = Duration::from_secs(5);

fn append(run: &str, from: u64) -> Append {
    let data = Map::from_iter([("n".to_owned(), json!(from))]);
    Append::one(&run.into(), from, Entry { kind: Kind::Rule, at_ms: 1_000, data }, Durability::Synced)
}

/// A ledger with one record, behind a connection that can stop responding.
async fn behind(database: &Database) -> (Proxy, Arc<Store>) {
    let proxy = Proxy::of(&database.url).await;
    let StoreAddress::Postgres { dir, .. } = database.address("here") else { unreachable!("it is a server") };
    let address = StoreAddress::Postgres { url: proxy.url.clone(), dir };
    let store = Store::open_at(&address).await.expect("it opens").store;
    store.append(append("r1", 0)).await.expect("appended");
    (proxy, Arc::new(store))
}

/// Waits for a result from a silent server without taking the time: the paused clock advances when all tasks are idle.
async fn out_of_time<T>(work: impl Future<Output = T>) -> (T, Duration) {
    tokio::time::pause();
    let began = Instant::now();
    let done = work.await;
    let took = began.elapsed();
    tokio::time::resume();
    (done, took)
}

#[tokio::test]
async fn a_silent_server_is_given_up_and_the_ledger_goes_on_when_it_answers() {
    let Some(database) = Database::new().await else { return };
    let (proxy, store) = behind(&database).await;
    proxy.set_forwarding(Forwarding::Nothing);
    let (refused, took) = out_of_time(store.append(append("r1", 1))).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, LedgerError::InDoubt { .. }), "it may have been written: {refused:?}");
    let said = refused.to_string();
    assert!(said.contains("took record r1/1: ") && said.contains("did not answer within 30s"), "{said}");
    assert!(took >= Duration::from_secs(30) && took < Duration::from_secs(32), "{took:?}");
    let (read, took) = out_of_time(store.records(&"r1".into())).await;
    assert!(read.is_err() && took < Duration::from_secs(12), "connecting again is given up, too: {took:?}");
    proxy.set_forwarding(Forwarding::All);
    assert_eq!(store.records(&"r1".into()).await.unwrap().len(), 1);
    assert_eq!(store.append(append("r1", 1)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_write_without_an_answer_is_in_doubt_until_it_is_read() {
    let Some(database) = Database::new().await else { return };
    let (proxy, store) = behind(&database).await;
    let key = Arc::new(SecretKey::generate());
    let signers = vec![key.public()];
    store.set_external_keys(move || Ok(ExternalKeys { keyring: None, signers: signers.clone() }));
    store.sign_run(&"signed".into(), key);
    store.append(append("signed", 0)).await.expect("appended");
    // Signed records are written in a transaction, all others by one statement.
    let ways = [
        ("r1", Forwarding::ToRecord, Forwarding::BeforeRecord),
        ("signed", Forwarding::ToCommit, Forwarding::BeforeCommit),
    ];
    for (run, written, unwritten) in ways {
        for (lets, from) in [(written, 1), (unwritten, 2)] {
            proxy.set_forwarding(lets);
            let appending = tokio::spawn({
                let store = store.clone();
                async move { store.append(append(run, from)).await }
            });
            while !proxy.is_silent() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let (refused, _) = out_of_time(appending).await;
            let refused = refused.unwrap();
            let refused = refused.unwrap_err();
            assert!(
                matches!(&refused, LedgerError::InDoubt { run: of, .. } if &**of == run),
                "{lets:?}: {refused:?}"
            );
            assert!(refused.to_string().contains("cannot tell whether the ledger"), "{refused}");
            proxy.set_forwarding(Forwarding::All);
            // The first append was written, the second was not. A busy server may still be writing the first one.
            let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
            while store.records(&run.into()).await.unwrap().len() < 2
                && tokio::time::Instant::now() < deadline
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(store.records(&run.into()).await.unwrap().len(), 2, "{lets:?}");
        }
        assert_eq!(store.append(append(run, 2)).await.unwrap(), 3);
    }
}

#[tokio::test]
async fn a_write_whose_connection_is_lost_is_done_once() {
    let Some(database) = Database::new().await else { return };
    let (proxy, store) = behind(&database).await;
    for (lets, from) in [(Forwarding::CutAfterRecord, 1), (Forwarding::CutBeforeRecord, 2)] {
        proxy.set_forwarding(lets);
        assert_eq!(store.append(append("r1", from)).await.unwrap(), from + 1, "{lets:?}");
        assert_eq!(store.records(&"r1".into()).await.unwrap().len() as u64, from + 1, "{lets:?}");
    }
    // Another writer took the place while the connection was lost. Its record is not mistaken for this one's.
    let other = database.open("there").await;
    other.append(append("r1", 3)).await.unwrap();
    proxy.set_forwarding(Forwarding::CutBeforeRecord);
    let refused = store.append(append("r1", 3)).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Conflict { .. }), "{refused}");
    assert_eq!(store.records(&"r1".into()).await.unwrap().len(), 4);
}

#[tokio::test]
async fn an_interrupted_command_does_not_wait_for_a_silent_server() {
    let Some(database) = Database::new().await else { return };
    let (proxy, store) = behind(&database).await;
    proxy.set_forwarding(Forwarding::Nothing);
    let began = Instant::now();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.append(append("r1", 1)).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    store.interrupt();
    timeout(SOON, waiting).await.expect("it does not wait").expect("it ends").unwrap_err();
    let store = Arc::into_inner(store).expect("no other owner");
    timeout(SOON, store.close()).await.expect("nor does closing");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_no_ledger() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("postgres://ada:s3cret@{}/q", listener.local_addr().unwrap());
    let address = StoreAddress::Postgres { url, dir: dir.path().to_owned() };
    let (opened, took) = out_of_time(Store::open_at(&address)).await;
    let error = opened.map(drop).unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(source.contains("did not answer within 10s"), "{error}: {source}");
    assert!(took < Duration::from_secs(11), "{took:?}");
    assert!(!format!("{error:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_transaction_that_comes_to_nothing_lets_go_of_the_lock() {
    let Some(database) = Database::new().await else { return };
    let (one, two) = (database.open("one").await, Arc::new(database.open("two").await));
    let LockOutcome::Acquired(_held) = one.lock_run(&"r1".into()).await.unwrap() else {
        panic!("it is free")
    };
    // It has requested the lease inside of a transaction, and did not get it.
    assert!(matches!(two.lock_run(&"r1".into()).await.unwrap(), LockOutcome::HeldRemotely { .. }));
    timeout(SOON, one.append(append("r1", 0))).await.expect("the lock is free").unwrap();

    // An append dropped while it waits for a table.
    let mut blocker = PgConnection::connect(&database.url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE checkpoint IN ACCESS EXCLUSIVE MODE")
        .execute(&mut blocker)
        .await
        .unwrap();
    let sealing = tokio::spawn({
        let two = two.clone();
        async move { two.seal(&[], 2_000, false, Durability::Synced).await }
    });
    let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'";
    while database.count(waits).await == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    sealing.abort();
    assert!(sealing.await.unwrap_err().is_cancelled());
    sqlx::raw_sql("ROLLBACK").execute(&mut blocker).await.unwrap();
    timeout(SOON, one.append(append("r1", 1))).await.expect("the lock is free").unwrap();
}

#[tokio::test]
async fn writers_and_readers_outlive_a_rewriting_of_the_tables() {
    // It takes longer than any single wait for a lock.
    let Some(database) = Database::new().await else { return };
    let store = Arc::new(database.open("here").await);
    let reader = database.open("there").await;
    store.append(append("r1", 0)).await.unwrap();
    let mut rewriting = PgConnection::connect(&database.url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE record IN ACCESS EXCLUSIVE MODE").execute(&mut rewriting).await.unwrap();
    let began = Instant::now();
    let rewritten = async {
        tokio::time::sleep(Duration::from_secs(33)).await;
        sqlx::raw_sql("ROLLBACK").execute(&mut rewriting).await.unwrap();
    };
    let run = "r1".into();
    let ((), appended, read) = tokio::join!(rewritten, store.append(append("r1", 1)), reader.records(&run));
    assert_eq!(appended.unwrap(), 2);
    assert!(!read.unwrap().is_empty());
    assert!(began.elapsed() >= Duration::from_secs(33));
}
