//! `quorum`: enough of the weight says yes (V3, V4).

use std::cmp::Ordering;

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;

use super::majority;
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
                "denominator": {"enum": ["total", "cast"]},
                "terminal": {"type": "boolean"}
            },
            "required": ["threshold"]
        }),
        ..RuleKind::default()
    }
}

/// Passes where the ratio is at or over the threshold; an exact half is left to a later `majority`.
pub(crate) fn decide(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let tally = poll.tally(rule);
    if tally.compare_to_half() == Some(Ordering::Equal)
        && poll.later.iter().any(|later| *later.kind == *majority::KIND)
    {
        return None;
    }
    let reached = rule.decimal_param("threshold").is_some_and(|threshold| tally.reaches(threshold));
    Some(Ruling { tally: Some(tally), ..Ruling::new(reached) })
}

/// Whether one more yes can turn a pass: at exactly a half it leaves to a later `majority` what it would pass below, if
/// its threshold is low, or what it fails above, if its threshold is high and a chair or chance breaks the tie.
pub(crate) fn may_change_verdict(rule: &Rule, later: &[Rule]) -> bool {
    *rule.kind == *KIND && later.iter().any(|later| *later.kind == *majority::KIND)
}
