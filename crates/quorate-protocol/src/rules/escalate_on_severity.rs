//! `escalate-on-severity`: the gravest of a node's children and its own (H2).

use quorate_manifest::assembly::Mode;
use quorate_manifest::known::{Ends, RuleKind};
use serde_json::json;

/// The kind as a manifest writes it.
pub const KIND: &str = "escalate-on-severity";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Hierarchy],
        names_member: &[],
        ends: Ends::No,
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "severityFn": {"const": "max"},
                "evidenceFn": {"const": "union"},
                "emitRollup": {"const": true},
                "terminal": {"type": "boolean"}
            }
        }),
    }
}
