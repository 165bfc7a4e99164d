//! Rollbacks that a person accepted.

use quorate_kernel::record::{self, RolledBack};
use quorate_protocol::Json;
use serde_json::Map;

/// A rollback that a person accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    /// The number of its record in the ledger's stream.
    pub n: u64,
    pub by: String,
    pub reason: String,
}

impl Rollback {
    /// Reads the body of the record that says so.
    pub(super) fn from_data(n: u64, data: &Map<String, Json>) -> Self {
        let RolledBack { by, reason, .. } = record::read(data).unwrap_or_default();
        Rollback { n, by, reason }
    }
}
