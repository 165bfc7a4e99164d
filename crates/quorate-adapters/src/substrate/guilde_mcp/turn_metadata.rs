//! The metadata that Quorate writes with a turn: `metadata.quorate`.

use quorate_kernel::conversation::{NewTurn, Stamp};
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;

const METADATA_KEY: &str = "quorate";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnMetadata {
    pub(super) participant: Name,
    /// The id of the attempt to post it, so that it is found if the response is lost.
    pub(super) post: String,
    /// The author's own metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) meta: Map<String, Json>,
    /// Ties it to the turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stamp: Option<Stamp>,
}

impl TurnMetadata {
    /// The metadata of a turn to post.
    pub(super) fn new(turn: &NewTurn, post: &str) -> Self {
        TurnMetadata {
            participant: turn.participant.clone(),
            post: post.to_owned(),
            meta: turn.meta.clone(),
            stamp: turn.stamp.clone(),
        }
    }

    pub(super) fn to_metadata(&self) -> Json {
        // A struct of strings and JSON always serializes.
        let value = serde_json::to_value(self).unwrap_or_default();
        Json::Object(Map::from_iter([(METADATA_KEY.to_owned(), value)]))
    }

    /// Removes Quorate's part from metadata. A part in another form is dropped.
    pub(super) fn take_from(metadata: &mut Map<String, Json>) -> Option<Self> {
        metadata.remove(METADATA_KEY).and_then(|value| serde_json::from_value(value).ok())
    }
}
