//! The ledger on disk: one SQLite file in WAL mode, or a Postgres database, written by group commit.
//!
//! Appenders put their records into a queue and then acquire the one connection; its holder commits everything queued
//! in one transaction. In this way runs of one process share their syncs. A transaction is synced only if one of its
//! appends requires it. A sync also makes everything before it durable, because both engines sync the whole log.

pub mod address;
pub(crate) mod connection;
pub(crate) mod engine;
mod erase;
pub(crate) mod index;
pub mod lease;
#[cfg(feature = "postgres")]
mod leases;
pub(crate) mod merge;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
pub(crate) mod run_signers;
mod seal;
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
use quorate_kernel::ports::ledger::Fence;
use quorate_kernel::ports::ledger::{Append, Durability, Ledger, LedgerError, Record};
use quorate_protocol::Name;
#[cfg(feature = "postgres")]
use sqlx::postgres::PgDatabaseError;
use tokio::sync::Mutex;

use crate::record::{ChainReader, leaf};
use crate::signing::{ExternalKeys, PublicKey, SecretKey};
use address::StoreAddress;
use connection::{Connection, Gap, Transaction, Writer};
use engine::{Column, Row, Statement, sql};
#[cfg(feature = "postgres")]
use leases::Leases;
use open::Foreign;
use queue::Queue;
use run_signers::RunSigners;
use timeouts::Timeouts;

pub use crate::checkpoint::{CheckpointRecord, STREAM, Succession};
pub use erase::{ErasureReport, WipeMode};
pub use open::OpenedStore;
#[cfg(feature = "postgres")]
pub use postgres::{InvalidAddress, ServerFacts, SharedConnection};

/// The parameters that an address may have; `options[NAME]` is for session settings.
const KNOWN_PARAMETERS: [&str; 12] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

/// The size of the tables on a server in bytes, with their indices.
const SERVER_SIZE: &str = "SELECT CAST(SUM(pg_total_relation_size(to_regclass(name))) AS BIGINT) FROM (VALUES \
    ('record'), ('body'), ('run'), ('signature'), ('tile'), ('checkpoint'), ('held'), ('imported')) AS tables (name)";

/// An opened ledger: records are appended, read and sealed through it.
pub struct Store {
    address: Arc<StoreAddress>,
    connection: Arc<Mutex<Connection>>,
    timeouts: Arc<Timeouts>,
    queue: Arc<Queue>,
    /// Why the ledger is read-only.
    closed_to_writers: Option<String>,
    /// Whether this process appended records since it last sealed the ledger.
    appended: AtomicBool,
    /// The runs that this process drives, if several machines write to the ledger.
    #[cfg(feature = "postgres")]
    leases: Leases,
}

impl Store {
    fn new(address: StoreAddress, connection: Connection) -> Self {
        Store {
            address: Arc::new(address),
            closed_to_writers: connection.closed_to_writers.clone(),
            timeouts: connection.timeouts.clone(),
            #[cfg(feature = "postgres")]
            leases: connection.leases.clone(),
            connection: Arc::new(Mutex::new(connection)),
            queue: Arc::default(),
            appended: AtomicBool::new(false),
        }
    }

    /// Whether this process appended records since it last sealed the ledger.
    pub fn has_appended(&self) -> bool {
        self.appended.load(Ordering::Relaxed)
    }

    /// Shortens all waits for the ledger's server, including the current one, because the command was interrupted.
    pub fn interrupt(&self) {
        self.timeouts.interrupt();
    }

