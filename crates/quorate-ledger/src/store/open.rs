//! Opens the ledger: creates it, migrates an older one, quarantines a corrupt one, refuses a file or database with
//! foreign tables, and falls back to read-only access.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quorate_kernel::ports::ledger::LedgerError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};

use super::address::StoreAddress;
use super::connection::Connection;
use super::engine::{Engine, ORIGINS_IN_MEMORY, SCHEMAS, log_index_in_memory, primary_code};
use super::{Store, no_answer_error, unavailable};
use crate::files::{self, QuarantinedFile, wal_path, with_suffix};
use crate::keys::{self, KeyPurpose};
use crate::local_checkpoints::CheckpointFiles;

#[cfg(feature = "postgres")]
use super::engine::{LOG_INDEX_VERSION, create_log_index};

/// Statements that drop the log's index of an earlier version.
#[cfg(feature = "postgres")]
const SCHEMA_3: &str = include_str!("schema-3.sql");
/// The timeout for another process's transaction. The longest ones rewrite the file.
pub(super) const LOCK_TIMEOUT: Duration = super::timeouts::LOCK_TIMEOUT;

/// The pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// An open ledger, and the file that was quarantined for it.
pub struct OpenedStore {
    pub store: Store,
    /// A file that was not a ledger, now in `aside/`.
    pub quarantined: Option<QuarantinedFile>,
    /// Whether the ledger was created just now.
    pub is_new: bool,
}

/// The reason for a read-only ledger if the system allows no writes.
const NOT_WRITABLE: &str = "its directory is read-only, so it was opened for reading only";

/// The first version of a file's schema with the table `run_origin`.
const ORIGINS_SINCE: usize = 4;

/// A connection, and why it is read-only.
type SqliteOpened = (SqliteConnection, Option<String>);

impl Store {
    /// Opens a ledger. Creates a missing one, and a private `.quorate/` directory if the ledger is to be in one. Moves
    /// a corrupt ledger to `aside/` and starts a new one. Opens a ledger of a newer version, or in a read-only
    /// location, for reading.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`].
    #[crate::boxed]
    pub async fn open(path: &Path) -> Result<OpenedStore, LedgerError> {
        let address = StoreAddress::from(path);
        let dir = address.dir();
        if let Err(error) = address.create_dir()
            && !path.is_file()
        {
            return Err(unavailable(format!("cannot make {}", dir.display()), error));
        }
        let is_new = !path.exists();
        // SQLite finds the files beside a database by name. A process with the corrupt file open during the move would
        // use the new one's log as its own, so no other process may open it meanwhile.
        let opening = files::open(dir).and_then(|dir| dir.lock_shared().map(|()| dir));
        if is_new {
            // If that fails, SQLite reports the problem.
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
                Err(unavailable(format!("{} is not a ledger", path.display()), error))
            }
            // The file is writable, but another process is writing to it.
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

    /// Opens a ledger for reading only: creates, repairs and moves no file.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] if it does not exist, is not a ledger, or cannot be read.
    #[crate::boxed]
    pub async fn open_read_only(address: &StoreAddress) -> Result<Store, LedgerError> {
        let Some(path) = address.file() else { return Ok(Store::open_at(address).await?.store) };
        match Box::pin(connect_read_only(path)).await {
            Ok((connection, _)) => {
                let why = "it was opened for reading only".to_owned();
                Ok(new_store(path, (connection, Some(why))))
            }
            Err(error) if is_corrupt(&error) => {
                Err(unavailable(format!("{} is not a ledger", path.display()), error))
            }
            Err(error) => Err(no_answer_error(address, error)),
        }
    }

    /// A store in memory without a ledger, for counting a log.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`].
    #[crate::boxed]
    pub async fn open_log_only(log: &Path) -> Result<Store, LedgerError> {
        match log_index_in_memory().await {
            Ok(connection) => {
                Ok(new_store(log, (connection, Some("there is a log, but no ledger".to_owned()))))
            }
            Err(error) => Err(no_answer_error(&log.into(), error)),
        }
    }

    /// Opens a ledger at any address. Creates a missing one, also in a database.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`].
    #[crate::boxed]
    pub async fn open_at(address: &StoreAddress) -> Result<OpenedStore, LedgerError> {
        match address {
            StoreAddress::File(path) => Store::open(path).await,
            #[cfg(feature = "postgres")]
            StoreAddress::Postgres { url, dir } => {
                address.check().map_err(|refused| {
                    unavailable(format!("cannot use the address {address} of a ledger"), refused)
                })?;
                let mut created = false;
                let connected = async {
                    let (mut connection, is_new) = Box::pin(super::postgres::connect(url)).await?;
                    // Nothing is created locally before the server has answered. A user without write access can still
                    // read the ledger.
                    created = address.create_dir().is_ok();
                    connection.own_index = Some(open_log_index(dir).await?);
                    Ok((connection, is_new))
                };
                let (connection, is_new) =
                    connected.await.map_err(|error| no_answer_error(address, error))?;
                let store = Store::new(address.clone(), connection);
                if is_new && created {
                    ensure_ledger_key(dir)?;
                    store.note_founding_key().await?;
                }
                Ok(OpenedStore { store, quarantined: None, is_new: is_new && created })
            }
            #[cfg(not(feature = "postgres"))]
            StoreAddress::Postgres { .. } => Err(LedgerError::Unavailable {
                what: format!(
                    "the ledger {address} needs the feature `postgres`, which this program was built without"
                ),
                source: None,
            }),
        }
    }

    /// Quarantines a corrupt ledger and starts a new one. Checks again under a lock that it is corrupt, because another
    /// process may have been faster. Moves the files beside it first: once the main file is gone, other processes
    /// create a new one with its own log.
    async fn replace_broken(path: &Path, dir: &Path) -> Result<OpenedStore, LedgerError> {
        let lock = files::open(dir).and_then(|dir| dir.lock().map(|()| dir));
        let _lock = lock.map_err(|error| unavailable(format!("cannot lock {}", dir.display()), error))?;
        let mut quarantined = None;
        if connect(path).await.is_err_and(|error| is_corrupt(&error)) {
            let beside = ["-wal", "-shm"].map(|suffix| with_suffix(path, suffix));
            for file in beside.iter().filter(|file| file.exists()).map(PathBuf::as_path).chain([path]) {
                match files::quarantine_file(dir, file) {
                    Ok(piece) => quarantined = Some(piece),
                    // The last process that had it open removed the files beside it.
                    Err(error) if file != path && error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => {
                        return Err(unavailable(format!("cannot set {} aside", file.display()), error));
                    }
                }
            }
        }
        // The new ledger has its own checkpoints.
        if quarantined.is_some() {
            let begun = CheckpointFiles::new(&path.into(), None).quarantine();
            begun.map_err(|error| {
                unavailable("cannot move its saved checkpoint to `aside/`".to_owned(), error)
            })?;
        }
        let connected = connect(path).await.map_err(|error| no_answer_error(&path.into(), error))?;
        let is_new = quarantined.is_some();
        Ok(OpenedStore { store: new_store(path, connected), quarantined, is_new })
    }
}

fn new_store(path: &Path, (connection, closed_to_writers): SqliteOpened) -> Store {
    Store::new(path.into(), Connection::new(Engine::Sqlite(connection), closed_to_writers, Arc::default()))
}

/// Opens the log's index for a ledger in a database. It can be rebuilt at any time; without write access it lasts as
/// long as the process.
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

/// Creates the ledger's key, unless there is one.
fn ensure_ledger_key(dir: &Path) -> Result<(), LedgerError> {
    let keys = keys::KeyDirectory::new(dir);
    let cannot =
        |error| unavailable(format!("cannot create the key of the ledger in {}", dir.display()), error);
    keys.load_or_create(KeyPurpose::Ledger).map(drop).map_err(cannot)
}

/// The options for opening a writable file.
fn write_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(false)
        .busy_timeout(LOCK_TIMEOUT)
        // Overwrite erased content (D4).
        .pragma("secure_delete", "ON")
        .disable_statement_logging()
}

