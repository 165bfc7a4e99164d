//! Appending on a server, with one statement that holds the writers' lock only while it runs. A cached tail is enough
//! to chain a record to its run, because the server compares the record's number with the run's next one.

use std::collections::BTreeMap;

use quorate_kernel::ports::ledger::{Durability, LedgerError};
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::super::connection::Connection;
use super::super::engine::{Column, Engine, sql};
use super::super::index::Change;
use super::super::postgres::server::AppendCall;
use super::super::run_signers::KeyEvent;
use super::{AppendRules, ChainedAppend, PreparedAppend, Reply, chain};

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
    let leases = connection.leases.clone();
    let mut tails = std::mem::take(&mut connection.tails);
    let engine = connection.engine().await?;
    let rules = AppendRules { tails_are_checked: true, ..AppendRules::default() };
    let (mut results, mut ahead) = (Vec::with_capacity(appends.len()), BTreeMap::new());
    let mut chained: Vec<(usize, ChainedAppend)> = Vec::with_capacity(appends.len());
    for (at, append) in appends.into_iter().enumerate() {
        let fits = chain(engine, &mut tails, &mut ahead, append, &rules).await?;
        results.push(fits.map(|links| {
            let next = links.next();
            chained.push((at, links));
            next
        }));
    }
    let call = append_call(chained.iter_mut().map(|(_, links)| links), durability, |run| leases.owner(run));
    if chained.is_empty() {
        return Ok(results);
    }
    let Some((fits, was_repeated)) = connection.write_call(&call).await? else { return Ok(results) };
    if was_repeated {
        // The cached values come from a lost connection.
        tails.clear();
    }
    for ((at, links), fits) in chained.into_iter().zip(fits) {
        // The lost call may have written the records. If so, they are in the ledger, byte for byte.
        let is_there = was_repeated && !fits && is_written(connection.engine().await?, &links).await?;
        if !fits && !is_there {
            ahead.remove(&links.run);
            results[at] = Err(LedgerError::Conflict { run: links.run });
        }
    }
    tails.extend(ahead.into_iter().filter(|(_, ahead)| !ahead.ends).map(|(run, ahead)| (run, ahead.tail)));
    connection.tails = tails;
    Ok(results)
}

/// Whether the last record of an append is at its position in the ledger.
async fn is_written(engine: &mut Engine, links: &ChainedAppend) -> Result<bool, sqlx::Error> {
    let Some(last) = links.records.last() else { return Ok(false) };
    let there = sql("SELECT head FROM record WHERE run = $1 AND n = $2").bind(&*links.run).bind(last.n);
    Ok(there.row(engine, &[Column::Text]).await?.is_some_and(|row| row.text(0) == last.head))
}

/// The call that writes appends. Takes their changes and bodies out of them.
fn append_call<'a>(
    chained: impl Iterator<Item = &'a mut ChainedAppend>,
    durability: Durability,
    owner: impl Fn(&Name) -> Option<String>,
) -> AppendCall {
    let mut call = AppendCall { synced: durability == Durability::Synced, ..AppendCall::default() };
    let mut changes = Vec::new();
    for (links, at) in chained.zip(1_i64..) {
        call.runs.push(links.run.to_string());
        call.firsts.push(links.from.cast_signed());
        call.ends.push(links.after.take());
        call.owners.push(owner(&links.run));
        call.counts.push(links.records.len() as i64);
        for record in &links.records {
            call.kinds.push(record.kind.to_owned());
            call.heads.push(record.head.clone());
            call.datas.push(record.data.clone());
        }
        for body in links.bodies.drain(..) {
            call.hashes.push(body.sha256);
            call.texts.push(body.text.to_string());
            call.body_of.push(at);
        }
        changes.extend(links.changes.drain(..).filter_map(|change| change_entry(change, at)));
    }
    call.changes = Json::Array(changes).to_string();
    call
}

/// The changes of a run's row, in the format of the server's function.
fn change_entry(change: Change, at: i64) -> Option<Json> {
    Some(match change {
        Change::Opened { at_ms, columns } => {
            let [subject, artifact_type, artifact_sha256, council, log_path, mode, producer] = columns;
            json!({
                "append": at, "what": "opened", "at_ms": at_ms, "subject": subject, "artifact_type": artifact_type,
                "artifact_sha256": artifact_sha256, "council": council, "log_path": log_path, "mode": mode,
                "producer": producer,
            })
        }
        Change::Decided { at_ms, verdict } => {
            json!({"append": at, "what": "decided", "at_ms": at_ms, "verdict": verdict})
        }
        Change::Reopened => json!({"append": at, "what": "reopened"}),
        Change::Overridden { verdict, unlogged } => {
            json!({"append": at, "what": "overridden", "verdict": verdict, "unlogged": unlogged})
        }
        Change::Ended => json!({"append": at, "what": "ended"}),
        Change::Held { .. } | Change::Released { .. } | Change::Imported { .. } => return None,
    })
}
