//! `terminal`: a member whose output crosses a threshold ends the synthesis (A3, V4, H2).

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;

use super::advice::{Branch, Rollup};
use super::advice::{Draft, Emission, MemberAdvice};
use super::votes::{Poll, Ruling};
use crate::answers::advice::Vote;
use crate::assembly::Rule;

/// The kind as a manifest writes it.
pub const KIND: &str = "terminal";

/// The constraints on such a rule in manifests.
pub fn kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Advisory, Mode::Voting, Mode::Hierarchy],
        duration_params: &["ttl"],
        millisecond_params: &["ttlMs"],
        mode_params: &[
            ("triggerSeverity", &[Mode::Advisory, Mode::Hierarchy]),
            ("triggerVote", &[Mode::Voting]),
            ("scope", &[Mode::Voting]),
            ("priority", &[Mode::Advisory]),
            ("ttl", &[Mode::Advisory]),
            ("ttlMs", &[Mode::Advisory]),
        ],
        shadowed_params: &[("ttl", "ttlMs")],
        ends_synthesis: true,
        class_params: &["scope"],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "triggerSeverity": {"type": "integer", "minimum": 0, "maximum": 10, "default": DEFAULT_TRIGGER_SEVERITY},
                "triggerVote": {"enum": ["yes", "no"], "default": "no"},
                "scope": {"type": "string", "minLength": 1, "default": "every class"},
                "priority": {"type": "integer", "minimum": 0, "maximum": 100, "default": DEFAULT_PRIORITY},
                "ttl": {"type": "string", "minLength": 2},
                "ttlMs": {"type": "integer", "minimum": 1},
                "terminal": {"type": "boolean"}
            }
        }),
        ..RuleKind::default()
    }
}

/// At which severity it fires unless said.
const DEFAULT_TRIGGER_SEVERITY: u8 = 9;
/// The priority of what it emits unless said.
const DEFAULT_PRIORITY: u8 = 100;

/// The gravest of the members at or over the trigger speaks alone, even if it has nothing to suggest (A3).
pub(crate) fn advise(rule: &Rule, heard: &[MemberAdvice]) -> Option<Emission> {
    let trigger = rule.u8_param("triggerSeverity").unwrap_or(DEFAULT_TRIGGER_SEVERITY);
    let firing = heard
        .iter()
        .filter(|output| rule.applies_to_member(&output.member) && output.advice.severity >= trigger);
    // Of equals the first in the roster: `max_by_key` would take the last.
    let gravest = firing.rev().max_by_key(|output| output.advice.severity)?;
    Some(Emission {
        drafts: vec![Draft {
            member_index: gravest.member_index,
            priority: rule.u8_param("priority").unwrap_or(DEFAULT_PRIORITY),
        }],
        members: vec![gravest.member.clone()],
        exclusive: true,
    })
}

/// A member that votes as the trigger says decides alone: yes passes, no fails (V4). Default: a veto.
pub(crate) fn decide(rule: &Rule, poll: &Poll<'_>) -> Option<Ruling> {
    if rule.text_param("scope").is_some_and(|scope| poll.class != Some(scope)) {
        return None;
    }
    let trigger = rule.text_param("triggerVote").and_then(Vote::parse).unwrap_or(Vote::No);
    let firing = poll.votes_of(rule).filter(|ballot| ballot.vote == Some(trigger));
    let members: Vec<_> = firing.map(|ballot| ballot.member.clone()).collect();
    (!members.is_empty()).then(|| Ruling { members, ..Ruling::new(trigger == Vote::Yes) })
}

/// A child at or over the trigger is passed up verbatim; of several the gravest, then the first in the roster (H2).
pub(crate) fn roll(rule: &Rule, branch: &Branch) -> Option<Rollup> {
    let trigger = rule.u8_param("triggerSeverity").unwrap_or(DEFAULT_TRIGGER_SEVERITY);
    let firing = branch.children.iter().filter(|child| child.advice.severity >= trigger);
    let gravest = firing.rev().max_by_key(|child| child.advice.severity)?;
    Some(Rollup { advice: gravest.advice.clone(), sources: vec![gravest.member.clone()] })
}
