//! A checkpoint as the ledger records it.

use quorate_kernel::{entropy, record};
use quorate_protocol::Json;
use serde_json::Map;

use crate::merkle::TreeHead;
use crate::note::{Checkpoint, Verifier};

/// The stream of the ledger's own records: its checkpoints, and what was done to it.
pub const STREAM: &str = "ledger";

/// What the origin of every ledger begins with.
pub(crate) const ORIGIN_PREFIX: &str = "quorate/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRecord {
    pub origin: String,
    /// Over how many records, and their root.
    pub tree: TreeHead,
    /// The signed note; `None` if unsigned.
    pub note: Option<String>,
    /// Who verifies it, one line each (see [`crate::note::Verifier`]).
    pub keys: Vec<String>,
    /// Its number in the ledger's stream.
    pub n: u64,
    /// Whether it was made just now. Where nothing came after the last one, it still holds.
    pub is_new: bool,
}

impl CheckpointRecord {
    /// Reads the body of a checkpoint's record.
    pub(crate) fn from_data(n: u64, data: &Map<String, Json>) -> Option<CheckpointRecord> {
        let record::Checkpoint { origin, size, root, note, keys } = record::read(data).ok()?;
        let tree = TreeHead { size, root: entropy::unhex(&root)? };
        Some(CheckpointRecord { origin, tree, note, keys, n, is_new: false })
    }

    /// What a note of it would say.
    pub fn unsigned_text(&self) -> String {
        Checkpoint::new(&self.origin, self.tree).map_or_else(|_| String::new(), |one| one.to_string())
    }

    /// Who verifies it; `None` where a line is no key.
    pub fn verifiers(&self) -> Option<Vec<Verifier>> {
        self.keys.iter().map(|key| Verifier::from_text(key).ok()).collect()
    }

    pub(crate) fn recorded(&self) -> record::Checkpoint {
        record::Checkpoint {
            origin: self.origin.clone(),
            size: self.tree.size,
            root: entropy::hex(&self.tree.root),
            note: self.note.clone(),
            keys: self.keys.clone(),
        }
    }
}
