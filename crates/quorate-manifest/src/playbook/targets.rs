//! `targets`: whom a playbook is for, by kind and name.

use schemars::JsonSchema;
use serde::Deserialize;

/// Whom a playbook is for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What `ref` names; an operator's is held against its slug and its role.
    pub kind: TargetKind,
    /// A slug, `kind/slug`, or a glob.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 200), extend("examples" = ["alice", "role/companion", "operator/*"]))]
    pub reference: String,
}

/// What a target names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum TargetKind {
    /// An operator.
    Operator,
    /// A role.
    Role,
    /// A skill.
    Skill,
    /// A runtime.
    Runtime,
}
