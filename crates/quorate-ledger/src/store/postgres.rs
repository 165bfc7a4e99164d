//! A ledger in a Postgres database, which several machines write to. Whoever writes takes one lock first, so records have
//! their places in the order of the commits and no place is left out. The index of the log is in a file of this machine.

mod options;
mod server_error;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::Durability;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use super::connection::Connection;
use super::engine::{Column, Engine, sql};
use super::timeouts::{RESPONSE_TIMEOUT, Timeouts};

pub use options::InvalidAddress;
pub(super) use options::connect_options;

/// What brings a database from one version of the schema to the next; the table `quorate_schema` counts them.
const SCHEMAS: [&str; 1] = [include_str!("postgres/schema.sql")];
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long taking leave of the server may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long rewriting a table may take.
const REWRITE_TIMEOUT: Duration = Duration::from_secs(3_600);

/// What holds for a connection. A wait for a lock ends at the server before the client gives the server up, and is then
/// begun again; a client that has the lock and is silent loses it, and so does one whose machine is gone. A server that
/// acknowledges before it has synced is told not to.
const SESSION: &str = "SET lock_timeout = '15s'; \
    SET idle_in_transaction_session_timeout = '30s'; \
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '25s'; \
    SET client_min_messages = 'warning'; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// The lock of the schema's making, which other schemas of the database may share.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(8173521, hashtext(current_schema()))";

/// A writer is alone until the end of its transaction: the key is the table's own. While a table is being rewritten
/// nothing can be written to it: that is waited for here, where a wait that took too long can be begun again.
macro_rules! lock {
    () => {
        "SELECT pg_advisory_xact_lock(8173521 * 4294967296 + CAST('record'::regclass::oid AS BIGINT)); \
         LOCK TABLE record, body IN ROW EXCLUSIVE MODE"
    };
}

/// A connection to a server.
pub(crate) struct Server {
    /// Dropped as soon as it is lost, so that the server ends what is open on it and lets go of its locks.
    connection: Option<PgConnection>,
    options: PgConnectOptions,
    log_index: SqliteConnection,
    timeouts: Arc<Timeouts>,
    /// Whether a transaction is open.
    in_transaction: bool,
}

/// What is done to begin a transaction that writes. What was looked up before it began may be out of date; what is looked
/// up after it has the lock is not.
pub(super) fn begin_statement(durability: Durability) -> &'static str {
    match durability {
        // The server's own process writes it: it survives the death of ours, and of the server's process too.
        Durability::Written => {
            concat!("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off; ", lock!())
        }
        Durability::Synced => concat!("BEGIN ISOLATION LEVEL READ COMMITTED; ", lock!()),
    }
}

impl Server {
    /// Connects, making the tables where there are none; says whether there were.
    ///
    /// # Errors
    /// When the address is none, or the server does not answer.
    pub(super) async fn connect(
        url: &str,
        log_index: impl Future<Output = Result<SqliteConnection, sqlx::Error>>,
    ) -> Result<(Connection, bool), sqlx::Error> {
        let options =
            connect_options(url).map_err(|refused| sqlx::Error::Configuration(Box::new(refused)))?;
        let timeouts = Arc::<Timeouts>::default();
        let connection = Some(open(&options, &timeouts).await?);
        let server = Server {
            connection,
            options,
            log_index: log_index.await?,
            timeouts: timeouts.clone(),
            in_transaction: false,
        };
        let mut engine = Engine::Postgres(Box::new(server));
        let mut version = schema_version(&mut engine).await?;
        let mut is_new = false;
        if version < SCHEMAS.len() {
            let before;
            (before, version) = migrate(&mut engine).await?;
            is_new = before == 0;
        }
        let closed = if version > SCHEMAS.len() {
            Some(newer_schema(version))
        } else {
            read_only_reason(&mut engine).await?
        };
        Ok((Connection::new(engine, closed, timeouts), is_new))
    }

    /// The connection, with what waits for the server on it; an error where it was lost.
    pub(super) fn connection_and_wait(&mut self) -> Result<(&mut PgConnection, Wait), sqlx::Error> {
        let wait = Wait { timeouts: self.timeouts.clone(), limit: RESPONSE_TIMEOUT };
        match &mut self.connection {
            Some(connection) => Ok((connection, wait)),
            None => {
                Err(io_error(io::ErrorKind::NotConnected, "the connection to the server was lost".to_owned()))
            }
        }
    }

