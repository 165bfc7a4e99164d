//! The databases behind the ledger. Statements have one text for all of them, with `$1`, `$2`, … for their values, and
//! only use integers, texts and bytes, which every engine supports.

use std::path::PathBuf;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteError};
use sqlx::{
    AssertSqlSafe, ColumnIndex, ConnectOptions as _, Connection as _, Database, Decode, Encode, Row as _,
    SqlSafeStr as _, SqlStr,
};

#[cfg(feature = "postgres")]
use super::postgres::server::{Server, is_absent, is_locked, is_lost};
#[cfg(feature = "postgres")]
use super::timeouts::RESTART_TIMEOUT;
#[cfg(feature = "postgres")]
use futures::TryStreamExt as _;

/// A connection to a database.
pub(crate) enum Engine {
    Sqlite(SqliteConnection),
    /// A database on a server.
    #[cfg(feature = "postgres")]
    Postgres(Box<Server>),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// [`Value::Int`].
    Int,
    /// [`Value::Text`].
    Text,
    /// [`Value::Bytes`].
    Bytes,
}

/// A statement with its values.
#[derive(Clone)]
pub(crate) struct Statement {
    text: StatementText,
    values: Vec<Value>,
}

/// The text of a statement.
#[derive(Clone)]
enum StatementText {
    Fixed(&'static str),
    /// A head and a tail, with rows of this number of values in between.
    Rows {
        head: String,
        widths: Vec<usize>,
        tail: &'static str,
    },
}

/// A row of a result. Columns are read by index. A column with another type than requested, which does not occur, reads
/// as empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(Vec<Value>);

pub(crate) fn sql(text: &'static str) -> Statement {
    Statement { text: StatementText::Fixed(text), values: Vec::new() }
}

/// A statement for any number of rows: `head`, then the values of each row in parentheses, then `tail`.
pub(crate) fn sql_rows(
    head: impl Into<String>,
    rows: impl IntoIterator<Item = Vec<Value>>,
    tail: &'static str,
) -> Statement {
    let (mut widths, mut values) = (Vec::new(), Vec::new());
    for row in rows {
        widths.push(row.len());
        values.extend(row);
    }
    Statement { text: StatementText::Rows { head: head.into(), widths, tail }, values }
}

/// The syntax of values in the text of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    /// `?`: SQLite's driver looks up each named value among all names.
    Anonymous,
    /// `$1`.
    #[cfg(feature = "postgres")]
    Numbered,
}

impl StatementText {
    fn render(self, mark: Placeholder) -> SqlStr {
        let (head, widths, tail) = match self {
            StatementText::Fixed(text) => return text.into_sql_str(),
            StatementText::Rows { head, widths, tail } => (head, widths, tail),
        };
        let mut text = head;
        #[cfg(feature = "postgres")]
        let mut numbers = 1_u32..;
        for (row, width) in widths.into_iter().enumerate() {
            text.push_str(if row == 0 { "(" } else { ",(" });
            for value in 0..width {
                text.push_str(if value == 0 { "" } else { "," });
                match mark {
                    Placeholder::Anonymous => text.push('?'),
                    #[cfg(feature = "postgres")]
                    Placeholder::Numbered => {
                        text.push_str(&format!("${}", numbers.next().unwrap_or_default()))
                    }
                }
            }
            text.push(')');
        }
        text.push_str(tail);
        // Values are bound, so the text contains no external data.
        AssertSqlSafe(text).into_sql_str()
    }
}

