//! `history`: what was done to a playbook.

use schemars::JsonSchema;
use serde::Deserialize;

/// One thing that was done to a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HistoryEntry")]
pub struct Entry {
    /// When, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// What.
    pub kind: EntryKind,
    /// In one line.
    #[schemars(length(min = 1, max = 1000))]
    pub summary: String,
    /// The run, reflection or ticket that it comes from.
    pub source: Option<String>,
    /// Who did it.
    pub by: Option<String>,
    /// The gate that a promotion has passed.
    pub gate: Option<Gate>,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum EntryKind {
    /// It was made.
    Created,
    /// It was changed.
    Delta,
    /// It became active.
    Promoted,
    /// It was taken out of use.
    Archived,
    /// Another took its place.
    Superseded,
    /// It touched a locked trait.
    LockViolation,
}

/// What a promotion has to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Gate {
    /// Outcomes with it are better than without.
    AB,
    /// A scorer says so.
    Scorer,
    /// A person says so.
    Human,
    /// A vote says so.
    Governance,
}
