//! State stores keep what participants remember. One file for each kind.

pub mod fs;
#[cfg(feature = "mcp")]
pub mod mcp_kv;
pub mod memory;
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
