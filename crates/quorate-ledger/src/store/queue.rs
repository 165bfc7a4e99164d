//! The queue of the group commit: what waits to be written, and writing it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Error, Kind};
use quorate_protocol::Name;
use tokio::sync::oneshot;

use super::address::Address;
use super::connection::{Connection, Tail, Tails};
use super::engine::{Column, Engine, Value, sql, sql_rows};
use super::index::Change;
use super::lease::Fence;
use crate::record::{Prepared, Stored, Times, Unwritable, leaf};
use crate::signing::SecretKey;

pub(super) type Reply = Result<u64, Error>;

/// How many records go to SQLite in one statement, which takes 32 766 values.
pub(super) const ROWS: usize = 1000;

/// What waits.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Vec<Waiting>>,
    /// The keys that this process signs runs with.
    keys: Mutex<BTreeMap<Name, Arc<SecretKey>>>,
}

struct Waiting {
    append: Ready,
    reply: oneshot::Sender<Reply>,
}

/// An append with everything done that needs no connection, since others wait for that.
struct Ready {
    run: Name,
    from: u64,
    entries: Vec<Prepared>,
    changes: Vec<Change>,
    bodies: Vec<Body>,
    durability: Durability,
    /// Whether nothing is expected to follow in this run.
    ends: bool,
    /// What its records are signed with.
    key: Option<Arc<SecretKey>>,
}

impl Queue {
    /// Puts an append among what waits.
    ///
    /// # Errors
    /// When it has a record that cannot be written.
    pub(super) fn put(&self, append: Append) -> Result<oneshot::Receiver<Reply>, Error> {
        let key = self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(&append.run).cloned();
        let append = Ready::of(append, key)
            .map_err(|error| Error::Unavailable { what: error.to_string(), source: None })?;
        let (reply, receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Waiting { append, reply });
        Ok(receiver)
    }

    /// From now on the records of a run are signed with this key.
    pub(super) fn sign(&self, run: &Name, key: Arc<SecretKey>) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), key);
    }

    /// Commits everything that waits in one transaction and tells everybody.
    pub(super) async fn commit(&self, connection: &mut Connection, address: &Address) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if waiting.is_empty() {
            return;
        }
        let durability = waiting.iter().map(|one| one.append.durability).max().unwrap_or(Durability::Synced);
        let (appends, replies): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|one| (one.append, one.reply)).unzip();
        let places: Vec<Place> = appends.iter().map(Place::of).collect();
        let written = write(connection, appends, durability).await;
        let told = match written {
            Ok(told) => told,
            Err(error) => {
                connection.failed(&error);
                let in_doubt = connection.take_doubt();
                places.iter().map(|place| Err(unwritten(address, place, in_doubt, &error))).collect()
            }
        };
        for (reply, done) in replies.into_iter().zip(told) {
            // Nobody listens any more when the run was dropped; its records stand all the same.
            let _ = reply.send(done);
        }
    }
}

impl Ready {
    fn of(append: Append, key: Option<Arc<SecretKey>>) -> Result<Ready, Unwritable> {
        let Append { run, from, entries, bodies, durability } = append;
        let ends = entries.last().is_some_and(|entry| entry.kind == Kind::RunEnded);
        let changes = entries.iter();
        let changes = changes.filter_map(|one| Change::of(one.kind.as_str(), one.at_ms, &one.data)).collect();
        let entries = entries.into_iter().map(Prepared::of).collect::<Result<_, _>>()?;
        Ok(Ready { run, from, entries, changes, bodies, durability, ends, key })
    }

    fn is_one_statement(&self, tails: &Tails) -> bool {
        self.bodies.is_empty()
            && self.changes.is_empty()
            && (1..=ROWS).contains(&self.entries.len())
            && self.key.is_none()
            && tails.get(&self.run).is_some_and(|tail| tail.next == self.from && !tail.signed)
    }
}

