//! `effectors`: the tools that a participant may use.

use schemars::JsonSchema;
use serde::Deserialize;

/// The tools that a participant may use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EffectorBinding {
    /// The participant.
    pub participant_id: String,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The MCP servers whose tools the participant may use.
    pub mcp_servers: Option<Vec<String>>,
}
