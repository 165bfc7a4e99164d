//! State stores keep what participants remember. One file for each kind.

pub mod fs;
#[cfg(feature = "mcp")]
pub mod mcp_kv;
pub mod memory;
pub mod sqlite;

use quorate_kernel::ports::state::Error;
use quorate_protocol::{Json, nesting};
use serde_json::Map;

/// Refuses a state that nests too deep to be recorded and read again. Every store checks it on writing and on reading,
/// since files and databases have other writers, too.
fn check_depth(participant: &str, state: &Map<String, Json>) -> Result<(), Error> {
    if nesting::is_object_deeper(state, nesting::MAX_DEPTH) {
        let message = format!(
            "the state of `{participant}` nests deeper than {} levels; make it flatter",
            nesting::MAX_DEPTH
        );
        return Err(Error { what: message, source: None });
    }
    Ok(())
}
