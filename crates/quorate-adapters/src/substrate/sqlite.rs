//! The `sqlite` substrate: conversations in one database, each under a name, by default the runtime's id.
//!
//! An append is one transaction, which is durable when it returns (unless the block sets `sync: false`); other writers
//! wait for it. Ids, authors and times are those of a journal, so that a transcript is the same in both.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, IdProof, Page, Substrate, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection as _, Row as _};
use tokio::sync::MappedMutexGuard;

use super::{POLL_INTERVAL, check_turn, id_proof, next_millisecond, parse_sync, persistent, turn_id};
use crate::block::Block;
use crate::database::{Database, DatabaseError};

/// The kind that manifests name.
pub const KIND: &str = "sqlite";

/// Builds the substrate from its block.
///
/// # Errors
/// When the block has an unknown key, or `path` is missing or a folder.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    let block = Block::parse(build.block, &["kind", "path", "conversation", "sync"])?;
    let Some(path) = block.text("path")? else {
        return Err(ConfigError::for_key("path", "`path` is missing: conversations are kept in a file")
            .with_help("for example `path: conversations.db`, relative to the manifest"));
    };
    let database = Database::new(build.dir, path, parse_sync(build, &block)?)?;
    let conversation = block.text("conversation")?.unwrap_or(build.runtime).to_owned();
    Ok(Arc::new(SqliteSubstrate { database, conversation, last_delivered: AtomicI64::new(-1) }))
}

struct SqliteSubstrate {
    database: Database,
    conversation: String,
    /// The number of the last turn that `read` returned; -1 before the first call.
    last_delivered: AtomicI64,
}

impl From<DatabaseError> for SubstrateError {
    fn from(failure: DatabaseError) -> Self {
        let DatabaseError { message, source } = failure;
        SubstrateError::Unavailable { what: message, source: source.map(Into::into) }
    }
}

impl SqliteSubstrate {
    async fn connection(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, SubstrateError> {
        Ok(self.database.connection().await?)
    }

    fn failure(&self, error: sqlx::Error) -> SubstrateError {
        self.database.error(error).into()
    }

    async fn turn_number(
        &self,
        connection: &mut SqliteConnection,
        id: &str,
    ) -> Result<Option<i64>, SubstrateError> {
        let row = sqlx::query("SELECT n FROM turn WHERE conversation = ? AND id = ?")
            .bind(&self.conversation)
            .bind(id)
            .fetch_optional(connection)
            .await
            .map_err(|error| self.failure(error))?;
        Ok(row.map(|row| row.get(0)))
    }

    /// The number of the last turn; 0 without turns.
    async fn last_number(&self, connection: &mut SqliteConnection) -> Result<i64, SubstrateError> {
        sqlx::query("SELECT COALESCE(MAX(n), 0) FROM turn WHERE conversation = ?")
            .bind(&self.conversation)
            .fetch_one(connection)
            .await
            .map(|row| row.get(0))
            .map_err(|error| self.failure(error))
    }

    fn turn_from_row(&self, row: &SqliteRow) -> Result<Turn, SubstrateError> {
        let id: &str = row.get(0);
        let broken = |error| {
            let path = self.database.path().display();
            SubstrateError::unavailable(format!("the metadata of turn {id} in {path} is not JSON"), error)
        };
        let meta = serde_json::from_str(row.get(4)).map_err(broken)?;
        let stamp = row.get::<Option<&str>, _>(5).map(serde_json::from_str).transpose().map_err(broken)?;
        Ok(Turn {
            id: id.into(),
            participant: row.get::<&str, _>(1).into(),
            timestamp: row.get::<&str, _>(2).into(),
            content: row.get::<&str, _>(3).into(),
            meta,
            stamp,
        })
    }
}

#[async_trait]
impl Substrate for SqliteSubstrate {
    fn about(&self) -> About {
        persistent(KIND, format!("{}#{}", self.database.path().display(), self.conversation))
    }

    fn id_proof(&self, turn: &Turn) -> IdProof {
        id_proof(turn)
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        check_turn(&turn)?;
        let failed = |error| self.failure(error);
        let mut connection = self.connection().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        if let Some(stamp) = &turn.stamp {
            let row = sqlx::query(
                "SELECT id, participant, timestamp, content, meta, stamp FROM turn \
                 WHERE conversation = ? AND stamp_key = ?",
            )
            .bind(&self.conversation)
            .bind(&*stamp.key)
            .fetch_optional(&mut *transaction)
            .await
            .map_err(failed)?;
            if let Some(row) = row {
                return Ok(Appended { turn: self.turn_from_row(&row)?, fresh: false });
            }
        }
        let NewTurn { participant, content, mut timestamp, meta, stamp } = turn;
        let mut name = turn_id(&participant, &timestamp, &content);
        while self.turn_number(&mut transaction, &name).await?.is_some() {
            timestamp = next_millisecond(&timestamp)?;
            name = turn_id(&participant, &timestamp, &content);
        }
        let unwritable =
            |error| SubstrateError::Refused(format!("the turn's metadata cannot be written: {error}"));
        let n = self.last_number(&mut transaction).await? + 1;
        sqlx::query(
            "INSERT INTO turn \
             (conversation, n, id, participant, timestamp, content, meta, stamp_key, stamp) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&self.conversation)
        .bind(n)
        .bind(&*name)
        .bind(&*participant)
        .bind(&*timestamp)
        .bind(&*content)
        .bind(serde_json::to_string(&meta).map_err(unwritable)?)
        .bind(stamp.as_ref().map(|stamp| &*stamp.key))
        .bind(stamp.as_ref().map(serde_json::to_string).transpose().map_err(unwritable)?)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        let turn = Turn { id: name, participant, timestamp: timestamp.into(), content, meta, stamp };
        Ok(Appended { turn, fresh: true })
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let mut connection = self.connection().await?;
        let at = match since {
            Some(since) => self.turn_number(&mut connection, since).await?,
            None => None,
        };
        let rows = sqlx::query(
            "SELECT id, participant, timestamp, content, meta, stamp, n FROM turn \
             WHERE conversation = ? AND n > ? ORDER BY n LIMIT ?",
        )
        .bind(&self.conversation)
        .bind(at.unwrap_or(0))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| self.failure(error))?;
        let last_delivered = rows.last().map_or(at.unwrap_or(0), |row| row.get(6));
        self.last_delivered.store(last_delivered, Ordering::SeqCst);
        let turns = rows.iter().map(|row| self.turn_from_row(row)).collect::<Result<_, _>>()?;
        Ok(Page { turns, known: since.is_none() || at.is_some() })
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        let mut connection = self.connection().await?;
        let Some(n) = self.turn_number(&mut connection, at).await? else { return Ok(Vec::new()) };
        let rows = sqlx::query(
            "SELECT id, participant, timestamp, content, meta, stamp FROM turn \
             WHERE conversation = ? AND n <= ? ORDER BY n DESC LIMIT ?",
        )
        .bind(&self.conversation)
        .bind(n)
        .bind(i64::try_from(count).unwrap_or(i64::MAX))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| self.failure(error))?;
        rows.iter().rev().map(|row| self.turn_from_row(row)).collect()
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        let last_delivered = self.last_delivered.load(Ordering::SeqCst);
        while self.last_number(&mut *self.connection().await?).await? == last_delivered {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}
