//! `backstory`: a persona's history.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern;

/// A persona's history.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Backstory {
    /// The persona in one sentence.
    #[schemars(length(min = 1, max = 280))]
    pub one_line_hook: Option<String>,
    /// Its history, as Markdown.
    #[schemars(length(min = 1))]
    pub background: Option<String>,
    /// The kinds of character. Lists are joined along the chain.
    #[schemars(inner(
        regex(pattern = pattern::KEBAB)
    ), extend("uniqueItems" = true, "maxItems" = 12, "examples" = [["mentor", "craftsman"]]))]
    pub archetypes: Option<Vec<String>>,
    /// The time in which the persona lives.
    #[schemars(length(min = 1, max = 80), extend("examples" = ["contemporary"]))]
    pub era: Option<String>,
    /// The world in which the persona lives.
    #[schemars(length(min = 1, max = 120), extend("examples" = ["real-world"]))]
    pub setting: Option<String>,
}
