//! What happened to playbooks and overlays.

use quorate_protocol::Json;
use quorate_protocol::overlay::{Eviction, Overlay};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::{RecordData, lenient, readable_items};
use crate::ports::ledger::Kind;

/// An event of a playbook; which one, its kind says. Events add what they are about: a gate its evidence, a refusal its codes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PlaybookEventData {
    /// The change that it is a part of.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The playbook; of a composed prompt, its operators.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// What happened, as a message for users.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The version that is current from here on.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Of the file, or of the composed prompt.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Of a composed prompt: what was woven, in order.
    #[serde(skip_serializing_if = "Json::is_null")]
    pub woven: Json,
    /// Of a composed prompt: by playbook in shadow, the prompt with it.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub shadows: Option<Map<String, Json>>,
    /// Objections of a lock that a person overruled.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<LockException>,
    /// The gate that was asked.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The attempt to pass it, of which a scorer's trials are parts.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// The text that it was asked about, in a form in which a later attempt on it is recognised.
    #[serde(skip_serializing_if = "Json::is_null")]
    pub text: Json,
    /// The result of a scorer's trial.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    #[serde(flatten)]
    pub more: Map<String, Json>,
}

/// What a scorer answers: the agent's score without the playbook and with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    pub without: f64,
    pub with: f64,
}

/// Words that a person allows although they touch a locked trait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockException {
    #[serde(rename = "trait")]
    pub locked: String,
    pub text: String,
    pub by: String,
    pub reason: String,
}

impl RecordData for Overlay {
    const KIND: Kind = Kind::OverlayAdded;
}

impl RecordData for Eviction {
    const KIND: Kind = Kind::OverlayEvicted;
}