impl Statement {
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Executes it; returns the number of affected rows.
    pub(crate) async fn execute(self, engine: &mut Engine) -> Result<u64, sqlx::Error> {
        match engine {
            Engine::Sqlite(sqlite) => {
                Ok(self.query(Placeholder::Anonymous).execute(sqlite).await?.rows_affected())
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => {
                let (connection, wait) = server.connection_and_wait()?;
                let done = wait.on(self.query(Placeholder::Numbered).execute(connection)).await;
                server.track_result(done).map(|done| done.rows_affected())
            }
        }
    }

    /// Inserts this number of rows.
    ///
    /// # Errors
    /// As [`Statement::execute`], and if the table received another number of rows, for example because of a rule or a
    /// trigger.
    pub(crate) async fn insert_exactly(self, engine: &mut Engine, rows: usize) -> Result<(), sqlx::Error> {
        let table = self.insert_table();
        let added = match engine {
            Engine::Sqlite(_) => self.execute(engine).await?,
            // A rule can redirect rows and still report them as inserted, so the statement must return them.
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => self.returning_one().rows(engine, &[Column::Int]).await?.len() as u64,
        };
        match added == rows as u64 {
            true => Ok(()),
            false => Err(rows_lost_error(&table, added, rows)),
        }
    }

    /// Inserts a row, or does nothing if `there` finds it: a writer may have the right to insert and not to update.
    ///
    /// # Errors
    /// As [`Statement::insert_exactly`].
    pub(crate) async fn insert_if_absent(
        self,
        engine: &mut Engine,
        there: Statement,
    ) -> Result<(), sqlx::Error> {
        let table = self.insert_table();
        if self.execute(engine).await? == 0 && there.row(engine, &[Column::Int]).await?.is_none() {
            return Err(rows_lost_error(&table, 0, 1));
        }
        Ok(())
    }

    /// Executes it; returns rows of these columns.
    pub(crate) async fn rows(self, engine: &mut Engine, columns: &[Column]) -> Result<Vec<Row>, sqlx::Error> {
        match engine {
            Engine::Sqlite(sqlite) => self
                .query(Placeholder::Anonymous)
                .fetch_all(sqlite)
                .await?
                .iter()
                .map(|row| Row::of(row, columns))
                .collect(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => self.server_rows(server, columns).await,
        }
    }

    /// Rows from a server. Outside of a transaction, repeats a statement that waited for a table being rewritten, or
    /// that lost its connection.
    #[cfg(feature = "postgres")]
    async fn server_rows(self, server: &mut Server, columns: &[Column]) -> Result<Vec<Row>, sqlx::Error> {
        if server.in_transaction() {
            return self.rows_once(server, columns).await;
        }
        let began = tokio::time::Instant::now();
        loop {
            let error = match self.clone().rows_once(server, columns).await {
                Err(error) if is_passing(&error, began) => error,
                done => return done,
            };
            if !server.pause_before_retry(began).await {
                return Err(error);
            }
            server.reconnect().await?;
        }
    }

    #[cfg(feature = "postgres")]
    async fn rows_once(self, server: &mut Server, columns: &[Column]) -> Result<Vec<Row>, sqlx::Error> {
        let (connection, wait) = server.connection_and_wait()?;
        let mut rows = Vec::new();
        let done = {
            let mut answer = self.query(Placeholder::Numbered).fetch(connection);
            loop {
                // An answer with many rows may take longer than one row.
                match wait.on(answer.try_next()).await {
                    Ok(Some(row)) => match Row::of(&row, columns) {
                        Ok(row) => rows.push(row),
                        Err(error) => break Err(error),
                    },
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            }
        };
        server.track_result(done).map(|()| rows)
    }

    /// Executes it; returns the first row, if any.
    pub(crate) async fn row(
        self,
        engine: &mut Engine,
        columns: &[Column],
    ) -> Result<Option<Row>, sqlx::Error> {
        Ok(self.rows(engine, columns).await?.into_iter().next())
    }

    /// Executes it; returns the non-negative integer in the first row, or 0 without a row.
    pub(crate) async fn number(self, engine: &mut Engine) -> Result<u64, sqlx::Error> {
        Ok(self.row(engine, &[Column::Int]).await?.map_or(0, |row| row.count(0)))
    }

    /// The table that it inserts into.
    fn insert_table(&self) -> String {
        let text = match &self.text {
            StatementText::Fixed(text) => text,
            StatementText::Rows { head, .. } => head.as_str(),
        };
        text.strip_prefix("INSERT INTO ")
            .and_then(|rest| rest.split(' ').next())
            .unwrap_or_default()
            .to_owned()
    }

    /// The statement with a `RETURNING` clause for each inserted row.
    #[cfg(feature = "postgres")]
    fn returning_one(self) -> Statement {
        const ONE: &str = " RETURNING CAST(1 AS BIGINT)";
        let text = match self.text {
            StatementText::Fixed(text) => {
                StatementText::Rows { head: format!("{text}{ONE}"), widths: Vec::new(), tail: "" }
            }
            StatementText::Rows { head, widths, .. } => StatementText::Rows { head, widths, tail: ONE },
        };
        Statement { text, ..self }
    }

    fn query<'q, DB>(self, mark: Placeholder) -> sqlx::query::Query<'q, DB, DB::Arguments>
    where
        DB: Database,
        Option<i64>: Encode<'q, DB> + sqlx::Type<DB> + 'q,
        Option<String>: Encode<'q, DB> + sqlx::Type<DB> + 'q,
        Vec<u8>: Encode<'q, DB> + sqlx::Type<DB> + 'q,
    {
        self.values.into_iter().fold(sqlx::query(self.text.render(mark)), |query, value| match value {
            Value::Int(value) => query.bind(value),
            Value::Text(value) => query.bind(value),
            Value::Bytes(value) => query.bind(value),
        })
    }
}

impl Row {
    fn of<'r, R>(row: &'r R, columns: &[Column]) -> Result<Row, sqlx::Error>
    where
        R: sqlx::Row,
        usize: ColumnIndex<R>,
        Option<i64>: Decode<'r, R::Database> + sqlx::Type<R::Database>,
        Option<String>: Decode<'r, R::Database> + sqlx::Type<R::Database>,
        Option<Vec<u8>>: Decode<'r, R::Database> + sqlx::Type<R::Database>,
    {
        let value = |(at, column): (usize, &Column)| {
            Ok(match column {
                Column::Int => Value::Int(row.try_get(at)?),
                Column::Text => Value::Text(row.try_get(at)?),
                Column::Bytes => Value::Bytes(row.try_get::<Option<Vec<u8>>, _>(at)?.unwrap_or_default()),
            })
        };
        columns.iter().enumerate().map(value).collect::<Result<_, _>>().map(Row)
    }

    /// An integer; 0 for NULL.
    pub(crate) fn int(&self, at: usize) -> i64 {
        match self.0.get(at) {
            Some(Value::Int(Some(value))) => *value,
            _ => 0,
        }
    }

    /// A non-negative integer.
    pub(crate) fn count(&self, at: usize) -> u64 {
        self.int(at).unsigned_abs()
    }

    /// A text; `None` for NULL.
    pub(crate) fn opt_text(&self, at: usize) -> Option<&str> {
        match self.0.get(at) {
            Some(Value::Text(Some(value))) => Some(value),
            _ => None,
        }
    }

    /// A text; empty for NULL.
    pub(crate) fn text(&self, at: usize) -> &str {
        self.opt_text(at).unwrap_or_default()
    }

    /// Bytes.
    pub(crate) fn bytes(&self, at: usize) -> &[u8] {
        match self.0.get(at) {
            Some(Value::Bytes(value)) => value,
            _ => &[],
        }
    }
}

impl Engine {
    /// Statements without values or answers.
    pub(crate) async fn execute_raw(&mut self, text: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Engine::Sqlite(sqlite) => sqlx::raw_sql(text).execute(sqlite).await.map(|_| ()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => server.execute_raw(text).await,
        }
    }

    /// Begins to read in one snapshot of the database, without blocking writers.
    pub(crate) async fn begin_read(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Engine::Sqlite(_) => self.execute_raw("BEGIN").await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => server.begin_read().await,
        }
    }

    /// Commits the open transaction.
    pub(super) async fn commit(&mut self) -> Result<(), sqlx::Error> {
        let commit = match self {
            Engine::Sqlite(_) => "COMMIT",
            // A transaction with a failed statement would be rolled back silently.
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => "SELECT 1; COMMIT",
        };
        self.execute_raw(commit).await
    }

    /// Rolls back the open transaction, if any.
    pub(super) async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        match (self.execute_raw("ROLLBACK").await, self) {
            // The transaction may have ended by itself, for example after a failed commit.
            (Err(error), Engine::Sqlite(_)) if is_no_transaction(&error) => Ok(()),
            (done, _) => done,
        }
    }

