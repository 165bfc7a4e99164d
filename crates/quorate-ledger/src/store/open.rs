//! Opens the ledger: creates it, migrates an older one, quarantines a broken one, and opens a read-only one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::ports::ledger::Error;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};

use super::address::Address;
use super::connection::Connection;
use super::engine::Engine;
use super::foreign::{Schema, ensure_own_schema};
#[cfg(feature = "postgres")]
use super::sqlite::{LOG_INDEX_VERSION, create_log_index};
use super::sqlite::{ORIGINS_IN_MEMORY, SCHEMAS, log_index_in_memory, primary_code};
use super::{Store, no_answer_error, unavailable};
use crate::files::{self, wal_path, with_suffix};
use crate::keys::{self, Purpose};
use crate::local_checkpoints::CheckpointFiles;
use crate::quarantine::{self, QuarantinedFile};

/// The statements that drop an earlier index of the log.
#[cfg(feature = "postgres")]
const SCHEMA_3: &str = include_str!("schema-3.sql");
/// How long to wait for another process's transaction: the longest are those that rewrite the file.
pub(super) const LOCK_TIMEOUT: Duration = super::timeouts::LOCK_TIMEOUT;

/// The pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// A ledger that was opened, and what had to be set aside for it.
pub struct OpenedStore {
    pub store: Store,
    /// A file that was not a ledger, now in `aside/`.
    pub quarantined: Option<QuarantinedFile>,
    /// Whether it was made just now.
    pub is_new: bool,
}

/// The reason for a read-only ledger where the system allows no writes.
const NOT_WRITABLE: &str = "its directory is read-only: it is opened for reading";

/// The first version of a file's schema that has `run_origin`.
const ORIGINS_SINCE: usize = 4;

/// A connection, and why nothing may be written through it.
type SqliteOpened = (SqliteConnection, Option<String>);

impl Store {
    /// Opens a ledger, making it (and a private `.quorate/` directory, if that is where it is to be) when it is not
    /// there. A broken ledger is moved to `aside/` and a new one is started. One of a newer version, or that lies where
    /// nothing can be written, is opened for reading.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    #[crate::boxed]
    pub async fn open(path: &Path) -> Result<OpenedStore, Error> {
        let address = Address::from(path);
        let dir = address.dir();
        if let Err(error) = address.create_dir()
            && !path.is_file()
        {
            return Err(unavailable(format!("cannot make {}", dir.display()), error));
        }
        let is_new = !path.exists();
        // SQLite finds the files beside a database by name. A process with the broken file open during the move would use the
        // new one's log as its own, so no other process may open it meanwhile.
        let opening = files::open(dir).and_then(|dir| dir.lock_shared().map(|()| dir));
        if is_new {
            // If that fails, SQLite explains the problem.
            let _ = files::ensure_private(path);
        }
        let connected = Box::pin(connect(path)).await;
        drop(opening);
        match connected {
            Ok(connected) => {
                if is_new {
                    ensure_ledger_key(dir)?;
                }
                Ok(OpenedStore { store: new_store(path, connected), quarantined: None, is_new })
            }
            Err(error) if is_corrupt(&error) && has_ledger_name(path) => {
                Box::pin(Store::replace_broken(path, dir)).await
            }
            Err(error) if is_corrupt(&error) => {
                Err(unavailable(format!("{} is no ledger", path.display()), error))
            }
            // It can be written, by another process at the moment.
            Err(error) if path.is_file() && !is_busy(&error) => match Box::pin(connect_read_only(path)).await
            {
                Ok(connected) => {
                    Ok(OpenedStore { store: new_store(path, connected), quarantined: None, is_new: false })
                }
                Err(_) => Err(no_answer_error(&address, error)),
            },
            Err(error) => Err(no_answer_error(&address, error)),
        }
    }

