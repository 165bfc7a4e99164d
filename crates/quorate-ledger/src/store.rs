//! The ledger on disk: one SQLite file in WAL mode, or a Postgres database, written by group commit.
//!
//! Appenders put their records into a queue and then acquire the one connection; its holder commits everything queued in
//! one transaction. So runs of one process share their syncs. A transaction is synced only if one of its appends requires
//! it; a sync makes everything before it durable too, since both engines sync the whole log.

pub mod address;
mod commits;
pub(crate) mod connection;
pub(crate) mod engine;
mod erase;
mod follow;
mod foreign;
mod gap_check;
pub(crate) mod index;
pub mod lease;
mod leases;
#[cfg(feature = "postgres")]
mod machine_id;
pub(crate) mod merge;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
pub mod run_lock;
pub(crate) mod run_signers;
mod seal;
#[cfg(feature = "postgres")]
pub mod server_facts;
mod sqlite;
#[cfg(feature = "postgres")]
pub mod tasks;
pub(crate) mod tiles;
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file is not waited for"))]
mod timeouts;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use quorate_kernel::entropy::sha256_hex;
#[cfg(feature = "postgres")]
use quorate_kernel::ports::fence::Fence;
use quorate_kernel::ports::ledger::{Append, Error, Ledger, Record};
use quorate_protocol::Name;
use tokio::sync::Mutex;

use crate::record::ChainReader;
use crate::signing::{ExternalKeys, PublicKey, SecretKey};
use crate::verify::shown_runs::{self, ShownQuery, ShownRuns};
use address::Address;
use connection::{Connection, Writer};
use engine::{Column, Row, Statement, sql};
use foreign::Foreign;
use gap_check::Gap;
use queue::Queue;
use run_signers::RunSigners;
use timeouts::Timeouts;

pub use crate::checkpoint::{CheckpointRecord, STREAM, Succession};
pub use commits::CommittedRecords;
pub use erase::{ErasureReport, WipeMode};
pub use follow::StreamPosition;
pub use open::OpenedStore;
#[cfg(feature = "postgres")]
pub use postgres::{InvalidAddress, SharedConnection};

pub struct Store {
    address: Arc<Address>,
    connection: Arc<Mutex<Connection>>,
    timeouts: Arc<Timeouts>,
    queue: Arc<Queue>,
    /// Why nothing is written to it.
    closed_to_writers: Option<String>,
    /// Whether this process has appended since it last sealed.
    appended: AtomicBool,
    /// The runs that this process drives, where others could.
    #[cfg(feature = "postgres")]
    leases: leases::Leases,
}

impl Store {
    fn new(address: Address, connection: Connection) -> Self {
        Store {
            address: Arc::new(address),
            closed_to_writers: connection.read_only_reason().map(str::to_owned),
            timeouts: connection.timeouts().clone(),
            #[cfg(feature = "postgres")]
            leases: connection.leases.clone(),
            connection: Arc::new(Mutex::new(connection)),
            queue: Arc::default(),
            appended: AtomicBool::new(false),
        }
    }

    /// Whether this process has appended anything since it last sealed the ledger.
    pub fn has_appended(&self) -> bool {
        self.appended.load(Ordering::Relaxed)
    }

    /// The command was interrupted: from now on all waits for the ledger's server are short, including one in progress.
    pub fn interrupt(&self) {
        self.timeouts.interrupt();
    }

