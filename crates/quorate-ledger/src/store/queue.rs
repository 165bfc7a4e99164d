//! The queue of the group commit: what waits to be written, and writing it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use quorate_kernel::ports::ledger::{Body, Durability, Entry, Error};
use quorate_protocol::Name;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Row as _, Sqlite, Transaction};
use tokio::sync::oneshot;

use super::index;
use crate::record::{leaf, seal};

type Reply = Result<u64, Error>;

/// What waits.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Vec<Append>>,
}

struct Append {
    run: Name,
    from: u64,
    entries: Vec<Entry>,
    bodies: Vec<Body>,
    durability: Durability,
    reply: oneshot::Sender<Reply>,
}

impl Queue {
    pub(super) fn put(
        &self,
        run: Name,
        from: u64,
        entries: Vec<Entry>,
        bodies: Vec<Body>,
        durability: Durability,
    ) -> oneshot::Receiver<Reply> {
        let (reply, receiver) = oneshot::channel();
        let append = Append { run, from, entries, bodies, durability, reply };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(append);
        receiver
    }

    /// Commits everything that waits in one transaction and tells everybody.
    pub(super) async fn commit(&self, connection: &mut SqliteConnection, path: &Path) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if waiting.is_empty() {
            return;
        }
        let durability = waiting.iter().map(|one| one.durability).max().unwrap_or(Durability::Synced);
        let mut told = Vec::with_capacity(waiting.len());
        let written = write(connection, waiting, durability, &mut told).await;
        for (reply, done) in told {
            let done = match (&written, done) {
                (Ok(()), done) => done,
                (Err(error), _) => Err(Error::Unavailable { what: sql_text(path, error), source: None }),
            };
            // Nobody listens any more when the run was dropped; its records stand all the same.
            let _ = reply.send(done);
        }
    }
}

fn sql_text(path: &Path, error: &sqlx::Error) -> String {
    format!("the ledger {} did not take a record: {error}", path.display())
}

async fn write(
    connection: &mut SqliteConnection,
    waiting: Vec<Append>,
    durability: Durability,
    told: &mut Vec<(oneshot::Sender<Reply>, Reply)>,
) -> Result<(), sqlx::Error> {
    // The pragma cannot be changed inside a transaction, and holds for the commit of the next one.
    let level = match durability {
        Durability::Written => "PRAGMA synchronous = NORMAL",
        Durability::Synced => "PRAGMA synchronous = FULL",
    };
    let mut appends = waiting.into_iter();
    let begun = async {
        sqlx::raw_sql(level).execute(&mut *connection).await?;
        connection.begin_with("BEGIN IMMEDIATE").await
    };
    let mut transaction = match begun.await {
        Ok(transaction) => transaction,
        Err(error) => {
            told.extend(appends.map(|append| (append.reply, Ok(0))));
            return Err(error);
        }
    };
    while let Some(append) = appends.next() {
        let done = match one(&mut transaction, append.run, append.from, append.entries, append.bodies).await {
            Ok(done) => done,
            Err(error) => {
                told.push((append.reply, Ok(0)));
                told.extend(appends.map(|append| (append.reply, Ok(0))));
                return Err(error);
            }
        };
        told.push((append.reply, done));
    }
    transaction.commit().await
}

/// Writes one append; an inner error refuses it alone, an outer one the whole transaction.
async fn one(
    transaction: &mut Transaction<'_, Sqlite>,
    run: Name,
    from: u64,
    entries: Vec<Entry>,
    bodies: Vec<Body>,
) -> Result<Reply, sqlx::Error> {
    let last = sqlx::query("SELECT n, head FROM record WHERE run = ? ORDER BY n DESC LIMIT 1")
        .bind(&*run)
        .fetch_optional(&mut **transaction)
        .await?;
    let next = last.as_ref().map_or(0, |row| row.get::<i64, _>(0).unsigned_abs() + 1);
    if next != from {
        return Ok(Err(Error::Moved { run }));
    }
    let mut prev = last.map(|row| leaf(row.get::<&str, _>(1)));
    let mut sealed = Vec::with_capacity(entries.len());
    let mut indexed = Vec::new();
    for (n, entry) in (from..).zip(entries) {
        indexed.extend(index::Change::of(&entry));
        match seal(&run, n, prev.as_deref(), entry) {
            Ok(stored) => {
                prev = Some(leaf(&stored.head));
                sealed.push(stored);
            }
            Err(error) => return Ok(Err(Error::Unavailable { what: error.to_string(), source: None })),
        }
    }
    for body in bodies {
        sqlx::query("INSERT INTO body (sha256, text) VALUES (?, ?) ON CONFLICT (sha256) DO NOTHING")
            .bind(body.sha256)
            .bind(&*body.text)
            .execute(&mut **transaction)
            .await?;
    }
    let next = from + sealed.len() as u64;
    for stored in sealed {
        sqlx::query("INSERT INTO record (run, n, kind, head, data) VALUES (?, ?, ?, ?, ?)")
            .bind(&*run)
            .bind(i64::try_from(stored.n).unwrap_or(i64::MAX))
            .bind(stored.kind)
            .bind(stored.head)
            .bind(stored.data)
            .execute(&mut **transaction)
            .await?;
    }
    for change in indexed {
        change.apply(transaction, &run).await?;
    }
    Ok(Ok(next))
}
