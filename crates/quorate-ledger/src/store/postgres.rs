//! A ledger in a Postgres database, which several machines write to. Whoever writes takes one lock first, so records have
//! their places in the order of the commits and no place is left out. The index of the log is in a file of this machine.

use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::Durability;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use super::connection::Connection;
use super::engine::{Column, Engine, sql};

/// What brings a database from one version of the schema to the next; the table `quorate_schema` counts them.
const SCHEMAS: [&str; 1] = [include_str!("postgres/schema.sql")];
/// How long the server may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);

/// What holds for a connection. Who waits for the lock does so for a while; who has it and is not heard of any more loses
/// it, and so does one whose machine is gone. A server that acknowledges before it has synced is told not to.
const SESSION: &str = "SET lock_timeout = '30s'; \
    SET idle_in_transaction_session_timeout = '30s'; \
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; \
    SET client_min_messages = 'warning'; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// The lock of the schema's making, which other schemas of the database may share.
const LOCK_TO_MAKE: &str = "SELECT pg_advisory_xact_lock(8173521, hashtext(current_schema()))";

/// Whoever writes is alone until the end of its transaction: the key is the table's own.
macro_rules! lock {
    () => {
        "SELECT pg_advisory_xact_lock(8173521 * 4294967296 + CAST('record'::regclass::oid AS BIGINT))"
    };
}

/// A connection to a server.
pub(crate) struct Server {
    connection: PgConnection,
    options: PgConnectOptions,
    log_index: SqliteConnection,
    /// Whether the connection was lost.
    lost: bool,
}

/// What is done to begin a transaction that writes. What was looked up before it began may be out of date; what is looked
/// up after it has the lock is not.
pub(super) fn begin(durability: Durability) -> &'static str {
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
        let options = PgConnectOptions::from_str(url)?.disable_statement_logging();
        let options = match options.get_application_name() {
            None => options.application_name("quorate"),
            Some(_) => options,
        };
        let connection = open(&options).await?;
        let log_index = log_index.await?;
        let mut engine = Engine::Postgres(Box::new(Server { connection, options, log_index, lost: false }));
        let mut version = version(&mut engine).await?;
        let is_new = version == 0;
        if version < SCHEMAS.len() {
            version = bring_up_to_date(&mut engine).await?;
        }
        let closed =
            if version > SCHEMAS.len() { Some(newer(version)) } else { read_only(&mut engine).await? };
        Ok((Connection::new(engine, closed), is_new))
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    pub(super) fn log_index(&mut self) -> &mut SqliteConnection {
        &mut self.log_index
    }

    /// Takes note of what a statement came to.
    pub(super) fn noted<T>(&mut self, done: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        self.lost |= done.as_ref().is_err_and(is_lost);
        done
    }

    /// Connects again where the connection was lost.
    pub(super) async fn revive(&mut self) -> Result<(), sqlx::Error> {
        if self.lost {
            self.connection = open(&self.options).await?;
            self.lost = false;
        }
        Ok(())
    }

    /// Closes it.
    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        let closed = self.connection.close().await;
        self.log_index.close().await.and(closed)
    }
}

async fn open(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    let connecting = async {
        let mut connection = options.connect().await?;
        sqlx::raw_sql(SESSION).execute(&mut connection).await?;
        Ok(connection)
    };
    let late = |_| sqlx::Error::Protocol(format!("it did not answer within {} s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, connecting).await.map_err(late)?
}

/// Whether there is no connection any more, or no knowing what comes next on it: an error of the system or of the
/// protocol, or of classes 08 (connection) and 57P (ended by the operator) of Postgres.
fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("57P") || code == "25P03"),
        error => matches!(error, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_)),
    }
}

/// The version of the tables; 0 where there are none.
async fn version(engine: &mut Engine) -> Result<usize, sqlx::Error> {
    let table =
        sql("SELECT CAST(to_regclass('quorate_schema') AS TEXT)").row(engine, &[Column::Text]).await?;
    if table.is_none_or(|row| row.some_text(0).is_none()) {
        return Ok(0);
    }
    let version = sql("SELECT MAX(version) FROM quorate_schema").row(engine, &[Column::Int]).await?;
    Ok(version.map_or(0, |row| usize::try_from(row.int(0)).unwrap_or(usize::MAX)))
}

/// Makes the tables, or those that are missing, unless another process was faster.
async fn bring_up_to_date(engine: &mut Engine) -> Result<usize, sqlx::Error> {
    engine.raw("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    engine.raw(LOCK_TO_MAKE).await?;
    let version = version(engine).await?;
    if version >= SCHEMAS.len() {
        engine.roll_back().await?;
        return Ok(version);
    }
    if version == 0 {
        let there = sql("SELECT CAST(to_regclass('record') AS TEXT), current_setting('server_encoding')")
            .row(engine, &[Column::Text; 2])
            .await?;
        if there.as_ref().is_some_and(|row| row.some_text(0).is_some()) {
            return Err(unusable(
                "it has a table `record` of something else; name a schema or database of its own",
            ));
        }
        if there.is_some_and(|row| row.text(1) != "UTF8") {
            return Err(unusable("its encoding is not UTF8; make a database with `ENCODING 'UTF8'`"));
        }
    }
    for schema in SCHEMAS.iter().skip(version) {
        engine.raw(schema).await?;
    }
    let update = sql("UPDATE quorate_schema SET version = $1").bind(SCHEMAS.len() as u64);
    update.execute(engine).await?;
    engine.commit().await?;
    Ok(SCHEMAS.len())
}

fn unusable(why: &'static str) -> sqlx::Error {
    sqlx::Error::Configuration(why.into())
}

fn newer(version: usize) -> String {
    let ours = SCHEMAS.len();
    format!("its schema is version {version}, and this program writes version {ours}: it is only read")
}

/// Why nothing can be written by this user on this server.
async fn read_only(engine: &mut Engine) -> Result<Option<String>, sqlx::Error> {
    let row = sql("SELECT CASE WHEN pg_is_in_recovery() THEN 'the server is a copy of another' \
         WHEN current_setting('transaction_read_only') = 'on' THEN 'the server lets this user only read' \
         WHEN NOT has_table_privilege('record', 'INSERT') THEN 'this user may not write to it' END")
    .row(engine, &[Column::Text])
    .await?;
    Ok(row.and_then(|row| row.some_text(0).map(|why| format!("{why}: it is only read"))))
}

/// What stands for a directory of this machine since it was started: processes that have the same one also have the
/// same locks. Where no such thing can be told, it is another each time.
pub(super) fn place(dir: &Path) -> String {
    known(dir).unwrap_or_else(|| entropy::run_id().to_string())
}

#[cfg(target_os = "linux")]
fn known(dir: &Path) -> Option<String> {
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;
    let mut boot = String::new();
    super::files::open(Path::new("/proc/sys/kernel/random/boot_id")).ok()?.read_to_string(&mut boot).ok()?;
    let there = super::files::open(dir).ok()?.metadata().ok()?;
    Some(entropy::sha256_hex(format!("{boot}{}/{}", there.dev(), there.ino()).as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn known(_: &Path) -> Option<String> {
    None
}

/// How many bytes the tables take on the server, with their indices.
pub(super) const SIZE: &str = "SELECT CAST(SUM(pg_total_relation_size(to_regclass(name))) AS BIGINT) FROM (VALUES \
    ('record'), ('body'), ('run'), ('signature'), ('tile'), ('checkpoint'), ('held'), ('imported')) AS tables (name)";