/// Which records an append has.
struct Place {
    run: Name,
    from: u64,
    count: u64,
}

impl Place {
    fn of(append: &Ready) -> Place {
        Place { run: append.run.clone(), from: append.from, count: append.entries.len() as u64 }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place { run, from, count } = self;
        match count {
            1 => write!(f, "record {run}/{from}"),
            _ => write!(f, "records {run}/{from} to {run}/{}", from + count.saturating_sub(1)),
        }
    }
}

fn unwritten(address: &Address, place: &Place, in_doubt: bool, error: &sqlx::Error) -> Error {
    match in_doubt {
        true => Error::InDoubt {
            run: place.run.clone(),
            what: format!("cannot tell whether the ledger {address} took {place}: {error}"),
        },
        false => Error::Unavailable {
            what: format!("the ledger {address} did not take {place}: {error}"),
            source: None,
        },
    }
}

/// Writes all of them or, after an error, none; says for each what came of it.
async fn write(
    connection: &mut Connection,
    appends: Vec<Ready>,
    durability: Durability,
) -> Result<Vec<Reply>, sqlx::Error> {
    // Until all is well nothing is known of any run, and whoever comes next looks.
    let mut tails = std::mem::take(&mut connection.tails);
    let alone = match &appends[..] {
        // A consultation that ends is the most frequent append, and one statement is a transaction by itself.
        [only] if only.is_one_statement(&tails) => connection.alone(durability).await?,
        _ => None,
    };
    let told = match alone {
        Some(engine) => each(engine, &mut tails, appends, &Fence::default()).await?,
        None => {
            let leases = connection.leases.clone();
            let mut transaction = connection.begin(durability).await?;
            let fence = Fence::of(transaction.engine(), &leases).await?;
            let told = each(transaction.engine(), &mut tails, appends, &fence).await?;
            transaction.commit().await?;
            told
        }
    };
    connection.tails = tails;
    Ok(told)
}

async fn each(
    engine: &mut Engine,
    tails: &mut Tails,
    appends: Vec<Ready>,
    fence: &Fence,
) -> Result<Vec<Reply>, sqlx::Error> {
    let mut told = Vec::with_capacity(appends.len());
    let mut chained = Vec::with_capacity(appends.len());
    // How runs end once what is chained is written, which comes first of all that is known.
    let mut ahead = BTreeMap::new();
    for (at, append) in appends.into_iter().enumerate() {
        let fits = match fence.shuts_out(&append.run) {
            true => Err(Error::Moved { run: append.run }),
            false => chain(engine, tails, &mut ahead, append).await?,
        };
        told.push(fits.map(|links| {
            let next = links.next();
            chained.push((at, links));
            next
        }));
    }
    for (at, links) in written(engine, chained).await? {
        match links {
            Ok(links) => follow(engine, links).await?,
            Err(run) => {
                ahead.remove(&run);
                told[at] = Err(Error::Moved { run });
            }
        }
    }
    tails.extend(ahead.into_iter().filter(|(_, ahead)| !ahead.ends).map(|(run, ahead)| (run, ahead.tail)));
    Ok(told)
}

/// How a run ends once what is chained is written.
struct Ahead {
    tail: Tail,
    /// Whether nothing is expected to follow.
    ends: bool,
}

/// The records of an append in their chain, and what follows from them.
struct Links {
    run: Name,
    from: u64,
    records: Vec<Stored>,
    signatures: Vec<Vec<Value>>,
    changes: Vec<Change>,
    bodies: Vec<Body>,
}

impl Links {
    fn next(&self) -> u64 {
        self.from + self.records.len() as u64
    }
}

