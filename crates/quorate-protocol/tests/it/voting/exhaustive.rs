//! Every vote of a domain against the oracle. What is exhaustive: one and two members, every weight of five with every
//! vote of four under every stack; three and four members, every vote under every stack, for a few choices of weights
//! that tie, nearly tie and add up to a threshold; five members, every vote, for some of the stacks. `QUORATE_EVERYTHING=1`
//! adds every weight for three members, more weights for four, and every stack for five: half a million votes.

use super::oracle::Word;
use super::oracle::{self, Rule, Voter, VoterBehavior};
use super::stacks::{palette, stacks};
use super::table::{self, WEIGHTS};
use crate::test_run::TestRun;

/// A run whose random tie passes, and one whose random tie fails; which is which is asked, not known.
pub(crate) fn coins() -> [(&'static str, bool); 2] {
    let runs = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"];
    let rule = [super::stacks::all(super::stacks::majority(oracle::Tie::Random))];
    let tied = [VoterBehavior::Yes, VoterBehavior::No].into_iter().enumerate();
    let tied: Vec<Voter> = tied.map(|(index, does)| Voter { index, tenths: 10, does }).collect();
    let setup = table::setup(&rule, &["1", "1"]);
    let coin = |run: &'static str| {
        let sitting = table::vote_in(&setup, run, &tied, &[0, 1]);
        (run, sitting.word("verdict") == "pass")
    };
    let drawn = runs.map(coin);
    let side = |wanted| drawn.into_iter().find(|(_, side)| *side == wanted);
    [side(true).expect("a tie passes in some runs"), side(false).expect("and fails in others")]
}

/// Checks an outcome against the oracle's.
pub(crate) fn assert_agrees(rules: &[Rule], voters: &[Voter], sitting: &TestRun, coin: bool) {
    let expected = oracle::outcome(rules, voters, coin);
    let outcome = sitting.outcome();
    let shown = || format!("{rules:?}\n{voters:?}\n{outcome:#}");
    assert_eq!(outcome["verdict"], expected.as_str(), "{}", shown());
    assert_eq!(outcome["decision"]["result"], expected.as_str(), "{}", shown());
    // X12
    let missing: Vec<String> = voters
        .iter()
        .filter(|voter| voter.does == VoterBehavior::Missing)
        .map(|voter| table::name(voter.index))
        .collect();
    assert_eq!(outcome["partial"], !missing.is_empty(), "{}", shown());
    assert_eq!(outcome["missing"], serde_json::json!(missing), "{}", shown());
}

fn voters(does: &[VoterBehavior], weights: &[(u64, &str)]) -> Vec<Voter> {
    let both = does.iter().zip(weights).enumerate();
    both.map(|(index, (does, (tenths, _)))| Voter { index, tenths: *tenths, does: *does }).collect()
}

