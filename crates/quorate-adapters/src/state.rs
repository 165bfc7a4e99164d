//! Stores of state: what participants remember. One file for each kind.

pub mod fs;
#[cfg(feature = "mcp")]
pub mod mcp_kv;
pub mod memory;
pub mod sqlite;

use quorate_kernel::ports::state::Error;
use quorate_protocol::{Json, nesting};
use serde_json::Map;

/// Refuses a state that nests too deep to be recorded and read wherever it goes. Every store refuses it, written and
/// read: files and databases have other writers, too.
fn check_depth(participant: &str, state: &Map<String, Json>) -> Result<(), Error> {
    if nesting::is_object_deeper(state, nesting::MAX_DEPTH) {
        let what = format!(
            "the state of `{participant}` nests deeper than {} levels; make it flatter",
            nesting::MAX_DEPTH
        );
        return Err(Error { what, source: None });
    }
    Ok(())
}