    /// Whether the command was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.timeouts.is_interrupted()
    }

    /// Notes that this process has appended a record.
    pub(crate) fn mark_appended(&self) {
        self.appended.store(true, Ordering::Relaxed);
    }

    /// Where the ledger is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The ledger's directory; for a database, the directory of its local files.
    pub fn dir(&self) -> &Path {
        self.address.dir()
    }

    /// Whether several machines write to it.
    pub fn is_shared(&self) -> bool {
        self.address.file().is_none()
    }

    /// Its size in bytes with its indices; `None` for a file, which callers can stat themselves.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn server_bytes(&self) -> Result<Option<u64>, Error> {
        let mut connection = self.writer().await;
        match connection.engine().await.map_err(|error| self.error(error))? {
            engine::Engine::Sqlite(_) => Ok(None),
            #[cfg(feature = "postgres")]
            server => {
                let row = sql(postgres::SIZE).row(server, &[Column::Int]).await;
                Ok(row.map_err(|error| self.error(error))?.map(|row| row.count(0)))
            }
        }
    }

    /// Why it is read-only: a newer version wrote it, or its place is not writable.
    pub fn read_only_reason(&self) -> Option<&str> {
        self.closed_to_writers.as_deref()
    }

    /// From now on the records of a run that this process appends are signed with this key. A run is signed from its
    /// first record on, or not at all: for one that began without signatures it changes nothing.
    pub fn sign_run(&self, run: &Name, key: Arc<SecretKey>) {
        self.queue.sign(run, key);
    }

    /// From now on `observer` is told of records that this process appends, after they have been committed. It must not block.
    pub fn observe_commits(&self, observer: impl Fn(CommittedRecords) + Send + Sync + 'static) {
        self.queue.observe_commits(Arc::new(observer));
    }

    /// From now on records of signed runs are checked before they are written against the keys known outside of
    /// the ledger, as `verify` checks them later. The source is asked each time, since the keys may change meanwhile.
    pub fn set_external_keys(
        &self,
        outside: impl Fn() -> Result<ExternalKeys, String> + Send + Sync + 'static,
    ) {
        self.queue.set_external_keys(Arc::new(outside));
    }

    /// The keys that may sign for a signed run: those that its first record names, and those that were added since.
    /// `None` of a run or a stream that names none.
    ///
    /// # Errors
    /// When the store does not answer, or a `keyring` record does not hold.
    #[crate::boxed]
    pub async fn run_keys(&self, run: &Name) -> Result<Option<Vec<PublicKey>>, Error> {
        let unknown = |what| Error::InvalidRecord { run: run.clone(), what };
        let outside =
            self.queue.external_keys().unwrap_or_else(|| Ok(ExternalKeys::default())).map_err(unknown)?;
        let mut connection = self.writer().await;
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        let signers = RunSigners::read(engine, run, &outside).await.map_err(|error| self.error(error))?;
        Ok(signers.map_err(unknown)?.keyring.map(|audit| audit.keys.into_values().collect()))
    }

    /// Whether the records of a run are signed.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn is_signed(&self, run: &Name) -> Result<bool, Error> {
        let statement = sql("SELECT n FROM signature WHERE run = $1 AND n = 0").bind(&**run);
        Ok(!self.rows(statement, &[Column::Int]).await?.is_empty())
    }

    /// The connection, for callers that must not keep the ledger open.
    #[cfg(feature = "postgres")]
    fn weak_connection(&self) -> std::sync::Weak<Mutex<Connection>> {
        Arc::downgrade(&self.connection)
    }

    /// The connection, for the statements of this crate.
    pub(crate) async fn writer(&self) -> Writer {
        Writer::acquire(self.connection.clone()).await
    }

    /// Returns when everything that was appended so far is written or refused. An append continues although the future that
    /// asked for it is dropped; reading would otherwise overtake it.
    #[crate::boxed]
    pub async fn flush(&self) {
        self.queue.commit(&mut *self.writer().await, &self.address).await;
    }

    /// Closes it; SQLite folds its log into its file.
    #[crate::boxed]
    pub async fn close(self) {
        let mut connection = self.connection;
        loop {
            match Arc::try_unwrap(connection) {
                // A failed close loses nothing: the next process that opens the file folds the log in.
                Ok(last) => return drop(Box::pin(last.into_inner().close()).await),
                Err(shared) => connection = shared,
            }
            // A commit is just ending.
            drop(connection.clone().lock_owned().await);
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn error(&self, error: sqlx::Error) -> Error {
        no_answer_error(&self.address, error)
    }
}

fn no_answer_error(address: &Address, error: sqlx::Error) -> Error {
    if let Some(refused) = Gap::refusal(&error).or_else(|| Foreign::refusal(address, &error)) {
        return refused;
    }
    if is_damage(&error) {
        let what = format!("a table of the ledger {address} is missing, or is not as it was made: {error}");
        return Error::ForeignSchema { what, remove: None };
    }
    unavailable(format!("the ledger {address} does not answer"), error)
}

/// Whether a database answers that its tables are not those of a ledger, or hold values of other types.
fn is_damage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_) => true,
        sqlx::Error::Database(error) => {
            let message = error.message();
            ["no such table", "no such column"].iter().any(|start| message.starts_with(start))
                || matches!(error.code().as_deref(), Some("42P01" | "42703"))
        }
        _ => false,
    }
}

