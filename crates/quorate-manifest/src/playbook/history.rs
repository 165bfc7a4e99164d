//! `history`: the changes of a playbook.

use schemars::JsonSchema;
use serde::Deserialize;

/// One change of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HistoryEntry")]
pub struct Entry {
    /// The time, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The kind of change.
    pub kind: EntryKind,
    /// One line.
    #[schemars(length(min = 1, max = 1000))]
    pub summary: String,
    /// The run, reflection or ticket that led to the change.
    pub source: Option<String>,
    /// The author of the change.
    pub by: Option<String>,
    /// The gate that a promotion passed.
    pub gate: Option<Gate>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum EntryKind {
    /// The playbook was created.
    Created,
    /// The playbook was edited.
    Delta,
    /// The playbook became active.
    Promoted,
    /// The playbook was archived.
    Archived,
    /// Another playbook replaced this one.
    Superseded,
    /// The playbook violated a locked trait.
    LockViolation,
}

/// The test of a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Gate {
    /// Outcomes with the playbook are better than without.
    AB,
    /// A scorer prefers the prompt with the playbook.
    Scorer,
    /// A person approves.
    Human,
    /// An assembly votes for the promotion.
    Governance,
}
