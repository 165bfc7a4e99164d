//! Every vote of a domain against the oracle. What is exhaustive: up to three members, every weight of five with every
//! vote of four (8,000 polls of three) under every stack of which some rule sees more than two; four and five members
//! with every vote under every stack, for a few choices of weights that tie, nearly tie and add up to a threshold.

use super::oracle::{self, Does, Rule, Voter};
use super::stacks::stacks;
use super::table::{self, WEIGHTS};
use crate::sitting::Sitting;

/// A run whose random tie passes, and one whose random tie fails; which is which is asked, not known.
pub fn coins() -> [(&'static str, bool); 2] {
    let runs = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"];
    let rule = [super::stacks::all(super::stacks::majority(oracle::Tie::Random))];
    let tied = [Does::Yes, Does::No].into_iter().enumerate();
    let tied: Vec<Voter> = tied.map(|(seat, does)| Voter { seat, tenths: 10, does }).collect();
    let setup = table::setup(&rule, &["1", "1"]);
    let coin = |run: &'static str| {
        let sitting = table::vote_in(&setup, run, &tied, &[0, 1]);
        (run, sitting.word("verdict") == "pass")
    };
    let drawn = runs.map(coin);
    let side = |wanted| drawn.into_iter().find(|(_, side)| *side == wanted);
    [side(true).expect("a tie passes in some runs"), side(false).expect("and fails in others")]
}

/// Holds an outcome against the oracle's.
pub fn agrees(rules: &[Rule], voters: &[Voter], sitting: &Sitting, coin: bool) {
    let expected = oracle::outcome(rules, voters, coin);
    let outcome = sitting.outcome();
    let shown = || format!("{rules:?}\n{voters:?}\n{outcome:#}");
    assert_eq!(outcome["verdict"], expected.as_str(), "{}", shown());
    assert_eq!(outcome["decision"]["result"], expected.as_str(), "{}", shown());
    // X12
    let missing: Vec<String> =
        voters.iter().filter(|one| one.does == Does::Missing).map(|one| table::name(one.seat)).collect();
    assert_eq!(outcome["partial"], !missing.is_empty(), "{}", shown());
    assert_eq!(outcome["missing"], serde_json::json!(missing), "{}", shown());
}

fn voters(does: &[Does], weights: &[(u64, &str)]) -> Vec<Voter> {
    let both = does.iter().zip(weights).enumerate();
    both.map(|(seat, (does, (tenths, _)))| Voter { seat, tenths: *tenths, does: *does }).collect()
}

/// Every vote under every stack, for these weights.
fn try_all(weights: &[(u64, &'static str)], stacks: &[Vec<Rule>], coins: &[(&str, bool)]) -> usize {
    let written: Vec<&str> = weights.iter().map(|(_, text)| *text).collect();
    let order: Vec<usize> = (0..weights.len()).collect();
    let votes = table::every(&Does::ALL, weights.len());
    let mut tried = 0;
    for rules in stacks {
        let setup = table::setup(rules, &written);
        let random = rules.iter().any(|rule| format!("{:?}", rule.kind).contains("Random"));
        for (run, coin) in &coins[..if random { 2 } else { 1 }] {
            for does in &votes {
                let voters = voters(does, weights);
                agrees(rules, &voters, &table::vote_in(&setup, run, &voters, &order), *coin);
                tried += 1;
            }
        }
    }
    tried
}

fn few(many: usize) -> usize {
    let (coins, stacks) = (coins(), stacks());
    table::every(&WEIGHTS, many).iter().map(|weights| try_all(weights, &stacks, &coins)).sum()
}

#[test]
fn one_and_two_members_with_every_weight() {
    // V3, V4, V5, V8
    println!("{} votes", few(1) + few(2));
}

#[test]
fn three_members_with_every_weight() {
    // V3, V4, V5, V8
    println!("{} votes", few(3));
}

#[test]
fn four_members() {
    // V3, V4, V5, V8
    let [a, b, c, one, half] = WEIGHTS;
    let weights = [[one, one, one, one], [a, b, c, c], [half, one, b, c]];
    let (coins, stacks) = (coins(), stacks());
    let tried: usize = weights.iter().map(|weights| try_all(weights, &stacks, &coins)).sum();
    println!("{tried} votes");
}

#[test]
fn five_members() {
    // V3, V4, V5, V8
    let [a, b, c, one, _] = WEIGHTS;
    let weights = [[one, one, one, one, one], [a, b, c, c, c]];
    let (coins, stacks) = (coins(), stacks());
    let tried: usize = weights.iter().map(|weights| try_all(weights, &stacks, &coins)).sum();
    println!("{tried} votes");
}