    /// Opens a ledger as it is, for reading alone: no file is created, repaired or moved.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it does not exist, is not a ledger, or cannot be read.
    #[crate::boxed]
    pub async fn open_read_only(address: &Address) -> Result<Store, Error> {
        let Some(path) = address.file() else { return Ok(Store::open_at(address).await?.store) };
        match Box::pin(connect_read_only(path)).await {
            Ok((connection, _)) => {
                let why = "it was opened for reading alone".to_owned();
                Ok(new_store(path, (connection, Some(why))))
            }
            Err(error) if is_corrupt(&error) => {
                Err(unavailable(format!("{} is no ledger", path.display()), error))
            }
            Err(error) => Err(no_answer_error(address, error)),
        }
    }

    /// A store in memory that no ledger is behind: what a log by itself is counted with.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    #[crate::boxed]
    pub async fn open_log_only(log: &Path) -> Result<Store, Error> {
        match log_index_in_memory().await {
            Ok(connection) => {
                Ok(new_store(log, (connection, Some("there is a log and no ledger".to_owned()))))
            }
            Err(error) => Err(no_answer_error(&log.into(), error)),
        }
    }

    /// Opens a ledger wherever it is. One in a database is made there when it is not there.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    #[crate::boxed]
    pub async fn open_at(address: &Address) -> Result<OpenedStore, Error> {
        match address {
            Address::File(path) => Store::open(path).await,
            #[cfg(feature = "postgres")]
            Address::Postgres { url, dir } => {
                address.check().map_err(|refused| {
                    unavailable(format!("cannot use the address {address} of a ledger"), refused)
                })?;
                // Nothing is created here before the server has answered. A user without write access can still read what is
                // there.
                let mut created = false;
                let log_index = async {
                    created = address.create_dir().is_ok();
                    open_log_index(dir).await
                };
                let connected = Box::pin(super::postgres::connect(url, log_index)).await;
                let (connection, is_new) = connected.map_err(|error| no_answer_error(address, error))?;
                let store = Store::new(address.clone(), connection);
                if is_new && created {
                    ensure_ledger_key(dir)?;
                    store.note_founding_key().await?;
                }
                Ok(OpenedStore { store, quarantined: None, is_new: is_new && created })
            }
            #[cfg(not(feature = "postgres"))]
            Address::Postgres { .. } => Err(Error::Unavailable {
                what: format!(
                    "the ledger {address} needs the feature `postgres`, which this was built without"
                ),
                source: None,
            }),
        }
    }

    /// Sets a broken ledger aside and starts a new one: under a lock, and only if it is broken still, since another
    /// process may have been faster. What is beside it goes first: once the file itself is gone, others make a new
    /// one with a log of its own.
    async fn replace_broken(path: &Path, dir: &Path) -> Result<OpenedStore, Error> {
        let lock = files::open(dir).and_then(|dir| dir.lock().map(|()| dir));
        let _lock = lock.map_err(|error| unavailable(format!("cannot lock {}", dir.display()), error))?;
        let mut quarantined = None;
        if connect(path).await.is_err_and(|error| is_corrupt(&error)) {
            let beside = ["-wal", "-shm"].map(|suffix| with_suffix(path, suffix));
            for file in beside.iter().filter(|file| file.exists()).map(PathBuf::as_path).chain([path]) {
                match quarantine::move_file(dir, file) {
                    Ok(piece) => quarantined = Some(piece),
                    // The files beside it were removed by the last process that had it open.
                    Err(error) if file != path && error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => {
                        return Err(unavailable(format!("cannot set {} aside", file.display()), error));
                    }
                }
            }
        }
        // The new one has checkpoints of its own.
        if quarantined.is_some() {
            let begun = CheckpointFiles::new(&path.into(), None).quarantine();
            begun.map_err(|error| unavailable("cannot move its kept checkpoint away".to_owned(), error))?;
        }
        let connected = connect(path).await.map_err(|error| no_answer_error(&path.into(), error))?;
        let is_new = quarantined.is_some();
        Ok(OpenedStore { store: new_store(path, connected), quarantined, is_new })
    }
}

