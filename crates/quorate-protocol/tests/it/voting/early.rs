//! V7: a vote that ends early ends as it would have, in every order of arrival. Exhaustive: every vote of two members
//! under every stack; of three every third vote under every stack, of four every second under the stacks that can turn.

use super::exhaustive::{assert_agrees, coins};
use super::oracle::{self, Kind, Rule, Scope, Voter, VoterBehavior};
use super::stacks::{all, majority, quorum, some, stacks, veto};
use super::table;
use crate::test_run::{TestRun, orders};

/// Votes in every order of arrival; the number of those that ended early.
fn in_every_order(weights: &[(u64, &str)], stacks: &[Vec<Rule>], votes: &[Vec<VoterBehavior>]) -> usize {
    let written: Vec<&str> = weights.iter().map(|(_, text)| *text).collect();
    let [(run, coin), _] = coins();
    let orders = orders(weights.len());
    let mut early = 0;
    for rules in stacks {
        let mut setup = table::setup(rules, &written);
        setup.early_decision = true;
        for does in votes {
            let both = does.iter().zip(weights).enumerate();
            let voter = |(index, (does, (tenths, _))): (usize, (&VoterBehavior, &(u64, &str)))| Voter {
                index,
                tenths: *tenths,
                does: *does,
            };
            let voters: Vec<Voter> = both.map(voter).collect();
            for order in &orders {
                let sitting = table::vote_in(&setup, run, &voters, order);
                assert_holds(rules, &voters, order, &sitting, coin);
                early += usize::from(!sitting.cancelled.is_empty());
            }
        }
    }
    early
}

fn assert_holds(rules: &[Rule], voters: &[Voter], order: &[usize], sitting: &TestRun, coin: bool) {
    if sitting.cancelled.is_empty() {
        return assert_agrees(rules, voters, sitting, coin);
    }
    let shown = || format!("{rules:?}\n{voters:?} in the order {order:?}\n{:#}", sitting.outcome());
    assert_eq!(sitting.word("verdict"), oracle::outcome(rules, voters, coin).as_str(), "{}", shown());
    // A cancelled voter is not missing: its vote was not needed.
    for voter in voters {
        let id = table::id(voter.index);
        let out = sitting.cancelled.iter().any(|cancelled| **cancelled == *id);
        let vote = &sitting.outcome()["decision"]["votes"][voter.index]["vote"];
        assert_eq!(vote == "cancelled", out, "{}", shown());
    }
}

#[test]
fn up_to_three_members_in_every_order() {
    // V7
    let stacks = stacks();
    let votes = |many| table::every(&VoterBehavior::ALL, many);
    let mut early = in_every_order(&[(10, "1"), (10, "1")], &stacks, &votes(2));
    early += in_every_order(&[(10, "1"), (1, "0.1")], &stacks, &votes(2));
    // Of three every third vote, which is every vote of every member with most of the others' votes.
    let votes: Vec<Vec<VoterBehavior>> = votes(3).into_iter().step_by(3).collect();
    early += in_every_order(&[(10, "1"), (10, "1"), (10, "1")], &stacks, &votes);
    early += in_every_order(&[(15, "1.5"), (2, "0.2"), (3, "0.3")], &stacks, &votes[..11]);
    assert!(early > 1_000, "{early}");
}

#[test]
fn four_members_in_every_order() {
    // V7: under the stacks that can end early and see everybody, with weights that can tie in several ways.
    let stacks = [
        vec![all(majority(oracle::Tie::Chair(0)))],
        vec![all(quorum((66, 100))), all(majority(oracle::Tie::Chair(0)))],
    ];
    let votes: Vec<Vec<VoterBehavior>> =
        table::every(&VoterBehavior::ALL, 4).into_iter().step_by(2).collect();
    let early = in_every_order(&[(30, "3"), (30, "3"), (10, "1"), (10, "1")], &stacks, &votes);
    assert!(early > 500, "{early}");
}

#[test]
fn a_vote_without_votes_is_not_decided() {
    // V7, V8: the weightiest has given nothing, so nothing can pass; whether it fails or has no votes at all is still open.
    let mut setup = table::setup(&[], &["10", "1"]);
    setup.early_decision = true;
    let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
    sitting.give_no_answer(&table::id(0));
    assert!(!sitting.finished, "no vote was cast yet");
    sitting.answer(&table::id(1), table::ballot(VoterBehavior::No).expect("a vote"));
    assert_eq!(sitting.word("verdict"), "fail");
}

