//! The block of an adapter: its kind and settings.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

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
