//! The ledger in a Postgres database keeps the guarantees of a file, several machines write to one ledger, and a run
//! has one driver. Needs the server that `scripts/services start postgres` starts, named by `QUORATE_TEST_POSTGRES`.

#![cfg(feature = "postgres")]

pub(crate) mod proxy;
pub(crate) mod support;

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind, Ledger as _, LedgerError};
use quorate_ledger::Store;
use quorate_ledger::merkle::leaf;
use quorate_ledger::runs::{PrefixMatch, RunFilter};
use quorate_ledger::signing::{ExternalKeys, SecretKey};
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::store::lease::LockOutcome;
use serde_json::{Map, json};
use sqlx::{Connection as _, PgConnection, Row as _};
use support::Database;

use crate::merkle_tree::{MerkleTree, root};

fn entry(n: u64) -> Entry {
    let data = Map::from_iter([("n".to_owned(), json!(n)), ("text".to_owned(), json!("a\u{0}b — ü"))]);
    Entry { kind: Kind::Rule, at_ms: 1_000, data }
}

async fn append(
    store: &Store,
    run: &str,
    from: u64,
    count: u64,
    durability: Durability,
) -> Result<u64, LedgerError> {
    let entries = (from..from + count).map(entry).collect();
    store.append(Append { run: run.into(), from, entries, bodies: Vec::new(), durability }).await
}

fn opened(subject: &str) -> Entry {
    let data = json!({
        "subject": subject, "artifact_type": "text", "artifact_sha256": "aa", "log_path": "/log",
        "fingerprint": {"council": "c1"}, "protocol": "voting/1", "producer": {"operator": "ada", "trying": []},
        "title": "a\u{0}b \\u0000",
    });
    let data = data.as_object().expect("an object").clone();
    Entry { kind: Kind::RunOpened, at_ms: 5, data }
}

fn outcome(verdict: &str) -> Entry {
    Entry { kind: Kind::Outcome, at_ms: 9, data: Map::from_iter([("verdict".to_owned(), json!(verdict))]) }
}

#[tokio::test]
async fn records_come_back_as_they_were_appended() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    assert_eq!(append(&store, "r1", 0, 1500, Durability::Synced).await.unwrap(), 1500);
    assert_eq!(append(&store, "r1", 1500, 1, Durability::Written).await.unwrap(), 1501);
    // Compare and append: an append at a stale position is refused.
    for from in [0, 7, 1500, 1502] {
        let refused = append(&store, "r1", from, 1, Durability::Written).await.unwrap_err();
        assert!(matches!(refused, LedgerError::Conflict { .. }), "{refused}");
    }
    let records = store.records(&"r1".into()).await.unwrap();
    assert_eq!(records.len(), 1501);
    assert_eq!(records[3].data.as_ref().unwrap()["text"], "a\u{0}b — ü");
    let tail = store.tail(&"r1".into(), 2).await.unwrap();
    assert_eq!(tail.iter().map(|record| record.n).collect::<Vec<_>>(), [1499, 1500]);
    assert_eq!(store.records(&"r2".into()).await.unwrap(), []);
    store.close().await;
}

#[tokio::test]
async fn a_refused_append_refuses_nothing_else_of_its_transaction() {
    let Some(database) = Database::new().await else { return };
    let store = Arc::new(database.open("here").await);
    append(&store, "r1", 0, 1, Durability::Synced).await.unwrap();
    let all = (0..20_u64).map(|at| {
        let store = store.clone();
        // They are queued together, and every second one is stale.
        async move { append(&store, &format!("s{at}"), at % 2, 1, Durability::Synced).await }
    });
    let results = futures::future::join_all(all).await;
    for (at, result) in results.into_iter().enumerate() {
        match at % 2 {
            0 => assert_eq!(result.unwrap(), 1),
            _ => assert!(matches!(result.unwrap_err(), LedgerError::Conflict { .. })),
        }
    }
    assert_eq!(store.stats(0).await.unwrap().records, 11);
}