#[test]
fn a_quorum_alone_ends_a_vote_as_soon_as_it_is_reached() {
    // V7
    let mut setup = table::setup(&[all(quorum((3, 10)))], &["1", "1", "1"]);
    setup.early_decision = true;
    let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
    sitting.answer(&table::id(1), table::ballot(VoterBehavior::Yes).expect("a vote"));
    assert_eq!((sitting.word("verdict"), sitting.cancelled.len()), ("pass", 2));
}

#[test]
fn a_quorum_before_a_majority_ends_a_vote_too() {
    // V4, V7: the quorum decides by its threshold, which the two members that are left cannot reach.
    let rules = [all(quorum((66, 100))), all(majority(oracle::Tie::Chair(0)))];
    let mut setup = table::setup(&rules, &["3", "3", "1", "1"]);
    setup.early_decision = true;
    let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
    for (index, does) in [(0, VoterBehavior::Yes), (1, VoterBehavior::No)] {
        assert!(!sitting.finished, "the rest can still reach the threshold");
        sitting.answer(&table::id(index), table::ballot(does).expect("a vote"));
    }
    assert_eq!((sitting.word("verdict"), sitting.cancelled.len()), ("fail", 2));
}

#[test]
fn a_pass_that_a_missing_vote_could_turn_waits() {
    // V7, V8: the vetoer gave nothing, and a member that an earlier rule names can still decide alone.
    let rules = [
        some(Kind::Terminal { on: VoterBehavior::Yes, scope: Scope::All }, &[1]),
        some(veto(Scope::All), &[0]),
        all(majority(oracle::Tie::Reject)),
    ];
    for (does, verdict) in [(VoterBehavior::Yes, "pass"), (VoterBehavior::No, "incomplete")] {
        let mut setup = table::setup(&rules, &["1", "1", "3", "3"]);
        setup.early_decision = true;
        let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
        sitting.give_no_answer(&table::id(0));
        for index in [2, 3] {
            sitting.answer(&table::id(index), table::ballot(VoterBehavior::Yes).expect("a vote"));
        }
        assert!(!sitting.finished, "it would pass either way, and stand only with one");
        sitting.answer(&table::id(1), table::ballot(does).expect("a vote"));
        assert_eq!(sitting.word("verdict"), verdict);
    }
}

#[test]
fn who_is_still_gathered_for_is_not_asked_any_more() {
    // V7: what the host finds after the decision starts no call.
    let mut setup = table::setup(&[], &["1", "1", "1"]);
    setup.early_decision = true;
    setup.members[2].strategy = "custom:mine".into();
    // The decision waits for the host, so that the run is still open when the gathering ends.
    setup.locked_traits = vec![crate::test_run::locked("something else")];
    setup.match_mode = quorate_manifest::assembly::MatchMode::Semantic;
    setup.embeds = true;
    let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
    for index in [0, 1] {
        sitting.answer(&table::id(index), table::ballot(VoterBehavior::Yes).expect("a vote"));
    }
    let candidates: Vec<&str> = sitting.matches.iter().map(|asked| &*asked.candidate).collect();
    assert_eq!(candidates, ["rationale/ada", "rationale/ben", "decision"]);
    assert!(!sitting.finished);
    let id = table::id(2).into();
    sitting.feed(quorate_protocol::Event::Gathered { id, result: Ok("found".into()) });
    assert!(sitting.out.is_empty(), "it was cancelled, and is asked: {:?}", sitting.asked_ids());
    for candidate in ["decision", "rationale/ada", "rationale/ben"] {
        assert!(!sitting.finished, "every text is checked before the outcome");
        let (candidate, result) = (candidate.into(), Ok(Vec::new()));
        sitting.feed(quorate_protocol::Event::Matched { candidate, result, asked: None });
    }
    assert_eq!(sitting.word("verdict"), "pass");
}

#[test]
fn a_locked_rationale_does_not_change_an_early_end() {
    // V6, V7: the rationales that were given are checked, a cancelled member has none.
    let mut setup = table::setup(&[], &["1", "1", "1"]);
    setup.early_decision = true;
    setup.locked_traits = vec![crate::test_run::locked("backdate")];
    let mut sitting = TestRun::open(&setup, "r", table::PROPOSAL);
    for rationale in ["We backdate it.", "Fine."] {
        let id = table::id(sitting.asked.len() - sitting.out.len());
        sitting.answer(&id, serde_json::json!({"vote": "yes", "rationale": rationale}));
    }
    let votes = &sitting.outcome()["decision"]["votes"];
    assert_eq!(sitting.word("verdict"), "pass");
    assert_eq!(votes[0]["withheld"], "withheld: touches `backdate`");
    assert_eq!((&votes[2]["vote"], votes[2].get("withheld")), (&serde_json::json!("cancelled"), None));
}
