//! `quorum`: enough of the weight says yes (V3, V4).

use quorate_manifest::assembly::Mode;
use quorate_manifest::known::{Ends, RuleKind};
use serde_json::json;

/// The kind as a manifest writes it.
pub const KIND: &str = "quorum";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Voting],
        names_member: &[],
        ends: Ends::No,
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "threshold": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                "denominator": {"enum": ["total", "cast"]},
                "terminal": {"type": "boolean"}
            },
            "required": ["threshold"]
        }),
    }
}
