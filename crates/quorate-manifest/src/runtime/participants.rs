//! `participants`: the participants of a swarm.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

/// A participant of a swarm.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Participant {
    /// The participant's id.
    #[schemars(
        regex(pattern = pattern::PARTICIPANT),
        extend("examples" = ["reviewer"])
    )]
    pub id: String,
    /// The kind of executor in the registry that answers for the participant.
    pub executor: String,
    /// The display name, by which others mention the participant; the default is the id.
    pub display_name: Option<String>,
    /// The role: the path of a role file, relative to the manifest, or the text itself.
    pub role: Option<String>,
    /// Data for adapters: operator, persona, capabilities.
    pub meta: Option<Map<String, Value>>,
    /// The executor's own settings.
    pub config: Option<Map<String, Value>>,
    /// Data of other tools.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}