/// Puts an append behind what its run has; an inner error refuses it alone, an outer one the whole transaction.
async fn chain(
    engine: &mut Engine,
    tails: &mut Tails,
    ahead: &mut BTreeMap<Name, Ahead>,
    append: Ready,
) -> Result<Result<Links, Error>, sqlx::Error> {
    let Ready { run, from, entries, changes, bodies, durability: _, ends, key } = append;
    let before = match ahead.get(&run) {
        Some(ahead) => ahead.tail.clone(),
        None => tail(engine, tails, &run, from, key.is_some()).await?,
    };
    if before.next != from {
        return Ok(Err(Error::Moved { run }));
    }
    if before.signed && key.is_none() {
        return Ok(Err(Error::Unsigned { run }));
    }
    let key = key.filter(|_| before.signed);
    let mut leaf_before = before.leaf;
    let mut records = Vec::with_capacity(entries.len());
    let mut signatures = Vec::new();
    let mut times = Times::default();
    for (n, entry) in (from..).zip(entries) {
        match entry.seal(&run, n, leaf_before.as_deref(), &mut times) {
            Ok(stored) => {
                leaf_before = Some(leaf(&stored.head));
                if let Some(key) = &key {
                    signatures.push(signature(key, &run, &stored));
                }
                records.push(stored);
            }
            Err(error) => return Ok(Err(Error::Unavailable { what: error.to_string(), source: None })),
        }
    }
    let links = Links { run, from, records, signatures, changes, bodies };
    let tail = Tail { next: links.next(), leaf: leaf_before, signed: before.signed };
    ahead.insert(links.run.clone(), Ahead { tail, ends });
    Ok(Ok(links))
}

/// Writes the records of many appends in as few statements as there can be. Gives back the run alone of those whose
/// place another process has taken.
async fn written(
    engine: &mut Engine,
    chained: Vec<(usize, Links)>,
) -> Result<Vec<(usize, Result<Links, Name>)>, sqlx::Error> {
    let mut done = Vec::with_capacity(chained.len());
    let mut waiting = chained.into_iter().peekable();
    while let Some(first) = waiting.next() {
        let mut rows = first.1.records.len();
        let mut some = vec![first];
        while let Some(next) = waiting.next_if(|(_, next)| rows + next.records.len() <= ROWS) {
            rows += next.1.records.len();
            some.push(next);
        }
        match insert(engine, &some).await? {
            Inserted::All => done.extend(some.into_iter().map(|(at, links)| (at, Ok(links)))),
            Inserted::Taken if some.len() == 1 => {
                done.extend(some.into_iter().map(|(at, links)| (at, Err(links.run))));
            }
            // None of these was written. Each by itself, it shows whose place it is; what follows that in its run has none
            // either.
            Inserted::Taken => {
                let mut moved = BTreeSet::new();
                for one in some {
                    let taken = moved.contains(&one.1.run)
                        || matches!(insert(engine, std::slice::from_ref(&one)).await?, Inserted::Taken);
                    let (at, links) = one;
                    done.push((
                        at,
                        match taken {
                            true => {
                                moved.insert(links.run.clone());
                                Err(links.run)
                            }
                            false => Ok(links),
                        },
                    ));
                }
            }
        }
    }
    Ok(done)
}

/// Writes what follows from records that are written.
async fn follow(engine: &mut Engine, links: Links) -> Result<(), sqlx::Error> {
    let Links { run, signatures, changes, bodies, .. } = links;
    insert_signatures(engine, signatures).await?;
    for body in bodies {
        keep(engine, body).await?;
    }
    for change in changes {
        change.apply(engine, &run).await?;
    }
    Ok(())
}

/// Writes one record of one of the ledger's own streams inside of somebody's transaction.
pub(super) async fn append_here(
    engine: &mut Engine,
    run: &Name,
    from: u64,
    entry: Entry,
) -> Result<Reply, sqlx::Error> {
    match Ready::of(Append::one(run, from, entry, Durability::Synced), None) {
        Ok(ready) => {
            let mut told = each(engine, &mut Tails::new(), vec![ready], &Fence::default()).await?;
            Ok(told.remove(0))
        }
        Err(error) => Ok(Err(Error::Unavailable { what: error.to_string(), source: None })),
    }
}

