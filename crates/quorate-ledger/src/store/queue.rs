//! The queue of the group commit: pending appends, and how they are written.

#[cfg(feature = "postgres")]
mod on_server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind, LedgerError};
use quorate_protocol::Name;
use tokio::sync::oneshot;

use super::address::StoreAddress;
use super::connection::{Connection, Gap, Tail, Tails};
use super::engine::{Column, Engine, Value, sql, sql_rows};
use super::index::Change;
use super::run_signers::{self, KeyEvent, RunSigners};
use super::{CommitObserver, CommittedRecords, STREAM, refusal};
use crate::record::{EncodeError, EncodedRecord, PreparedEntry, leaf};
use crate::signing::{ExternalKeys, SecretKey};

pub(super) type Reply = Result<u64, LedgerError>;

/// The most records per SQLite statement, which takes at most 32 766 values.
pub(super) const MAX_ROWS: usize = 1000;

/// Returns the keys known outside of the ledger, or an error.
pub(super) type ExternalKeysFn = dyn Fn() -> Result<ExternalKeys, String> + Send + Sync;

#[derive(Default)]
pub(super) struct Queue(Mutex<QueueState>);

#[derive(Default)]
pub(super) struct QueueState {
    waiting: Vec<QueuedAppend>,
    /// The keys that sign runs in this process.
    pub(super) keys: BTreeMap<Name, Arc<SecretKey>>,
    /// The keys known outside of the ledger. Called before each signature, because they may change.
    pub(super) outside: Option<Arc<ExternalKeysFn>>,
    pub(super) observer: Option<Arc<CommitObserver>>,
}

struct QueuedAppend {
    append: PreparedAppend,
    reply: oneshot::Sender<Reply>,
}

/// An append. As much of it as possible is prepared before acquiring the connection, which others wait for.
struct PreparedAppend {
    run: Name,
    from: u64,
    entries: Vec<PreparedEntry>,
    changes: Vec<Change>,
    bodies: Vec<Body>,
    durability: Durability,
    /// Whether it ends the run.
    ends: bool,
    /// The key that signs its records.
    key: Option<Arc<SecretKey>>,
    /// The `keyring` records among its records, by index.
    key_events: BTreeMap<usize, KeyEvent>,
}

/// The rules that appends are checked against.
#[derive(Default)]
struct AppendRules<'a> {
    blocked: BTreeSet<Name>,
    /// The keys known outside of the ledger, or why they are unknown.
    outside: Option<Result<ExternalKeys, String>>,
    /// The ledger's key, which signs its own stream.
    ledger_key: Option<&'a SecretKey>,
    /// Whether a cached tail may be outdated. The write detects that.
    tails_are_checked: bool,
}

impl Queue {
    pub(super) fn state(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an append.
    ///
    /// # Errors
    /// If one of its records cannot be encoded.
    pub(super) fn push(&self, append: Append) -> Result<oneshot::Receiver<Reply>, LedgerError> {
        let key = self.state().keys.get(&append.run).cloned();
        let append = PreparedAppend::prepare(append, key)
            .map_err(|error| LedgerError::Unavailable { what: error.to_string(), source: None })?;
        let (reply, receiver) = oneshot::channel();
        self.state().waiting.push(QueuedAppend { append, reply });
        Ok(receiver)
    }

    /// The keys known outside of the ledger; `None` without a source.
    pub(super) fn external_keys(&self) -> Option<Result<ExternalKeys, String>> {
        let outside = self.state().outside.clone();
        outside.map(|outside| outside())
    }

    /// Commits all pending appends in one transaction and reports each result.
    pub(super) async fn commit(&self, connection: &mut Connection, address: &StoreAddress) {
        let waiting = std::mem::take(&mut self.state().waiting);
        if waiting.is_empty() {
            return;
        }
        let durability = waiting.iter().map(|job| job.append.durability).max().unwrap_or(Durability::Synced);
        let (appends, replies): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|job| (job.append, job.reply)).unzip();
        let place = |append: &PreparedAppend| (append.run.clone(), append.from, append.entries.len() as u64);
        let places: Vec<_> = appends.iter().map(place).collect();
        let observer = self.state().observer.clone();
        let committed = match &observer {
            Some(_) => appends.iter().map(PreparedAppend::records).collect(),
            None => Vec::new(),
        };
        let is_signed = appends.iter().any(|append| append.key.is_some());
        let outside = is_signed.then(|| self.external_keys()).flatten();
        let written = write(connection, appends, durability, outside).await;
        let results = match written {
            Ok(results) => results,
            Err(error) => {
                connection.record_failure(&error);
                let in_doubt = std::mem::take(&mut connection.in_doubt);
                let refused = |(run, from, count): &(Name, u64, u64)| {
                    Err(write_error(address, (run, *from, *count), in_doubt, &error))
                };
                places.iter().map(refused).collect()
            }
        };
        if let Some(observer) = observer {
            let done = committed.into_iter().zip(&results).filter(|(_, done)| done.is_ok());
            done.for_each(|(records, _)| observer(records));
        }
        for (reply, done) in replies.into_iter().zip(results) {
            // The receiver is gone if the caller was dropped; its records stay.
            let _ = reply.send(done);
        }
    }
}

