//! The `nats-kv` store: states in a key-value bucket of JetStream, which the tools of NATS show. Read from the leader.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::state::{State, StateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Json;
use serde_json::Map;

use super::check_storable;
use crate::block::Block;
use crate::nats::{self, LazyStream, Published, Settings, StreamError, token};

/// The kind that manifests name.
pub const KIND: &str = crate::optional_kinds::NATS_STATE;

/// The header of a message that removes the entry of its key.
const OPERATION_HEADER: &str = "KV-Operation";

/// Builds the store from its block, which takes no keys.
///
/// # Errors
/// When the block has a key, or no NATS servers are named.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> {
    Block::parse(build.block, &["kind"])?;
    let nats = nats::shared(build.servers)?;
    let bucket = format!("q1-{}-state", token(nats.tenant()).replace('=', "_"));
    let settings = Settings {
        name: format!("KV_{bucket}"),
        description: "What participants of Quorate's runtimes remember".to_owned(),
        subjects: format!("$KV.{bucket}.>"),
        keeps_last: true,
        replicas: None,
    };
    let prefix = format!("$KV.{bucket}.{}", token(build.runtime));
    Ok(Arc::new(NatsState { stream: LazyStream::new(nats, settings), prefix }))
}

struct NatsState {
    stream: LazyStream,
    /// What every subject of the runtime begins with.
    prefix: String,
}

impl NatsState {
    fn subject(&self, participant: &str) -> String {
        format!("{}.{}", self.prefix, token(participant))
    }
}

#[async_trait]
impl State for NatsState {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError> {
        let unread = || format!("the state of `{participant}` on the NATS servers cannot be read");
        let stored = self.stream.last_of(&self.subject(participant)).await;
        let Some(stored) = stored.map_err(|error| StateError::new(unread(), error))? else {
            return Ok(Map::new());
        };
        if stored.headers.get(OPERATION_HEADER).is_some() {
            return Ok(Map::new());
        }
        let state =
            serde_json::from_slice(&stored.payload).map_err(|error| StateError::new(unread(), error))?;
        check_storable(participant, &state)?;
        Ok(state)
    }

    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError> {
        check_storable(participant, state)?;
        let unwritten = |error| {
            StateError::new(
                format!("the state of `{participant}` on the NATS servers cannot be written"),
                error,
            )
        };
        let payload = serde_json::to_vec(state).map_err(|error| unwritten(StreamError::new(error)))?;
        let length = payload.len();
        // Sent again, the whole state is the same.
        match self.stream.publish(&self.subject(participant), payload, false).await.map_err(unwritten)? {
            Published::At(_) => Ok(()),
            Published::TooLong { limit } => Err(unwritten(StreamError::new(format!(
                "it has {length} bytes, and the NATS servers take {limit}: raise their `max_payload`"
            )))),
            Published::Occupied => Err(unwritten(StreamError::new("its place is taken"))),
        }
    }
}
