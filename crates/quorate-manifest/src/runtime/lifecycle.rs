//! `lifecycle`: the hooks to call.

use schemars::JsonSchema;
use serde::Deserialize;

/// The hooks to call; the default of each is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Lifecycle {
    /// After a turn.
    pub on_turn_end: Option<bool>,
    /// When a participant is mentioned.
    pub on_mention: Option<bool>,
    /// When the dispatcher selects no participant.
    pub on_idle: Option<bool>,
}
