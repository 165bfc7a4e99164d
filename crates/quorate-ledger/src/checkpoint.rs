//! A checkpoint as the ledger records it.

use quorate_kernel::{entropy, record};
use quorate_protocol::Json;
use serde::{Serialize, Serializer};
use serde_json::{Map, json};

use crate::merkle::TreeHead;
use crate::note::{Checkpoint, Verifier};
use crate::signing::{PublicKey, SigningContext, Voucher};

/// The stream of the ledger's own records: checkpoints, holds, erasures, imports and other operations on the ledger.
pub const STREAM: &str = "ledger";

/// The prefix of every ledger's origin.
pub(crate) const ORIGIN_PREFIX: &str = "quorate/";

/// A checkpoint in the ledger's own stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointRecord {
    /// The ledger's name.
    pub origin: String,
    /// The number of records that it covers, and their root.
    #[serde(flatten)]
    pub tree: TreeHead,
    /// The signed note; `None` if unsigned.
    pub note: Option<String>,
    /// The verifiers of the note, one line each (see [`crate::note::Verifier`]).
    pub keys: Vec<String>,
    /// The evidence that its keys may follow those of the checkpoint before it.
    #[serde(skip)]
    pub succession: Succession,
    /// Its number in the ledger's stream.
    #[serde(rename = "record", serialize_with = "as_record")]
    pub n: u64,
    /// `false` if it is an earlier checkpoint that still covers all records.
    #[serde(skip)]
    pub is_new: bool,
}

/// The name of a record in the ledger's own stream.
pub(crate) fn as_record<S: Serializer>(n: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{STREAM}/{n}"))
}

/// The evidence that a checkpoint's keys may follow those of the signed checkpoint before it, if none of those signed
/// it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Succession {
    /// Vouchers for the new keys. Each is signed by a key of the checkpoint before it, or by a key that an earlier
    /// voucher in the list covers.
    pub vouched: Vec<Voucher>,
    /// Keys that a person accepts without a voucher. This is a statement, not a proof.
    pub accepted: Vec<record::AcceptedKey>,
}

impl Succession {
    /// The keys that are valid after `before`, which they include.
    ///
    /// # Errors
    /// The reason why a voucher is invalid.
    pub(crate) fn keys_after(&self, before: Vec<PublicKey>) -> Result<Vec<PublicKey>, String> {
        let mut keys = before;
        for voucher in &self.vouched {
            let known = |by| keys.iter().find(|key| key.id() == by).copied();
            let vouched = voucher.check(SigningContext::LEDGER_VOUCHER, known)?;
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
    /// The root of its tree, in hexadecimal digits.
    pub fn root(&self) -> String {
        entropy::hex(&self.tree.root)
    }

    /// Reads the body of a checkpoint's record.
    pub(crate) fn from_data(n: u64, data: &Map<String, Json>) -> Option<CheckpointRecord> {
        let record::Checkpoint { origin, size, root, note, keys, vouched, accepted } =
            record::read(data).ok()?;
        let vouched = vouched.into_iter().map(serde_json::from_value).collect::<Result<_, _>>().ok()?;
        let succession = Succession { vouched, accepted };
        let tree = TreeHead { size, root: entropy::unhex(&root)? };
        Some(CheckpointRecord { origin, tree, note, keys, succession, n, is_new: false })
    }

    /// The text of its note, without signatures.
    pub fn unsigned_text(&self) -> String {
        Checkpoint::new(&self.origin, self.tree)
            .map_or_else(|_| String::new(), |checkpoint| checkpoint.to_string())
    }

    /// The verifiers of the note, or `None` if one of the lines is malformed.
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
            vouched: self.succession.vouched.iter().map(|voucher| json!(voucher)).collect(),
            accepted: self.succession.accepted.clone(),
        }
    }
}