impl AppendRules<'_> {
    /// The keys known outside of the ledger. Without a source this is the session's own key.
    fn external_keys(&self, key: Option<&SecretKey>) -> Result<ExternalKeys, String> {
        match &self.outside {
            Some(outside) => outside.clone(),
            None => {
                Ok(ExternalKeys { keyring: None, signers: key.map(SecretKey::public).into_iter().collect() })
            }
        }
    }
}

impl PreparedAppend {
    fn prepare(append: Append, key: Option<Arc<SecretKey>>) -> Result<PreparedAppend, EncodeError> {
        let Append { run, from, entries, bodies, durability } = append;
        let ends = entries.last().is_some_and(|entry| entry.kind == Kind::RunEnded);
        let key_events = entries.iter().enumerate();
        let key_events =
            key_events.filter_map(|(at, entry)| Some((at, KeyEvent::from_entry(entry)?))).collect();
        let changes = entries.iter();
        let changes = changes
            .filter_map(|change| Change::from_record(change.kind.as_str(), change.at_ms, &change.data))
            .collect();
        let entries = entries.into_iter().map(PreparedEntry::prepare).collect::<Result<_, _>>()?;
        Ok(PreparedAppend { run, from, entries, changes, bodies, durability, ends, key, key_events })
    }

    fn records(&self) -> CommittedRecords {
        let records = self.entries.iter().map(|entry| (entry.kind, entry.at_ms)).collect();
        CommittedRecords { run: self.run.clone(), from: self.from, records }
    }

    fn is_one_statement(&self, tails: &Tails) -> bool {
        self.bodies.is_empty()
            && self.changes.is_empty()
            && (1..=MAX_ROWS).contains(&self.entries.len())
            && self.key.is_none()
            && self.key_events.is_empty()
            && tails.get(&self.run).is_some_and(|tail| tail.next == self.from && tail.signers.is_none())
    }
}

/// Writes all appends or, after an error, none. Returns the result of each.
async fn write(
    connection: &mut Connection,
    appends: Vec<PreparedAppend>,
    durability: Durability,
    outside: Option<Result<ExternalKeys, String>>,
) -> Result<Vec<Reply>, sqlx::Error> {
    #[cfg(feature = "postgres")]
    if connection.is_server() && appends.iter().all(on_server::is_one_call) {
        return on_server::append(connection, appends, durability).await;
    }
    // Cached tails are dropped until the commit succeeds. The next writer reads them again.
    let mut tails = std::mem::take(&mut connection.tails);
    let alone = match &appends[..] {
        // The end of a consultation is the most frequent append, and one statement is a transaction by itself.
        [only] if only.is_one_statement(&tails) => connection.single_statement(durability).await?,
        _ => None,
    };
    let results = match alone {
        Some(engine) => append_all(engine, &mut tails, appends, &AppendRules::default()).await?,
        None => {
            let mut transaction = connection.begin(durability).await?;
            let blocked = transaction.blocked_runs().await?;
            let rules = AppendRules { blocked, outside, ..AppendRules::default() };
            let results = append_all(transaction.engine(), &mut tails, appends, &rules).await?;
            transaction.commit().await?;
            results
        }
    };
    connection.tails = tails;
    Ok(results)
}

async fn append_all(
    engine: &mut Engine,
    tails: &mut Tails,
    appends: Vec<PreparedAppend>,
    rules: &AppendRules<'_>,
) -> Result<Vec<Reply>, sqlx::Error> {
    let (mut results, mut ahead, chained) = chain_all(engine, tails, appends, rules).await?;
    for (at, links) in write_records(engine, chained).await? {
        match links {
            Ok(links) => write_dependents(engine, links).await?,
            Err(run) => {
                ahead.remove(&run);
                results[at] = Err(LedgerError::Conflict { run });
            }
        }
    }
    keep_tails(tails, ahead);
    Ok(results)
}

