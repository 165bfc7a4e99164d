//! The one connection to the database, cached facts about it, and the check that precedes each write: the positions of
//! records must have no gaps. A process that can write the tables can insert a row anywhere, and records appended after
//! it would be acknowledged behind a gap.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use quorate_kernel::ports::ledger::{Durability, LedgerError};
use quorate_protocol::Name;
#[cfg(feature = "postgres")]
use sqlx::Postgres;
#[cfg(feature = "postgres")]
use sqlx::postgres::{PgArguments, PgRow};
#[cfg(feature = "postgres")]
use sqlx::query::Query;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Sqlite};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::engine;
use super::engine::{Column, Engine, sql};
#[cfg(feature = "postgres")]
use super::leases::Leases;
#[cfg(feature = "postgres")]
use super::postgres::server::{is_gap, last_place};
use super::run_signers::RunSigners;
use super::timeouts::Timeouts;
use crate::files;

pub(crate) struct Connection {
    engine: Engine,
    /// The value of `PRAGMA synchronous`; `None` if unknown.
    durability: Option<Durability>,
    /// An uncommitted transaction is open.
    left_open: bool,
    /// A commit failed and its result is unknown.
    pub(super) in_doubt: bool,
    /// The timeouts of this process.
    pub(super) timeouts: Arc<Timeouts>,
    /// Why no more records are written.
    pub(super) closed_to_writers: Option<String>,
    /// A write failed, and an unknown part of it is on the disk.
    write_failed: bool,
    /// The index of the log, if it is not in the ledger's own file.
    pub(super) own_index: Option<SqliteConnection>,
    /// The tails of runs that this process appends to. If another process has appended to one, the primary key of
    /// `record` reveals it.
    pub(super) tails: Tails,
    /// The runs that this process drives, if several machines write to the ledger.
    #[cfg(feature = "postgres")]
    pub(super) leases: Leases,
    /// The position up to which no gap was found.
    gap_check: GapCheck,
}

/// The tails of runs.
pub(super) type Tails = BTreeMap<Name, Tail>;

/// The tail of a run.
#[derive(Clone)]
pub(super) struct Tail {
    /// The number of its next record.
    pub(super) next: u64,
    /// The leaf of its last record.
    pub(super) leaf: Option<String>,
    /// The keys that may sign its records; `None` if they are unsigned.
    pub(super) signers: Option<RunSigners>,
}

/// A transaction. An uncommitted one is rolled back when the connection is released.
pub(crate) struct Transaction<'a> {
    connection: &'a mut Connection,
}

impl Connection {
    pub(super) fn new(engine: Engine, closed_to_writers: Option<String>, patience: Arc<Timeouts>) -> Self {
        Connection {
            engine,
            durability: None,
            left_open: false,
            in_doubt: false,
            timeouts: patience,
            closed_to_writers,
            write_failed: false,
            own_index: None,
            tails: BTreeMap::new(),
            #[cfg(feature = "postgres")]
            leases: Leases::default(),
            gap_check: GapCheck::default(),
        }
    }

    /// The database, for reading.
    pub(crate) async fn engine(&mut self) -> Result<&mut Engine, sqlx::Error> {
        self.roll_back_leftover().await?;
        Ok(&mut self.engine)
    }

    /// Keeps the log's index in memory, for a ledger that is only read.
    pub(crate) async fn keep_log_index_in_memory(&mut self) -> Result<(), sqlx::Error> {
        if self.own_index.is_none() {
            self.own_index = Some(engine::log_index_in_memory().await?);
        }
        Ok(())
    }

    /// The connection with the log's index: the ledger's own file, a local file, or memory.
    pub(crate) fn log_index(&mut self) -> &mut SqliteConnection {
        match (&mut self.own_index, &mut self.engine) {
            (Some(index), _) | (None, Engine::Sqlite(index)) => index,
            #[cfg(feature = "postgres")]
            (None, Engine::Postgres(_)) => {
                unreachable!("a ledger on a server gets an index when it is opened")
            }
        }
    }

