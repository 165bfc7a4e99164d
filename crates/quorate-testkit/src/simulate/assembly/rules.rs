//! The rules of a simulated assembly: any that its mode has, in any order, looking at anybody.

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::Rule;
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::extensions;
use super::world::{CLASS, pick};
use crate::rng::Rng;

/// Up to four rules.
pub(super) fn random_rules(chance: &mut Rng, mode: Mode, members: &[Name]) -> Vec<Rule> {
    let many = pick(chance, 5);
    (0..many)
        .map(|at| {
            let (kind, params) = match mode {
                Mode::Advisory => advisory(chance),
                Mode::Voting => voting(chance, members),
                Mode::Peer => peer(chance, members),
                Mode::Hierarchy => hierarchy(chance),
            };
            let some: Vec<Name> = members.iter().filter(|_| chance.percent(60)).cloned().collect();
            Rule {
                id: format!("r{at}").into(),
                kind: kind.into(),
                applies_to: chance.percent(40).then_some(some),
                params: params.as_object().cloned().unwrap_or_default(),
            }
        })
        .collect()
}

fn advisory(chance: &mut Rng) -> (&'static str, Json) {
    match chance.below(5) {
        0 => ("terminal", json!({"triggerSeverity": 6 + chance.below(5)})),
        1 => ("priority", json!({"triggerKind": "sycophancy", "terminal": chance.percent(20)})),
        2 => ("aggregate", json!({"minSeverity": chance.below(8), "topN": 1 + chance.below(3)})),
        3 => (
            "aggregate",
            json!({"maxSeverity": 3 + chance.below(8), "ttlMs": chance.below(90 * 86_400_000) + 1}),
        ),
        _ => (extensions::RULE, json!({})),
    }
}

fn voting(chance: &mut Rng, members: &[Name]) -> (&'static str, Json) {
    let denominator = ["total", "cast"][pick(chance, 2)];
    match chance.below(6) {
        0 => {
            let trigger = ["yes", "no"][pick(chance, 2)];
            ("terminal", json!({"triggerVote": trigger}))
        }
        1 => {
            let scope = [CLASS, "another"][pick(chance, 2)];
            ("terminal", json!({"triggerVote": "no", "scope": scope}))
        }
        2 => {
            let threshold = ["0.3", "0.5", "0.66", "1"][pick(chance, 4)];
            ("quorum", json!({"threshold": threshold, "denominator": denominator}))
        }
        3 => {
            let chair = &*members[pick(chance, members.len())];
            let tie = ["chair-vote", "reject", "random"][pick(chance, 3)];
            ("majority", json!({"tieBreaker": tie, "chair": chair, "denominator": denominator}))
        }
        4 => ("unanimity", json!({})),
        _ => (extensions::RULE, json!({})),
    }
}

fn peer(chance: &mut Rng, members: &[Name]) -> (&'static str, Json) {
    if chance.percent(25) {
        return (extensions::RULE, json!({}));
    }
    let mut params = json!({"maxRounds": 1 + chance.below(3)});
    match chance.below(4) {
        0 => params["terminationRule"] = json!("no-new-objections"),
        1 => params["terminationRule"] = json!("all-pass"),
        2 => params["terminationRule"] = json!(extensions::RULE),
        _ => {}
    }
    match chance.below(4) {
        0 => params["topology"] = json!("ring"),
        1 => {
            params["topology"] = json!("star");
            params["hub"] = json!(&*members[pick(chance, members.len())]);
        }
        2 => params["peers"] = json!({&*members[0]: members.iter().skip(1).collect::<Vec<_>>()}),
        _ => {}
    }
    ("aggregate", params)
}

fn hierarchy(chance: &mut Rng) -> (&'static str, Json) {
    match chance.below(4) {
        0 => ("escalate-on-severity", json!({})),
        1 => ("aggregate", json!({"topN": 1 + chance.below(3), "minSeverity": chance.below(4)})),
        2 => ("terminal", json!({"triggerSeverity": 5 + chance.below(6)})),
        _ => (extensions::RULE, json!({})),
    }
}
