//! `relationships`: what a persona is to others.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern;

/// What a persona is to another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relationship {
    /// The other persona.
    #[schemars(
        regex(pattern = pattern::ANY_PERSONA)
    )]
    pub persona: String,
    /// What it is to it.
    #[schemars(length(min = 1, max = 60), extend("examples" = ["mentor-of", "peer-of"]))]
    pub kind: String,
    /// More about it.
    #[schemars(length(min = 1, max = 1000))]
    pub notes: Option<String>,
}
