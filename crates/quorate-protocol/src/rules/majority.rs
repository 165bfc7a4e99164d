//! `majority`: more than half of the weight says yes (V4).

use quorate_manifest::assembly::Mode;
use quorate_manifest::known::{Ends, RuleKind};
use serde_json::json;

/// The kind as a manifest writes it.
pub const KIND: &str = "majority";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Voting],
        names_member: &["chair"],
        ends: Ends::No,
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "tieBreaker": {"enum": ["chair-vote", "reject", "random"]},
                "chair": {"type": "string", "minLength": 1},
                "denominator": {"enum": ["total", "cast"]},
                "terminal": {"type": "boolean"}
            },
            "if": {"properties": {"tieBreaker": {"const": "chair-vote"}}, "required": ["tieBreaker"]},
            "then": {"required": ["chair"]}
        }),
    }
}
