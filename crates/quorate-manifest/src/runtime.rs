//! `agentruntimes/v1` (AIP-48): the manifest as written. Adapters read their own blocks.

pub mod load;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

pub use load::{RESERVED_AUTHORS, ROLE_FILES, is_role_file, load_runtime};

/// A swarm: its participants, substrate and dispatcher.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(title = "MultiAgentRuntime")]
pub struct Runtime {
    /// The doctype, agentruntimes/v1.
    #[schemars(extend("const" = "agentruntimes/v1"))]
    pub schema: String,
    /// The kind of runtime; the only one is MultiAgentRuntime.
    #[schemars(extend("const" = "MultiAgentRuntime"))]
    pub kind: String,
    /// The runtime's id.
    #[schemars(regex(pattern = pattern::WORD), extend("examples" = ["local-swarm"]))]
    pub id: String,
    /// The participants of the swarm.
    #[schemars(extend("minItems" = 1))]
    pub participants: Vec<Participant>,
    /// Where the conversation is kept.
    pub substrate: Adapter,
    /// The adapter that selects the next participant.
    pub dispatcher: Adapter,
    /// The store of the participants' states; the default is files beside the manifest.
    pub state: Option<Adapter>,
    /// The hooks to call; the default is all.
    pub lifecycle: Option<Lifecycle>,
    /// The tools that each participant may use.
    pub effectors: Option<Vec<EffectorBinding>>,
    /// The setup before the first turn.
    pub provisioning: Option<Adapter>,
    /// The commands to run on events, by event.
    pub hooks: Option<Map<String, Value>>,
    /// Data of other tools.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// An adapter: its kind and settings.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(rename = "AdapterConfig")]
pub struct Adapter {
    /// The kind of adapter in the registry.
    pub kind: String,
    /// The settings of this kind.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

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

/// The hooks to call; the default of each is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Lifecycle {
    /// After a turn.
    pub on_turn_end: Option<bool>,
    /// When a participant is mentioned.
    pub on_mention: Option<bool>,
    /// When the dispatcher selects no participant.
    pub on_idle: Option<bool>,
}

/// A participant of a swarm.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Participant {
    /// The participant's id.
    #[schemars(regex(pattern = pattern::PARTICIPANT), extend("examples" = ["reviewer"]))]
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
