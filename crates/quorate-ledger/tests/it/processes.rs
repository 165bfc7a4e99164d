//! Sixteen processes write one ledger at once, each its own run, while another process reads: no record is lost or
//! duplicated, and positions have no gaps.
//!
//! Each process runs this test binary again, with its role in an environment variable.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _};
use quorate_ledger::Store;
use quorate_ledger::merkle::leaf;
use quorate_protocol::Name;
use serde_json::{Map, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use crate::merkle_tree::{MerkleTree, root};

const PROCESSES: usize = 16;
const RECORDS: u64 = 1_000;
const WRITES: &str = "QUORATE_TEST_WRITES";

fn entry(run: &str, n: u64) -> Entry {
    let data = Map::from_iter([("run".to_owned(), json!(run)), ("n".to_owned(), json!(n))]);
    Entry { kind: Kind::Rule, at_ms: 1_000, data }
}

/// The work of a process: one record after another, every fiftieth synced.
async fn write(path: &Path, run: &str) {
    let store = Store::open(path).await.expect("it opens").store;
    let name: Name = run.into();
    for n in 0..RECORDS {
        let durability = if n % 50 == 0 { Durability::Synced } else { Durability::Written };
        store.append(Append::one(&name, n, entry(run, n), durability)).await.expect("appended");
    }
    store.seal(&[], 2_000, false, Durability::Written).await.expect("sealed");
    store.close().await;
}

fn start(path: &Path, at: usize) -> Child {
    Command::new(std::env::current_exe().expect("it runs"))
        .args(["--exact", "processes::many_processes_write_one_ledger", "--nocapture"])
        .env(WRITES, format!("r{at}={}", path.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it starts")
}

#[tokio::test]
async fn many_processes_write_one_ledger() {
    // D1, D2
    if let Ok(role) = std::env::var(WRITES) {
        let (run, path) = role.split_once('=').unwrap();
        return write(Path::new(path), run).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    Store::open(&path).await.unwrap().store.close().await;
    let mut children: Vec<Child> = (0..PROCESSES).map(|at| start(&path, at)).collect();
    let reader = Store::open(&path).await.unwrap().store;
    let mut seen = 0;
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        // A reader during a write sees a prefix of a run, which never shrinks.
        let there = reader.records(&"r3".into()).await.unwrap().len();
        assert!(there >= seen, "{there} records where there were {seen}");
        seen = there;
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    for at in 0..PROCESSES {
        let run: Name = format!("r{at}").into();
        let records = reader.records(&run).await.unwrap();
        assert_eq!(records.len() as u64, RECORDS);
        for (n, record) in (0..).zip(&records) {
            assert_eq!(record.data, Some(entry(&run, n).data), "{run}/{n}");
        }
    }
    reader.seal(&[], 3_000, true, Durability::Synced).await.unwrap();
    let sealed = reader.last_checkpoint().await.unwrap().unwrap();
    reader.close().await;

    let mut sqlite = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let rows = sqlx::query("SELECT seq, head FROM record ORDER BY seq").fetch_all(&mut sqlite).await.unwrap();
    let places: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(places, (1..=i64::try_from(rows.len()).unwrap()).collect::<Vec<_>>(), "no gap, nothing twice");
    let size = usize::try_from(sealed.tree.size).unwrap();
    let tree: MerkleTree = rows[..size].iter().map(|row| leaf(row.get::<&str, _>(1).as_bytes())).collect();
    assert_eq!(root(&tree, sealed.tree.size), sealed.tree.root, "sixteen sealed one tree");
}