    /// Begins to read in one snapshot, waiting for tables that are being rewritten.
    pub(super) async fn begin_read(&mut self) -> Result<(), sqlx::Error> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
            LOCK TABLE record, body IN ACCESS SHARE MODE";
        let began = tokio::time::Instant::now();
        loop {
            match self.execute_raw(BEGIN).await {
                Err(error) if is_locked(&error) => {
                    self.execute_raw("ROLLBACK").await?;
                    if !self.pause_before_retry(began).await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Pauses before something is tried again that another process was in the way of since `began`; `false` where that
    /// has been going on for too long.
    pub(super) async fn pause_before_retry(&self, began: tokio::time::Instant) -> bool {
        self.timeouts.pause_before_retry(began).await
    }

    /// Whether there is a connection: one that was lost is made again by the next use.
    pub(super) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Whether a transaction is open.
    pub(super) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// A statement without values or answers.
    pub(super) async fn execute_raw(&mut self, text: &'static str) -> Result<(), sqlx::Error> {
        if text.starts_with("BEGIN") {
            self.in_transaction = true;
        }
        let (connection, mut wait) = self.connection_and_wait()?;
        if text.starts_with("VACUUM") {
            wait.limit = REWRITE_TIMEOUT;
        }
        let done = wait.on(sqlx::raw_sql(text).execute(connection)).await;
        if text.ends_with("COMMIT") || text == "ROLLBACK" {
            self.in_transaction = false;
        }
        self.track_result(done).map(|_| ())
    }

    pub(super) fn log_index(&mut self) -> &mut SqliteConnection {
        &mut self.log_index
    }

    /// Takes note of what a statement came to.
    pub(super) fn track_result<T>(&mut self, done: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        if done.as_ref().is_err_and(is_lost) {
            self.connection = None;
            self.in_transaction = false;
        }
        done
    }

    /// Connects again where the connection was lost.
    pub(super) async fn reconnect(&mut self) -> Result<(), sqlx::Error> {
        if self.connection.is_none() {
            self.connection = Some(open(&self.options, &self.timeouts).await?);
        }
        Ok(())
    }

    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        let closed = match self.connection {
            Some(connection) => {
                Wait { timeouts: self.timeouts, limit: CLOSE_TIMEOUT }.on(connection.close()).await
            }
            None => Ok(()),
        };
        self.log_index.close().await.and(closed)
    }
}

/// A wait for the server.
pub(super) struct Wait {
    timeouts: Arc<Timeouts>,
    limit: Duration,
}

impl Wait {
    /// Waits for an answer; a server that says nothing for too long is given up.
    pub(super) async fn on<T>(
        &self,
        answer: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let began = tokio::time::Instant::now();
        self.timeouts
            .within(self.limit, answer)
            .await
            .unwrap_or_else(|| {
                let what = format!("the server did not answer within {:.0?}", began.elapsed());
                Err(io_error(io::ErrorKind::TimedOut, what))
            })
            .map_err(server_error::without_line_number)
    }
}

fn io_error(kind: io::ErrorKind, what: String) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(kind, what))
}

/// Whether the server says that a lock was not to be had in time.
pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("55P03"))
}

async fn open(options: &PgConnectOptions, patience: &Arc<Timeouts>) -> Result<PgConnection, sqlx::Error> {
    let connecting = async {
        let mut connection = options.connect().await?;
        sqlx::raw_sql(SESSION).execute(&mut connection).await?;
        Ok(connection)
    };
    Wait { timeouts: patience.clone(), limit: CONNECT_TIMEOUT }.on(connecting).await
}

/// Whether there is no connection any more, or no knowing what comes next on it: an error of the system or of the
/// protocol, or of classes 08 (connection) and 57P (ended by the operator) of Postgres.
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("57P") || code == "25P03"),
        error => matches!(error, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_)),
    }
}

/// Whether a connection finds a table of this name. The catalogue is asked and not `to_regclass`, which answers from what
/// the session remembers: of a name that it has looked up before, it does not see that another one has made it since.
const TABLE: &str = "SELECT CAST(pg_class.oid AS BIGINT) FROM pg_catalog.pg_class \
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace \
    WHERE CAST(relname AS TEXT) = $1 AND nspname = ANY (current_schemas(false))";

async fn has_table(engine: &mut Engine, name: &str) -> Result<bool, sqlx::Error> {
    Ok(sql(TABLE).bind(name).row(engine, &[Column::Int]).await?.is_some())
}