/// Tails after the chained records. They take precedence over all other known tails.
type Ahead = BTreeMap<Name, TailAhead>;

/// Chains appends to their runs, in their order. Returns the result of each, the new tails, and the chained appends with
/// their indices.
async fn chain_all(
    engine: &mut Engine,
    tails: &mut Tails,
    appends: Vec<PreparedAppend>,
    rules: &AppendRules<'_>,
) -> Result<(Vec<Reply>, Ahead, Vec<(usize, ChainedAppend)>), sqlx::Error> {
    let (mut results, mut ahead) = (Vec::with_capacity(appends.len()), Ahead::new());
    let mut chained = Vec::with_capacity(appends.len());
    for (at, append) in appends.into_iter().enumerate() {
        let fits = match rules.blocked.contains(&append.run) {
            true => Err(LedgerError::Conflict { run: append.run }),
            false => chain(engine, tails, &mut ahead, append, rules).await?,
        };
        results.push(fits.map(|links| {
            let next = links.from + links.records.len() as u64;
            chained.push((at, links));
            next
        }));
    }
    Ok((results, ahead, chained))
}

/// Caches the tails of runs that have not ended.
fn keep_tails(tails: &mut Tails, ahead: Ahead) {
    tails.extend(ahead.into_iter().filter(|(_, ahead)| !ahead.ends).map(|(run, ahead)| (run, ahead.tail)));
}

/// The tail of a run after its chained records.
struct TailAhead {
    tail: Tail,
    /// Whether the run has ended.
    ends: bool,
}

/// The chained records of an append, and their effects.
struct ChainedAppend {
    run: Name,
    from: u64,
    /// The leaf of the record before the first one, which a server compares.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file has one writer at a time"))]
    after: Option<String>,
    records: Vec<EncodedRecord>,
    signatures: Vec<Vec<Value>>,
    changes: Vec<Change>,
    bodies: Vec<Body>,
}

/// Chains an append to its run. An inner error refuses this append, an outer one the whole transaction.
async fn chain(
    engine: &mut Engine,
    tails: &mut Tails,
    ahead: &mut Ahead,
    append: PreparedAppend,
    rules: &AppendRules<'_>,
) -> Result<Result<ChainedAppend, LedgerError>, sqlx::Error> {
    let PreparedAppend { run, from, entries, changes, bodies, durability: _, ends, key, key_events: says } =
        append;
    let before = match ahead.get(&run) {
        Some(ahead) => ahead.tail.clone(),
        None => match find_tail(engine, tails, &run, from, key.as_deref(), rules).await? {
            Ok(tail) => tail,
            Err(what) => return Ok(Err(LedgerError::InvalidRecord { run, what })),
        },
    };
    if before.next != from {
        return Ok(Err(LedgerError::Conflict { run }));
    }
    let key = key.filter(|_| before.signers.is_some());
    if key.is_none() && (before.signers.is_some() || says.values().any(KeyEvent::requires_signatures)) {
        return Ok(Err(LedgerError::NoSigningKey { run }));
    }
    let (mut standing, sealed_ms) = match &key {
        Some(_) => (before.signers.clone(), run_signers::last_checkpoint_ms(engine).await?),
        None => (None, None),
    };
    let outside = match rules.external_keys(key.as_deref()) {
        Ok(outside) => outside,
        Err(what) => return Ok(Err(LedgerError::InvalidRecord { run, what })),
    };
    let ledger_key = rules.ledger_key.filter(|_| *run == *STREAM);
    let after = before.leaf;
    let mut leaf_before = after.clone();
    let mut records = Vec::with_capacity(entries.len());
    let mut signatures = Vec::new();
    for ((n, entry), at) in (from..).zip(entries).zip(0..) {
        if let (Some(key), Some(standing)) = (&key, &mut standing) {
            let checked = standing.check_next(says.get(&at), &key.public(), entry.at_ms, sealed_ms, &outside);
            if let Err(what) = checked {
                return Ok(Err(LedgerError::InvalidRecord { run, what }));
            }
        }
        match entry.encode(&run, n, leaf_before.as_deref()) {
            Ok(stored) => {
                leaf_before = Some(leaf(&stored.head));
                if let Some(key) = key.as_deref().or(ledger_key) {
                    signatures.push(signature_row(key, &run, stored.n, &stored.head));
                }
                records.push(stored);
            }
            Err(error) => return Ok(Err(LedgerError::Unavailable { what: error.to_string(), source: None })),
        }
    }
    let tail = Tail { next: from + records.len() as u64, leaf: leaf_before, signers: standing };
    ahead.insert(run.clone(), TailAhead { tail, ends });
    Ok(Ok(ChainedAppend { run, from, after, records, signatures, changes, bodies }))
}

