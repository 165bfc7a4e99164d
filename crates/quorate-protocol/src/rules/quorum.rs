//! `quorum`: enough of the weight says yes (V3, V4).

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;

use super::votes::{Poll, Ruling};
use crate::assembly::Rule;

/// The kind as a manifest writes it.
pub const KIND: &str = "quorum";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        always_decides: true,
        modes: vec![Mode::Voting],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "threshold": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                "denominator": {"enum": ["total", "cast"], "default": "total"},
                "terminal": {"type": "boolean"}
            },
            "required": ["threshold"]
        }),
        ..RuleKind::default()
    }
}

/// Passes where the ratio is at or over the threshold, and fails below it. It never leaves the decision to a later rule:
/// with a tie that falls through, one more yes could turn a pass into a fail.
pub(crate) fn decide(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let tally = poll.tally(rule);
    let reached = rule.decimal_param("threshold").is_some_and(|threshold| tally.reaches(threshold));
    Some(Ruling { tally: Some(tally), ..Ruling::new(reached) })
}
