//! What is SQLite's own: its error codes, its files, and the tables of the log's index.

use std::path::PathBuf;

#[cfg(feature = "postgres")]
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteError};
use sqlx::{ConnectOptions as _, Row as _};

/// What brings a file from one version of the schema to the next; SQLite's `user_version` counts them.
pub(super) const SCHEMAS: [&str; 4] = [
    concat!(include_str!("schema.sql"), include_str!("log_index.sql")),
    include_str!("schema-2.sql"),
    concat!(include_str!("schema-3.sql"), include_str!("log_index.sql")),
    concat!(include_str!("schema-4.sql"), include_str!("log_index.sql"), include_str!("fill-run-origin.sql")),
];
/// Stands in for the table that an older file, which is only read, does not have.
pub(super) const ORIGINS_IN_MEMORY: &str = concat!(
    "PRAGMA temp_store = MEMORY; ",
    "CREATE TEMP TABLE run_origin (run TEXT PRIMARY KEY, mode TEXT NOT NULL, producer TEXT NOT NULL) WITHOUT ROWID;\n",
    include_str!("fill-run-origin.sql")
);
/// The version of a log's index in a file of its own.
#[cfg(feature = "postgres")]
pub(super) const LOG_INDEX_VERSION: usize = 3;
/// The tables of the log's index, where it is no part of the ledger's file.
pub(super) const LOG_INDEX: &str = include_str!("log_index.sql");

/// The primary code of SQLite's; `None` where another engine says something.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?;
    error.try_downcast_ref::<SqliteError>()?;
    error.code()?.parse::<i32>().ok().map(|code| code & 0xff)
}

/// Whether SQLite says that the disk failed (10), or that the file is broken (11) or none (26).
pub(super) fn is_file_broken(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(10 | 11 | 26))
}

/// The file of a connection.
pub(super) async fn file_of(connection: &mut SqliteConnection) -> Result<PathBuf, sqlx::Error> {
    let row = sqlx::query("SELECT file FROM pragma_database_list WHERE name = 'main'");
    Ok(PathBuf::from(row.fetch_one(connection).await?.get::<String, _>(0)))
}

#[cfg(feature = "postgres")]
pub(super) async fn create_log_index(transaction: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(LOG_INDEX).execute(&mut *transaction).await?;
    let pragma = format!("PRAGMA user_version = {LOG_INDEX_VERSION}");
    sqlx::raw_sql(AssertSqlSafe(pragma)).execute(&mut *transaction).await.map(|_| ())
}

/// An index of the log that lasts as long as the connection.
pub(super) async fn log_index_in_memory() -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = SqliteConnectOptions::new().disable_statement_logging().connect().await?;
    sqlx::raw_sql(LOG_INDEX).execute(&mut connection).await?;
    Ok(connection)
}