    /// Begins a transaction on the log's index, which can be rebuilt at any time.
    pub(crate) async fn begin_log_index(&mut self) -> Result<sqlx::Transaction<'_, Sqlite>, sqlx::Error> {
        if self.own_index.is_none() {
            self.ensure_writable()?;
            self.roll_back_leftover().await?;
            self.set_durability(Durability::Written).await?;
        }
        self.log_index().begin_with("BEGIN IMMEDIATE").await
    }

    /// Closes the connection. After a failed sync it is unknown which part of SQLite's log is on the disk, but SQLite
    /// would still checkpoint it into the file. So the log is written again first. If that fails as well, the
    /// connection is not closed and the file stays unchanged.
    pub(super) async fn close(mut self) -> Result<(), sqlx::Error> {
        if self.write_failed && !self.rewrite_wal().await {
            // Only closing checkpoints the log. The end of the process closes the file without that.
            std::mem::forget(self);
            return Ok(());
        }
        let closed = self.engine.close().await;
        match self.own_index {
            Some(index) => index.close().await.and(closed),
            None => closed,
        }
    }

    /// Rewrites SQLite's log in place, byte for byte, and syncs it, while other processes are locked out. Returns
    /// whether that worked.
    async fn rewrite_wal(&mut self) -> bool {
        let path = match &mut self.engine {
            Engine::Sqlite(sqlite) => engine::file_of(sqlite).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => return true,
        };
        let Ok(path) = path else { return false };
        if self.roll_back_leftover().await.is_err()
            || self.engine.execute_raw("BEGIN IMMEDIATE").await.is_err()
        {
            return false;
        }
        let written = files::rewrite(&files::wal_path(&path)).is_ok();
        written && self.engine.execute_raw("ROLLBACK").await.is_ok()
    }

    /// Begins to read in one snapshot. If the caller is dropped, the snapshot is rolled back like a transaction.
    pub(crate) async fn begin_snapshot(&mut self) -> Result<&mut Engine, sqlx::Error> {
        self.roll_back_leftover().await?;
        self.left_open = true;
        self.engine.begin_read().await?;
        Ok(&mut self.engine)
    }

    /// Ends the snapshot. Returns whether to retry after an error: a server was restarted, or is rewriting a table.
    pub(crate) async fn end_snapshot(
        &mut self,
        failed: Option<&sqlx::Error>,
        began: tokio::time::Instant,
    ) -> Result<bool, sqlx::Error> {
        match failed {
            None => {
                self.engine.roll_back().await?;
                self.left_open = false;
                Ok(false)
            }
            Some(error) => {
                let again =
                    self.engine.may_pass(error, began) && self.timeouts.pause_before_retry(began).await;
                self.roll_back_leftover().await?;
                Ok(again)
            }
        }
    }

    /// Begins a transaction whose commit has this durability.
    pub(crate) async fn begin(&mut self, durability: Durability) -> Result<Transaction<'_>, sqlx::Error> {
        self.ensure_writable()?;
        self.roll_back_leftover().await?;
        // The pragma cannot be changed inside a transaction, and applies to the commit of the next one.
        self.set_durability(durability).await?;
        let begin = match &self.engine {
            Engine::Sqlite(_) => "BEGIN IMMEDIATE",
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => super::postgres::server::begin_statement(durability),
        };
        let began = tokio::time::Instant::now();
        self.in_doubt = false;
        loop {
            self.left_open = true;
            match self.engine.execute_raw(begin).await {
                Ok(()) => break,
                Err(error) => {
                    if !self.engine.may_pass(&error, began) || !self.timeouts.pause_before_retry(began).await
                    {
                        return Err(error);
                    }
                    self.roll_back_leftover().await?;
                }
            }
        }
        self.gap_check.check(&mut self.engine).await?;
        Ok(Transaction { connection: self })
    }

    /// Whether writes go to a server, as calls of its functions.
    #[cfg(feature = "postgres")]
    pub(super) fn is_server(&self) -> bool {
        matches!(&self.engine, Engine::Postgres(_))
    }

    /// Calls a writing function on the server; `call` binds the position up to which no gap was found. Repeats the call if
    /// its connection was lost, so the caller must recognize the result of the first one. Also returns whether that
    /// happened. No rows without a server.
    #[cfg(feature = "postgres")]
    pub(super) async fn write_call<'q>(
        &mut self,
        call: impl Fn(Option<i64>) -> Query<'q, Postgres, PgArguments> + Send,
    ) -> Result<(Vec<PgRow>, bool), sqlx::Error> {
        self.in_doubt = false;
        self.ensure_writable()?;
        let began = tokio::time::Instant::now();
        loop {
            self.roll_back_leftover().await?;
            let Engine::Postgres(server) = &mut self.engine else { return Ok((Vec::new(), false)) };
            let known = self.gap_check.0.map(u64::cast_signed);
            let error = match server.all_rows(call(known)).await {
                Ok(rows) => {
                    self.gap_check.0 = u64::try_from(last_place(&rows)?).ok();
                    return Ok((rows, std::mem::take(&mut self.in_doubt)));
                }
                Err(error) => error,
            };
            if is_gap(&error) {
                self.gap_check.check(&mut self.engine).await?;
                return Err(error);
            }
            self.in_doubt |= self.engine.may_have_committed(&error);
            if !self.engine.may_pass(&error, began) || !self.timeouts.pause_before_retry(began).await {
                return Err(error);
            }
        }
    }

    /// The runs that this process may not append to, because another process drives them or took them over; none for a file.
    pub(super) async fn blocked_runs(&mut self) -> Result<BTreeSet<Name>, sqlx::Error> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(BTreeSet::new()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => self.leases.blocked(&mut self.engine).await,
        }
    }

    /// The database for a statement that is a transaction by itself, with this durability; `None` if the engine needs
    /// an explicit transaction.
    pub(super) async fn single_statement(
        &mut self,
        durability: Durability,
    ) -> Result<Option<&mut Engine>, sqlx::Error> {
        self.ensure_writable()?;
        self.roll_back_leftover().await?;
        if !self.engine.can_cache_tails() {
            return Ok(None);
        }
        self.set_durability(durability).await?;
        self.gap_check.check(&mut self.engine).await?;
        Ok(Some(&mut self.engine))
    }

    /// Sets the durability of the next commit.
    async fn set_durability(&mut self, durability: Durability) -> Result<(), sqlx::Error> {
        if self.durability != Some(durability) {
            let pragma = match (&self.engine, durability) {
                (Engine::Sqlite(_), Durability::Written) => "PRAGMA synchronous = NORMAL",
                (Engine::Sqlite(_), Durability::Synced) => "PRAGMA synchronous = FULL",
                // Each of its transactions sets it.
                #[cfg(feature = "postgres")]
                (Engine::Postgres(_), _) => return Ok(()),
            };
            self.durability = None;
            self.engine.execute_raw(pragma).await?;
            self.durability = Some(durability);
        }
        Ok(())
    }

    /// Handles a failed write. If the disk refused it, or the file is corrupt, an unknown part of it is on the disk, so
    /// nothing more is acknowledged until the ledger is opened again.
    pub(crate) fn record_failure(&mut self, error: &sqlx::Error) {
        if engine::is_file_broken(error) {
            self.write_failed = true;
            self.closed_to_writers = Some(format!(
                "an earlier write failed ({error}); open the ledger again before writing to it"
            ));
        }
    }

    fn ensure_writable(&self) -> Result<(), sqlx::Error> {
        match &self.closed_to_writers {
            Some(why) => Err(sqlx::Error::Protocol(why.clone())),
            None => Ok(()),
        }
    }

    async fn roll_back_leftover(&mut self) -> Result<(), sqlx::Error> {
        if std::mem::take(&mut self.left_open) {
            self.tails.clear();
            match self.engine.roll_back().await {
                Err(error) if self.engine.is_connected() => {
                    self.left_open = true;
                    return Err(error);
                }
                // A lost connection loses its transaction.
                _ => {}
            }
        }
        if self.engine.reconnect().await? {
            // A standby that takes over may lack records that were read before.
            self.gap_check.0 = None;
            self.tails.clear();
        }
        Ok(())
    }
}

