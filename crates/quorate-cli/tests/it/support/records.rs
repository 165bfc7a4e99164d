//! A ledger's records, read in this process as the binary reads them.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

use std::collections::BTreeMap;
use std::path::Path;

use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _, Record};
use quorate_ledger::Store;
use serde_json::Value;
use sqlx::{Connection as _, SqliteConnection};

/// Runs to the end what only an async runtime can.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// The ids of all runs of a ledger, newest first, with their verdicts; empty without a ledger.
pub fn runs(ledger: &Path) -> Vec<(String, Option<String>)> {
    if !ledger.is_file() {
        return Vec::new();
    }
    block_on(async {
        let store = Store::open(ledger).await.expect("the ledger opens").store;
        let runs = store.runs(10_000).await.expect("it answers");
        store.close().await;
        runs.into_iter().map(|run| (run.run.to_string(), run.verdict)).collect()
    })
}

/// All records of a run, each compared with its hashes and its predecessor.
pub fn records(ledger: &Path, run: &str) -> Vec<Record> {
    block_on(async {
        let store = Store::open(ledger).await.expect("the ledger opens").store;
        let records = store.records(&run.into()).await.expect("the chain holds");
        store.close().await;
        records
    })
}

/// Runs statements of SQL on a file of SQLite's, which is made where it is not there.
pub fn execute_sql(file: &Path, statements: &str) {
    block_on(async {
        let url = format!("sqlite://{}?mode=rwc", file.display());
        let mut connection = SqliteConnection::connect(&url).await.expect("it opens");
        let statements = sqlx::AssertSqlSafe(statements.to_owned());
        sqlx::raw_sql(statements).execute(&mut connection).await.expect("it is changed");
        connection.close().await.expect("it closes");
    });
}

/// Appends all records of a run under another id, with a changed first record; gives the id.
pub fn repeat_as(ledger: &Path, run: &str, change: impl Fn(&mut Value)) -> String {
    block_on(async {
        let store = Store::open(ledger).await.expect("the ledger opens").store;
        let other = quorate_kernel::entropy::run_id();
        let records = store.records(&run.into()).await.expect("the chain holds");
        let entries = records.into_iter().map(|record| {
            let kind = Kind::all().find(|kind| record.is(*kind)).expect("its kind is known");
            let mut data = Value::Object(record.data.expect("it is kept"));
            if kind == Kind::RunOpened {
                change(&mut data);
            }
            // The end of a run restates its first record.
            if let Some(restated) = data.get_mut("opened").filter(|restated| restated.is_object()) {
                change(restated);
            }
            let Value::Object(data) = data else { unreachable!("it was an object") };
            Entry { kind, at_ms: record.at_ms, data }
        });
        for (n, entry) in (0..).zip(entries) {
            store.append(Append::one(&other, n, entry, Durability::Synced)).await.expect("it is appended");
        }
        store.close().await;
        other.to_string()
    })
}

/// The fields of the records of a kind.
pub fn of_kind(records: &[Record], kind: &str) -> Vec<Value> {
    let of = records.iter().filter(|record| record.kind == kind);
    of.map(|record| Value::Object(record.data.clone().expect("it is kept"))).collect()
}

/// How many consultations each invocation has.
pub fn consultations(records: &[Record]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in of_kind(records, "consultation") {
        *counts.entry(text(&one["invocation"])).or_default() += 1;
    }
    counts
}

/// The invocations that the runs's intents name from a record on.
pub fn operators_called_from(records: &[Record], n: usize) -> Vec<String> {
    let intents = of_kind(records.get(n..).unwrap_or_default(), "run.intent");
    intents
        .iter()
        .flat_map(|one| one["invocations"].as_array().cloned().unwrap_or_default())
        .map(|id| text(&id))
        .collect()
}

pub fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
