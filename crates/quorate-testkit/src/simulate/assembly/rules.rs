//! The rules of a simulated assembly: any kinds of its mode, in any order, on any members.

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::Rule;
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::{CLASS, extensions, pick};
use crate::rng::Rng;

pub(super) fn random_rules(rng: &mut Rng, mode: Mode, members: &[Name]) -> Vec<Rule> {
    let many = pick(rng, 5);
    (0..many)
        .map(|at| {
            let (kind, params) = match mode {
                Mode::Advisory => advisory(rng),
                Mode::Voting => voting(rng, members),
                Mode::Peer => peer(rng, members),
                Mode::Hierarchy => hierarchy(rng),
            };
            let some: Vec<Name> = members.iter().filter(|_| rng.percent(60)).cloned().collect();
            Rule {
                id: format!("r{at}").into(),
                kind: kind.into(),
                applies_to: rng.percent(40).then_some(some),
                params: params.as_object().cloned().unwrap_or_default(),
            }
        })
        .collect()
}

fn advisory(rng: &mut Rng) -> (&'static str, Json) {
    match rng.below(5) {
        0 => ("terminal", json!({"triggerSeverity": 6 + rng.below(5)})),
        1 => ("priority", json!({"triggerKind": "sycophancy", "terminal": rng.percent(20)})),
        2 => ("aggregate", json!({"minSeverity": rng.below(8), "topN": 1 + rng.below(3)})),
        3 => ("aggregate", json!({"maxSeverity": 3 + rng.below(8), "ttlMs": rng.below(90 * 86_400_000) + 1})),
        _ => (extensions::RULE, json!({})),
    }
}

fn voting(rng: &mut Rng, members: &[Name]) -> (&'static str, Json) {
    let denominator = ["total", "cast"][pick(rng, 2)];
    match rng.below(6) {
        0 => {
            let trigger = ["yes", "no"][pick(rng, 2)];
            ("terminal", json!({"triggerVote": trigger}))
        }
        1 => {
            let scope = [CLASS, "another"][pick(rng, 2)];
            ("terminal", json!({"triggerVote": "no", "scope": scope}))
        }
        2 => {
            let threshold = ["0.3", "0.5", "0.66", "1"][pick(rng, 4)];
            ("quorum", json!({"threshold": threshold, "denominator": denominator}))
        }
        3 => {
            let chair = &*members[pick(rng, members.len())];
            let tie = ["chair-vote", "reject", "random"][pick(rng, 3)];
            ("majority", json!({"tieBreaker": tie, "chair": chair, "denominator": denominator}))
        }
        4 => ("unanimity", json!({})),
        _ => (extensions::RULE, json!({})),
    }
}

fn peer(rng: &mut Rng, members: &[Name]) -> (&'static str, Json) {
    if rng.percent(25) {
        return (extensions::RULE, json!({}));
    }
    let mut params = json!({"maxRounds": 1 + rng.below(3)});
    match rng.below(4) {
        0 => params["terminationRule"] = json!("no-new-objections"),
        1 => params["terminationRule"] = json!("all-pass"),
        2 => params["terminationRule"] = json!(extensions::RULE),
        _ => {}
    }
    match rng.below(4) {
        0 => params["topology"] = json!("ring"),
        1 => {
            params["topology"] = json!("star");
            params["hub"] = json!(&*members[pick(rng, members.len())]);
        }
        2 => params["peers"] = json!({&*members[0]: members.iter().skip(1).collect::<Vec<_>>()}),
        _ => {}
    }
    ("aggregate", params)
}

fn hierarchy(rng: &mut Rng) -> (&'static str, Json) {
    match rng.below(4) {
        0 => ("escalate-on-severity", json!({})),
        1 => ("aggregate", json!({"topN": 1 + rng.below(3), "minSeverity": rng.below(4)})),
        2 => ("terminal", json!({"triggerSeverity": 5 + rng.below(6)})),
        _ => (extensions::RULE, json!({})),
    }
}