impl Transaction<'_> {
    /// The inner database.
    pub(crate) fn engine(&mut self) -> &mut Engine {
        &mut self.connection.engine
    }

    /// As [`Connection::blocked_runs`].
    pub(super) async fn blocked_runs(&mut self) -> Result<BTreeSet<Name>, sqlx::Error> {
        self.connection.blocked_runs().await
    }

    /// Its cached state, with the tails of the runs.
    pub(super) fn engine_and_tails(&mut self) -> (&mut Engine, &mut Tails) {
        (&mut self.connection.engine, &mut self.connection.tails)
    }

    /// Drops the cached tails of runs, because records were added to them in another way.
    pub(crate) fn forget_tails(&mut self) {
        self.connection.tails.clear();
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        let done = self.connection.engine.commit().await;
        match &done {
            Ok(()) => self.connection.left_open = false,
            Err(error) => {
                self.connection.in_doubt = self.connection.engine.may_have_committed(error);
                self.connection.record_failure(error);
            }
        }
        done
    }
}

/// The connection, owned by one task. An open transaction is rolled back on release, and not when the next task
/// acquires the connection: until then it would block other writers.
pub(crate) struct Writer(Option<OwnedMutexGuard<Connection>>);

impl Writer {
    pub(crate) async fn acquire(connection: Arc<Mutex<Connection>>) -> Writer {
        Writer(Some(connection.lock_owned().await))
    }
}