/// Writes the records of many appends in as few statements as possible. Returns the runs whose next number another
/// process has taken.
async fn write_records(
    engine: &mut Engine,
    chained: Vec<(usize, ChainedAppend)>,
) -> Result<Vec<(usize, Result<ChainedAppend, Name>)>, sqlx::Error> {
    let mut done = Vec::with_capacity(chained.len());
    let mut waiting = chained.into_iter().peekable();
    while let Some(first) = waiting.next() {
        let mut rows = first.1.records.len();
        let mut some = vec![first];
        while let Some(next) = waiting.next_if(|(_, next)| rows + next.records.len() <= MAX_ROWS) {
            rows += next.1.records.len();
            some.push(next);
        }
        if insert_records(engine, &some).await? {
            done.extend(some.into_iter().map(|(at, links)| (at, Ok(links))));
            continue;
        }
        // The statement inserted nothing. Inserted one by one, the appends show which number is taken; later appends to
        // that run are refused as well.
        let is_alone = some.len() == 1;
        let mut moved = BTreeSet::new();
        for record in some {
            let is_taken = is_alone
                || moved.contains(&record.1.run)
                || !insert_records(engine, std::slice::from_ref(&record)).await?;
            let (at, links) = record;
            done.push(match is_taken {
                true => {
                    moved.insert(links.run.clone());
                    (at, Err(links.run))
                }
                false => (at, Ok(links)),
            });
        }
    }
    Ok(done)
}

/// Writes the effects of inserted records.
async fn write_dependents(engine: &mut Engine, links: ChainedAppend) -> Result<(), sqlx::Error> {
    let ChainedAppend { run, signatures, changes, bodies, .. } = links;
    insert_signatures(engine, signatures).await?;
    for body in bodies {
        insert_body(engine, &body.sha256, &body.text).await?;
    }
    for change in changes {
        change.apply(engine, &run).await?;
    }
    Ok(())
}

/// Writes one record of the ledger's own streams inside of the caller's transaction, signed by `own` if there is such a
/// key. A checkpoint is signed by its note.
pub(super) async fn append_in_transaction(
    engine: &mut Engine,
    run: &Name,
    from: u64,
    entry: Entry,
    own: Option<&SecretKey>,
) -> Result<(), sqlx::Error> {
    let prepared = PreparedAppend::prepare(Append::one(run, from, entry, Durability::Synced), None);
    let prepared = prepared
        .map_err(|error| refusal(LedgerError::Unavailable { what: error.to_string(), source: None }))?;
    let rules = AppendRules { ledger_key: own, ..AppendRules::default() };
    let replies = append_all(engine, &mut Tails::new(), vec![prepared], &rules).await?;
    replies.into_iter().try_for_each(|reply| reply.map(drop)).map_err(refusal)
}

/// Stores a text that a record names.
pub(crate) async fn insert_body(engine: &mut Engine, sha256: &str, text: &str) -> Result<(), sqlx::Error> {
    let keep = sql("INSERT INTO body (sha256, text) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING");
    let there = sql("SELECT CAST(1 AS BIGINT) FROM body WHERE sha256 = $1").bind(sha256);
    keep.bind(sha256).bind(text).insert_if_absent(engine, there).await
}

/// The row of a record's signature.
pub(super) fn signature_row(key: &SecretKey, run: &str, n: u64, head: &str) -> Vec<Value> {
    let leaf = crate::merkle::leaf(head.as_bytes());
    let signature = key.sign(crate::signing::SigningContext::RECORD, &leaf);
    vec![run.into(), n.into(), key.public().id().to_string().into(), signature.to_string().into()]
}

/// Inserts records; `false` if a number is taken, and nothing was inserted.
async fn insert_records(engine: &mut Engine, some: &[(usize, ChainedAppend)]) -> Result<bool, sqlx::Error> {
    let records: Vec<(&Name, &EncodedRecord)> =
        some.iter().flat_map(|(_, links)| links.records.iter().map(|stored| (&links.run, stored))).collect();
    for some in records.chunks(MAX_ROWS) {
        let row = |(run, stored): &(&Name, &EncodedRecord)| -> RecordRow {
            let text = |text: &str| Value::from(text);
            [text(run), stored.n.into(), text(stored.kind), text(&stored.head), text(&stored.data)]
        };
        match insert_rows(engine, some.iter().map(row)).await {
            // Another process has appended to the run since its tail was read.
            Err(error) if engine.can_cache_tails() && is_taken(&error) => return Ok(false),
            done => done?,
        }
    }
    Ok(true)
}

