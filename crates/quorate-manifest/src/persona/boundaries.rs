//! `boundaries`: what a persona does not do.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern;

/// What a persona does not do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Boundaries {
    /// What it refuses. Added up along the chain.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true))]
    pub refuses: Option<Vec<String>>,
    /// What it leaves to specialists. Added up along the chain.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true))]
    pub defers: Option<Vec<String>>,
    /// Whom it sends people to. Merged by topic along the chain.
    pub redirects: Option<Vec<Redirect>>,
}

/// Whom a persona sends people to with a topic.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The topic.
    #[schemars(length(min = 1, max = 200))]
    pub topic: String,
    /// Where to: a ws:// ref to a persona, operator or skill, or a relative path.
    #[schemars(
        regex(pattern = pattern::REDIRECT)
    )]
    pub to: String,
    /// Why.
    #[schemars(length(min = 1, max = 500))]
    pub notes: Option<String>,
}
