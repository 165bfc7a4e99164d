//! The queue of the group commit: what waits to be written, and writing it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use quorate_kernel::ports::ledger::{Append, Body, Durability, Error, Kind};
use quorate_protocol::Name;
use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Row as _, Sqlite};
use tokio::sync::oneshot;

use super::connection::{Connection, Tail, Tails};
use super::index::Change;
use crate::record::{Prepared, Stored, Times, Unwritable, leaf};

type Reply = Result<u64, Error>;

/// How many records go to SQLite in one statement, which takes 32 766 values.
const ROWS: usize = 1000;

/// What waits.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Vec<Waiting>>,
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
}

impl Queue {
    /// Puts an append among what waits.
    ///
    /// # Errors
    /// When it has a record that cannot be written.
    pub(super) fn put(&self, append: Append) -> Result<oneshot::Receiver<Reply>, Error> {
        let append = Ready::of(append)
            .map_err(|error| Error::Unavailable { what: error.to_string(), source: None })?;
        let (reply, receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Waiting { append, reply });
        Ok(receiver)
    }

    /// Commits everything that waits in one transaction and tells everybody.
    pub(super) async fn commit(&self, connection: &mut Connection, path: &Path) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if waiting.is_empty() {
            return;
        }
        let durability = waiting.iter().map(|one| one.append.durability).max().unwrap_or(Durability::Synced);
        let (appends, replies): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|one| (one.append, one.reply)).unzip();
        let written = write(connection, appends, durability).await;
        let told = match written {
            Ok(told) => told,
            Err(error) => replies.iter().map(|_| Err(sql(path, &error))).collect(),
        };
        for (reply, done) in replies.into_iter().zip(told) {
            // Nobody listens any more when the run was dropped; its records stand all the same.
            let _ = reply.send(done);
        }
    }
}

impl Ready {
    fn of(append: Append) -> Result<Ready, Unwritable> {
        let Append { run, from, entries, bodies, durability } = append;
        let ends = entries.last().is_some_and(|entry| entry.kind == Kind::RunEnded);
        let changes = entries.iter().filter_map(Change::of).collect();
        let entries = entries.into_iter().map(Prepared::of).collect::<Result<_, _>>()?;
        Ok(Ready { run, from, entries, changes, bodies, durability, ends })
    }

    fn is_one_statement(&self, tails: &Tails) -> bool {
        self.bodies.is_empty()
            && self.changes.is_empty()
            && (1..=ROWS).contains(&self.entries.len())
            && tails.get(&self.run).is_some_and(|tail| tail.next == self.from)
    }
}

fn sql(path: &Path, error: &sqlx::Error) -> Error {
    let what = format!("the ledger {} did not take a record: {error}", path.display());
    Error::Unavailable { what, source: None }
}

/// Writes all of them or, after an error, none; says for each what came of it.
async fn write(
    connection: &mut Connection,
    appends: Vec<Ready>,
    durability: Durability,
) -> Result<Vec<Reply>, sqlx::Error> {
    // Until all is well nothing is known of any run, and whoever comes next looks.
    let mut tails = std::mem::take(&mut connection.tails);
    let told = match &appends[..] {
        // A consultation that ends is the most frequent append, and one statement is a transaction by itself.
        [only] if only.is_one_statement(&tails) => {
            each(connection.alone(durability).await?, &mut tails, appends).await?
        }
        _ => {
            let mut transaction = connection.begin(durability).await?;
            let told = each(&mut transaction, &mut tails, appends).await?;
            transaction.commit().await?;
            told
        }
    };
    connection.tails = tails;
    Ok(told)
}

async fn each(
    sqlite: &mut SqliteConnection,
    tails: &mut Tails,
    appends: Vec<Ready>,
) -> Result<Vec<Reply>, sqlx::Error> {
    let mut told = Vec::with_capacity(appends.len());
    for append in appends {
        told.push(one(sqlite, tails, append).await?);
    }
    Ok(told)
}

/// Writes one append; an inner error refuses it alone, an outer one the whole transaction.
async fn one(sqlite: &mut SqliteConnection, tails: &mut Tails, append: Ready) -> Result<Reply, sqlx::Error> {
    let Ready { run, from, entries, changes, bodies, durability: _, ends } = append;
    let mut leaf_before = match tail(sqlite, tails, &run, from).await? {
        tail if tail.next == from => tail.leaf,
        _ => return Ok(Err(Error::Moved { run })),
    };
    let mut sealed = Vec::with_capacity(entries.len());
    let mut times = Times::default();
    for (n, entry) in (from..).zip(entries) {
        match entry.seal(&run, n, leaf_before.as_deref(), &mut times) {
            Ok(stored) => {
                leaf_before = Some(leaf(&stored.head));
                sealed.push(stored);
            }
            Err(error) => return Ok(Err(Error::Unavailable { what: error.to_string(), source: None })),
        }
    }
    for some in sealed.chunks(ROWS) {
        match insert(sqlite, &run, some).await {
            // Another process has moved the run on since its tail was known.
            Err(error) if is_taken(&error) => return Ok(Err(Error::Moved { run })),
            done => done?,
        }
    }
    for body in bodies {
        sqlx::query("INSERT INTO body (sha256, text) VALUES (?, ?) ON CONFLICT (sha256) DO NOTHING")
            .bind(body.sha256)
            .bind(&*body.text)
            .execute(&mut *sqlite)
            .await?;
    }
    for change in changes {
        change.apply(sqlite, &run).await?;
    }
    let next = from + sealed.len() as u64;
    if !ends {
        tails.insert(run, Tail { next, leaf: leaf_before });
    }
    Ok(Ok(next))
}

/// How the run ends, taken out of what is known; looked up where that does not fit.
async fn tail(
    sqlite: &mut SqliteConnection,
    tails: &mut Tails,
    run: &Name,
    from: u64,
) -> Result<Tail, sqlx::Error> {
    match tails.remove(run) {
        Some(tail) if tail.next == from => return Ok(tail),
        // That a run is new shows when its first record is written.
        None if from == 0 => return Ok(Tail { next: 0, leaf: None }),
        _ => {}
    }
    let last = sqlx::query("SELECT n, head FROM record WHERE run = ? ORDER BY n DESC LIMIT 1")
        .bind(&**run)
        .fetch_optional(sqlite)
        .await?;
    Ok(Tail {
        next: last.as_ref().map_or(0, |row| row.get::<i64, _>(0).unsigned_abs() + 1),
        leaf: last.map(|row| leaf(row.get::<&str, _>(1))),
    })
}

async fn insert(sqlite: &mut SqliteConnection, run: &Name, records: &[Stored]) -> Result<(), sqlx::Error> {
    let mut query: QueryBuilder<Sqlite> = QueryBuilder::new("INSERT INTO record (run, n, kind, head, data) ");
    query.push_values(records, |mut row, stored| {
        row.push_bind(&**run)
            .push_bind(i64::try_from(stored.n).unwrap_or(i64::MAX))
            .push_bind(stored.kind)
            .push_bind(&*stored.head)
            .push_bind(&*stored.data);
    });
    query.build().execute(sqlite).await.map(|_| ())
}

/// Whether SQLite says that the record's number is taken.
fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}
