//! `unanimity`: every voter says yes (V4).

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;

use super::votes::{Poll, Ruling};
use crate::answers::vote::Vote;
use crate::assembly::Rule;

/// The kind as a manifest writes it.
pub const KIND: &str = "unanimity";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        always_decides: true,
        modes: vec![Mode::Voting],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "terminal": {"type": "boolean"}
            }
        }),
        ..RuleKind::default()
    }
}

/// Passes iff every voter says yes; without voters it fails.
pub(crate) fn decide(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let dissenting: Vec<_> = poll
        .votes_of(rule)
        .filter(|ballot| ballot.vote != Some(Vote::Yes))
        .map(|ballot| ballot.member.clone())
        .collect();
    let pass = dissenting.is_empty() && poll.votes_of(rule).next().is_some();
    let tally = poll.tally(rule);
    Some(Ruling { members: dissenting, tally: Some(tally), ..Ruling::new(pass) })
}
