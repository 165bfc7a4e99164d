//! Turns of a conversation, in the runtime's own stream.

use quorate_protocol::Name;
use serde::{Deserialize, Serialize};

use super::{RecordData, lenient, readable_items};
use crate::ports::ledger::Kind;

/// A trigger was dispatched, or the conversation was found to differ from the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Name>,
    /// Who wrote the trigger.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub by: Option<Name>,
    /// Who was chosen to answer.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub selected: Option<Vec<Name>>,
    /// The answers that are in the conversation.
    #[serde(deserialize_with = "some_readable", skip_serializing_if = "Option::is_none")]
    pub appended: Option<Vec<AppendedTurn>>,
    /// Who was chosen and gave no answer.
    #[serde(deserialize_with = "some_readable", skip_serializing_if = "Option::is_none")]
    pub failed: Option<Vec<FailedTurn>>,
    /// The trigger, where it is settled: nothing before it is read again.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Name>,
    /// The turns that were settled since the last record that has a cursor, up to this one's, in their order (D15).
    #[serde(deserialize_with = "some_readable", skip_serializing_if = "Option::is_none")]
    pub settled: Option<Vec<SettledTurn>>,
    /// The number of the cursor's turn in the conversation, counted from 1.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Why no participant was selected for the trigger; null where no reason is known.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub why: Option<Option<String>>,
    /// The answers were found in the conversation after a crash.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub recovered: Option<bool>,
    /// How the conversation differs from the ledger.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendedTurn {
    #[serde(default)]
    pub participant: Name,
    pub turn: Name,
}

/// A settled turn, and the hash of what the conversation had of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledTurn {
    pub turn: Name,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTurn {
    pub participant: Name,
    pub why: String,
}

impl RecordData for Turn {
    const KIND: Kind = Kind::Turn;
}

fn some_readable<'de, D, T>(field: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    readable_items(field).map(Some)
}