fn new_store(path: &Path, (connection, closed_to_writers): SqliteOpened) -> Store {
    Store::new(path.into(), Connection::new(Engine::Sqlite(connection), closed_to_writers, Arc::default()))
}

/// The index of the log where the ledger is no file. It can be rebuilt at any time; where nothing can be written it
/// lasts as long as the process.
#[cfg(feature = "postgres")]
async fn open_log_index(dir: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let path = dir.join("log_index.db");
    for _ in 0..2 {
        let opened = async {
            let mut connection = write_options(&path).connect().await?;
            let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
            match schema_version(&mut transaction).await? {
                0 => create_log_index(&mut transaction).await?,
                older if older < LOG_INDEX_VERSION => {
                    sqlx::raw_sql(SCHEMA_3).execute(&mut *transaction).await?;
                    create_log_index(&mut transaction).await?;
                }
                _ => {}
            }
            transaction.commit().await?;
            Ok(connection)
        };
        match opened.await {
            Ok(connection) => return Ok(connection),
            Err(error) if is_corrupt(&error) && files::remove(&path).is_ok() => {}
            Err(_) => break,
        }
    }
    log_index_in_memory().await
}

/// A ledger has a key of its own from its creation, unless one is there already.
fn ensure_ledger_key(dir: &Path) -> Result<(), Error> {
    let keys = keys::Directory::new(dir);
    let cannot =
        |error| unavailable(format!("cannot make the key of the ledger in {}", dir.display()), error);
    if keys.load(Purpose::Ledger).map_err(cannot)?.is_none() {
        // Another process may just have made it.
        match keys.create(Purpose::Ledger) {
            Ok(_) | Err(keys::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(cannot(error)),
        }
    }
    Ok(())
}

/// How a file is opened that is written to.
fn write_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(false)
        .busy_timeout(LOCK_TIMEOUT)
        // What is erased is overwritten (D4).
        .pragma("secure_delete", "ON")
        .disable_statement_logging()
}

async fn connect(path: &Path) -> Result<SqliteOpened, sqlx::Error> {
    let mut connection = connect_with_retry(path).await?;
    match prepare(&mut connection).await {
        Ok(closed_to_writers) => Ok((connection, closed_to_writers)),
        Err(error) => {
            // Close at once: the files beside it are removed only then, and the caller may be about to move it.
            let _ = connection.close().await;
            Err(error)
        }
    }
}

