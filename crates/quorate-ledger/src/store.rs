//! The ledger on disk: one SQLite file in WAL mode, written by group commit.
//!
//! Whoever appends puts its records into a queue and then takes the one connection; who has the connection commits
//! everything that is queued in one transaction. So runs of one process share their syncs. A transaction is synced
//! only if somebody in it asked for that; a synced one makes everything before it durable too, since SQLite syncs the
//! whole log file.

pub(crate) mod connection;
pub mod files;
pub mod hold;
mod index;
mod queue;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::ports::ledger::{Append, Error, Ledger, Record};
use quorate_protocol::Name;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::aside::{self, Piece};
use crate::record::Chain;
use connection::Connection;
use queue::Queue;

const SCHEMA: &str = include_str!("store/schema.sql");
/// The version of [`SCHEMA`], kept in SQLite's `user_version`.
const SCHEMA_VERSION: i64 = 1;
/// How long to wait for another process's transaction.
const BUSY: Duration = Duration::from_secs(30);

/// The ledger in a SQLite file.
pub struct Store {
    path: PathBuf,
    connection: Arc<Mutex<Connection>>,
    queue: Arc<Queue>,
}

/// A ledger that was opened, and what had to be set aside for it.
pub struct Opened {
    /// The ledger.
    pub store: Store,
    /// A file that was no ledger and now lies in `aside/`.
    pub set_aside: Option<Piece>,
}

