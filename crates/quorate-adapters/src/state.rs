//! State stores keep what participants remember. One file for each kind.

pub mod fs;
#[cfg(feature = "mcp")]
pub mod mcp_kv;
pub mod memory {
    //! The `memory` store: state that ends with its process, for dry runs and tests.

    use std::collections::HashMap;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use async_trait::async_trait;
    use quorate_kernel::ports::executor::ConfigError;
    use quorate_kernel::ports::state::{State, StateError};
    use quorate_kernel::registry::BuildContext;
    use quorate_protocol::Json;
    use serde_json::Map;

    use super::check_storable;
    use crate::block::Block;

    /// The kind that manifests name.
    pub const KIND: &str = "memory";

    /// Builds the store from its block, which takes no keys.
    ///
    /// # Errors
    /// When the block has a key.
    pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn State>, ConfigError> {
        Block::parse(build.block, &["kind"])?;
        Ok(Arc::new(Memory::default()))
    }

    #[derive(Default)]
    pub struct Memory {
        objects: Mutex<HashMap<String, Map<String, Json>>>,
    }

    impl Memory {
        fn objects(&self) -> MutexGuard<'_, HashMap<String, Map<String, Json>>> {
            self.objects.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[async_trait]
    impl State for Memory {
        fn kind(&self) -> &'static str {
            KIND
        }

        async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError> {
            Ok(self.objects().get(participant).cloned().unwrap_or_default())
        }

        async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError> {
            check_storable(participant, state)?;
            self.objects().insert(participant.to_owned(), state.clone());
            Ok(())
        }
    }
}
#[cfg(feature = "nats")]
pub mod nats_kv;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod sqlite;

use quorate_kernel::ports::state::StateError;
use quorate_protocol::{Json, storable};
use serde_json::Map;

/// Refuses a state that could not be recorded and read again. Every store checks it on writing and on reading,
/// since files and databases also have other writers.
fn check_storable(participant: &str, state: &Map<String, Json>) -> Result<(), StateError> {
    storable::check_object(state, storable::MAX_DEPTH).map_err(|error| StateError {
        what: format!("the state of `{participant}` cannot be stored: {error}"),
        source: None,
    })
}
