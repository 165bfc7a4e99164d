//! `targets`: the targets of a playbook, by kind and name.

use schemars::JsonSchema;
use serde::Deserialize;

/// A target of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The kind of `ref`; for an operator, `ref` is its slug or its role.
    pub kind: TargetKind,
    /// A slug, `kind/slug`, or a glob.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 200), extend("examples" = ["alice", "role/companion", "operator/*"]))]
    pub reference: String,
}

/// The kind of a target.
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
