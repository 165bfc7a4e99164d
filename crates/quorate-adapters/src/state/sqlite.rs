//! The `sqlite` store: states in a database, which may also hold the conversation. The states of different runtimes in it
//! are separate.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::state::{State, StateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Json;
use serde_json::Map;
use sqlx::Row as _;

use super::check_storable;
use crate::block::Block;
use crate::database::{Database, DatabaseError};

/// The kind that manifests name.
pub const KIND: &str = "sqlite";

/// Builds the store from its block.
///
/// # Errors
/// When the block has an unknown key, or `path` is missing or a folder.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> {
    let block = Block::parse(build.block, &["kind", "path"])?;
    let Some(path) = block.text("path")? else {
        return Err(ConfigError::for_key("path", "`path` is missing: states are kept in a file")
            .with_help("for example `path: states.db`, relative to the manifest"));
    };
    // States that a power failure destroys are recovered from the conversation.
    let database = Database::new(build.dir, path, false)?;
    Ok(Arc::new(SqliteState { database, runtime: build.runtime.to_owned() }))
}

struct SqliteState {
    database: Database,
    runtime: String,
}

impl From<DatabaseError> for StateError {
    fn from(failure: DatabaseError) -> Self {
        StateError { what: failure.message, source: failure.source.map(Into::into) }
    }
}

#[async_trait]
impl State for SqliteState {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError> {
        let mut connection = self.database.connection().await?;
        let row = sqlx::query("SELECT object FROM state WHERE runtime = ? AND participant = ?")
            .bind(&self.runtime)
            .bind(participant)
            .fetch_optional(&mut *connection)
            .await
            .map_err(|error| self.database.error(error))?;
        let Some(row) = row else { return Ok(Map::new()) };
        let state = serde_json::from_str(row.get(0)).map_err(|error| {
            let path = self.database.path().display();
            StateError::new(format!("the state of `{participant}` in {path} is not a JSON object"), error)
        })?;
        check_storable(participant, &state)?;
        Ok(state)
    }

    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError> {
        check_storable(participant, state)?;
        let object = serde_json::to_string(state).map_err(|error| {
            StateError::new(format!("the state of `{participant}` cannot be written"), error)
        })?;
        let mut connection = self.database.connection().await?;
        sqlx::query(
            "INSERT INTO state (runtime, participant, object) VALUES (?, ?, ?) \
             ON CONFLICT (runtime, participant) DO UPDATE SET object = excluded.object",
        )
        .bind(&self.runtime)
        .bind(participant)
        .bind(object)
        .execute(&mut *connection)
        .await
        .map_err(|error| self.database.error(error))?;
        Ok(())
    }
}