    /// Whether the command was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.timeouts.is_interrupted()
    }

    /// Records that this process appended a record.
    pub(crate) fn mark_appended(&self) {
        self.appended.store(true, Ordering::Relaxed);
    }

    /// The address of the ledger.
    pub fn address(&self) -> &StoreAddress {
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
    pub async fn server_bytes(&self) -> Result<Option<u64>, LedgerError> {
        match self.is_shared() {
            false => Ok(None),
            true => Ok(self.rows(sql(SERVER_SIZE), &[Column::Int]).await?.first().map(|row| row.count(0))),
        }
    }

    /// Why it is read-only: a newer version wrote it, or its location is not writable.
    pub fn read_only_reason(&self) -> Option<&str> {
        self.closed_to_writers.as_deref()
    }

    /// Signs the records that this process appends to a run with this key. A run is signed from its first record on or
    /// not at all, so this has no effect on a run that began without signatures.
    pub fn sign_run(&self, run: &Name, key: Arc<SecretKey>) {
        self.queue.state().keys.insert(run.clone(), key);
    }

    /// Calls `observer` with the records that this process appends, after they have been committed. It must not block.
    pub fn observe_commits(&self, observer: impl Fn(CommittedRecords) + Send + Sync + 'static) {
        self.queue.state().observer = Some(Arc::new(observer));
    }

    /// Checks records of signed runs before they are written, by the rules that `verify` applies later. `source`
    /// returns the keys known outside of the ledger; it is called each time, because the keys may change.
    pub fn set_external_keys(
        &self,
        outside: impl Fn() -> Result<ExternalKeys, String> + Send + Sync + 'static,
    ) {
        self.queue.state().outside = Some(Arc::new(outside));
    }

    /// The keys that may sign for a signed run: those in its first record, and those added later. `None` for a run or
    /// stream without such keys.
    ///
    /// # Errors
    /// If the store does not answer, or a `keyring` record is invalid.
    #[crate::boxed]
    pub async fn run_keys(&self, run: &Name) -> Result<Option<Vec<PublicKey>>, LedgerError> {
        let unknown = |what| LedgerError::InvalidRecord { run: run.clone(), what };
        let outside =
            self.queue.external_keys().unwrap_or_else(|| Ok(ExternalKeys::default())).map_err(unknown)?;
        let signers = self.read(async |engine| RunSigners::read(engine, run, &outside).await).await?;
        Ok(signers.map_err(unknown)?.keyring.map(|audit| audit.keys.into_values().collect()))
    }

    /// Whether the records of a run are signed.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn is_signed(&self, run: &Name) -> Result<bool, LedgerError> {
        let statement = sql("SELECT n FROM signature WHERE run = $1 AND n = 0").bind(&**run);
        Ok(!self.rows(statement, &[Column::Int]).await?.is_empty())
    }

    /// The connection, for the statements of this crate.
    pub(crate) async fn writer(&self) -> Writer {
        Writer::acquire(self.connection.clone()).await
    }

    /// Waits until all appends so far are written or refused. An append continues even if its caller's future is
    /// dropped, and a read must not overtake it.
    #[crate::boxed]
    pub async fn flush(&self) {
        self.queue.commit(&mut *self.writer().await, &self.address).await;
    }

    /// Closes the store. SQLite checkpoints its log into its file.
    #[crate::boxed]
    pub async fn close(self) {
        let mut connection = self.connection;
        loop {
            match Arc::try_unwrap(connection) {
                // A failed close loses nothing: the next process that opens the file recovers the log.
                Ok(last) => return drop(Box::pin(last.into_inner().close()).await),
                Err(shared) => connection = shared,
            }
            // A commit is about to finish.
            drop(connection.clone().lock_owned().await);
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn error(&self, error: sqlx::Error) -> LedgerError {
        no_answer_error(&self.address, error)
    }
}

/// Carries a refusal of the ledger among the errors of its database; [`Store::error`] takes it out again.
pub(crate) fn refusal(error: LedgerError) -> sqlx::Error {
    sqlx::Error::Configuration(Box::new(error))
}

/// Why a ledger that a newer version of this program made is only read.
fn newer_schema(version: usize, ours: usize) -> String {
    format!("its schema is version {version}, and this program writes version {ours}: it is only read")
}

fn no_answer_error(address: &StoreAddress, error: sqlx::Error) -> LedgerError {
    let error = match error {
        sqlx::Error::Configuration(carried) => match carried.downcast::<LedgerError>() {
            Ok(refused) => return *refused,
            Err(other) => sqlx::Error::Configuration(other),
        },
        error => error,
    };
    if let Some(refused) = Gap::refusal(&error).or_else(|| Foreign::refusal(address, &error)) {
        return refused;
    }
    if is_damage(&error) {
        let what = format!(
            "the tables of the ledger {address} are missing or do not match the schema: {}",
            error_text(&error)
        );
        return LedgerError::ForeignSchema { what, remove: None };
    }
    let source = std::io::Error::other(error_text(&error));
    unavailable(format!("the ledger {address} does not answer"), source)
}

/// The text of an error, without the line of the server's source that a server reports.
fn error_text(error: &sqlx::Error) -> String {
    #[cfg(feature = "postgres")]
    if let Some(error) =
        error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
    {
        return format!("error returned from database: {}", error.message());
    }
    error.to_string()
}

/// Whether a database reports that its tables are not those of a ledger, or contain values of other types.
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

fn unavailable(what: String, source: impl std::error::Error + Send + Sync + 'static) -> LedgerError {
    LedgerError::Unavailable { what, source: Some(Box::new(source)) }
}

impl Store {
    /// Reads from the database.
    pub(crate) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&mut engine::Engine) -> Result<T, sqlx::Error>,
    ) -> Result<T, LedgerError> {
        let mut connection = self.writer().await;
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        work(engine).await.map_err(|error| self.error(error))
    }

    /// Runs `work` in a transaction, and commits it.
    pub(crate) async fn write<T>(
        &self,
        durability: Durability,
        work: impl AsyncFnOnce(&mut Transaction<'_>) -> Result<T, sqlx::Error>,
    ) -> Result<T, LedgerError> {
        let mut connection = self.writer().await;
        let writing = async {
            let mut transaction = connection.begin(durability).await?;
            let done = work(&mut transaction).await?;
            transaction.commit().await?;
            Ok(done)
        };
        let written: Result<T, sqlx::Error> = writing.await;
        if let Err(error) = &written {
            connection.record_failure(error);
        }
        written.map_err(|error| self.error(error))
    }

    /// Rows with these columns.
    pub(crate) async fn rows(
        &self,
        statement: Statement,
        columns: &[Column],
    ) -> Result<Vec<Row>, LedgerError> {
        self.read(async |engine| statement.rows(engine, columns).await).await
    }
}

