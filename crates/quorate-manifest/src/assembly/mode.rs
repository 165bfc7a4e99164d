//! `mode` and `matchMode`: the two choices that bind every view.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the members decide together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline, description = "How the members decide together.")]
pub enum Mode {
    /// Members advise; accepted advice is woven into an operator's prompt.
    Advisory,
    /// Members vote on a proposal.
    Voting,
    /// Members exchange messages as equals.
    Peer,
    /// Members report up a tree.
    Hierarchy,
}

impl Mode {
    pub const ALL: [Mode; 4] = [Mode::Advisory, Mode::Voting, Mode::Peer, Mode::Hierarchy];

    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Advisory => "advisory",
            Mode::Voting => "voting",
            Mode::Peer => "peer",
            Mode::Hierarchy => "hierarchy",
        }
    }

    /// The inverse of [`Mode::as_str`].
    pub fn parse(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// How an outcome is matched against the locked traits, the least strict first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline, description = "How an outcome is matched against the locked traits.")]
pub enum MatchMode {
    /// The trait's text, ignoring case.
    #[default]
    Substring,
    /// The trait is a regular expression.
    Regex,
    /// Text similar in meaning to the trait, by the registered embedder.
    Semantic,
}

impl MatchMode {
    /// The least strict first.
    pub const ALL: [MatchMode; 3] = [MatchMode::Substring, MatchMode::Regex, MatchMode::Semantic];

    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            MatchMode::Substring => "substring",
            MatchMode::Regex => "regex",
            MatchMode::Semantic => "semantic",
        }
    }

    /// The inverse of [`MatchMode::as_str`].
    pub fn parse(word: &str) -> Option<MatchMode> {
        MatchMode::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}
