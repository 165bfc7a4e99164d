//! `participants`: who takes part.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

/// One who takes part.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Participant {
    /// Its id.
    #[schemars(
        regex(pattern = pattern::PARTICIPANT),
        extend("examples" = ["reviewer"])
    )]
    pub id: String,
    /// Who answers for it, by its kind in the registry.
    pub executor: String,
    /// What people call it, and what it is mentioned by; its id unless said.
    pub display_name: Option<String>,
    /// Its role: the path of a role file, relative to the manifest, or the text itself.
    pub role: Option<String>,
    /// What adapters need to know of it: operator, persona, capabilities.
    pub meta: Option<Map<String, Value>>,
    /// The executor's own settings.
    pub config: Option<Map<String, Value>>,
    /// What others need.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}
