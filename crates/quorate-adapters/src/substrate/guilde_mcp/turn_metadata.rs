//! What we write beside a turn: `metadata.quorate`.

use quorate_kernel::conversation::{NewTurn, Stamp};
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;

/// The key of the metadata that is ours.
const METADATA_KEY: &str = "quorate";

/// What we write beside a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnMetadata {
    /// Who takes the turn.
    pub(super) participant: Name,
    /// Which attempt to post it is, so that it is found again when no answer comes.
    pub(super) post: String,
    /// What its author adds.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) meta: Map<String, Json>,
    /// What ties it to the turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stamp: Option<Stamp>,
}

impl TurnMetadata {
    /// The marks of a turn that is to be posted.
    pub(super) fn new(turn: &NewTurn, post: &str) -> Self {
        TurnMetadata {
            participant: turn.participant.clone(),
            post: post.to_owned(),
            meta: turn.meta.clone(),
            stamp: turn.stamp.clone(),
        }
    }

    pub(super) fn to_metadata(&self) -> Json {
        // A struct of texts and JSON has no reason not to become JSON.
        let ours = serde_json::to_value(self).unwrap_or_default();
        Json::Object(Map::from_iter([(METADATA_KEY.to_owned(), ours)]))
    }

    /// Takes the marks out of metadata. What is not in our form is nobody's, and dropped.
    pub(super) fn take_from(metadata: &mut Map<String, Json>) -> Option<Self> {
        metadata.remove(METADATA_KEY).and_then(|ours| serde_json::from_value(ours).ok())
    }
}
