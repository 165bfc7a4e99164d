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

/// A swarm: who takes part, over which substrate, dispatched how.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(title = "MultiAgentRuntime")]
pub struct Runtime {
    /// The doctype, agentruntimes/v1.
    #[schemars(extend("const" = "agentruntimes/v1"))]
    pub schema: String,
    /// The kind of runtime; there is one, MultiAgentRuntime.
    #[schemars(extend("const" = "MultiAgentRuntime"))]
    pub kind: String,
    /// The runtime's id.
    #[schemars(
        regex(pattern = pattern::WORD),
        extend("examples" = ["local-swarm"])
    )]
    pub id: String,
    /// Who takes part.
    #[schemars(extend("minItems" = 1))]
    pub participants: Vec<participants::Participant>,
    /// Where the conversation is kept.
    pub substrate: adapter::Adapter,
    /// Who is next.
    pub dispatcher: adapter::Adapter,
    /// Where participants keep what they remember; files beside the manifest unless said.
    pub state: Option<adapter::Adapter>,
    /// Which hooks are called; all of them unless said.
    pub lifecycle: Option<lifecycle::Lifecycle>,
    /// Which tools a participant may use.
    pub effectors: Option<Vec<effectors::EffectorBinding>>,
    /// What is set up before the first turn.
    pub provisioning: Option<adapter::Adapter>,
    /// The commands that are told of events, by the event.
    pub hooks: Option<Map<String, Value>>,
    /// What others need.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}