#[tokio::test]
async fn the_index_of_runs_follows_from_the_records() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    let text: Arc<str> = "the artifact".into();
    let sha256 = sha256_hex(text.as_bytes());
    for (run, subject) in [("rab", "a.md"), ("raz", "Z.md"), ("RAA", "é.md")] {
        let body = Body { sha256: sha256.clone(), text: text.clone() };
        let first =
            Append { bodies: vec![body], ..Append::one(&run.into(), 0, opened(subject), Durability::Synced) };
        store.append(first).await.unwrap();
    }
    store.append(Append::one(&"rab".into(), 1, outcome("SHIP"), Durability::Synced)).await.unwrap();
    let runs = store.runs(10).await.unwrap();
    assert_eq!(runs.iter().map(|run| &*run.run).collect::<Vec<_>>(), ["RAA", "raz", "rab"]);
    let listed = store.listed_runs(&RunFilter::default(), 2).await.unwrap();
    assert_eq!(listed.iter().map(|listed| &*listed.run).collect::<Vec<_>>(), ["RAA", "raz"]);
    let after = listed[1].place.clone();
    let rest = store.listed_runs(&RunFilter { after, ..RunFilter::default() }, 2).await.unwrap();
    assert_eq!((rest.len(), &*rest[0].run, rest[0].sealed), (1, "rab", false));
    let of_ada = RunFilter {
        producer: Some("ada".to_owned()),
        mode: Some("voting".to_owned()),
        ..RunFilter::default()
    };
    assert_eq!(store.listed_runs(&of_ada, 9).await.unwrap().len(), 3);
    assert_eq!(runs[2].verdict.as_deref(), Some("SHIP"));
    // Prefixes are compared byte by byte, whatever the database's collation.
    assert!(
        matches!(store.find_by_prefix("ra").await.unwrap(), PrefixMatch::Several(some) if some.len() == 2)
    );
    assert!(
        matches!(store.find_by_prefix("raz").await.unwrap(), PrefixMatch::One(run) if run.subject == "Z.md")
    );
    assert_eq!(store.decided_unfinished().await.unwrap().len(), 1);
    assert_eq!(store.undecided_runs("c1").await.unwrap().len(), 2);
    assert_eq!(store.judged_artifacts("c1").await.unwrap().len(), 1);
    assert_eq!(store.runs_of_type("text").await.unwrap().len(), 3);
    assert_eq!(store.streams("ra").await.unwrap().len(), 2);
    assert_eq!(store.body(&sha256).await.unwrap().as_deref(), Some("the artifact"));
    let stats = store.stats(0).await.unwrap();
    assert_eq!((stats.records, stats.runs, stats.open, stats.bodies), (4, 3, 3, 1));
    // The order is that in which runs were opened, not that of their last records.
    for run in ["RAA", "raz"] {
        store.append(Append::one(&run.into(), 1, outcome("HOLD"), Durability::Synced)).await.unwrap();
    }
    let listed = store.listed_runs(&RunFilter::default(), 9).await.unwrap();
    assert_eq!(listed.iter().map(|listed| &*listed.run).collect::<Vec<_>>(), ["RAA", "raz", "rab"]);
    // A complete id names its run even if it is a prefix of another id.
    store.append(Append::one(&"raz2".into(), 0, opened("b.md"), Durability::Synced)).await.unwrap();
    assert!(
        matches!(store.find_by_prefix("raz").await.unwrap(), PrefixMatch::One(run) if run.subject == "Z.md")
    );
    assert!(store.server_bytes().await.unwrap().unwrap() > 0);
    store.close().await;
}

#[tokio::test]
async fn the_runs_of_an_older_ledger_have_their_origin() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    store.append(Append::one(&"rab".into(), 0, opened("a.md"), Durability::Synced)).await.unwrap();
    store.close().await;
    // In the state that the version before this table left.
    database
        .run(
            "DROP TABLE run_origin, tenant, task, task_text, task_uses, quota, conversation_turn, participant_state; DROP TRIGGER run_ends_task ON run; \
             DROP FUNCTION quorate_begin_write, quorate_require_rows, quorate_append, quorate_take_lease, \
             quorate_forget_texts, quorate_end_task, quorate_enqueue, quorate_claim, quorate_give_back, \
             quorate_cancel, quorate_take_permits; ALTER TABLE quorate_schema DROP COLUMN ledger_key; \
             UPDATE quorate_schema SET version = 1",
        )
        .await;
    let store = database.open("here").await;
    let listed = store.listed_runs(&RunFilter::default(), 9).await.unwrap();
    assert_eq!((&*listed[0].mode, listed[0].producer.as_deref()), ("voting", Some("ada")));
    store.close().await;
}

