//! A ledger in a Postgres database, which several machines write to. A writer acquires one lock first, so records have
//! positions in the order of the commits, without gaps. The index of the log is in a local file.

mod options;
pub(super) mod server;

use std::error::Error as StdError;
use std::path::Path;
use std::sync::Arc;

use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::LedgerError;
use sqlx::postgres::{PgArguments, PgRow};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::Connection;
use super::engine::{Column, Engine, sql};
use super::timeouts::Timeouts;
#[cfg(target_os = "linux")]
use crate::files;
use crate::store::Store;
use crate::store::address::StoreAddress;
use crate::store::timeouts::RESTART_TIMEOUT;
use server::{Server, is_absent};

pub use options::InvalidAddress;
pub(super) use options::connect_options;

/// Migrations from each version of the schema to the next. The table `quorate_schema` counts them.
const SCHEMAS: [&str; 5] = [
    include_str!("postgres/schema.sql"),
    include_str!("postgres/schema-2.sql"),
    include_str!("postgres/schema-3.sql"),
    include_str!("postgres/schema-4.sql"),
    include_str!("postgres/schema-5.sql"),
];
/// The lock for creating the schema, which other schemas of the database may share.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(8173521, hashtext(current_schema()))";

/// Connects, and creates missing tables. Returns whether they existed.
///
/// # Errors
/// If the address is invalid, or the server does not answer.
pub(super) async fn connect(url: &str) -> Result<(Connection, bool), sqlx::Error> {
    let options = connect_options(url).map_err(|refused| sqlx::Error::Configuration(Box::new(refused)))?;
    let timeouts = Arc::<Timeouts>::default();
    let server = Server::connect(options, timeouts.clone()).await?;
    let mut engine = Engine::Postgres(Box::new(server));
    let mut version = schema_version(&mut engine).await?;
    let mut is_new = false;
    if version < SCHEMAS.len() {
        let before;
        (before, version) = migrate(&mut engine).await?;
        is_new = before == 0;
    }
    let closed = if version > SCHEMAS.len() {
        Some(super::newer_schema(version, SCHEMAS.len()))
    } else {
        read_only_reason(&mut engine).await?
    };
    Ok((Connection::new(engine, closed, timeouts), is_new))
}

/// Whether a connection finds a table of this name. Reads the catalogue, because `to_regclass` answers from the
/// session's cache, which misses a table that another session created after the first lookup.
const TABLE: &str = "SELECT CAST(pg_class.oid AS BIGINT) FROM pg_catalog.pg_class \
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace \
    WHERE CAST(relname AS TEXT) = $1 AND nspname = ANY (current_schemas(false))";

async fn has_table(engine: &mut Engine, name: &str) -> Result<bool, sqlx::Error> {
    Ok(sql(TABLE).bind(name).row(engine, &[Column::Int]).await?.is_some())
}

/// The version of the tables; 0 without tables.
async fn schema_version(engine: &mut Engine) -> Result<usize, sqlx::Error> {
    if !has_table(engine, "quorate_schema").await? {
        return Ok(0);
    }
    let version = sql("SELECT MAX(version) FROM quorate_schema").row(engine, &[Column::Int]).await?;
    Ok(version.map_or(0, |row| usize::try_from(row.int(0)).unwrap_or(usize::MAX)))
}