async fn keep(engine: &mut Engine, body: Body) -> Result<(), sqlx::Error> {
    let keep = sql("INSERT INTO body (sha256, text) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING");
    let there = sql("SELECT CAST(1 AS BIGINT) FROM body WHERE sha256 = $1").bind(body.sha256.as_str());
    keep.bind(body.sha256).bind(&*body.text).add_unless_there(engine, there).await
}

/// The row of a record's signature.
fn signature(key: &SecretKey, run: &Name, record: &Stored) -> Vec<Value> {
    let leaf = crate::merkle::leaf(record.head.as_bytes());
    let signature = key.sign(crate::signing::Context::RECORD, &leaf);
    let id = key.public().id().to_string();
    vec![(&**run).into(), record.n.into(), id.into(), signature.to_string().into()]
}

/// How the run ends, taken out of what is known; looked up where that does not fit. A run that is opened by somebody
/// who has a key for it is a signed one, and stays one.
async fn tail(
    engine: &mut Engine,
    tails: &mut Tails,
    run: &Name,
    from: u64,
    has_key: bool,
) -> Result<Tail, sqlx::Error> {
    match tails.remove(run) {
        _ if !engine.keeps_tails() => {}
        Some(tail) if tail.next == from => return Ok(tail),
        // That a run is new shows when its first record is written.
        None if from == 0 => return Ok(Tail { next: 0, leaf: None, signed: has_key }),
        _ => {}
    }
    let last = sql("SELECT n, head FROM record WHERE run = $1 ORDER BY n DESC LIMIT 1")
        .bind(&**run)
        .row(engine, &[Column::Int, Column::Text])
        .await?;
    let signed = sql("SELECT n FROM signature WHERE run = $1 AND n = 0 LIMIT 1")
        .bind(&**run)
        .row(engine, &[Column::Int])
        .await?;
    let last_is_none = last.is_none();
    Ok(Tail {
        next: last.as_ref().map_or(0, |row| row.count(0) + 1),
        leaf: last.map(|row| leaf(row.text(1))),
        signed: signed.is_some() || (last_is_none && has_key),
    })
}

/// What came of writing records.
enum Inserted {
    All,
    /// None was: the number of one is taken.
    Taken,
}

async fn insert(engine: &mut Engine, some: &[(usize, Links)]) -> Result<Inserted, sqlx::Error> {
    let records: Vec<(&Name, &Stored)> =
        some.iter().flat_map(|(_, links)| links.records.iter().map(|stored| (&links.run, stored))).collect();
    for some in records.chunks(ROWS) {
        let row = |(run, stored): &(&Name, &Stored)| -> Row {
            let text = |text: &str| Value::from(text);
            [text(run), stored.n.into(), text(stored.kind), text(&stored.head), text(&stored.data)]
        };
        match insert_rows(engine, some.iter().map(row)).await {
            // Another process has moved the run on since its tail was known.
            Err(error) if engine.keeps_tails() && is_taken(&error) => return Ok(Inserted::Taken),
            done => drop(done?),
        }
    }
    Ok(Inserted::All)
}

/// A record's run, number, kind, head and data.
pub(super) type Row = [Value; 5];

/// Writes records behind all others, at most [`ROWS`].
pub(super) async fn insert_rows(
    engine: &mut Engine,
    rows: impl Iterator<Item = Row>,
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
    sql_rows(head, numbered, "").add(engine, count).await
}

/// Writes signatures: of each the run, the record's number, the key and the signature.
pub(super) async fn insert_signatures(engine: &mut Engine, rows: Vec<Vec<Value>>) -> Result<(), sqlx::Error> {
    for some in rows.chunks(ROWS) {
        let head = "INSERT INTO signature (run, n, key, signature) VALUES ";
        sql_rows(head, some.iter().cloned(), "").add(engine, some.len()).await?;
    }
    Ok(())
}

/// Whether the engine says that the record's number is taken.
fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}
