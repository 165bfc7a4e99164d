//! `boundaries`: a persona's limits.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern;

/// A persona's limits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Boundaries {
    /// Requests that the persona refuses. Lists are joined along the chain.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true))]
    pub refuses: Option<Vec<String>>,
    /// Topics that the persona leaves to specialists. Lists are joined along the chain.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true))]
    pub defers: Option<Vec<String>>,
    /// Where the persona redirects people. Merged by topic along the chain.
    pub redirects: Option<Vec<Redirect>>,
}

/// The target to which a persona redirects people with a topic.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The topic.
    #[schemars(length(min = 1, max = 200))]
    pub topic: String,
    /// The target: a ws:// ref to a persona, operator or skill, or a relative path.
    #[schemars(
        regex(pattern = pattern::REDIRECT)
    )]
    pub to: String,
    /// The reason.
    #[schemars(length(min = 1, max = 500))]
    pub notes: Option<String>,
}
