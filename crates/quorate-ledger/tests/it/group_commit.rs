//! Appends of many runs that are written together. Only appends at a stale position are refused.

use std::sync::Arc;

use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _, LedgerError};
use quorate_ledger::Store;
use quorate_ledger::verify::{VerifyOptions, verify};
use serde_json::{Map, json};

/// More records than one statement takes.
const MANY: usize = 2500;

fn append(run: &str, from: u64, count: usize) -> Append {
    let entry = |at: usize| Entry {
        kind: if from == 0 && at == 0 { Kind::RunOpened } else { Kind::Attempt },
        at_ms: 1_790_000_000_000,
        data: Map::from_iter([("at".to_owned(), json!(at))]),
    };
    let entries = (0..count).map(entry).collect();
    Append { run: run.into(), from, entries, bodies: Vec::new(), durability: Durability::Written }
}

/// Appends all of these at once; `None` for each append refused as stale.
async fn together(store: &Arc<Store>, appends: Vec<Append>) -> Vec<Option<u64>> {
    let all = appends.into_iter().map(|append| store.append(append));
    let results = futures::future::join_all(all).await.into_iter();
    results
        .map(|result| match result {
            Ok(next) => Some(next),
            Err(LedgerError::Conflict { .. }) => None,
            Err(error) => panic!("{error}"),
        })
        .collect()
}

#[tokio::test]
async fn a_conflict_of_one_append_affects_no_other() {
    // D2, X7
    let dir = tempfile::tempdir().unwrap();
    let open = async || Arc::new(Store::open(&dir.path().join("ledger.db")).await.unwrap().store);
    let (here, there) = (open().await, open().await);
    let runs = ["r1", "r2", "r3", "r4"];
    let opened = together(&here, runs.iter().map(|run| append(run, 0, 1)).collect()).await;
    assert_eq!(opened, [Some(1); 4]);
    // The cached tails of two of the runs are outdated.
    assert_eq!(together(&there, vec![append("r2", 1, 1), append("r3", 1, 2)]).await, [Some(2), Some(3)]);
    let results = together(
        &here,
        vec![
            append("r1", 1, 1),
            append("r2", 1, 1),
            append("r1", 2, 1),
            append("r2", 2, 1),
            append("r3", 1, MANY),
            append("r4", 1, MANY),
            append("r4", 1, 1),
            append("r5", 0, 1),
        ],
    )
    .await;
    let many = MANY as u64;
    assert_eq!(results, [Some(2), None, Some(3), None, None, Some(many + 1), None, Some(1)]);
    // A refused writer reads the new position and continues from there.
    assert_eq!(together(&here, vec![append("r2", 2, 1), append("r3", 3, 1)]).await, [Some(3), Some(4)]);
    for (run, count) in [("r1", 3), ("r2", 3), ("r3", 4), ("r4", MANY + 1), ("r5", 1)] {
        let records = here.records(&run.into()).await.unwrap();
        assert_eq!(records.len(), count, "{run}");
    }
    let report = verify(&here, VerifyOptions::default()).await.unwrap();
    assert_eq!((report.divergences, report.records), (Vec::new(), many + 12));
}
