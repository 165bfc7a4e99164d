//! `lifecycle`: which hooks are called.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which hooks are called; each is unless it is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Lifecycle {
    /// After a turn.
    pub on_turn_end: Option<bool>,
    /// When a participant is mentioned.
    pub on_mention: Option<bool>,
    /// When nobody is next.
    pub on_idle: Option<bool>,
}