async fn connect(path: &Path) -> Result<SqliteOpened, sqlx::Error> {
    let mut connection = connect_with_retry(path).await?;
    match prepare(&mut connection).await {
        Ok(closed_to_writers) => Ok((connection, closed_to_writers)),
        Err(error) => {
            // Closed immediately: that removes the files beside it, and the caller may be about to move it.
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
            return Ok(Some(super::newer_schema(version, SCHEMAS.len())));
        }
        _ => {}
    }
    ensure_own_schema(connection, Schema::Own).await?;
    let may_write = may_write(connection).await?;
    Ok((!may_write).then(|| NOT_WRITABLE.to_owned()))
}

/// Whether the file is writable. SQLite opens a protected file without an error, and reports it at the first write.
async fn may_write(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let busy = |time: Duration| AssertSqlSafe(format!("PRAGMA busy_timeout = {}", time.as_millis()));
    sqlx::raw_sql(busy(Duration::ZERO)).execute(&mut *connection).await?;
    // SQLite begins a transaction on a protected file, and then refuses any write, even one without effect.
    let written = sqlx::raw_sql("BEGIN IMMEDIATE; DELETE FROM held WHERE 0").execute(&mut *connection).await;
    // The file is missing if another process moved it.
    let _ = sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await;
    sqlx::raw_sql(busy(LOCK_TIMEOUT)).execute(&mut *connection).await?;
    match written {
        Err(error) if primary_code(&error) == Some(8) => Ok(false),
        // Another process is writing at this moment.
        Err(error) if is_busy(&error) => Ok(true),
        done => done.map(|_| true),
    }
}

