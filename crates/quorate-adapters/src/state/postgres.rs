//! The `postgres` store: states in the database of the ledger, one row for each participant of a runtime.

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
use crate::postgres::{self, Database, statement};

/// The kind that manifests name.
pub const KIND: &str = crate::optional_kinds::POSTGRES;

/// Builds the store from its block, which takes no keys.
///
/// # Errors
/// When the block has a key, or the ledger is not on a Postgres server.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> {
    Block::parse(build.block, &["kind"])?;
    let database = postgres::shared(build.servers)?;
    Ok(Arc::new(PostgresState { database, runtime: build.runtime.to_owned() }))
}

struct PostgresState {
    database: Arc<dyn Database>,
    runtime: String,
}

#[async_trait]
impl State for PostgresState {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError> {
        let unread = || format!("the state of `{participant}` in the ledger's database cannot be read");
        let object =
            statement("SELECT object FROM participant_state WHERE runtime = $1 AND participant = $2");
        let object = object.bind(&self.runtime).bind(participant.as_bytes());
        let rows = object.run(&*self.database).await.map_err(|error| StateError::new(unread(), error))?;
        let Some(row) = rows.first() else { return Ok(Map::new()) };
        let text: &str = row.try_get(0).map_err(|error| StateError::new(unread(), error))?;
        let state = serde_json::from_str(text).map_err(|error| StateError::new(unread(), error))?;
        check_storable(participant, &state)?;
        Ok(state)
    }

    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError> {
        check_storable(participant, state)?;
        let unwritten = || format!("the state of `{participant}` cannot be written to the ledger's database");
        let object = serde_json::to_string(state).map_err(|error| StateError::new(unwritten(), error))?;
        let write = statement(
            "INSERT INTO participant_state (runtime, participant, object) VALUES ($1, $2, $3) \
             ON CONFLICT (runtime, participant) DO UPDATE SET object = excluded.object",
        );
        let write = write.bind(&self.runtime).bind(participant.as_bytes()).bind(object);
        write.run(&*self.database).await.map(drop).map_err(|error| StateError::new(unwritten(), error))
    }
}
