//! What was done to the ledger itself.

use std::collections::BTreeMap;
use std::ops::Range;

use quorate_protocol::Json;
use serde::{Deserialize, Serialize};

use super::{RecordData, lenient, readable_items};
use crate::ports::ledger::Kind;

/// Nothing of a run is erased any more, whatever its age.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Held {
    #[serde(deserialize_with = "lenient")]
    pub run: String,
    #[serde(deserialize_with = "lenient")]
    pub by: String,
    #[serde(deserialize_with = "lenient")]
    pub reason: Option<String>,
}

impl RecordData for Held {
    const KIND: Kind = Kind::Held;
}

/// A run may be erased again once its retention ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Released {
    #[serde(deserialize_with = "lenient")]
    pub run: String,
    #[serde(deserialize_with = "lenient")]
    pub by: String,
}

impl RecordData for Released {
    const KIND: Kind = Kind::Released;
}

/// Runs were taken in from another ledger.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Imported {
    #[serde(deserialize_with = "readable_items")]
    pub runs: Vec<String>,
    /// How many records they have.
    #[serde(deserialize_with = "lenient")]
    pub records: u64,
    /// By run, the records whose bodies were not there.
    #[serde(deserialize_with = "lenient")]
    pub erased: BTreeMap<String, Vec<RecordRange>>,
    /// The other ledger.
    #[serde(deserialize_with = "lenient")]
    pub origin: String,
    /// Its size and root, as the note says.
    #[serde(deserialize_with = "lenient")]
    pub size: u64,
    #[serde(deserialize_with = "lenient")]
    pub root: String,
    #[serde(deserialize_with = "lenient")]
    pub note: Option<String>,
    pub keys: Json,
    /// The key that a person vouched for.
    pub vouched: Json,
    #[serde(deserialize_with = "lenient")]
    pub file_sha256: String,
}

impl RecordData for Imported {
    const KIND: Kind = Kind::Imported;
}

/// A person accepted that the ledger has lost records that its key had signed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RolledBack {
    #[serde(deserialize_with = "lenient")]
    pub reason: String,
    #[serde(deserialize_with = "lenient")]
    pub by: String,
    /// The checkpoints that do not hold any more.
    #[serde(deserialize_with = "readable_items")]
    pub given_up: Vec<GivenUp>,
    /// The ledger that was kept here before, where this is another one.
    #[serde(deserialize_with = "lenient")]
    pub replaced: Option<String>,
}

impl RecordData for RolledBack {
    const KIND: Kind = Kind::RolledBack;
}

/// A copy of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GivenUp {
    /// `None` where it could not be read.
    #[serde(deserialize_with = "lenient")]
    pub note: Option<String>,
}

/// Records by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordRange {
    One(u64),
    FirstToLast([u64; 2]),
}

impl RecordRange {
    /// `None` where there is no number after the last.
    pub fn range(self) -> Option<Range<u64>> {
        match self {
            RecordRange::One(n) => Some(n..n.saturating_add(1)),
            RecordRange::FirstToLast([first, last]) => Some(first..last.checked_add(1)?),
        }
    }
}

/// Bodies of a run were erased.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Erased {
    #[serde(deserialize_with = "lenient")]
    pub run: Option<String>,
    /// Ranges of numbers, each with its first and last.
    #[serde(deserialize_with = "lenient")]
    pub records: Option<Vec<RecordRange>>,
    /// Texts, by SHA-256.
    #[serde(deserialize_with = "lenient")]
    pub bodies: Option<Vec<String>>,
    /// `retention` or `consultations_off`.
    #[serde(deserialize_with = "lenient")]
    pub reason: Option<String>,
    /// After how many days; `None` where nothing was to be kept beyond the run's end.
    #[serde(deserialize_with = "lenient")]
    pub days: Option<u32>,
}

impl RecordData for Erased {
    const KIND: Kind = Kind::Erased;
}

/// The ledger up to here was sealed. One whose fields are malformed is no checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub origin: String,
    /// Over how many records.
    pub size: u64,
    /// The tree's root, hexadecimal.
    pub root: String,
    /// The signed note; `None` if the checkpoint is unsigned.
    #[serde(default, deserialize_with = "lenient")]
    pub note: Option<String>,
    /// Who verifies it, one line each.
    pub keys: Vec<String>,
    /// What lets its keys follow those of the signed checkpoint before it where none of these signed it: each the word of
    /// one key for the next. The ledger reads and checks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vouched: Vec<Json>,
    /// The keys that a person accepts here, since no key before them vouches for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<AcceptedKey>,
}

/// A person accepted a key of the ledger for which no key before it vouches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedKey {
    /// The public key.
    pub key: String,
    pub by: String,
    pub reason: String,
}

impl RecordData for Checkpoint {
    const KIND: Kind = Kind::Checkpoint;
}
