//! The databases behind the ledger. A statement has one text for all of them, with `$1`, `$2`, … for its values, and
//! integers, texts and bytes alone, which every engine takes.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, ColumnIndex, Connection as _, Database, Decode, Encode, SqlSafeStr as _, SqlStr};

#[cfg(feature = "postgres")]
use super::postgres::Server;

/// A connection to one of them.
pub(crate) enum Engine {
    /// A file.
    Sqlite(SqliteConnection),
    /// A database of a server.
    #[cfg(feature = "postgres")]
    Postgres(Box<Server>),
}

/// A value of a statement or a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A 64-bit integer.
    Int(Option<i64>),
    /// A text.
    Text(Option<String>),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// What a column holds.
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
pub(crate) struct Statement {
    text: Text,
    values: Vec<Value>,
}

/// The text of a statement.
enum Text {
    /// As it is.
    Whole(&'static str),
    /// A head and a tail, and between them rows of so many values.
    Rows { head: String, widths: Vec<usize>, tail: &'static str },
}

/// A row of an answer. Columns are taken by their place; one of another type than was asked for, which does not
/// happen, reads as nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(Vec<Value>);

/// A statement.
pub(crate) fn sql(text: &'static str) -> Statement {
    Statement { text: Text::Whole(text), values: Vec::new() }
}

/// A statement for as many rows as there are: `head` and then, for each row, its values in brackets, then `tail`.
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
    Statement { text: Text::Rows { head: head.into(), widths, tail }, values }
}

/// How values stand in the text of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// `?`: the driver of SQLite looks up the name of each value that has one, among all names.
    Bare,
    /// `$1`.
    #[cfg(feature = "postgres")]
    Numbered,
}

impl Text {
    fn with(self, mark: Mark) -> SqlStr {
        let (head, widths, tail) = match self {
            Text::Whole(text) => return text.into_sql_str(),
            Text::Rows { head, widths, tail } => (head, widths, tail),
        };
        let mut text = head;
        let mut at = 0;
        for (row, width) in widths.into_iter().enumerate() {
            text.push_str(if row == 0 { "(" } else { ",(" });
            for value in 0..width {
                at += 1;
                text.push_str(if value == 0 { "" } else { "," });
                match mark {
                    Mark::Bare => text.push('?'),
                    #[cfg(feature = "postgres")]
                    Mark::Numbered => text.push_str(&format!("${at}")),
                }
            }
            text.push(')');
        }
        text.push_str(tail);
        // Nothing of it comes from outside: the values are bound.
        AssertSqlSafe(text).into_sql_str()
    }
}

impl Statement {
    /// Its next value.
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Does it; says how many rows it touched.
    pub(crate) async fn execute(self, engine: &mut Engine) -> Result<u64, sqlx::Error> {
        match engine {
            Engine::Sqlite(sqlite) => Ok(self.query(Mark::Bare).execute(sqlite).await?.rows_affected()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => {
                let done = self.query(Mark::Numbered).execute(server.connection()).await;
                server.noted(done).map(|done| done.rows_affected())
            }
        }
    }

    /// Does it; gives rows of columns like these.
    pub(crate) async fn rows(self, engine: &mut Engine, columns: &[Column]) -> Result<Vec<Row>, sqlx::Error> {
        match engine {
            Engine::Sqlite(sqlite) => self
                .query(Mark::Bare)
                .fetch_all(sqlite)
                .await?
                .iter()
                .map(|row| Row::of(row, columns))
                .collect(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => {
                let rows = self.query(Mark::Numbered).fetch_all(server.connection()).await;
                server.noted(rows)?.iter().map(|row| Row::of(row, columns)).collect()
            }
        }
    }

    /// Does it; gives the first row, if there is one.
    pub(crate) async fn row(
        self,
        engine: &mut Engine,
        columns: &[Column],
    ) -> Result<Option<Row>, sqlx::Error> {
        Ok(self.rows(engine, columns).await?.into_iter().next())
    }

    fn query<'q, DB>(self, mark: Mark) -> sqlx::query::Query<'q, DB, DB::Arguments>
    where
        DB: Database,
        Option<i64>: Encode<'q, DB> + sqlx::Type<DB> + 'q,
        Option<String>: Encode<'q, DB> + sqlx::Type<DB> + 'q,
        Vec<u8>: Encode<'q, DB> + sqlx::Type<DB> + 'q,
    {
        self.values.into_iter().fold(sqlx::query(self.text.with(mark)), |query, value| match value {
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

    /// An integer; 0 where there is none.
    pub(crate) fn int(&self, at: usize) -> i64 {
        match self.0.get(at) {
            Some(Value::Int(Some(value))) => *value,
            _ => 0,
        }
    }

    /// An integer that is not negative.
    pub(crate) fn count(&self, at: usize) -> u64 {
        self.int(at).unsigned_abs()
    }

    /// A text; nothing where there is none.
    pub(crate) fn some_text(&self, at: usize) -> Option<&str> {
        match self.0.get(at) {
            Some(Value::Text(Some(value))) => Some(value),
            _ => None,
        }
    }

    /// A text; the empty one where there is none.
    pub(crate) fn text(&self, at: usize) -> &str {
        self.some_text(at).unwrap_or_default()
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
    pub(crate) async fn raw(&mut self, text: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Engine::Sqlite(sqlite) => sqlx::raw_sql(text).execute(sqlite).await.map(|_| ()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => {
                let done = sqlx::raw_sql(text).execute(server.connection()).await;
                server.noted(done).map(|_| ())
            }
        }
    }

    /// Begins to read in one snapshot of the database, which writers do not disturb.
    pub(crate) async fn begin_to_read(&mut self) -> Result<(), sqlx::Error> {
        let begin = match self {
            Engine::Sqlite(_) => "BEGIN",
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        self.raw(begin).await
    }

    /// Commits what is open.
    pub(super) async fn commit(&mut self) -> Result<(), sqlx::Error> {
        let commit = match self {
            Engine::Sqlite(_) => "COMMIT",
            // A transaction in which a statement has failed would be rolled back without a word.
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => "SELECT 1; COMMIT",
        };
        self.raw(commit).await
    }

    /// Rolls back what may be open.
    pub(super) async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        match (self.raw("ROLLBACK").await, self) {
            // It may have ended by itself, as one does whose commit failed.
            (Err(error), Engine::Sqlite(_)) if is_no_transaction(&error) => Ok(()),
            (done, _) => done,
        }
    }

    /// Connects again where the connection was lost; what was open on it is gone then.
    pub(super) async fn revive(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Engine::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => server.revive().await,
        }
    }

    /// Whether what is known of a run's end may be relied on: where that is out of date, the record's number is taken,
    /// and the transaction goes on. Elsewhere a failed statement ends it, and other machines move runs on.
    pub(super) fn keeps_tails(&self) -> bool {
        match self {
            Engine::Sqlite(_) => true,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => false,
        }
    }

    /// Closes it.
    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(server) => server.close().await,
        }
    }
}

/// Whether SQLite says that there is nothing to roll back.
fn is_no_transaction(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.message().contains("no transaction is active"))
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(Some(value))
    }
}

/// A number of records or bytes; more than 2^63 of them there are not.
impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Int(Some(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Value::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(Some(value.to_owned()))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(Some(value))
    }
}

impl From<Option<String>> for Value {
    fn from(value: Option<String>) -> Self {
        Value::Text(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Value::Bytes(value)
    }
}