    /// Whether there is a connection.
    pub(super) fn is_connected(&self) -> bool {
        match self {
            Engine::Sqlite(_) => true,
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => server.is_connected(),
        }
    }

    /// Reconnects if the connection was lost. That loses an open transaction. Returns whether the connection is another one
    /// than at the last call, since facts from an earlier one may be outdated.
    pub(super) async fn reconnect(&mut self) -> Result<bool, sqlx::Error> {
        match self {
            Engine::Sqlite(_) => Ok(false),
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => {
                Box::pin(server.reconnect()).await?;
                Ok(std::mem::take(&mut server.was_reconnected))
            }
        }
    }

    /// Whether a failed statement may succeed if it is repeated: another session holds a lock, or the server restarts.
    pub(super) fn may_pass(&self, error: &sqlx::Error, began: tokio::time::Instant) -> bool {
        match self {
            Engine::Sqlite(_) => {
                let _ = (error, began);
                false
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => is_passing(error, began),
        }
    }

    /// Whether a commit that failed with this error may have succeeded.
    pub(super) fn may_have_committed(&self, error: &sqlx::Error) -> bool {
        match self {
            Engine::Sqlite(_) => is_file_broken(error),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => is_lost(error),
        }
    }

    /// Whether a cached tail of a run may be used. On SQLite a stale tail only makes the insert fail, and the
    /// transaction continues. On a server a failed statement ends the transaction, and other machines append to runs.
    pub(super) fn can_cache_tails(&self) -> bool {
        matches!(self, Engine::Sqlite(_))
    }

    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => server.close().await,
        }
    }
}

