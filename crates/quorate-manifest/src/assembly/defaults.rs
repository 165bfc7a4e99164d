//! `defaults`: when the assembly is convened automatically.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern;

/// The heuristics that Quorate knows.
pub const HEURISTICS: [&str; 4] = ["every-n-messages", "on-mode-change", "manual", "periodic"];

/// When the assembly is convened automatically.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Defaults {
    /// The heuristic that convenes the assembly.
    #[schemars(
        regex(pattern = pattern::HEURISTIC),
        extend("examples" = ["every-n-messages", "on-mode-change", "manual", "periodic"])
    )]
    pub trigger_heuristic: Option<String>,
    /// The interval of the heuristic periodic, in milliseconds.
    #[serde(rename = "triggerInterval_ms")]
    #[schemars(range(min = 1000, max = 86_400_000))]
    pub trigger_interval_ms: Option<u32>,
}
