//! A database of ours: one SQLite file that keeps conversations and states, of any number of runtimes.
//!
//! It is opened when it is first needed, and made if it is not there. A file that is something else is left as it is
//! and refused by name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_kernel::ports::executor::ConfigError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::file_stamp::FileStamp;

const SCHEMA: &str = include_str!("database/schema.sql");
/// The version of [`SCHEMA`], kept in SQLite's `user_version`.
const SCHEMA_VERSION: i64 = 1;
/// Says in SQLite's `application_id` that a file is ours: `Qtlk`.
const APPLICATION_ID: i64 = 0x5174_6c6b;
/// How long to wait for another process's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is tried again where SQLite does not wait, and after how long.
const MAX_OPEN_ATTEMPTS: u32 = 500;
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// What went wrong: what was attempted, and where it comes from.
#[derive(Debug)]
pub(crate) struct DatabaseError {
    pub(crate) message: String,
    pub(crate) source: Option<sqlx::Error>,
}

/// The file, with one connection.
pub(crate) struct Database {
    path: PathBuf,
    /// Whether a commit is to survive the loss of power.
    durable: bool,
    open_database: Mutex<Option<OpenDatabase>>,
}

struct OpenDatabase {
    connection: SqliteConnection,
    /// Which file it is.
    file_id: Option<(u64, u64)>,
}

impl Database {
    /// The database at a path; nothing is opened yet.
    ///
    /// # Errors
    /// When the path is a folder, or none.
    pub(crate) fn new(dir: &Path, path: &str, durable: bool) -> Result<Self, ConfigError> {
        let path = std::path::absolute(dir.join(path))
            .map_err(|error| ConfigError::for_key("path", format!("`{path}` is no path: {error}")))?;
        if path.is_dir() {
            let message = format!("`{}` is a folder; a database is a file", path.display());
            return Err(ConfigError::for_key("path", message)
                .with_help("name a file in it; it is made when it is needed"));
        }
        Ok(Database { path, durable, open_database: Mutex::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What SQLite says, as a failure of this database.
    pub(crate) fn error(&self, source: sqlx::Error) -> DatabaseError {
        DatabaseError {
            message: format!("the database {} does not answer", self.path.display()),
            source: Some(source),
        }
    }

    pub(crate) async fn connection(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, DatabaseError> {
        let mut open_database = self.open_database.lock().await;
        // SQLite would go on writing into a file that somebody has deleted or replaced.
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
                // Whoever makes the file at the same moment is done soon, and SQLite does not wait for that.
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
        let message = format!("{} is {what}; it is left as it is: name another `path`", self.path.display());
        DatabaseError { message, source: None }
    }
}

/// A connection, and what the file is where it is not ours.
async fn connect(options: &SqliteConnectOptions) -> Result<(SqliteConnection, Option<String>), sqlx::Error> {
    let mut connection = options.connect().await?;
    let other = ensure_schema(&mut connection).await?;
    if other.is_none() {
        // Only now: this is kept in the file, which may have been somebody else's.
        sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut connection).await?;
    }
    Ok((connection, other))
}

/// Makes the tables in an empty file; what it is instead, where it is not ours.
async fn ensure_schema(connection: &mut SqliteConnection) -> Result<Option<String>, sqlx::Error> {
    // In a transaction, so that nobody makes the tables between two looks.
    let mut transaction = connection.begin().await?;
    if let Some(known) = identify(&mut transaction).await? {
        return Ok(known.err());
    }
    transaction.rollback().await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Somebody else may have been faster.
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

/// Whether a file is ours, or what it is instead; `None` where there is nothing in it.
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

/// Whether SQLite says that somebody else is at it.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<i32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Whether SQLite says that the file is no database, or a broken one.
fn is_no_database(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("26" | "11"))
}