impl Store {
    /// Opens a ledger, making it (and a private `.quorate/` directory, if that is where it is to be) when it is not
    /// there. A broken ledger is moved to `aside/` and a new one is started.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn open(path: &Path) -> Result<Opened, Error> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let made = match dir.file_name() {
            Some(name) if name == ".quorate" => files::quorate_dir(dir),
            _ => files::private_dir(dir),
        };
        made.map_err(|error| unavailable(format!("cannot make {}", dir.display()), error))?;
        // SQLite finds what lies beside a file by name. Who has a broken file open while it is replaced would take the
        // new one's log for its own: nobody opens meanwhile.
        let opening = files::open(dir).and_then(|dir| dir.lock_shared().map(|()| dir));
        let connected = connect(path).await;
        drop(opening);
        match connected {
            Ok(connection) => Ok(Opened { store: Store::new(path, connection), set_aside: None }),
            Err(error) if is_corrupt(&error) && is_called_like_a_ledger(path) => {
                Store::start_anew(path, dir).await
            }
            Err(error) if is_corrupt(&error) => {
                Err(unavailable(format!("{} is no ledger", path.display()), error))
            }
            Err(error) => Err(sql(path, error)),
        }
    }

    /// Sets a broken ledger aside and starts a new one: under a lock, and only if it is broken still, since another
    /// process may have been faster. What lies beside it goes first: once the file itself is gone, others make a new
    /// one with a log of its own.
    async fn start_anew(path: &Path, dir: &Path) -> Result<Opened, Error> {
        let lock = files::open(dir).and_then(|dir| dir.lock().map(|()| dir));
        let _lock = lock.map_err(|error| unavailable(format!("cannot lock {}", dir.display()), error))?;
        let mut set_aside = None;
        if connect(path).await.is_err_and(|error| is_corrupt(&error)) {
            let beside = ["-wal", "-shm"].map(|suffix| {
                let mut beside = path.as_os_str().to_owned();
                beside.push(suffix);
                PathBuf::from(beside)
            });
            for file in beside.iter().filter(|file| file.exists()).map(PathBuf::as_path).chain([path]) {
                let piece = aside::take(dir, file)
                    .map_err(|error| unavailable(format!("cannot set {} aside", file.display()), error))?;
                set_aside = Some(piece);
            }
        }
        let connection = connect(path).await.map_err(|error| sql(path, error))?;
        Ok(Opened { store: Store::new(path, connection), set_aside })
    }

    fn new(path: &Path, connection: SqliteConnection) -> Self {
        Store {
            path: path.to_owned(),
            connection: Arc::new(Mutex::new(Connection::new(connection))),
            queue: Arc::default(),
        }
    }

    /// Where the ledger is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory that the ledger lies in.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The connection, for the queries of this crate's views.
    pub(crate) async fn connection(&self) -> MappedMutexGuard<'_, SqliteConnection> {
        MutexGuard::map(self.connection.lock().await, Connection::sqlite)
    }

    /// The connection, for an index that this crate writes.
    pub(crate) async fn writer(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().await
    }

    /// Closes the file; SQLite folds its log into it.
    pub async fn close(self) {
        let mut connection = self.connection;
        loop {
            match Arc::try_unwrap(connection) {
                // A failed close loses nothing: the log is folded in by the next one who opens.
                Ok(last) => return drop(last.into_inner().close().await),
                Err(shared) => connection = shared,
            }
            // A commit is just ending.
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn error(&self, error: sqlx::Error) -> Error {
        sql(&self.path, error)
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(false)
        .busy_timeout(BUSY)
        .disable_statement_logging();
    let mut connection = options.connect().await?;
    let version: i64 = sqlx::query("PRAGMA user_version").fetch_one(&mut connection).await?.get(0);
    if version == 0 {
        create(&mut connection).await?;
    } else if version != SCHEMA_VERSION {
        let what = format!("its schema is version {version}, and this program reads {SCHEMA_VERSION}");
        return Err(sqlx::Error::Configuration(what.into()));
    }
    Ok(connection)
}

/// Makes the tables, unless another process was faster.
async fn create(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let version: i64 = sqlx::query("PRAGMA user_version").fetch_one(&mut *transaction).await?.get(0);
    if version == 0 {
        let tables = sqlx::query("SELECT COUNT(*) FROM sqlite_master").fetch_one(&mut *transaction).await?;
        if tables.get::<i64, _>(0) > 0 {
            return Err(sqlx::Error::Configuration("it is a database of something else".into()));
        }
        sqlx::raw_sql(SCHEMA).execute(&mut *transaction).await?;
        sqlx::raw_sql("PRAGMA user_version = 1").execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

/// Whether SQLite says that the file is no database or a broken one.
fn is_corrupt(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("26" | "11"))
}

/// Whether a file that is no database may be moved out of the way. A draft that was named as the ledger by mistake
/// stays where it is.
fn is_called_like_a_ledger(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("db" | "sqlite" | "sqlite3"))
        || path.parent().and_then(Path::file_name).is_some_and(|dir| dir == ".quorate")
}

fn sql(path: &Path, error: sqlx::Error) -> Error {
    unavailable(format!("the ledger {} does not answer", path.display()), error)
}

fn unavailable(what: String, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Unavailable { what, source: Some(Box::new(source)) }
}

#[async_trait]
impl Ledger for Store {
    async fn append(&self, append: Append) -> Result<u64, Error> {
        let reply = self.queue.put(append)?;
        let (queue, connection, path) = (self.queue.clone(), self.connection.clone(), self.path.clone());
        // A task of its own: whoever asked may be dropped meanwhile, and others' records are in the same transaction.
        tokio::spawn(async move { queue.commit(&mut *connection.lock().await, &path).await });
        reply.await.unwrap_or_else(|_| {
            Err(Error::Unavailable { what: "the ledger's writer went away".into(), source: None })
        })
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, Error> {
        let mut connection = self.connection().await;
        let rows = sqlx::query("SELECT head, data FROM record WHERE run = ? ORDER BY n")
            .bind(&**run)
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| self.error(error))?;
        drop(connection);
        let mut chain = Chain::new(run);
        let record = |row: &sqlx::sqlite::SqliteRow| chain.take(row.get(0), row.get::<Option<&str>, _>(1));
        rows.iter().map(record).collect()
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, Error> {
        let mut connection = self.connection().await;
        // One more, for the hash that the first of them names.
        let rows = sqlx::query("SELECT n, head, data FROM record WHERE run = ? ORDER BY n DESC LIMIT ?")
            .bind(&**run)
            .bind(i64::from(count) + 1)
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| self.error(error))?;
        drop(connection);
        let before = rows.get(count as usize).map(|row| row.get::<&str, _>(1));
        let rows = &rows[..rows.len().min(count as usize)];
        let first = rows.last().map_or(0, |row| row.get::<i64, _>(0));
        let mut chain = Chain::after(run, u64::try_from(first).unwrap_or_default(), before);
        rows.iter().rev().map(|row| chain.take(row.get(1), row.get::<Option<&str>, _>(2))).collect()
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, Error> {
        let mut connection = self.connection().await;
        let row = sqlx::query("SELECT text FROM body WHERE sha256 = ?")
            .bind(sha256)
            .fetch_optional(&mut *connection)
            .await
            .map_err(|error| self.error(error))?;
        Ok(row.map(|row| row.get::<String, _>(0).into()))
    }
}
