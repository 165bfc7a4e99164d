//! `agentruntimes/v1` (AIP-48): the manifest as written. Adapters read their own blocks.

pub mod adapter;
pub mod effectors;
pub mod lifecycle;
pub mod load;
pub mod participants;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

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
    #[schemars(
        regex(pattern = pattern::WORD),
        extend("examples" = ["local-swarm"])
    )]
    pub id: String,
    /// The participants of the swarm.
    #[schemars(extend("minItems" = 1))]
    pub participants: Vec<participants::Participant>,
    /// Where the conversation is kept.
    pub substrate: adapter::Adapter,
    /// The adapter that selects the next participant.
    pub dispatcher: adapter::Adapter,
    /// The store of the participants' states; the default is files beside the manifest.
    pub state: Option<adapter::Adapter>,
    /// The hooks to call; the default is all.
    pub lifecycle: Option<lifecycle::Lifecycle>,
    /// The tools that each participant may use.
    pub effectors: Option<Vec<effectors::EffectorBinding>>,
    /// The setup before the first turn.
    pub provisioning: Option<adapter::Adapter>,
    /// The commands to run on events, by event.
    pub hooks: Option<Map<String, Value>>,
    /// Data of other tools.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}