#[tokio::test]
async fn checkpoints_are_over_all_records_of_all_machines_in_their_order() {
    // D2
    let Some(database) = Database::new().await else { return };
    let (one, two) = (database.open("one").await, database.open("two").await);
    let key = Arc::new(SecretKey::generate());
    let signer = Arc::new(SecretKey::generate());
    for store in [&one, &two] {
        let signers = vec![signer.public()];
        store.set_external_keys(move || Ok(ExternalKeys { keyring: None, signers: signers.clone() }));
    }
    one.sign_run(&"s1".into(), signer);
    append(&one, "s1", 0, 3, Durability::Synced).await.unwrap();
    assert!(two.is_signed(&"s1".into()).await.unwrap());
    let refused = append(&two, "s1", 3, 1, Durability::Synced).await.unwrap_err();
    assert!(matches!(refused, LedgerError::NoSigningKey { .. }), "{refused}");
    let mut next = 0;
    for count in [1, 254, 3, 300, 1024] {
        let store = if count % 2 == 0 { &one } else { &two };
        append(store, "r1", next, count, Durability::Written).await.unwrap();
        next += count;
        let sealed = two.seal(std::slice::from_ref(&key), 2_000, false, Durability::Synced).await.unwrap();
        let heads = database.heads().await;
        let tree: MerkleTree = heads[..usize::try_from(sealed.tree.size).unwrap()]
            .iter()
            .map(|head| leaf(head.as_bytes()))
            .collect();
        assert_eq!(root(&tree, sealed.tree.size), sealed.tree.root);
        let again = one.seal(std::slice::from_ref(&key), 3_000, false, Durability::Synced).await.unwrap();
        assert!(!again.is_new, "nothing came since");
        assert_eq!(again.tree, sealed.tree);
        assert_eq!(one.unsealed_records().await.unwrap(), 0);
    }
    one.close().await;
    two.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_machines_write_one_ledger_without_a_gap() {
    const MACHINES: u64 = 4;
    const RECORDS: u64 = 250;
    let Some(database) = Database::new().await else { return };
    let mut tasks = Vec::new();
    for machine in 0..MACHINES {
        let store = Arc::new(database.open(&format!("m{machine}")).await);
        for run in 0..5 {
            let store = store.clone();
            tasks.push(tokio::spawn(async move {
                let run = format!("r{machine}-{run}");
                for n in 0..RECORDS / 5 {
                    let durability = if n % 10 == 0 { Durability::Synced } else { Durability::Written };
                    assert_eq!(append(&store, &run, n, 1, durability).await.unwrap(), n + 1);
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut connection = database.connection().await;
    let row = sqlx::query("SELECT COUNT(*), MIN(seq), MAX(seq), COUNT(DISTINCT seq) FROM record")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let all = i64::try_from(MACHINES * RECORDS).unwrap();
    let counted: (i64, i64, i64, i64) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(counted, (all, 1, all, all));
    let store = database.open("reader").await;
    for machine in 0..MACHINES {
        for run in 0..5 {
            let run = format!("r{machine}-{run}").as_str().into();
            assert_eq!(store.records(&run).await.unwrap().len() as u64, RECORDS / 5);
        }
    }
}

#[tokio::test]
async fn a_run_has_one_driver_and_goes_to_another_when_its_time_is_over() {
    let Some(database) = Database::new().await else { return };
    let (one, two) = (database.open("one").await, database.open("two").await);
    let run = "r1".into();
    let LockOutcome::Acquired(held) = one.lock_run(&run).await.unwrap() else { panic!("it is free") };
    append(&one, "r1", 0, 1, Durability::Synced).await.unwrap();
    let LockOutcome::HeldRemotely { until_ms } = two.lock_run(&run).await.unwrap() else {
        panic!("it is taken")
    };
    let left = until_ms - i64::try_from(now().as_millis()).unwrap();
    assert!((5_000..=16_000).contains(&left), "{left}");
    assert!(two.runs_driven_elsewhere().await.unwrap().contains(&run));
    assert!(one.runs_driven_elsewhere().await.unwrap().is_empty());
    let refused = append(&two, "r1", 1, 1, Durability::Synced).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Conflict { .. }), "{refused}");
    // Any process can append to streams other than runs.
    append(&two, "overlays/x", 0, 1, Durability::Synced).await.unwrap();

    // The first driver stops responding, and its lease expires.
    database.run("UPDATE lease SET until_ms = 0").await;
    let LockOutcome::Acquired(taken_over) = two.lock_run(&run).await.unwrap() else {
        panic!("its time is over")
    };
    append(&two, "r1", 1, 1, Durability::Synced).await.unwrap();
    // The first driver was alive after all. It can write nothing, although it has the run's tail.
    let fenced = append(&one, "r1", 2, 1, Durability::Synced).await.unwrap_err();
    assert!(matches!(fenced, LedgerError::Conflict { .. }), "{fenced}");
    drop(taken_over);
    two.close().await;
    // It still cannot after the second driver has released the run.
    let fenced = append(&one, "r1", 2, 1, Durability::Synced).await.unwrap_err();
    assert!(matches!(fenced, LedgerError::Conflict { .. }), "{fenced}");
    drop(held);
    one.close().await;
    assert_eq!(database.count("lease").await, 0, "a process that ends releases its lease");
}

#[tokio::test]
async fn leases_are_renewed_while_their_driver_lives() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("one").await;
    let mut held = Vec::new();
    for run in ["r1", "r2"] {
        let LockOutcome::Acquired(guard) = store.lock_run(&run.into()).await.unwrap() else {
            panic!("it is free")
        };
        held.push(guard);
    }
    database.run("UPDATE lease SET until_ms = 1").await;
    database.wait_for_renewal("r1").await;
    database.wait_for_renewal("r2").await;
    // A released lease is not renewed, and does not return.
    drop(held.remove(0));
    database.run("UPDATE lease SET until_ms = 1 WHERE run = 'r2'").await;
    database.wait_for_renewal("r2").await;
    assert_eq!(database.count("lease WHERE run = 'r1'").await, 0);
    drop(held);
    // A lease acquired after the last release is renewed as well.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let LockOutcome::Acquired(_held) = store.lock_run(&"r2".into()).await.unwrap() else {
        panic!("it is free")
    };
    database.run("UPDATE lease SET until_ms = 1").await;
    database.wait_for_renewal("r2").await;
}

#[tokio::test]
async fn a_lost_connection_is_made_again_by_what_comes_next() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    append(&store, "r1", 0, 2, Durability::Synced).await.unwrap();
    database.terminate_others().await;
    assert_eq!(append(&store, "r1", 2, 1, Durability::Synced).await.unwrap(), 3);
    database.terminate_others().await;
    assert_eq!(store.records(&"r1".into()).await.unwrap().len(), 3);
    // A wait for the writers' lock is also repeated after its connection was lost.
    let mut blocker = database.connection().await;
    sqlx::raw_sql("BEGIN; LOCK TABLE record IN ACCESS EXCLUSIVE MODE").execute(&mut blocker).await.unwrap();
    let store = Arc::new(store);
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { append(&store, "r1", 3, 1, Durability::Synced).await }
    });
    let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'";
    while database.count(waits).await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'relation' \
               AND datname = current_database()";
    sqlx::query(end).execute(&mut blocker).await.unwrap();
    sqlx::raw_sql("ROLLBACK").execute(&mut blocker).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), 4);
    assert_eq!(store.records(&"r1".into()).await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_checkpoint_whose_connection_is_lost_is_not_made_outside_of_its_transaction() {
    let Some(database) = Database::new().await else { return };
    let (one, two) = (Arc::new(database.open("one").await), database.open("two").await);
    append(&one, "r1", 0, 3, Durability::Synced).await.unwrap();
    one.seal(&[], 1_000, false, Durability::Synced).await.unwrap();
    append(&one, "r1", 3, 1, Durability::Synced).await.unwrap();
    // It has the writers' lock, and waits for the stored hashes.
    let mut blocker = database.connection().await;
    sqlx::raw_sql("BEGIN; LOCK TABLE tile IN ACCESS EXCLUSIVE MODE").execute(&mut blocker).await.unwrap();
    let sealing = tokio::spawn({
        let one = one.clone();
        async move { one.seal(&[], 2_000, false, Durability::Synced).await }
    });
    let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'";
    while database.count(waits).await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE wait_event = 'relation' \
               AND datname = current_database()";
    sqlx::query(end).execute(&mut blocker).await.unwrap();
    append(&two, "r2", 0, 2, Durability::Synced).await.unwrap();
    sqlx::raw_sql("ROLLBACK").execute(&mut blocker).await.unwrap();
    sealing.await.unwrap().expect_err("its transaction is gone, with the lock that kept others from writing");
    let sealed = one.seal(&[], 3_000, false, Durability::Synced).await.unwrap();
    assert_eq!((sealed.tree.size, database.count("record").await), (7, 8));
}

#[tokio::test]
async fn a_newer_schema_is_read_and_not_written() {
    let Some(database) = Database::new().await else { return };
    let store = database.open("here").await;
    append(&store, "r1", 0, 2, Durability::Synced).await.unwrap();
    store.close().await;
    database.run("UPDATE quorate_schema SET version = 99").await;
    let store = database.open("here").await;
    assert!(store.read_only_reason().unwrap().contains("version 99"));
    assert_eq!(store.records(&"r1".into()).await.unwrap().len(), 2);
    let error = append(&store, "r1", 2, 1, Durability::Synced).await.unwrap_err();
    assert!(error.to_string().contains("version 99"), "{error}");
    store.close().await;
}

#[tokio::test]
async fn what_is_no_ledger_is_left_alone() {
    let Some(database) = Database::new().await else { return };
    database.run("CREATE TABLE record (name TEXT)").await;
    let error = Store::open_at(&database.address("here")).await.map(drop).unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(source.contains("another program"), "{error}: {source}");
    assert_eq!(database.count("record").await, 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_without_the_password() {
    let dir = tempfile::tempdir().unwrap();
    let url = "postgres://ada:s3cret@127.0.0.1:1/quorate".to_owned();
    let address = StoreAddress::Postgres { url, dir: dir.path().to_owned() };
    let error = Store::open_at(&address).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("postgres://ada@127.0.0.1:1/quorate"), "{error}");
    assert!(!format!("{error:?}").contains("s3cret"));
}

#[tokio::test]
async fn ledgers_in_schemas_of_their_own_keep_apart() {
    let Some(database) = Database::new().await else { return };
    database.run("CREATE SCHEMA other").await;
    let StoreAddress::Postgres { url, dir } = database.address("here") else {
        unreachable!("it is a server")
    };
    let other = StoreAddress::Postgres { url: format!("{url}?options=-csearch_path%3Dother"), dir };
    let (one, two) = (database.open("here").await, Store::open_at(&other).await.unwrap().store);
    append(&one, "r1", 0, 3, Durability::Synced).await.unwrap();
    append(&two, "r1", 0, 1, Durability::Synced).await.unwrap();
    assert_eq!(one.records(&"r1".into()).await.unwrap().len(), 3);
    assert_eq!(two.records(&"r1".into()).await.unwrap().len(), 1);
    one.close().await;
    two.close().await;
}

fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970")
}

impl Database {
    /// All heads, in the order of the ledger.
    async fn heads(&self) -> Vec<String> {
        let mut connection = self.connection().await;
        let rows = sqlx::query("SELECT head FROM record ORDER BY seq").fetch_all(&mut connection).await;
        rows.expect("rows").iter().map(|row| row.get(0)).collect()
    }

    async fn until(&self, run: &str) -> i64 {
        let mut connection = self.connection().await;
        let row = sqlx::query("SELECT until_ms FROM lease WHERE run = $1").bind(run);
        row.fetch_one(&mut connection).await.expect("there is a lease").get(0)
    }

    /// Waits until the lease of a run is renewed, which happens every five seconds.
    async fn wait_for_renewal(&self, run: &str) {
        let renewed = async {
            while self.until(run).await <= 1 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(8), renewed).await.expect("it is renewed");
    }

    async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the server answers")
    }
}
