//! The one connection to the database, and cached facts about it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use quorate_kernel::ports::ledger::Durability;
use quorate_protocol::Name;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Sqlite};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::engine::Engine;
#[cfg(feature = "postgres")]
use super::engine::Statement;
use super::gap_check::GapCheck;
use super::leases::Leases;
#[cfg(feature = "postgres")]
use super::postgres::call::{WriteCall, is_gap};
use super::run_signers::RunSigners;
use super::sqlite;
use super::timeouts::{RESTART_TIMEOUT, Timeouts};
use crate::files;

pub(crate) struct Connection {
    engine: Engine,
    /// The value of `PRAGMA synchronous`; `None` where it is unknown.
    durability: Option<Durability>,
    /// A transaction is open that was not committed.
    left_open: bool,
    /// A commit failed without a known result.
    in_doubt: bool,
    timeouts: Arc<Timeouts>,
    /// Why nothing is written any more.
    closed_to_writers: Option<String>,
    /// A write failed, and how much of it is on the disk is unknown.
    write_failed: bool,
    /// The index of the log in memory, where no file can be written; it lasts as long as the connection.
    memory_index: Option<SqliteConnection>,
    /// The tails of runs that this process appends to. If another process has appended to one, the key of `record`
    /// shows it.
    pub(super) tails: Tails,
    /// The runs that this process drives, where others could.
    pub(super) leases: Leases,
    /// The position up to which no gap was found.
    gap_check: GapCheck,
    /// How often the engine had connected when these were seen.
    connects: u64,
}

/// The ends of runs.
pub(super) type Tails = BTreeMap<Name, Tail>;

/// How a run ends.
#[derive(Clone)]
pub(super) struct Tail {
    /// The number of its next record.
    pub(super) next: u64,
    /// The leaf of its last one.
    pub(super) leaf: Option<String>,
    /// Who may sign its records; `None` where they are not signed.
    pub(super) signers: Option<RunSigners>,
}

/// A transaction. An uncommitted one is rolled back when the connection is released.
pub(crate) struct Transaction<'a> {
    connection: &'a mut Connection,
}

impl Connection {
    pub(super) fn new(engine: Engine, closed_to_writers: Option<String>, patience: Arc<Timeouts>) -> Self {
        Connection {
            connects: engine.connects(),
            engine,
            durability: None,
            left_open: false,
            in_doubt: false,
            timeouts: patience,
            closed_to_writers,
            write_failed: false,
            memory_index: None,
            tails: BTreeMap::new(),
            leases: Leases::default(),
            gap_check: GapCheck::default(),
        }
    }

    /// Why the ledger is read-only, if it is.
    pub(super) fn read_only_reason(&self) -> Option<&str> {
        self.closed_to_writers.as_deref()
    }

    /// How patient this process is with it.
    pub(super) fn timeouts(&self) -> &Arc<Timeouts> {
        &self.timeouts
    }

    /// Whether the write that just failed may have been done all the same.
    pub(super) fn take_in_doubt(&mut self) -> bool {
        std::mem::take(&mut self.in_doubt)
    }

    /// The database, for reading.
    pub(crate) async fn engine(&mut self) -> Result<&mut Engine, sqlx::Error> {
        self.roll_back_leftover().await?;
        Ok(&mut self.engine)
    }

    /// From now on the log's index is in memory: for a ledger that is only read.
    pub(crate) async fn keep_log_index_in_memory(&mut self) -> Result<(), sqlx::Error> {
        if self.memory_index.is_none() {
            self.memory_index = Some(sqlite::log_index_in_memory().await?);
        }
        Ok(())
    }

    /// Where the log's index is: in the ledger's own file, a file of this machine, or this process's memory.
    pub(crate) fn log_index(&mut self) -> &mut SqliteConnection {
        if let Some(index) = &mut self.memory_index {
            return index;
        }
        match &mut self.engine {
            Engine::Sqlite(sqlite) => sqlite,
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => server.log_index(),
        }
    }

