//! Every vote of a domain against the oracle. What is exhaustive: one and two members, every weight of five with every
//! vote of four under every stack; three and four members, every vote under every stack, for a few choices of weights
//! that tie, nearly tie and add up to a threshold; five members, every vote, for some of the stacks. `QUORATE_EVERYTHING=1`
//! adds every weight for three members, more weights for four, and every stack for five: half a million votes.

use super::oracle::{self, Rule, Voter, VoterBehavior};
use super::stacks::stacks;
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
            for does in &votes {
                let voters = voters(does, weights);
                assert_agrees(rules, &voters, &table::vote_in(&setup, run, &voters, &order), *coin);
                tried += 1;
            }
        }
    }
    tried
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
