//! `priority`: what a member says of a certain concern goes through before other things (A3).

use quorate_manifest::assembly::Mode;
use quorate_manifest::known::{Ends, RuleKind};
use serde_json::json;

/// The kind as a manifest writes it.
pub const KIND: &str = "priority";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Advisory],
        names_member: &[],
        ends: Ends::No,
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "triggerKind": {"type": "string", "minLength": 1},
                "words": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
                "priority": {"type": "integer", "minimum": 0, "maximum": 100},
                "ttl": {"type": "string", "minLength": 2},
                "ttlMs": {"type": "integer", "minimum": 1},
                "terminal": {"type": "boolean"}
            }
        }),
    }
}