/// Opens a ledger in a read-only location.
async fn connect_read_only(path: &Path) -> Result<SqliteOpened, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(LOCK_TIMEOUT);
    let opened = options.clone().disable_statement_logging().connect().await;
    let read = match opened {
        Ok(mut connection) => schema_version(&mut connection).await.map(|version| (connection, version)),
        Err(error) => Err(error),
    };
    let (mut connection, version) = match read {
        Ok(read) => read,
        // SQLite needs a file beside the database to read its log. If the log is missing and no such file can be
        // created, no process writes.
        Err(_) if !wal_path(path).is_file() => {
            let mut connection = options.immutable(true).disable_statement_logging().connect().await?;
            let version = schema_version(&mut connection).await?;
            (connection, version)
        }
        Err(error) => return Err(error),
    };
    if version == 0 {
        return Err(sqlx::Error::Configuration("it has no tables yet".into()));
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

/// Creates the tables, or those that an older file lacks, unless another process was faster.
async fn migrate(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let version = schema_version(&mut transaction).await?;
    if version == 0 {
        let tables = sqlx::query("SELECT COUNT(*) FROM sqlite_master").fetch_one(&mut *transaction).await?;
        if tables.get::<i64, _>(0) > 0 {
            return Err(sqlx::Error::Configuration("it belongs to another program".into()));
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

/// Whether SQLite reports that another process has locked the file (5) or a table (6).
fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(5 | 6))
}

/// Whether SQLite reports that the file is not a database (26) or is corrupt (11).
fn is_corrupt(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(26 | 11))
}

/// Whether a file that is not a database may be quarantined. A draft that was passed as the ledger by mistake stays
/// where it is.
fn has_ledger_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("db" | "sqlite" | "sqlite3"))
        || path.parent().and_then(Path::file_name).is_some_and(|dir| dir == ".quorate")
}

/// The statements that create the tables and indexes of this version, one per line.
static OWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all = SCHEMAS.iter().flat_map(|schema| statements(schema));
    all.filter(|statement| statement.starts_with("CREATE ")).collect()
});

/// The tables and indexes that a file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema {
    /// Those of this version, exactly.
    Own,
    /// Any, because those of another version are unknown.
    Any,
}

/// The first item in a file's schema that does not belong to a ledger.
#[derive(Debug, thiserror::Error)]
#[error("its {kind} `{name}` does not belong to a ledger")]
pub(super) struct Foreign {
    kind: String,
    name: String,
    /// The table of the item.
    table: String,
}

impl Foreign {
    /// The error for a foreign schema, if `error` is one.
    pub(super) fn refusal(address: &StoreAddress, error: &sqlx::Error) -> Option<LedgerError> {
        let sqlx::Error::Configuration(error) = error else { return None };
        let Foreign { kind, name, table } = error.downcast_ref()?;
        let stands_for_own = OWN.iter().any(|own| declared_name(own).eq_ignore_ascii_case(name));
        let what = match &**kind {
            "table" | "index" if stands_for_own => {
                format!("the {kind} `{name}` of the ledger {address} differs from the schema")
            }
            "trigger" => {
                format!("the ledger {address} has a foreign trigger `{name}` on the table `{table}`")
            }
            "index" => format!("the ledger {address} has a foreign index `{name}`"),
            kind => format!("the ledger {address} has a foreign {kind} `{name}`"),
        };
        let command = format!("DROP {} \"{}\"", kind.to_ascii_uppercase(), name.replace('"', "\"\""));
        Some(LedgerError::ForeignSchema { what, remove: (!stands_for_own).then_some(command) })
    }
}

/// Checks a file's schema before any table is read or written. The database's driver cannot handle a schema text that
/// is not SQL.
///
/// # Errors
/// [`Foreign`], as [`sqlx::Error::Configuration`], and if the file cannot be read.
pub(super) async fn ensure_own_schema(
    connection: &mut SqliteConnection,
    schema: Schema,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(
        "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB), \
         CAST(rootpage AS INTEGER) FROM sqlite_master",
    );
    for row in rows.fetch_all(connection).await? {
        let text = |at: usize| {
            let bytes: Option<Vec<u8>> = row.try_get(at)?;
            String::from_utf8(bytes.unwrap_or_default())
                .map_err(|_| sqlx::Error::Protocol("its schema cannot be read".into()))
        };
        let (kind, name, table, sql) = (text(0)?, text(1)?, text(2)?, text(3)?);
        // A virtual table, whose rows come from a module, has no page.
        let is_stored = row.try_get::<i64, _>(4)? > 0;
        let is_known = match schema {
            // Names with this prefix belong to SQLite.
            Schema::Own => {
                name.starts_with("sqlite_") || matches!(&*statements(&sql), [one] if OWN.contains(one))
            }
            Schema::Any => true,
        };
        if !(matches!(&*kind, "table" | "index") && is_stored && is_known) {
            return Err(sqlx::Error::Configuration(Box::new(Foreign { kind, name, table })));
        }
    }
    Ok(())
}

/// The statements in a text, one per line. The ledger's own texts have no comments within a line.
fn statements(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let statements = lines.join(" ");
    let statements =
        statements.split(';').map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" "));
    statements.filter(|statement| !statement.is_empty()).collect()
}

/// The name in `CREATE TABLE name` or `CREATE INDEX name`.
fn declared_name(statement: &str) -> &str {
    statement.split(' ').nth(2).unwrap_or_default()
}
