//! Rules and voters of the oracle as the protocol is given them, and one vote from setup to outcome.

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{AssemblyRequest, Member, Rule as Written, Setup};
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::oracle::{Kind, Rule, Scope, Tie, Voter, VoterBehavior};
use crate::test_run::{self, TestRun};

pub(crate) const PROPOSAL: &str = "# Spend it\n\nResolution: we spend it.\n";
pub(crate) const CLASS: &str = "budget";
/// The weights, in tenths.
pub(crate) const WEIGHTS: [(u64, &str); 5] = [(1, "0.1"), (2, "0.2"), (3, "0.3"), (10, "1"), (15, "1.5")];

const NAMES: [&str; 6] = ["ada", "ben", "cleo", "dan", "eva", "nobody"];

/// The member at an index.
pub(crate) fn name(index: usize) -> String {
    NAMES.get(index).map_or_else(|| format!("m{index}"), |name| (*name).to_owned())
}

/// The invocation of the member at an index.
pub(crate) fn id(index: usize) -> String {
    format!("ask/{}", name(index))
}

/// A rule as a setup has it.
pub(crate) fn rule_setup(at: usize, rule: &Rule) -> Written {
    let (kind, params) = match rule.kind {
        Kind::Terminal { on, scope } => {
            let mut params = json!({});
            // A veto is what a terminal rule is unless said; both ways of writing it are tried.
            if on == VoterBehavior::Yes || scope == Scope::This {
                params["triggerVote"] = json!(vote(on));
            }
            match scope {
                Scope::All => {}
                Scope::This => params["scope"] = json!(CLASS),
                Scope::Another => params["scope"] = json!("another"),
            }
            ("terminal", params)
        }
        Kind::Quorum { threshold: (over, under), cast } => {
            // As the manifest gives it: a whole number as a number, any other as the text that was written.
            let threshold = match (over, under) {
                (1, 1) => json!(1),
                (over, 10) => json!(format!("0.{over}")),
                (over, _) => json!(format!("0.{over:02}")),
            };
            ("quorum", with(json!({"threshold": threshold}), cast))
        }
        Kind::Majority { tie, cast } => {
            let params = match tie {
                Tie::Unwritten => json!({}),
                Tie::Reject => json!({"tieBreaker": "reject"}),
                Tie::Random => json!({"tieBreaker": "random"}),
                Tie::Chair(index) => json!({"tieBreaker": "chair-vote", "chair": name(index)}),
            };
            ("majority", with(params, cast))
        }
        Kind::Unanimity => ("unanimity", json!({})),
    };
    Written {
        id: format!("r{at}").into(),
        kind: kind.into(),
        applies_to: rule
            .of
            .as_ref()
            .map(|indices| indices.iter().map(|index| Name::from(name(*index))).collect()),
        params: params.as_object().cloned().unwrap_or_default(),
    }
}

fn with(mut params: Json, cast: bool) -> Json {
    if cast {
        params["denominator"] = json!("cast");
    }
    params
}

fn vote(does: VoterBehavior) -> &'static str {
    match does {
        VoterBehavior::Yes => "yes",
        VoterBehavior::No => "no",
        VoterBehavior::Abstain | VoterBehavior::Missing => "abstain",
    }
}

/// A setup for voters by their weights.
pub(crate) fn setup(rules: &[Rule], weights: &[&str]) -> Setup {
    let member = |(index, weight): (usize, &&str)| Member {
        weight: Some((*weight).to_owned()),
        ..test_run::member(&name(index))
    };
    let mut setup = test_run::setup(Mode::Voting, AssemblyRequest::Voting { class: Some(CLASS.to_owned()) });
    setup.members = weights.iter().enumerate().map(member).collect();
    setup.rules = rules.iter().enumerate().map(|(at, rule)| rule_setup(at, rule)).collect();
    setup
}

/// What a voter answers; `None` is nothing.
pub(crate) fn ballot(does: VoterBehavior) -> Option<Json> {
    (does != VoterBehavior::Missing).then(|| json!({"vote": vote(does), "rationale": "as I see it"}))
}

/// A vote in which all members end in the order of asking.
pub(crate) fn vote_in(setup: &Setup, run: &str, voters: &[Voter], order: &[usize]) -> TestRun {
    let mut sitting = TestRun::open(setup, run, PROPOSAL);
    for at in order {
        let voter = voters[*at];
        match ballot(voter.does) {
            Some(ballot) => sitting.answer(&id(voter.index), ballot),
            None => sitting.give_no_answer(&id(voter.index)),
        }
    }
    sitting
}

/// Every way to choose from `choices` for so many.
pub(crate) fn every<T: Copy>(choices: &[T], many: usize) -> Vec<Vec<T>> {
    (0..many).fold(vec![Vec::new()], |all, _| {
        let longer = |one: &Vec<T>| {
            let one = one.clone();
            choices.iter().map(move |choice| one.iter().copied().chain([*choice]).collect())
        };
        all.iter().flat_map(longer).collect()
    })
}
