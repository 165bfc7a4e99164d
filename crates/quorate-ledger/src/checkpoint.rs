//! A checkpoint as the ledger records it.

use quorate_kernel::{entropy, record};
use quorate_protocol::Json;
use serde_json::Map;

use crate::merkle::TreeHead;
use crate::note::{Checkpoint, Verifier};
use crate::signing::{Context, PublicKey, Voucher};

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
    /// Why its keys follow those of the checkpoint before it.
    pub succession: Succession,
    /// Its number in the ledger's stream.
    pub n: u64,
    /// Whether it was made just now. Where nothing came after the last one, it still holds.
    pub is_new: bool,
}

/// Why a checkpoint's keys follow those of the signed checkpoint before it, where none of these signed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Succession {
    /// The words of keys for the keys that replaced them, each by a key that signed the checkpoint before it or by one that
    /// an earlier word is for.
    pub vouched: Vec<Voucher>,
    /// The keys that a person accepts, though no key vouches for them. This says so; it proves nothing.
    pub accepted: Vec<record::AcceptedKey>,
}

impl Succession {
    /// The keys that follow from `before`, these included.
    ///
    /// # Errors
    /// Which voucher does not hold, in words.
    pub(crate) fn keys_after(&self, before: Vec<PublicKey>) -> Result<Vec<PublicKey>, String> {
        let mut keys = before;
        for voucher in &self.vouched {
            let known = |by| keys.iter().find(|key| key.id() == by).copied();
            let vouched = voucher.check(Context::LEDGER_VOUCHER, known)?;
            keys.push(vouched.key);
        }
        Ok(keys)
    }

    pub(crate) fn accepts(&self, key: &PublicKey) -> bool {
        let text = key.to_string();
        self.accepted.iter().any(|accepted| accepted.key == text)
    }
}

impl CheckpointRecord {
    /// Reads the body of a checkpoint's record.
    pub(crate) fn from_data(n: u64, data: &Map<String, Json>) -> Option<CheckpointRecord> {
        let record::Checkpoint { origin, size, root, note, keys, vouched, accepted } =
            record::read(data).ok()?;
        let vouched = vouched.into_iter().map(serde_json::from_value).collect::<Result<_, _>>().ok()?;
        let succession = Succession { vouched, accepted };
        let tree = TreeHead { size, root: entropy::unhex(&root)? };
        Some(CheckpointRecord { origin, tree, note, keys, succession, n, is_new: false })
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
            vouched: self.succession.vouched.iter().map(Voucher::to_json).collect(),
            accepted: self.succession.accepted.clone(),
        }
    }
}
