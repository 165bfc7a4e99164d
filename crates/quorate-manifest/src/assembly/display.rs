//! `display`: how the assembly is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the assembly is shown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Display {
    /// How members are grouped.
    pub default_grouping: Option<Grouping>,
}

/// How members are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Grouping {
    /// By phase.
    Phase,
    /// By role.
    Role,
    /// By severity.
    Severity,
}
