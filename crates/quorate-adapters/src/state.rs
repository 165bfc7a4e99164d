//! Stores of state: what participants remember. One file for each kind.

pub mod fs;
#[cfg(feature = "mcp")]
pub mod mcp_kv;
pub mod memory;
pub mod sqlite;
