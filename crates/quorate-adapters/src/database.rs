//! A Quorate database: one SQLite file with the conversations and states of any number of runtimes.
//!
//! It is opened, or created, at first use. A file of any other kind is refused and left unchanged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_kernel::ports::executor::ConfigError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use quorate_kernel::files::{FileStamp, real_path};

const SCHEMA: &str = include_str!("database/schema.sql");
/// The version of [`SCHEMA`], kept in SQLite's `user_version`.
const SCHEMA_VERSION: i64 = 1;
/// Marks a file as a Quorate database in SQLite's `application_id`: `Qtlk`.
const APPLICATION_ID: i64 = 0x5174_6c6b;
/// How long to wait for another process's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts and delay where SQLite reports a busy file without waiting.
const MAX_OPEN_ATTEMPTS: u32 = 500;
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// What was attempted, and its cause.
#[derive(Debug)]
pub(crate) struct DatabaseError {
    pub(crate) message: String,
    pub(crate) source: Option<sqlx::Error>,
}

pub(crate) struct Database {
    path: PathBuf,
    /// Whether a commit survives a power failure.
    durable: bool,
    open_database: Mutex<Option<OpenDatabase>>,
}

struct OpenDatabase {
    connection: SqliteConnection,
    /// Device and inode, to notice that the file was replaced.
    file_id: Option<(u64, u64)>,
}

impl Database {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// When the path is empty or a folder.
    pub(crate) fn new(dir: &Path, path: &str, durable: bool) -> Result<Self, ConfigError> {
        let path = std::path::absolute(dir.join(path))
            .map_err(|error| ConfigError::for_key("path", format!("`{path}` is not a path: {error}")))?;
        if path.is_dir() {
            let message = format!("`{}` is a folder; a database is a file", path.display());
            return Err(ConfigError::for_key("path", message)
                .with_help("name a file in it; it is made when it is needed"));
        }
        // One file is one conversation, whatever it is called.
        Ok(Database { path: real_path(&path), durable, open_database: Mutex::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Wraps an SQLite error with the path of this database.
    pub(crate) fn error(&self, source: sqlx::Error) -> DatabaseError {
        DatabaseError {
            message: format!("the database {} does not answer", self.path.display()),
            source: Some(source),
        }
    }

    pub(crate) async fn connection(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, DatabaseError> {
        let mut open_database = self.open_database.lock().await;
        // SQLite would keep writing into a file that was deleted or replaced.
        let file_id = FileStamp::of_path(&self.path).ok().flatten().map(|look| look.file_id);
        if open_database.as_ref().is_none_or(|opened| opened.file_id != file_id || file_id.is_none()) {
            *open_database = None;
            *open_database = Some(self.open().await?);
        }
        MutexGuard::try_map(open_database, |opened| opened.as_mut().map(|opened| &mut opened.connection))
            .map_err(|_| DatabaseError {
                message: format!("{} is closed", self.path.display()),
                source: None,
            })
    }

    #[expect(clippy::disallowed_methods, reason = "a database may be in a folder that is not there yet")]
    async fn open(&self) -> Result<OpenDatabase, DatabaseError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|error| self.error(sqlx::Error::Io(error)))?;
        let options = SqliteConnectOptions::new()
            .filename(&self.path)
            .create_if_missing(true)
            .synchronous(if self.durable { SqliteSynchronous::Full } else { SqliteSynchronous::Normal })
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let mut attempts = 0;
        let (connection, other) = loop {
            match connect(&options).await {
                Ok(opened) => break opened,
                Err(error) if is_no_database(&error) => return Err(self.refused("no database")),
                // Another process that creates the file at this moment finishes soon; SQLite does not wait for it.
                Err(error) if is_busy(&error) && attempts < MAX_OPEN_ATTEMPTS => attempts += 1,
                Err(error) => return Err(self.error(error)),
            }
            tokio::time::sleep(RETRY_DELAY).await;
        };
        match other {
            Some(what) => Err(self.refused(&what)),
            None => {
                let file_id = FileStamp::of_path(&self.path).ok().flatten().map(|look| look.file_id);
                Ok(OpenDatabase { connection, file_id })
            }
        }
    }

    fn refused(&self, what: &str) -> DatabaseError {
        let message =
            format!("{} is {what}; Quorate does not change it: name another `path`", self.path.display());
        DatabaseError { message, source: None }
    }
}

/// Opens a connection; the text says what the file is if it is not a Quorate database.
async fn connect(options: &SqliteConnectOptions) -> Result<(SqliteConnection, Option<String>), sqlx::Error> {
    let mut connection = options.connect().await?;
    let other = ensure_schema(&mut connection).await?;
    if other.is_none() {
        // Only after the check: this setting is stored in the file, which may belong to another program.
        sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut connection).await?;
    }
    Ok((connection, other))
}

/// Creates the tables in an empty file; the text says what the file is if it is not a Quorate database.
async fn ensure_schema(connection: &mut SqliteConnection) -> Result<Option<String>, sqlx::Error> {
    // In a transaction, so that no other process creates the tables between check and creation.
    let mut transaction = connection.begin().await?;
    if let Some(known) = identify(&mut transaction).await? {
        return Ok(known.err());
    }
    transaction.rollback().await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Another process may have created them before this transaction began.
    match identify(&mut transaction).await? {
        Some(known) => Ok(known.err()),
        None => {
            sqlx::raw_sql(SCHEMA).execute(&mut *transaction).await?;
            sqlx::raw_sql("PRAGMA application_id = 0x51746c6b; PRAGMA user_version = 1")
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(None)
        }
    }
}

/// Whether a file is a Quorate database, or a text that says what it is instead; `None` for an empty file.
async fn identify(connection: &mut SqliteConnection) -> Result<Option<Result<(), String>>, sqlx::Error> {
    let number = async |connection: &mut SqliteConnection, query: &'static str| {
        sqlx::query(query).fetch_one(connection).await.map(|row| row.get::<i64, _>(0))
    };
    let application = number(connection, "PRAGMA application_id").await?;
    let version = number(connection, "PRAGMA user_version").await?;
    if (application, version) == (APPLICATION_ID, SCHEMA_VERSION) {
        return Ok(Some(Ok(())));
    }
    if application == APPLICATION_ID {
        let message = format!("of version {version}, and this program reads version {SCHEMA_VERSION}");
        return Ok(Some(Err(message)));
    }
    let tables = number(connection, "SELECT COUNT(*) FROM sqlite_master").await?;
    match (application, version, tables) {
        (0, 0, 0) => Ok(None),
        _ => Ok(Some(Err("a database of something else".to_owned()))),
    }
}

/// Whether SQLite reports that another process holds a lock.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<i32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Whether SQLite reports that the file is not a database, or a corrupt one.
fn is_no_database(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("26" | "11"))
}
