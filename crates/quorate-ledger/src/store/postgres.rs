//! A ledger in a Postgres database, which several machines write to. A writer acquires one lock first, so records have
//! positions in the order of the commits, without gaps. The index of the log is in a local file.

pub(super) mod call;
mod options;
pub(super) mod server;
mod server_error;
mod shared_connection;

use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use super::connection::Connection;
use super::engine::{Column, Engine, sql};
use super::timeouts::Timeouts;
use server::Server;

pub use options::InvalidAddress;
pub(super) use options::connect_options;
pub use shared_connection::SharedConnection;

/// What brings a database from one version of the schema to the next; the table `quorate_schema` counts them.
const SCHEMAS: [&str; 5] = [
    include_str!("postgres/schema.sql"),
    include_str!("postgres/schema-2.sql"),
    include_str!("postgres/schema-3.sql"),
    include_str!("postgres/schema-4.sql"),
    include_str!("postgres/schema-5.sql"),
];
/// The lock of the schema's making, which other schemas of the database may share.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(8173521, hashtext(current_schema()))";

/// Connects, and creates missing tables; returns whether they existed.
///
/// # Errors
/// If the address is invalid, or the server does not answer.
pub(super) async fn connect(
    url: &str,
    log_index: impl Future<Output = Result<SqliteConnection, sqlx::Error>>,
) -> Result<(Connection, bool), sqlx::Error> {
    let options = connect_options(url).map_err(|refused| sqlx::Error::Configuration(Box::new(refused)))?;
    let timeouts = Arc::<Timeouts>::default();
    let server = Server::connect(options, log_index, timeouts.clone()).await?;
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

/// Whether a connection finds a table of this name. The catalogue is asked and not `to_regclass`, which answers from what
/// the session remembers: of a name that it has looked up before, it does not see that another one has made it since.
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

/// How many bytes the tables take on the server, with their indices.
pub(super) const SIZE: &str = "SELECT CAST(SUM(pg_total_relation_size(to_regclass(name))) AS BIGINT) FROM (VALUES \
    ('record'), ('body'), ('run'), ('signature'), ('tile'), ('checkpoint'), ('held'), ('imported')) AS tables (name)";

/// How many of the tables that things are erased from this user may rewrite: those of an owner that it is, those of a
/// database that is its own, and from version 17 on those that it was granted that for.
pub(super) const REWRITABLE_TABLES: &str = "SELECT COUNT(*) FROM pg_class JOIN pg_database ON datname = current_database() \
    WHERE pg_class.oid IN (to_regclass('record'), to_regclass('body')) AND (pg_has_role(relowner, 'USAGE') \
    OR pg_has_role(datdba, 'USAGE') OR CASE WHEN CAST(current_setting('server_version_num') AS BIGINT) >= 170000 \
    THEN has_table_privilege(pg_class.oid, 'MAINTAIN') ELSE FALSE END)";