/// The version of the tables; 0 where there are none.
async fn schema_version(engine: &mut Engine) -> Result<usize, sqlx::Error> {
    if !has_table(engine, "quorate_schema").await? {
        return Ok(0);
    }
    let version = sql("SELECT MAX(version) FROM quorate_schema").row(engine, &[Column::Int]).await?;
    Ok(version.map_or(0, |row| usize::try_from(row.int(0)).unwrap_or(usize::MAX)))
}

/// Makes the tables, or those that are missing, unless another process was faster. Gives the version that was there, and the
/// one that is.
async fn migrate(engine: &mut Engine) -> Result<(usize, usize), sqlx::Error> {
    engine.execute_raw("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    engine.execute_raw(MIGRATION_LOCK).await?;
    let version = schema_version(engine).await?;
    if version >= SCHEMAS.len() {
        engine.roll_back().await?;
        return Ok((version, version));
    }
    if version == 0 {
        if has_table(engine, "record").await? {
            return Err(unusable(
                "it has a table `record` of something else; name a schema or database of its own",
            ));
        }
        let encoding = sql("SELECT current_setting('server_encoding')").row(engine, &[Column::Text]).await?;
        if encoding.is_some_and(|row| row.text(0) != "UTF8") {
            return Err(unusable("its encoding is not UTF8; make a database with `ENCODING 'UTF8'`"));
        }
    }
    for schema in SCHEMAS.iter().skip(version) {
        engine.execute_raw(schema).await?;
    }
    let update = sql("UPDATE quorate_schema SET version = $1").bind(SCHEMAS.len() as u64);
    update.execute(engine).await?;
    engine.commit().await?;
    Ok((version, SCHEMAS.len()))
}

fn unusable(why: &'static str) -> sqlx::Error {
    sqlx::Error::Configuration(why.into())
}

fn newer_schema(version: usize) -> String {
    let ours = SCHEMAS.len();
    format!("its schema is version {version}, and this program writes version {ours}: it is only read")
}

/// Why nothing can be written by this user on this server.
async fn read_only_reason(engine: &mut Engine) -> Result<Option<String>, sqlx::Error> {
    let row = sql("SELECT CASE WHEN pg_is_in_recovery() THEN 'the server is a copy of another' \
         WHEN current_setting('transaction_read_only') = 'on' THEN 'the server lets this user only read' \
         WHEN NOT has_table_privilege('record', 'INSERT') THEN 'this user may not write to it' END")
    .row(engine, &[Column::Text])
    .await?;
    Ok(row.and_then(|row| row.opt_text(0).map(|why| format!("{why}: it is only read"))))
}

/// What stands for a directory of this machine since it was started: processes that have the same one also have the
/// same locks. Where no such thing can be told, it is another each time.
pub(super) fn machine_id(dir: &Path) -> String {
    stable_machine_id(dir).unwrap_or_else(|| entropy::run_id().to_string())
}

#[cfg(target_os = "linux")]
fn stable_machine_id(dir: &Path) -> Option<String> {
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;
    let mut boot = String::new();
    super::files::open(Path::new("/proc/sys/kernel/random/boot_id")).ok()?.read_to_string(&mut boot).ok()?;
    let there = super::files::open(dir).ok()?.metadata().ok()?;
    Some(entropy::sha256_hex(format!("{boot}{}/{}", there.dev(), there.ino()).as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn stable_machine_id(_: &Path) -> Option<String> {
    None
}

/// How many bytes the tables take on the server, with their indices.
pub(super) const SIZE: &str = "SELECT CAST(SUM(pg_total_relation_size(to_regclass(name))) AS BIGINT) FROM (VALUES \
    ('record'), ('body'), ('run'), ('signature'), ('tile'), ('checkpoint'), ('held'), ('imported')) AS tables (name)";

/// How many of the tables that things are erased from this user may rewrite: those of an owner that it is, those of a
/// database that is its own, and from version 17 on those that it was granted that for.
pub(super) const REWRITABLE_TABLES: &str = "SELECT COUNT(*) FROM pg_class JOIN pg_database ON datname = current_database() \
    WHERE pg_class.oid IN (to_regclass('record'), to_regclass('body')) AND (pg_has_role(relowner, 'USAGE') \
    OR pg_has_role(datdba, 'USAGE') OR CASE WHEN CAST(current_setting('server_version_num') AS BIGINT) >= 170000 \
    THEN has_table_privilege(pg_class.oid, 'MAINTAIN') ELSE FALSE END)";