    /// Begins a transaction of the log's index, which can be rebuilt at any time.
    pub(crate) async fn begin_log_index(&mut self) -> Result<sqlx::Transaction<'_, Sqlite>, sqlx::Error> {
        if self.memory_index.is_none() {
            self.ensure_writable()?;
            self.roll_back_leftover().await?;
            self.set_durability(Durability::Written).await?;
        }
        self.log_index().begin_with("BEGIN IMMEDIATE").await
    }

    /// Closes it. After a sync that failed, SQLite would fold its log into the file although it is unknown what of the log
    /// is on the disk; so the log is written once more before, and where that fails too the file stays as it is.
    pub(super) async fn close(mut self) -> Result<(), sqlx::Error> {
        if self.write_failed && !self.rewrite_wal().await {
            // Closing is what folds. The process's end closes without.
            std::mem::forget(self);
            return Ok(());
        }
        self.engine.close().await
    }

    /// Rewrites SQLite's log where it lies, byte for byte, and syncs it, while no other process writes; says whether that
    /// worked.
    async fn rewrite_wal(&mut self) -> bool {
        let path = match &mut self.engine {
            Engine::Sqlite(sqlite) => sqlite::file_of(sqlite).await,
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

    /// Begins to read in one snapshot. If the caller is dropped, the snapshot is rolled back as a transaction is.
    pub(crate) async fn begin_snapshot(&mut self) -> Result<&mut Engine, sqlx::Error> {
        self.roll_back_leftover().await?;
        self.left_open = true;
        self.engine.begin_read().await?;
        Ok(&mut self.engine)
    }

    /// Ends the snapshot. Says whether what failed in it should be tried again: a server was restarted, or is rewriting a
    /// table.
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
                let again = self.may_pass(error, began) && self.timeouts.pause_before_retry(began).await;
                self.roll_back_leftover().await?;
                Ok(again)
            }
        }
    }

    /// Begins a transaction whose commit is this durable.
    pub(crate) async fn begin(&mut self, durability: Durability) -> Result<Transaction<'_>, sqlx::Error> {
        self.ensure_writable()?;
        self.roll_back_leftover().await?;
        let begin = match (&self.engine, self.durability, durability) {
            // The pragma cannot be changed inside a transaction, and holds for the commit of the next one.
            (Engine::Sqlite(_), Some(now), wanted) if now == wanted => "BEGIN IMMEDIATE",
            (Engine::Sqlite(_), _, Durability::Written) => "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE",
            (Engine::Sqlite(_), _, Durability::Synced) => "PRAGMA synchronous = FULL; BEGIN IMMEDIATE",
            #[cfg(feature = "postgres")]
            (Engine::Postgres(_), _, durability) => super::postgres::server::begin_statement(durability),
        };
        let began = tokio::time::Instant::now();
        self.durability = None;
        self.in_doubt = false;
        loop {
            self.left_open = true;
            match self.engine.execute_raw(begin).await {
                Ok(()) => break,
                Err(error) => {
                    if !self.may_pass(&error, began) || !self.timeouts.pause_before_retry(began).await {
                        return Err(error);
                    }
                    self.roll_back_leftover().await?;
                }
            }
        }
        self.durability = Some(durability);
        self.gap_check.check(&mut self.engine).await?;
        Ok(Transaction { connection: self })
    }

    /// Whether what is written goes to a server, in calls of its functions.
    #[cfg(feature = "postgres")]
    pub(super) fn is_server(&self) -> bool {
        matches!(&self.engine, Engine::Postgres(_))
    }

    /// Calls a function of the server that writes; `None` where there is no server. A call whose connection was lost is
    /// made again, so the caller must recognize what the first one did. Says also whether that happened.
    #[cfg(feature = "postgres")]
    pub(super) async fn write_call<C: WriteCall>(
        &mut self,
        call: &C,
    ) -> Result<Option<(C::Output, bool)>, sqlx::Error> {
        self.in_doubt = false;
        self.ensure_writable()?;
        let began = tokio::time::Instant::now();
        loop {
            self.roll_back_leftover().await?;
            let Engine::Postgres(server) = &mut self.engine else { return Ok(None) };
            let error = match call.call(server, self.gap_check.known()).await {
                Ok((done, last)) => {
                    self.gap_check.set_known(last);
                    return Ok(Some((done, std::mem::take(&mut self.in_doubt))));
                }
                Err(error) => error,
            };
            if is_gap(&error) {
                self.gap_check.check(&mut self.engine).await?;
                return Err(error);
            }
            self.in_doubt |= self.engine.may_have_committed(&error);
            if !self.may_pass(&error, began) || !self.timeouts.pause_before_retry(began).await {
                return Err(error);
            }
        }
    }

    /// Executes a statement on a server that may be executed twice: where its connection is lost, it is executed again.
    #[cfg(feature = "postgres")]
    pub(super) async fn execute_again(&mut self, statement: &Statement) -> Result<u64, sqlx::Error> {
        self.ensure_writable()?;
        let began = tokio::time::Instant::now();
        loop {
            self.roll_back_leftover().await?;
            match statement.clone().execute(&mut self.engine).await {
                Err(error)
                    if self.may_pass(&error, began) && self.timeouts.pause_before_retry(began).await => {}
                done => return done,
            }
        }
    }

    /// The database for one statement, which is a transaction of its own and this durable; `None` where the engine
    /// needs one around it.
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

    /// Whether what kept a transaction from beginning since `began` may pass: the owner of the lock may be rewriting the
    /// tables, which takes time in proportion to their size, or the server is restarted.
    fn may_pass(&self, error: &sqlx::Error, began: tokio::time::Instant) -> bool {
        self.engine.is_locked(error) || self.engine.is_absent(error) && began.elapsed() < RESTART_TIMEOUT
    }

    /// Makes the next commit this durable.
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

    /// Takes note of a write that failed. After one that the disk refused, or that found the file broken, it is unknown
    /// what of it is there: nothing more is acknowledged before the ledger was opened again.
    pub(crate) fn record_failure(&mut self, error: &sqlx::Error) {
        if sqlite::is_file_broken(error) {
            self.write_failed = true;
            self.closed_to_writers = Some(format!(
                "an earlier write failed ({error}), and nothing more is written before the ledger was opened again"
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
                // A lost connection takes its transaction with it.
                _ => {}
            }
        }
        self.engine.reconnect().await?;
        if std::mem::replace(&mut self.connects, self.engine.connects()) != self.connects {
            // A copy of the server that takes over may have lost what was seen.
            self.gap_check.reset();
            self.tails.clear();
        }
        Ok(())
    }
}

impl Transaction<'_> {
    /// The database inside of it.
    pub(crate) fn engine(&mut self) -> &mut Engine {
        &mut self.connection.engine
    }

    /// Its state, with the tails of the runs.
    pub(super) fn engine_and_tails(&mut self) -> (&mut Engine, &mut Tails) {
        (&mut self.connection.engine, &mut self.connection.tails)
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

/// The connection, owned by one task. A transaction that it leaves open is rolled back on release, and not when the next
/// one comes: until then others could not write.
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
        // Where no runtime is left, the process is about to end, and its connection with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // If the rollback fails, the connection was lost, or the next transaction tries again.
                let _ = connection.roll_back_leftover().await;
            });
        }
    }
}
