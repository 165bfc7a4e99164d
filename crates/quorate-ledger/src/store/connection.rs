//! The one connection to the file, and what is known of it so that it need not be asked for again.

use std::collections::BTreeMap;

use quorate_kernel::ports::ledger::Durability;
use quorate_protocol::Name;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Sqlite, Transaction};

/// The connection.
pub(crate) struct Connection {
    sqlite: SqliteConnection,
    /// What `PRAGMA synchronous` stands at; `None` where that is not known.
    durability: Option<Durability>,
    /// How the runs that this process appends to end. Another process may have moved one on: the key of `record`
    /// tells.
    pub(super) tails: Tails,
}

/// The ends of runs.
pub(super) type Tails = BTreeMap<Name, Tail>;

/// How a run ends.
pub(super) struct Tail {
    /// The number of its next record.
    pub(super) next: u64,
    /// The leaf of its last one.
    pub(super) leaf: Option<String>,
}

impl Connection {
    pub(super) fn new(sqlite: SqliteConnection) -> Self {
        Connection { sqlite, durability: None, tails: BTreeMap::new() }
    }

    /// SQLite's own. What changes `synchronous` goes through [`Connection::begin`] and [`Connection::alone`].
    pub(crate) fn sqlite(&mut self) -> &mut SqliteConnection {
        &mut self.sqlite
    }

    /// Closes the file.
    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        self.sqlite.close().await
    }

    /// Begins a transaction whose commit is this durable.
    pub(crate) async fn begin(
        &mut self,
        durability: Durability,
    ) -> Result<Transaction<'_, Sqlite>, sqlx::Error> {
        // The pragma cannot be changed inside a transaction, and holds for the commit of the next one.
        let begin = match (self.durability, durability) {
            (Some(now), wanted) if now == wanted => "BEGIN IMMEDIATE",
            (_, Durability::Written) => "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE",
            (_, Durability::Synced) => "PRAGMA synchronous = FULL; BEGIN IMMEDIATE",
        };
        self.durability = None;
        let transaction = self.sqlite.begin_with(begin).await?;
        self.durability = Some(durability);
        Ok(transaction)
    }

    /// The connection for one statement, which is a transaction of its own and this durable.
    pub(super) async fn alone(
        &mut self,
        durability: Durability,
    ) -> Result<&mut SqliteConnection, sqlx::Error> {
        if self.durability != Some(durability) {
            let pragma = match durability {
                Durability::Written => "PRAGMA synchronous = NORMAL",
                Durability::Synced => "PRAGMA synchronous = FULL",
            };
            self.durability = None;
            sqlx::raw_sql(pragma).execute(&mut self.sqlite).await?;
            self.durability = Some(durability);
        }
        Ok(&mut self.sqlite)
    }
}