impl Deref for Writer {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0.as_ref().expect("it is taken out when it is dropped, and not before")
    }
}

impl DerefMut for Writer {
    fn deref_mut(&mut self) -> &mut Connection {
        self.0.as_mut().expect("it is taken out when it is dropped, and not before")
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let is_open = |connection: &Connection| connection.left_open && connection.engine.is_connected();
        let Some(mut connection) = self.0.take().filter(|connection| is_open(connection)) else { return };
        // Without a runtime the process is about to exit, which closes the connection.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // If the rollback fails, the connection was lost, or the next transaction retries it.
                let _ = connection.roll_back_leftover().await;
            });
        }
    }
}

/// The position up to which no gap was found; initially that of the last checkpoint.
#[derive(Debug, Default)]
struct GapCheck(Option<u64>);

/// A record after an empty position.
#[derive(Debug, thiserror::Error)]
#[error("there are {before} records before the last one ({run}/{n}), which is at place {place}")]
pub(super) struct Gap {
    run: String,
    n: u64,
    place: u64,
    before: u64,
}

impl GapCheck {
    /// Refuses to append after a gap.
    ///
    /// # Errors
    /// If there is a gap ([`GapCheck::refusal`] recognizes the error), or the store does not answer.
    async fn check(&mut self, engine: &mut Engine) -> Result<(), sqlx::Error> {
        let since = match self.0 {
            Some(since) => since,
            // The last checkpoint that does not exceed the existing records.
            None => sql(
                "SELECT COALESCE(MAX(size), 0) FROM checkpoint WHERE size <= (SELECT MAX(seq) FROM record)",
            )
            .number(engine)
            .await?,
        };
        let behind = match since {
            // Counted in an index: otherwise each process would read all of a ledger without checkpoints.
            0 => sql("SELECT (SELECT COUNT(*) FROM record), (SELECT COALESCE(MAX(seq), 0) FROM record)"),
            _ => sql("SELECT COUNT(*), COALESCE(MAX(seq), $1) FROM record WHERE seq > $2")
                .bind(since)
                .bind(since),
        };
        let behind = behind.row(engine, &[Column::Int; 2]).await?;
        let (count, last) = behind.map_or((0, since), |row| (row.count(0), row.count(1)));
        if last - since == count {
            self.0 = Some(last);
            return Ok(());
        }
        let last = sql("SELECT run, n, seq FROM record ORDER BY seq DESC LIMIT 1");
        let last = last.row(engine, &[Column::Text, Column::Int, Column::Int]).await?;
        let before = since + count.saturating_sub(1);
        Err(match last {
            Some(row) => {
                let gap = Gap { run: row.text(0).to_owned(), n: row.count(1), place: row.count(2), before };
                sqlx::Error::Configuration(Box::new(gap))
            }
            None => sqlx::Error::RowNotFound,
        })
    }
}

impl Gap {
    /// The error for an append, if `error` is a gap.
    pub(super) fn refusal(error: &sqlx::Error) -> Option<LedgerError> {
        let sqlx::Error::Configuration(error) = error else { return None };
        let gap = error.downcast_ref::<Gap>()?;
        let what = format!(
            "it is at position {}, but only {} records precede it, so nothing was appended; run `quorate ledger verify`",
            gap.place, gap.before
        );
        Some(LedgerError::Corrupt { run: gap.run.as_str().into(), n: gap.n, what })
    }
}
