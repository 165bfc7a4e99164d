//! Any rules over any advice, against the oracle: which fragments, in which order, with which priority (A3, A4, L1, X12).

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

use super::council;
use super::oracle::{self, Advice, Kind, Rule, Words};
use crate::test_run::{self, TestRun};

const CONCERNS: [&str; 6] =
    ["", "SYCOPHANTIC", "it validates all", "an Over Promise", "surely not", "nothing"];
const SUGGESTIONS: [&str; 4] = ["", "say less", "ask first", "less warmth"];

fn says() -> impl Strategy<Value = Option<Advice>> {
    let words = (0..CONCERNS.len(), prop_oneof![9 => 0..3_usize, 1 => Just(3_usize)]);
    let said = (0..=10_u8, 0..3_usize, words).prop_map(|(severity, evidence, (concern, suggestion))| {
        let (concern, suggestion) = (CONCERNS[concern].to_owned(), SUGGESTIONS[suggestion].to_owned());
        Some(Advice { severity, concern, evidence, suggestion })
    });
    prop_oneof![8 => said, 1 => Just(None)]
}

fn rule() -> impl Strategy<Value = Rule> {
    let severity = || option::of(0..=10_u8);
    let words = prop_oneof![Just(Words::Sycophancy), Just(Words::Kind), Just(Words::Listed)];
    let ends = || proptest::bool::weighted(0.2);
    let kind = prop_oneof![
        1 => (option::of(5..=10_u8), option::of(0..=100_u8))
            .prop_map(|(trigger, priority)| Kind::Terminal { trigger, priority }),
        2 => (words, option::of(0..=100_u8), ends())
            .prop_map(|(words, priority, ends)| Kind::Priority { words, priority, ends }),
        2 => (severity(), severity(), option::of(1..4_usize), option::of(0..=100_u8), option::of(0..=100_u8), ends())
            .prop_map(|(least, most, top, priority, base, ends)| {
                Kind::Aggregate { least, most, top, priority, base, ends }
            }),
    ];
    (kind, option::of(btree_set(0..8_usize, 0..8))).prop_map(|(kind, of)| Rule { kind, of })
}

fn run(says: &[Option<Advice>], rules: &[Rule], order: &[usize]) -> TestRun {
    let mut setup = council::setup(&council::session_members(says.len()), false);
    setup.rules = rules.iter().enumerate().map(|(at, rule)| council::rule_setup(at, rule)).collect();
    setup.locked_traits = vec![test_run::locked("warmth")];
    let mut sitting = TestRun::open(&setup, "r", council::TALK);
    for index in order {
        let id = format!("ask/{}", council::name(*index));
        match &says[*index] {
            Some(says) => sitting.answer(&id, council::json_of(says)),
            None => sitting.give_no_answer(&id),
        }
    }
    sitting
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1_000, ..ProptestConfig::default() })]

    // A3, A4, L1, X12
    #[test]
    fn rules_make_of_advice_what_the_oracle_says(
        (says, order) in (1..8_usize).prop_flat_map(|many| {
            (vec(says(), many), Just((0..many).collect::<Vec<usize>>()).prop_shuffle())
        }),
        rules in vec(rule(), 0..5),
    ) {
        let sitting = run(&says, &rules, &order);
        let outcome = sitting.outcome();
        if says.iter().all(Option::is_none) {
            prop_assert_eq!((sitting.word("verdict"), sitting.word("code")), ("incomplete", "no_answer"));
            return Ok(());
        }
        let (fragments, terminal) = oracle::fragments(&says, &rules);
        let locked = |index: usize| says[index].as_ref().is_some_and(|says| says.suggestion.contains("warmth"));
        let expected: Vec<(String, u64, String)> = fragments
            .iter()
            .filter(|(index, ..)| !locked(*index))
            .map(|(index, priority, at)| (council::name(*index), u64::from(*priority), format!("r{at}")))
            .collect();
        prop_assert_eq!(council::fragments(&sitting), expected, "{:#}", outcome);
        prop_assert_eq!(&outcome["terminal"], &json!(terminal), "{:#}", outcome);
        let dropped = fragments.iter().filter(|(index, ..)| locked(*index)).count();
        prop_assert_eq!(&outcome["violations"], &json!(dropped), "{:#}", outcome);
        let members: BTreeSet<&str> =
            outcome["fragments"].as_array().into_iter().flatten().filter_map(|fragment| fragment["member"].as_str()).collect();
        prop_assert_eq!(members.len(), council::fragments(&sitting).len(), "one fragment per member");
        // Every rule that was applied is reported once.
        let reported = outcome["rules"].as_array().map_or(0, Vec::len);
        prop_assert!(reported <= rules.len() && (terminal || reported == rules.len()), "{:#}", outcome);
        let severity = says.iter().flatten().map(|says| says.severity).max();
        prop_assert_eq!(&outcome["risk"]["severity"], &json!(severity));
        let partial = says.iter().any(Option::is_none);
        prop_assert_eq!(&outcome["partial"], &json!(partial));
        prop_assert!(!partial || outcome["risk"]["level"] != "ok");
        // The order of arrival changes nothing.
        let roster: Vec<usize> = (0..says.len()).collect();
        let in_roster = run(&says, &rules, &roster);
        prop_assert_eq!(outcome, in_roster.outcome());
    }
}
