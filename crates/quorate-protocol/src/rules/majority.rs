//! `majority`: more than half of the weight says yes (V4).

use std::cmp::Ordering;

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::votes::{Poll, Ruling};
use crate::answers::vote::Vote;
use crate::assembly::Rule;

/// The kind as a manifest writes it.
pub const KIND: &str = "majority";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        always_decides: true,
        modes: vec![Mode::Voting],
        member_params: &["chair"],
        dependent_params: &[("chair", "tieBreaker", "chair-vote")],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "tieBreaker": {"enum": ["chair-vote", "reject", "random"], "default": "reject"},
                "chair": {"type": "string", "minLength": 1},
                "denominator": {"enum": ["total", "cast"], "default": "total"},
                "terminal": {"type": "boolean"}
            },
            "if": {"properties": {"tieBreaker": {"const": "chair-vote"}}, "required": ["tieBreaker"]},
            "then": {"required": ["chair"]}
        }),
        ..RuleKind::default()
    }
}

/// More than half passes, less fails, and an exact half goes to the tie-breaker.
pub(crate) fn decide(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let tally = poll.tally(rule);
    let half = tally.compare_to_half();
    let mut ruling = Ruling { tally: Some(tally), ..Ruling::new(half == Some(Ordering::Greater)) };
    if half == Some(Ordering::Equal) {
        let (pass, tie) = break_tie(rule, poll);
        ruling.pass = pass;
        ruling.tie = Some(tie);
    }
    Some(ruling)
}

/// Who breaks a tie, and how. A chair who abstains or is missing rejects.
fn break_tie(rule: &Rule, poll: &Poll<'_>) -> (bool, String) {
    match rule.text_param("tieBreaker").unwrap_or("reject") {
        "chair-vote" => {
            let chair = rule.text_param("chair").unwrap_or_default();
            let vote = poll.votes.iter().find(|vote| *vote.member == *chair).and_then(|vote| vote.vote);
            match vote {
                Some(Vote::Yes) => (true, format!("tied; the chair `{chair}` votes yes")),
                Some(Vote::No) => (false, format!("tied; the chair `{chair}` votes no")),
                Some(Vote::Abstain) => (false, format!("tied; the chair `{chair}` abstains, which rejects")),
                None => (false, format!("tied; the chair `{chair}` gave no vote, which rejects")),
            }
        }
        "random" => {
            let pass = Sha256::digest(poll.run.as_bytes())[0] & 1 == 1;
            let side = if pass { "pass" } else { "fail" };
            (pass, format!("tied; drawn from the run's id: {side}"))
        }
        _ => (false, "tied; a tie rejects".to_owned()),
    }
}
