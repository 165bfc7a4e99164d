//! Appending on a server, with one statement that holds the writers' lock only while it runs. A cached tail is enough
//! to chain a record to its run, because the server compares the record's number with the run's next one.

use quorate_kernel::attempts::object;
use quorate_kernel::ports::ledger::{Durability, LedgerError};
use quorate_protocol::Json;
use serde_json::json;
use sqlx::Row as _;

use super::super::connection::Connection;
use super::super::engine::record_head;
use super::super::index::Change;
use super::super::run_signers::KeyEvent;
use super::{AppendRules, PreparedAppend, Reply, chain_all, keep_tails};

/// Whether an append can be part of one call. It must be unsigned, because signing needs the ledger's keys and
/// checkpoints, and must change no more than its own run.
pub(super) fn is_one_call(append: &PreparedAppend) -> bool {
    let is_of_run = |change: &Change| {
        !matches!(change, Change::Held { .. } | Change::Released { .. } | Change::Imported { .. })
    };
    let opens = |event: &KeyEvent| matches!(event, KeyEvent::Opened(_));
    append.key.is_none() && append.key_events.values().all(opens) && append.changes.iter().all(is_of_run)
}

/// Writes all appends that fit their runs or, after an error, none. Returns the result of each.
pub(super) async fn append(
    connection: &mut Connection,
    appends: Vec<PreparedAppend>,
    durability: Durability,
) -> Result<Vec<Reply>, sqlx::Error> {
    const CALL: &str = "SELECT fits, place FROM \
        quorate_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    let leases = connection.leases.clone();
    let mut tails = std::mem::take(&mut connection.tails);
    let rules = AppendRules { tails_are_checked: true, ..AppendRules::default() };
    let engine = connection.engine().await?;
    let (mut results, mut ahead, mut chained) = chain_all(engine, &mut tails, appends, &rules).await?;
    if chained.is_empty() {
        return Ok(results);
    }
    let synced = durability == Durability::Synced;
    let all = || chained.iter().map(|(_, links)| links);
    let runs: Vec<String> = all().map(|links| links.run.to_string()).collect();
    let firsts: Vec<i64> = all().map(|links| links.from.cast_signed()).collect();
    let ends: Vec<Option<String>> = all().map(|links| links.after.clone()).collect();
    let owners: Vec<Option<String>> = all().map(|links| leases.owner(&links.run)).collect();
    let counts: Vec<i64> = all().map(|links| links.records.len() as i64).collect();
    let records = || all().flat_map(|links| &links.records);
    let kinds: Vec<&str> = records().map(|record| record.kind).collect();
    let heads: Vec<&str> = records().map(|record| &*record.head).collect();
    let datas: Vec<&str> = records().map(|record| &*record.data).collect();
    // The functions count appends from 1.
    let bodies =
        || (1_i64..).zip(all()).flat_map(|(at, links)| links.bodies.iter().map(move |body| (at, body)));
    let hashes: Vec<&str> = bodies().map(|(_, body)| &*body.sha256).collect();
    let texts: Vec<&str> = bodies().map(|(_, body)| &*body.text).collect();
    let body_of: Vec<i64> = bodies().map(|(at, _)| at).collect();
    let changes = (1_i64..).zip(all());
    let changes: Json = changes
        .flat_map(|(at, links)| links.changes.iter().map(move |change| change_entry(change, at)))
        .collect();
    let changes = changes.to_string();
    let call = |known: Option<i64>| {
        let call = sqlx::query(CALL).bind(synced).bind(known).bind(&runs).bind(&firsts).bind(&ends);
        let call = call.bind(&owners).bind(&counts).bind(&kinds).bind(&heads).bind(&datas);
        call.bind(&hashes).bind(&texts).bind(&body_of).bind(&changes)
    };
    let (rows, was_repeated) = connection.write_call(call).await?;
    if was_repeated {
        // The cached values come from a lost connection.
        tails.clear();
    }
    for ((at, links), row) in chained.drain(..).zip(rows) {
        let fits = row.try_get::<i64, _>("fits")? == 1;
        // The lost call may have written the records. If so, they are in the ledger, byte for byte.
        let is_there = match links.records.last() {
            Some(last) if was_repeated && !fits => {
                let there = record_head(connection.engine().await?, &links.run, last.n).await?;
                there.is_some_and(|head| head == last.head)
            }
            _ => false,
        };
        if !fits && !is_there {
            ahead.remove(&links.run);
            results[at] = Err(LedgerError::Conflict { run: links.run });
        }
    }
    keep_tails(&mut tails, ahead);
    connection.tails = tails;
    Ok(results)
}

/// The change of a run's row, in the format of the server's function.
fn change_entry(change: &Change, at: i64) -> Json {
    const COLUMNS: [&str; 7] =
        ["subject", "artifact_type", "artifact_sha256", "council", "log_path", "mode", "producer"];
    let mut entry = object(json!(change));
    entry.insert("append".to_owned(), json!(at));
    if let Some(Json::Array(values)) = entry.remove("columns") {
        entry.extend(COLUMNS.map(str::to_owned).into_iter().zip(values));
    }
    Json::Object(entry)
}