/// Opens a file, creating it. If two processes create a new file's log at once, SQLite refuses both without waiting, so
/// each retries.
async fn connect_with_retry(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let began = tokio::time::Instant::now();
    loop {
        match write_options(path).connect().await {
            Err(error) if is_busy(&error) && began.elapsed() < LOCK_TIMEOUT => {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            connected => return connected,
        }
    }
}

/// Migrates the tables; returns why they are read-only if a newer version wrote them.
async fn prepare(connection: &mut SqliteConnection) -> Result<Option<String>, sqlx::Error> {
    match schema_version(connection).await? {
        version if version < SCHEMAS.len() => {
            if version > 0 {
                ensure_own_schema(connection, Schema::Any).await?;
            }
            migrate(connection).await?;
        }
        version if version > SCHEMAS.len() => {
            ensure_own_schema(connection, Schema::Any).await?;
            sqlx::raw_sql("PRAGMA query_only = ON").execute(connection).await?;
            return Ok(Some(newer_schema(version)));
        }
        _ => {}
    }
    ensure_own_schema(connection, Schema::Own).await?;
    let may_write = may_write(connection).await?;
    Ok((!may_write).then(|| NOT_WRITABLE.to_owned()))
}

/// Whether anything can be written. SQLite opens a protected file without an error, and reports it at the
/// first write.
async fn may_write(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let busy = |time: Duration| AssertSqlSafe(format!("PRAGMA busy_timeout = {}", time.as_millis()));
    sqlx::raw_sql(busy(Duration::ZERO)).execute(&mut *connection).await?;
    // It begins a transaction of a protected file, and refuses whatever writes, also where that touches nothing.
    let written = sqlx::raw_sql("BEGIN IMMEDIATE; DELETE FROM held WHERE 0").execute(&mut *connection).await;
    // It is missing if another process has the file.
    let _ = sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await;
    sqlx::raw_sql(busy(LOCK_TIMEOUT)).execute(&mut *connection).await?;
    match written {
        Err(error) if primary_code(&error) == Some(8) => Ok(false),
        // Another process writes at this moment.
        Err(error) if is_busy(&error) => Ok(true),
        done => done.map(|_| true),
    }
}

fn newer_schema(version: usize) -> String {
    let ours = SCHEMAS.len();
    format!("its schema is version {version}, and this program writes version {ours}: it is only read")
}

/// Opens a ledger read-only, on a place that cannot be written.
async fn connect_read_only(path: &Path) -> Result<SqliteOpened, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(LOCK_TIMEOUT);
    let opened = options.clone().disable_statement_logging().connect().await;
    let read = match opened {
        Ok(mut connection) => schema_version(&mut connection).await.map(|version| (connection, version)),
        Err(error) => Err(error),
    };
    let (mut connection, version) = match read {
        Ok(read) => read,
        // Reading a log needs a file beside it. Without a log, and if no such file can be made, there is no writer.
        Err(_) if !wal_path(path).is_file() => {
            let mut connection = options.immutable(true).disable_statement_logging().connect().await?;
            let version = schema_version(&mut connection).await?;
            (connection, version)
        }
        Err(error) => return Err(error),
    };
    if version == 0 {
        return Err(sqlx::Error::Configuration("it has no tables yet: nothing was written to it".into()));
    }
    let schema = if version == SCHEMAS.len() { Schema::Own } else { Schema::Any };
    ensure_own_schema(&mut connection, schema).await?;
    if version < ORIGINS_SINCE {
        sqlx::raw_sql(ORIGINS_IN_MEMORY).execute(&mut connection).await?;
    }
    Ok((connection, Some(NOT_WRITABLE.into())))
}

async fn schema_version(connection: &mut SqliteConnection) -> Result<usize, sqlx::Error> {
    let version: i64 = sqlx::query("PRAGMA user_version").fetch_one(connection).await?.get(0);
    // Sequence numbers are never negative, and never large enough for this to overflow.
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Makes the tables, or those that are missing in an older file, unless another process was faster.
async fn migrate(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let version = schema_version(&mut transaction).await?;
    if version == 0 {
        let tables = sqlx::query("SELECT COUNT(*) FROM sqlite_master").fetch_one(&mut *transaction).await?;
        if tables.get::<i64, _>(0) > 0 {
            return Err(sqlx::Error::Configuration("it is a database of something else".into()));
        }
    }
    for schema in SCHEMAS.iter().skip(version) {
        sqlx::raw_sql(*schema).execute(&mut *transaction).await?;
    }
    if version < SCHEMAS.len() {
        let pragma = format!("PRAGMA user_version = {}", SCHEMAS.len());
        sqlx::raw_sql(AssertSqlSafe(pragma)).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

/// Whether SQLite says that another process has the file (5) or a table of it (6).
fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(5 | 6))
}

/// Whether SQLite says that the file is no database (26) or a broken one (11).
fn is_corrupt(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(26 | 11))
}

/// Whether a file that is no database may be moved out of the way. A draft that was named as the ledger by mistake
/// stays where it is.
fn has_ledger_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("db" | "sqlite" | "sqlite3"))
        || path.parent().and_then(Path::file_name).is_some_and(|dir| dir == ".quorate")
}
