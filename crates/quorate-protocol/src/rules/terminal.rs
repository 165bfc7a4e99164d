//! `terminal`: a member whose output crosses a threshold ends the synthesis (A3, V4, H2).

use quorate_manifest::assembly::Mode;
use quorate_manifest::known::{Ends, RuleKind};
use serde_json::json;

/// The kind as a manifest writes it.
pub const KIND: &str = "terminal";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Advisory, Mode::Voting, Mode::Hierarchy],
        names_member: &[],
        ends: Ends::Yes,
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "triggerSeverity": {"type": "integer", "minimum": 0, "maximum": 10},
                "triggerVote": {"enum": ["yes", "no"]},
                "scope": {"type": "string", "minLength": 1},
                "priority": {"type": "integer", "minimum": 0, "maximum": 100},
                "ttl": {"type": "string", "minLength": 2},
                "ttlMs": {"type": "integer", "minimum": 1},
                "terminal": {"type": "boolean"}
            }
        }),
    }
}
