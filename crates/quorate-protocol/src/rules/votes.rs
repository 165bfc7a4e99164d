//! Votes as rules see them, and the rules that count them: `quorum`, `majority` and `unanimity` (V3, V4).

use std::cmp::Ordering;

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::answers::advice::Vote;
use crate::assembly::Rule;
use crate::tally::{Tally, Weight};
use crate::{Json, Name};

/// A counted vote.
#[derive(Debug, Clone)]
pub(crate) struct CountedVote {
    pub(crate) member: Name,
    pub(crate) weight: Weight,
    /// `None` where the member gave no vote.
    pub(crate) vote: Option<Vote>,
}

/// The votes, as rules see them.
pub(crate) struct Poll<'a> {
    pub(crate) votes: Vec<CountedVote>,
    pub(crate) class: Option<&'a str>,
    pub(crate) run: &'a str,
}

/// What a rule decides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ruling {
    pub(crate) pass: bool,
    /// Whose votes made it decide so, where it is not all of them.
    pub(crate) members: Vec<Name>,
    pub(crate) tally: Option<Tally>,
    /// How a tie was broken.
    pub(crate) tie: Option<String>,
}

impl Ruling {
    /// A decision without more.
    pub(crate) fn new(pass: bool) -> Self {
        Ruling { pass, members: Vec::new(), tally: None, tie: None }
    }
}

impl Poll<'_> {
    /// The voters that a rule looks at.
    pub(crate) fn votes_of(&self, rule: &Rule) -> impl Iterator<Item = &CountedVote> {
        self.votes.iter().filter(|one| rule.applies_to_member(&one.member))
    }

    /// Their weights by vote; what abstains is in the total unless the rule counts what was cast (V3).
    pub(crate) fn tally(&self, rule: &Rule) -> Tally {
        let mut tally = Tally::default();
        let cast = rule.text_param("denominator") == Some("cast");
        for voter in self.votes_of(rule) {
            let side = match voter.vote {
                Some(Vote::Yes) => &mut tally.yes,
                Some(Vote::No) => &mut tally.no,
                Some(Vote::Abstain) => &mut tally.abstain,
                None => &mut tally.missing,
            };
            *side += &voter.weight;
            if !(cast && voter.vote == Some(Vote::Abstain)) {
                tally.total += &voter.weight;
            }
        }
        tally
    }
}

/// The kind as a manifest writes it.
pub const QUORUM: &str = "quorum";

/// The constraints on such a rule in manifests.
pub fn quorum_kind() -> RuleKind {
    let mut kind = deciding_kind(json!({
        "threshold": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "denominator": {"enum": ["total", "cast"], "default": "total"},
        "terminal": {"type": "boolean"}
    }));
    kind.params["required"] = json!(["threshold"]);
    kind
}

/// A kind that decides every vote, with the JSON Schemas of its parameters.
fn deciding_kind(params: Json) -> RuleKind {
    RuleKind {
        always_decides: true,
        modes: vec![Mode::Voting],
        params: json!({"type": "object", "additionalProperties": false, "properties": params}),
        ..RuleKind::default()
    }
}

/// Passes where the ratio is at or over the threshold, and fails below it. It never leaves the decision to a later rule:
/// with a tie that falls through, one more yes could turn a pass into a fail.
pub(crate) fn decide_by_quorum(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let tally = poll.tally(rule);
    let reached = rule.decimal_param("threshold").is_some_and(|threshold| tally.reaches(threshold));
    Some(Ruling { tally: Some(tally), ..Ruling::new(reached) })
}

/// The kind as a manifest writes it.
pub const UNANIMITY: &str = "unanimity";

/// The constraints on such a rule in manifests.
pub fn unanimity_kind() -> RuleKind {
    deciding_kind(json!({"terminal": {"type": "boolean"}}))
}

/// Passes iff every voter says yes; without voters it fails.
pub(crate) fn decide_unanimously(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    let dissenting: Vec<_> = poll
        .votes_of(rule)
        .filter(|ballot| ballot.vote != Some(Vote::Yes))
        .map(|ballot| ballot.member.clone())
        .collect();
    let pass = dissenting.is_empty() && poll.votes_of(rule).next().is_some();
    let tally = poll.tally(rule);
    Some(Ruling { members: dissenting, tally: Some(tally), ..Ruling::new(pass) })
}

/// The kind as a manifest writes it.
pub const MAJORITY: &str = "majority";

/// The constraints on such a rule in manifests.
pub fn majority_kind() -> RuleKind {
    let mut kind = deciding_kind(json!({
        "tieBreaker": {"enum": ["chair-vote", "reject", "random"], "default": "reject"},
        "chair": {"type": "string", "minLength": 1},
        "denominator": {"enum": ["total", "cast"], "default": "total"},
        "terminal": {"type": "boolean"}
    }));
    kind.params["if"] =
        json!({"properties": {"tieBreaker": {"const": "chair-vote"}}, "required": ["tieBreaker"]});
    kind.params["then"] = json!({"required": ["chair"]});
    RuleKind { member_params: &["chair"], dependent_params: &[("chair", "tieBreaker", "chair-vote")], ..kind }
}

/// More than half passes, less fails, and an exact half goes to the tie-breaker.
pub(crate) fn decide_by_majority(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
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