pub(super) fn rows_lost_error(table: &str, added: u64, rows: usize) -> sqlx::Error {
    let what = format!(
        "the table `{table}` accepted {added} of {rows} rows: a rule or a trigger of the database blocks the others"
    );
    sqlx::Error::Configuration(what.into())
}

#[cfg(feature = "postgres")]
fn is_passing(error: &sqlx::Error, began: tokio::time::Instant) -> bool {
    is_locked(error) || is_absent(error) && began.elapsed() < RESTART_TIMEOUT
}

/// Whether SQLite reports that no transaction is open.
fn is_no_transaction(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.message().contains("no transaction is active"))
}

/// A value of a statement or a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A 64-bit integer.
    Int(Option<i64>),
    Text(Option<String>),
    /// Bytes.
    Bytes(Vec<u8>),
}

macro_rules! value_from {
    ($($from:ty => $value:expr;)*) => {
        $(impl From<$from> for Value {
            fn from(from: $from) -> Self {
                $value(from)
            }
        })*
    };
}

value_from! {
    i64 => |value| Value::Int(Some(value));
    // A number of records or bytes, less than 2^63.
    u64 => |value| Value::Int(Some(i64::try_from(value).unwrap_or(i64::MAX)));
    Option<i64> => Value::Int;
    &str => |value: &str| Value::Text(Some(value.to_owned()));
    String => |value| Value::Text(Some(value));
    Option<String> => Value::Text;
    Vec<u8> => Value::Bytes;
}

/// Migrations from each version of the schema to the next. SQLite's `user_version` counts them.
pub(super) const SCHEMAS: [&str; 4] = [
    concat!(include_str!("schema.sql"), include_str!("log_index.sql")),
    include_str!("schema-2.sql"),
    concat!(include_str!("schema-3.sql"), include_str!("log_index.sql")),
    concat!(include_str!("schema-4.sql"), include_str!("log_index.sql"), include_str!("fill-run-origin.sql")),
];
/// Replaces the table that an older, read-only file lacks.
pub(super) const ORIGINS_IN_MEMORY: &str = concat!(
    "PRAGMA temp_store = MEMORY; ",
    "CREATE TEMP TABLE run_origin (run TEXT PRIMARY KEY, mode TEXT NOT NULL, producer TEXT NOT NULL) WITHOUT ROWID;\n",
    include_str!("fill-run-origin.sql")
);
/// The version of a log's index in a separate file.
#[cfg(feature = "postgres")]
pub(super) const LOG_INDEX_VERSION: usize = 3;
/// The tables of the log's index in a separate file.
pub(super) const LOG_INDEX: &str = include_str!("log_index.sql");

/// SQLite's primary error code; `None` for other engines.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?;
    error.try_downcast_ref::<SqliteError>()?;
    error.code()?.parse::<i32>().ok().map(|code| code & 0xff)
}

/// Whether SQLite reports a disk error (10), a corrupt file (11) or a file that is not a database (26).
pub(super) fn is_file_broken(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(10 | 11 | 26))
}

/// The path of a connection's file.
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

/// An index of the log in memory.
pub(crate) async fn log_index_in_memory() -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = SqliteConnectOptions::new().disable_statement_logging().connect().await?;
    sqlx::raw_sql(LOG_INDEX).execute(&mut connection).await?;
    Ok(connection)
}
/// The head of an existing record.
pub(crate) async fn record_head(
    engine: &mut Engine,
    run: &str,
    n: u64,
) -> Result<Option<String>, sqlx::Error> {
    let statement = sql("SELECT head FROM record WHERE run = $1 AND n = $2").bind(run).bind(n);
    Ok(statement.row(engine, &[Column::Text]).await?.map(|row| row.text(0).to_owned()))
}