#[async_trait]
impl Ledger for Store {
    async fn append(&self, append: Append) -> Result<u64, LedgerError> {
        let reply = self.queue.push(append)?;
        let (queue, connection, address) =
            (self.queue.clone(), self.connection.clone(), self.address.clone());
        // A separate task: the appender's future may be dropped, and the transaction contains others' records.
        tokio::spawn(async move { queue.commit(&mut *Writer::acquire(connection).await, &address).await });
        let done = reply.await.unwrap_or_else(|_| {
            Err(LedgerError::Unavailable {
                what: "the ledger's writer stopped unexpectedly".into(),
                source: None,
            })
        });
        self.appended.fetch_or(done.is_ok(), Ordering::Relaxed);
        done
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, LedgerError> {
        let statement = sql("SELECT head, data FROM record WHERE run = $1 ORDER BY n").bind(&**run);
        let rows = self.rows(statement, &[Column::Text, Column::Text]).await?;
        let mut chain = ChainReader::new(run);
        rows.iter().map(|row| chain.read_next(row.text(0), row.opt_text(1))).collect()
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, LedgerError> {
        // One more record, because the first one names its hash.
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

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, LedgerError> {
        let statement = sql("SELECT text FROM body WHERE sha256 = $1").bind(sha256);
        let rows = self.rows(statement, &[Column::Text]).await?;
        let text: Option<Arc<str>> = rows.first().map(|row| row.text(0).into());
        match text {
            Some(text) if sha256_hex(text.as_bytes()) != sha256 => {
                let what =
                    format!("the text {sha256} in the ledger {} does not match its hash", self.address);
                Err(LedgerError::ForeignSchema { what, remove: None })
            }
            text => Ok(text),
        }
    }

    #[cfg(feature = "postgres")]
    fn fence(&self, run: &Name) -> Fence {
        self.lease_fence(run)
    }
}

/// Records that have been committed to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedRecords {
    pub run: Name,
    /// The number of the first of them.
    pub from: u64,
    /// The kind and the time of each, in milliseconds since the Unix epoch.
    pub records: Vec<(&'static str, i64)>,
}

/// Takes note of records once they are committed. It must not block.
type CommitObserver = dyn Fn(CommittedRecords) + Send + Sync;

/// A position in a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamPosition {
    next: u64,
    /// The leaf of the last record before it.
    leaf: Option<String>,
}

impl StreamPosition {
    /// The number of the next record.
    pub fn next(&self) -> u64 {
        self.next
    }
}

impl Store {
    /// The position of the ledger's last record; 0 if there is none.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn last_place(&self) -> Result<u64, LedgerError> {
        let last = sql("SELECT COALESCE(MAX(seq), 0) FROM record");
        self.read(async |engine| last.number(engine).await).await
    }

    /// Up to `limit` records of all runs and streams after a position, in order, each with its position. Does not check
    /// their chains.
    ///
    /// # Errors
    /// When the store does not answer, or a record is malformed.
    #[crate::boxed]
    pub async fn records_behind(
        &self,
        place: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Name, Record)>, LedgerError> {
        let statement =
            sql("SELECT seq, run, n, head, data FROM record WHERE seq > $1 ORDER BY seq LIMIT $2");
        let columns = [Column::Int, Column::Text, Column::Int, Column::Text, Column::Text];
        let rows = self.rows(statement.bind(place).bind(i64::from(limit)), &columns).await?;
        let record = |row: &Row| {
            let run = Name::from(row.text(1));
            let record =
                ChainReader::at(&run, row.count(2), row.text(3)).read_next(row.text(3), row.opt_text(4))?;
            Ok((row.count(0), run, record))
        };
        rows.iter().map(record).collect()
    }

    /// The records of a stream after a position, in order, and the new position. `None` if the record at the old
    /// position was removed or replaced, which invalidates a projection.
    ///
    /// # Errors
    /// When the store does not answer, or a record is malformed.
    #[crate::boxed]
    pub async fn records_after(
        &self,
        run: &Name,
        seen: &StreamPosition,
    ) -> Result<Option<(Vec<Record>, StreamPosition)>, LedgerError> {
        // Starts with the last known record, because the next one names its hash.
        let last = i64::try_from(seen.next).unwrap_or(i64::MAX) - 1;
        let statement = sql("SELECT head, CASE WHEN n > $2 THEN data END FROM record \
                             WHERE run = $1 AND n >= $2 ORDER BY n");
        let rows = self.rows(statement.bind(&**run).bind(last), &[Column::Text, Column::Text]).await?;
        let (before, rows) = match (&seen.leaf, rows.split_first()) {
            (None, _) => (None, &rows[..]),
            (Some(known), Some((last, rows))) if leaf(last.text(0)) == *known => (Some(last.text(0)), rows),
            (Some(_), _) => return Ok(None),
        };
        let mut chain = ChainReader::after(run, seen.next, before);
        let records: Vec<Record> =
            rows.iter().map(|row| chain.read_next(row.text(0), row.opt_text(1))).collect::<Result<_, _>>()?;
        let leaf = rows.last().map(|row| leaf(row.text(0))).or_else(|| seen.leaf.clone());
        Ok(Some((records, StreamPosition { next: seen.next + rows.len() as u64, leaf })))
    }
}
