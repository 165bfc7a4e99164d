//! `relationships`: a persona's relationships to others.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern;

/// A persona's relationship to another persona.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relationship {
    /// The other persona.
    #[schemars(
        regex(pattern = pattern::ANY_PERSONA)
    )]
    pub persona: String,
    /// The kind of relationship, from this persona to the other.
    #[schemars(length(min = 1, max = 60), extend("examples" = ["mentor-of", "peer-of"]))]
    pub kind: String,
    /// Further notes.
    #[schemars(length(min = 1, max = 1000))]
    pub notes: Option<String>,
}
