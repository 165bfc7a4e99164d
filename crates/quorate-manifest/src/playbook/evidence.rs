//! `evidence`: the sources of a playbook.

use schemars::JsonSchema;
use serde::Deserialize;

/// A source of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The kind of source.
    pub kind: EvidenceKind,
    /// The id or path of the source.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 500))]
    pub reference: String,
    /// One line about what the source shows.
    #[schemars(length(max = 1000))]
    pub note: Option<String>,
}

/// The kind of source of a playbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum EvidenceKind {
    /// A run.
    Run,
    /// A conversation.
    Conversation,
    /// A work item.
    WorkItem,
    /// A reflection on several sources.
    Reflection,
    /// A person's statement.
    Human,
}