/// Every vote under every stack, for these weights.
fn try_all(weights: &[(u64, &'static str)], stacks: &[Vec<Rule>], coins: &[(&str, bool)]) -> usize {
    let written: Vec<&str> = weights.iter().map(|(_, text)| *text).collect();
    let order: Vec<usize> = (0..weights.len()).collect();
    let votes = table::every(&VoterBehavior::ALL, weights.len());
    let mut tried = 0;
    for rules in stacks {
        let setup = table::setup(rules, &written);
        let random = rules.iter().any(|rule| format!("{:?}", rule.kind).contains("Random"));
        for (run, coin) in &coins[..if random { 2 } else { 1 }] {
            let mut verdicts = Vec::with_capacity(votes.len());
            for does in &votes {
                let voters = voters(does, weights);
                let sitting = table::vote_in(&setup, run, &voters, &order);
                assert_agrees(rules, &voters, &sitting, *coin);
                verdicts.push(sitting.word("verdict") == "pass");
                tried += 1;
            }
            assert_monotone(rules, &votes, &verdicts);
        }
    }
    tried
}

/// V4: one more yes never takes a pass away. `passes` has the result of each of all votes, in the order of `votes`.
fn assert_monotone(rules: &[Rule], votes: &[Vec<VoterBehavior>], passes: &[bool]) {
    let (yes, choices) = (VoterBehavior::ALL[0], VoterBehavior::ALL.len());
    for (at, does) in votes.iter().enumerate().filter(|(at, _)| passes[*at]) {
        for (member, vote) in does.iter().enumerate() {
            // Votes are listed as numbers are, the first member's digit first.
            let digit = VoterBehavior::ALL.iter().position(|choice| choice == vote).expect("a choice");
            let more = at - digit * choices.pow(u32::try_from(does.len() - 1 - member).expect("few members"));
            assert_eq!(votes[more][member], yes);
            assert!(passes[more], "{rules:?}\n{does:?} passes and {:?} does not", votes[more]);
        }
    }
}

#[test]
fn one_more_yes_never_turns_a_pass_into_a_fail() {
    // V4: every list of up to two rules, of up to three members in the protocol, and of up to five in the oracle, with
    // which the protocol agrees; the tests below check the stacks of rules with up to five members in the protocol.
    let rules = palette();
    let mut lists: Vec<Vec<Rule>> = rules.iter().map(|rule| vec![rule.clone()]).collect();
    for first in &rules {
        lists.extend(rules.iter().map(|second| vec![first.clone(), second.clone()]));
    }
    let [_, _, _, one, half] = WEIGHTS;
    let coins = coins();
    for weights in [&[one, one][..], &[one, half, one]] {
        assert!(try_all(weights, &lists, &coins) > 2_000);
    }
    for members in 4..=5 {
        let votes = table::every(&VoterBehavior::ALL, members);
        for list in &lists {
            let passes = |does: &Vec<VoterBehavior>| {
                oracle::outcome(list, &voters(does, &[one; 5]), true) == Word::Pass
            };
            assert_monotone(list, &votes, &votes.iter().map(passes).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_quorum_decides_at_a_half_too() {
    // V4: the chair of a later majority breaks no tie of a quorum, so four of six pass where three of six do not.
    let chaired = |threshold| {
        [
            super::stacks::all(super::stacks::quorum(threshold)),
            super::stacks::all(super::stacks::majority(oracle::Tie::Chair(0))),
        ]
    };
    let verdict = |rules: &[Rule], yes: usize| {
        let weights = [(10, "1"); 6];
        let does: Vec<VoterBehavior> =
            (0..6).map(|at| if at < yes { VoterBehavior::Yes } else { VoterBehavior::No }).collect();
        let setup = table::setup(rules, &["1"; 6]);
        table::vote_in(&setup, "r", &voters(&does, &weights), &[0, 1, 2, 3, 4, 5]).word("verdict").to_owned()
    };
    let high = chaired((75, 100));
    assert_eq!([3, 4, 5].map(|yes| verdict(&high, yes)), ["fail", "fail", "pass"]);
    let low = chaired((4, 10));
    assert_eq!([2, 3, 4].map(|yes| verdict(&low, yes)), ["fail", "pass", "pass"]);
}

#[test]
fn one_and_two_members_with_every_weight() {
    // V3, V4, V5, V8
    let (coins, stacks) = (coins(), stacks());
    let tried = |many| -> usize {
        table::every(&WEIGHTS, many).iter().map(|weights| try_all(weights, &stacks, &coins)).sum()
    };
    assert!(tried(1) + tried(2) > 15_000);
}

#[test]
fn three_members() {
    // V3, V4, V5, V8: three choices of weights by default, and all 125 in the full run.
    let [a, b, c, one, half] = WEIGHTS;
    let few = vec![vec![one, one, one], vec![a, b, c], vec![half, c, one]];
    let weights = if everything() { table::every(&WEIGHTS, 3) } else { few };
    let (coins, stacks) = (coins(), stacks());
    let tried: usize = weights.iter().map(|weights| try_all(weights, &stacks, &coins)).sum();
    assert!(tried > 8_000);
}

#[test]
fn four_members() {
    // V3, V4, V5, V8
    let [a, b, c, one, half] = WEIGHTS;
    let weights = [[a, b, c, c], [one, one, one, one], [half, one, b, c]];
    let weights = if everything() { &weights[..] } else { &weights[..1] };
    let (coins, stacks) = (coins(), stacks());
    let tried: usize = weights.iter().map(|weights| try_all(weights, &stacks, &coins)).sum();
    assert!(tried > 10_000);
}

#[test]
fn five_members() {
    // V3, V4, V5, V8: ordinarily under every third stack.
    let [a, b, c, one, _] = WEIGHTS;
    let weights = [[a, b, c, c, c], [one, one, one, one, one]];
    let weights = if everything() { &weights[..] } else { &weights[..1] };
    let every = if everything() { 1 } else { 4 };
    let stacks: Vec<Vec<Rule>> = stacks().into_iter().step_by(every).collect();
    let coins = coins();
    let tried: usize = weights.iter().map(|weights| try_all(weights, &stacks, &coins)).sum();
    assert!(tried > 10_000);
}

#[test]
fn a_tenth_and_two_tenths_are_three_tenths() {
    // V3: at the threshold, where binary floats would say 0.30000000000000004 or 0.29999999999999999.
    let rules = [super::stacks::all(super::stacks::quorum((3, 10)))];
    let setup = table::setup(&rules, &["0.1", "0.2", "0.7"]);
    let [yes, no] = [VoterBehavior::Yes, VoterBehavior::No];
    let verdict = |does: [VoterBehavior; 3]| {
        let voters = voters(&does, &[(1, ""), (2, ""), (7, "")]);
        table::vote_in(&setup, "r", &voters, &[0, 1, 2]).word("verdict").to_owned()
    };
    assert_eq!(
        [verdict([yes, yes, no]), verdict([no, yes, no]), verdict([yes, no, no])],
        ["pass", "fail", "fail"]
    );
}

/// Whether the full run was requested, which is too long for the default.
fn everything() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the soak asks for everything")]
    std::env::var("QUORATE_EVERYTHING").is_ok()
}