/// Whether the engine reports that the record's number is taken.
fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// A record's run, number, kind, head and data.
pub(in crate::store) type RecordRow = [Value; 5];

/// Inserts records, at most [`MAX_ROWS`].
pub(in crate::store) async fn insert_rows(
    engine: &mut Engine,
    rows: impl Iterator<Item = RecordRow>,
) -> Result<(), sqlx::Error> {
    let first = engine.next_seq("SELECT MAX(seq) FROM record").await?;
    let numbered = (0_i64..).zip(rows).map(|(at, row)| {
        let seq = match first {
            Value::Int(Some(first)) => Value::from(first + at),
            _ => Value::Int(None),
        };
        std::iter::once(seq).chain(row).collect()
    });
    let numbered: Vec<Vec<Value>> = numbered.collect();
    let count = numbered.len();
    let head = "INSERT INTO record (seq, run, n, kind, head, data) VALUES ";
    sql_rows(head, numbered, "").insert_exactly(engine, count).await
}

/// Inserts signatures: run, record number, key and signature of each.
pub(in crate::store) async fn insert_signatures(
    engine: &mut Engine,
    rows: Vec<Vec<Value>>,
) -> Result<(), sqlx::Error> {
    for some in rows.chunks(MAX_ROWS) {
        let head = "INSERT INTO signature (run, n, key, signature) VALUES ";
        sql_rows(head, some.iter().cloned(), "").insert_exactly(engine, some.len()).await?;
    }
    Ok(())
}

/// Takes a run's tail from the cache, or looks it up if the cached one does not fit. A run opened by another process
/// with a key for it is a signed run and remains one.
async fn find_tail(
    engine: &mut Engine,
    tails: &mut Tails,
    run: &Name,
    from: u64,
    key: Option<&SecretKey>,
    rules: &AppendRules<'_>,
) -> Result<Result<Tail, String>, sqlx::Error> {
    let fresh = || key.map(|_| RunSigners::default());
    match tails.remove(run) {
        _ if !engine.can_cache_tails() && !rules.tails_are_checked => {}
        Some(tail) if tail.next == from => return Ok(Ok(tail)),
        // Inserting its first record shows whether a run is new.
        None if from == 0 => return Ok(Ok(Tail { next: 0, leaf: None, signers: fresh() })),
        _ => {}
    }
    let Some((n, leaf, is_signed)) = last_record(engine, run).await? else {
        return Ok(Ok(Tail { next: 0, leaf: None, signers: fresh() }));
    };
    let mut tail = Tail { next: n + 1, leaf: Some(leaf), signers: None };
    // The ledger's key signs each record of the ledger's own stream.
    if is_signed && **run != *STREAM {
        let outside = match rules.external_keys(key) {
            Ok(outside) => outside,
            Err(what) => return Ok(Err(what)),
        };
        match RunSigners::read(engine, run, &outside).await? {
            Ok(signers) => tail.signers = Some(signers),
            Err(what) => return Ok(Err(what)),
        }
    }
    Ok(Ok(tail))
}

/// The number and the leaf of a run's last record, and whether the run is signed; `None` without a record.
pub(super) async fn last_record(
    engine: &mut Engine,
    run: &str,
) -> Result<Option<(u64, String, bool)>, sqlx::Error> {
    let last =
        sql("SELECT n, head, (SELECT COUNT(*) FROM signature WHERE signature.run = $1 AND signature.n = 0) \
                    FROM record WHERE run = $1 ORDER BY n DESC LIMIT 1");
    let last = last.bind(run).row(engine, &[Column::Int, Column::Text, Column::Int]).await?;
    Ok(last.map(|row| (row.count(0), leaf(row.text(1)), row.int(2) > 0)))
}

fn write_error(
    address: &StoreAddress,
    (run, from, count): (&Name, u64, u64),
    in_doubt: bool,
    error: &sqlx::Error,
) -> LedgerError {
    if let Some(refused) = Gap::refusal(error) {
        return refused;
    }
    let place = match count {
        1 => format!("record {run}/{from}"),
        _ => format!("records {run}/{from} to {run}/{}", from + count.saturating_sub(1)),
    };
    let error = super::error_text(error);
    match in_doubt {
        true => LedgerError::InDoubt {
            run: run.clone(),
            what: format!("cannot tell whether the ledger {address} took {place}: {error}"),
        },
        false => LedgerError::Unavailable {
            what: format!("the ledger {address} refused {place}: {error}"),
            source: None,
        },
    }
}
