//! What the host did for a run: it gathered, compared by meaning, or applied a rule of its own.

use quorate_protocol::{Json, Name, SemanticHit};
use serde::{Deserialize, Serialize};

use super::{Charged, RecordData, Spent, lenient};
use crate::ports::ledger::Kind;

/// A gather strategy ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gathered {
    /// The invocation that it was for; a record without one stands for no event.
    #[serde(deserialize_with = "lenient")]
    pub invocation: Option<Name>,
    #[serde(deserialize_with = "lenient")]
    pub member: Name,
    #[serde(deserialize_with = "lenient")]
    pub strategy: Name,
    /// What was gathered; `None` where it failed.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Texts were compared with traits by meaning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Match {
    /// The candidate outcome; a record without one stands for no event.
    #[serde(deserialize_with = "lenient")]
    pub candidate: Option<Name>,
    /// The embedder's model.
    #[serde(deserialize_with = "lenient")]
    pub model: String,
    /// What came near a trait; `None` where it failed.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub near: Option<Vec<SemanticHit>>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the embedder's requests took, where it made any that are paid for; `calls` are these requests.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// What they count as against the run's caps on tokens and money.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub charged: Option<Charged>,
}

/// A custom rule was applied. What protocols record of rules has no ticket.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRule {
    #[serde(deserialize_with = "lenient")]
    pub ticket: Option<Name>,
    /// The rule's kind.
    #[serde(deserialize_with = "lenient")]
    pub kind: Name,
    /// What it gave; `None` where it failed.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Null is an output.
fn present<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(field).map(Some)
}

impl RecordData for Gathered {
    const KIND: Kind = Kind::Gathered;
}

impl RecordData for Match {
    const KIND: Kind = Kind::Match;
}

impl RecordData for HostRule {
    const KIND: Kind = Kind::Rule;
}
