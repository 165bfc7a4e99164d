//! The block of an adapter: its kind, and whatever that kind reads.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Which adapter, and how it is set up.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(rename = "AdapterConfig")]
pub struct Adapter {
    /// Which adapter, by its kind in the registry.
    pub kind: String,
    /// How it is set up.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}