/// Creates the tables, or the missing ones, unless another process was faster. Returns the old and the new version.
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
                "it has a table `record` of another program; use a separate schema or database",
            ));
        }
        let encoding = sql("SELECT current_setting('server_encoding')").row(engine, &[Column::Text]).await?;
        if encoding.is_some_and(|row| row.text(0) != "UTF8") {
            return Err(unusable("its encoding is not UTF8; create a database with `ENCODING 'UTF8'`"));
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

/// Why this user cannot write on this server.
async fn read_only_reason(engine: &mut Engine) -> Result<Option<String>, sqlx::Error> {
    let row = sql("SELECT CASE WHEN pg_is_in_recovery() THEN 'the server is a copy of another' \
         WHEN current_setting('transaction_read_only') = 'on' THEN 'the server lets this user only read' \
         WHEN NOT has_table_privilege('record', 'INSERT') THEN 'this user may not write to it' END")
    .row(engine, &[Column::Text])
    .await?;
    Ok(row.and_then(|row| row.opt_text(0).map(|why| format!("{why}: it is only read"))))
}

/// The number of tables with erasable content that this user may rewrite: as their owner, as the owner of the database,
/// or, from version 17 on, with a granted privilege.
pub(super) const REWRITABLE_TABLES: &str = "SELECT COUNT(*) FROM pg_class JOIN pg_database ON datname = current_database() \
    WHERE pg_class.oid IN (to_regclass('record'), to_regclass('body')) AND (pg_has_role(relowner, 'USAGE') \
    OR pg_has_role(datdba, 'USAGE') OR CASE WHEN CAST(current_setting('server_version_num') AS BIGINT) >= 170000 \
    THEN has_table_privilege(pg_class.oid, 'MAINTAIN') ELSE FALSE END)";

/// A connection that is opened at its first use, and reopened after a loss.
pub struct SharedConnection {
    address: StoreAddress,
    timeouts: Arc<Timeouts>,
    server: Mutex<Option<Box<Server>>>,
}

impl SharedConnection {
    /// A connection that is not open yet.
    pub fn new(address: StoreAddress) -> SharedConnection {
        SharedConnection { address, timeouts: Arc::default(), server: Mutex::default() }
    }

    /// Runs one statement in its own transaction and returns its rows. If the connection is lost, the statement is
    /// repeated on a new one, so the server may run it twice.
    ///
    /// # Errors
    /// If the server refuses it, does not answer, or is unavailable for longer than a restart takes.
    pub async fn run(&self, text: &'static str, arguments: PgArguments) -> Result<Vec<PgRow>, sqlx::Error> {
        let began = Instant::now();
        let mut held = self.server.lock().await;
        loop {
            let attempt = async {
                let server = match &mut *held {
                    Some(server) => server,
                    none => none.insert(self.connect().await?),
                };
                server.reconnect().await?;
                server.all_rows(sqlx::query_with(text, arguments.clone())).await
            };
            match attempt.await {
                Err(error) if is_absent(&error) && began.elapsed() < RESTART_TIMEOUT => {
                    if !self.timeouts.pause_before_retry(began).await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Connects to the ledger's tables and creates missing ones.
    async fn connect(&self) -> Result<Box<Server>, sqlx::Error> {
        let refused = |error: Box<dyn StdError + Send + Sync>| sqlx::Error::Configuration(error);
        let StoreAddress::Postgres { url, .. } = &self.address else {
            return Err(refused("the ledger is not on a server".into()));
        };
        let options = connect_options(url).map_err(|error| refused(error.into()))?;
        let mut engine = Engine::Postgres(Box::new(Server::connect(options, self.timeouts.clone()).await?));
        if schema_version(&mut engine).await? < SCHEMAS.len() {
            let opened = Box::pin(Store::open_at(&self.address)).await;
            opened.map_err(|error| refused(error.into()))?.store.close().await;
        }
        match engine {
            Engine::Postgres(server) => Ok(server),
            Engine::Sqlite(_) => unreachable!("it was made above"),
        }
    }
}

/// The state of a server, for checks of its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// In the format of `server_version_num`: 150004 for 15.4.
    pub version: u64,
    /// Its clock, in milliseconds since the Unix epoch.
    pub clock_ms: i64,
    /// Disabled settings without which a crash of the machine loses synced records.
    pub unsafe_settings: Vec<&'static str>,
    /// Whether this user may queue tasks and work on them.
    pub may_queue: bool,
}

impl Store {
    /// The state of the server; `None` for a file.
    ///
    /// # Errors
    /// When the server does not answer.
    #[crate::boxed]
    pub async fn server_facts(&self) -> Result<Option<ServerFacts>, LedgerError> {
        if !self.is_shared() {
            return Ok(None);
        }
        let ask = sql("SELECT CAST(current_setting('server_version_num') AS BIGINT), \
             CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT), \
             current_setting('fsync'), current_setting('full_page_writes'), \
             (SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('task') \
                 AND has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE'))");
        let columns = [Column::Int, Column::Int, Column::Text, Column::Text, Column::Int];
        let rows = self.rows(ask, &columns).await?;
        Ok(rows.first().map(|row| ServerFacts {
            version: row.count(0),
            clock_ms: row.int(1),
            unsafe_settings: [("fsync", 2), ("full_page_writes", 3)]
                .into_iter()
                .filter(|(_, at)| row.text(*at) == "off")
                .map(|(name, _)| name)
                .collect(),
            may_queue: row.count(4) > 0,
        }))
    }
}

/// An identifier of a directory on this machine since its start. Processes with the same identifier share locks.
/// Without a stable source it is random.
pub(super) fn machine_id(dir: &Path) -> String {
    stable_machine_id(dir).unwrap_or_else(|| entropy::run_id().to_string())
}

#[cfg(target_os = "linux")]
fn stable_machine_id(dir: &Path) -> Option<String> {
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;
    let mut boot = String::new();
    files::open(Path::new("/proc/sys/kernel/random/boot_id")).ok()?.read_to_string(&mut boot).ok()?;
    let there = files::open(dir).ok()?.metadata().ok()?;
    Some(entropy::sha256_hex(format!("{boot}{}/{}", there.dev(), there.ino()).as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn stable_machine_id(_: &Path) -> Option<String> {
    None
}