fn unavailable(what: String, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Unavailable { what, source: Some(Box::new(source)) }
}

impl Store {
    /// Runs as a view shows them, read and compared in one snapshot.
    pub(crate) async fn shown(&self, query: &ShownQuery) -> Result<ShownRuns, Error> {
        let mut connection = self.writer().await;
        let began = tokio::time::Instant::now();
        loop {
            let read = match connection.begin_snapshot().await {
                Ok(engine) => shown_runs::read(engine, query).await,
                Err(error) => Err(error),
            };
            let again = connection.end_snapshot(read.as_ref().err(), began).await;
            if !again.map_err(|error| self.error(error))? {
                return read.map_err(|error| self.error(error));
            }
        }
    }

    /// Rows of columns like these.
    pub(crate) async fn rows(&self, statement: Statement, columns: &[Column]) -> Result<Vec<Row>, Error> {
        let mut connection = self.writer().await;
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        statement.rows(engine, columns).await.map_err(|error| self.error(error))
    }
}

#[async_trait]
impl Ledger for Store {
    async fn append(&self, append: Append) -> Result<u64, Error> {
        let reply = self.queue.push(append)?;
        let (queue, connection, address) =
            (self.queue.clone(), self.connection.clone(), self.address.clone());
        // A task of its own: the appender's future may be dropped meanwhile, and the transaction holds others' records.
        tokio::spawn(async move { queue.commit(&mut *Writer::acquire(connection).await, &address).await });
        let done = reply.await.unwrap_or_else(|_| {
            Err(Error::Unavailable { what: "the ledger's writer stopped unexpectedly".into(), source: None })
        });
        self.appended.fetch_or(done.is_ok(), Ordering::Relaxed);
        done
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, Error> {
        let statement = sql("SELECT head, data FROM record WHERE run = $1 ORDER BY n").bind(&**run);
        let rows = self.rows(statement, &[Column::Text, Column::Text]).await?;
        let mut chain = ChainReader::new(run);
        rows.iter().map(|row| chain.read_next(row.text(0), row.opt_text(1))).collect()
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, Error> {
        // One more, for the hash that the first of them names.
        let statement = sql("SELECT n, head, data FROM record WHERE run = $1 ORDER BY n DESC LIMIT $2")
            .bind(&**run)
            .bind(i64::from(count) + 1);
        let rows = self.rows(statement, &[Column::Int, Column::Text, Column::Text]).await?;
        let before = rows.get(count as usize).map(|row| row.text(1));
        let rows = &rows[..rows.len().min(count as usize)];
        let first = rows.last().map_or(0, |row| row.count(0));
        let mut chain = ChainReader::after(run, first, before);
        rows.iter().rev().map(|row| chain.read_next(row.text(1), row.opt_text(2))).collect()
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, Error> {
        let statement = sql("SELECT text FROM body WHERE sha256 = $1").bind(sha256);
        let rows = self.rows(statement, &[Column::Text]).await?;
        let text: Option<Arc<str>> = rows.first().map(|row| row.text(0).into());
        match text {
            Some(text) if sha256_hex(text.as_bytes()) != sha256 => {
                let what = format!(
                    "the text {sha256} in the ledger {} is not the one that has this hash",
                    self.address
                );
                Err(Error::ForeignSchema { what, remove: None })
            }
            text => Ok(text),
        }
    }

    #[cfg(feature = "postgres")]
    fn fence(&self, run: &Name) -> Fence {
        self.lease_fence(run)
    }
}
