//! `evidence`: what a playbook was learned from.

use schemars::JsonSchema;
use serde::Deserialize;

/// What a playbook was learned from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// What sort of thing it is.
    pub kind: EvidenceKind,
    /// Its id or path.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 500))]
    pub reference: String,
    /// What it shows, in one line.
    #[schemars(length(max = 1000))]
    pub note: Option<String>,
}

/// What sort of thing a playbook was learned from.
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
    /// A reflection on several of them.
    Reflection,
    /// What a person said.
    Human,
}
