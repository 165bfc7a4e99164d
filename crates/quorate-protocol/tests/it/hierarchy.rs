//! Reporting trees against an oracle that goes from the leaves to the root: any tree, any answers, any rules, in any
//! order of arrival (H1 to H3).

mod oracle;
mod tree;

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use crate::test_run::{self, TestRun};
use oracle::{Advice, Behavior, Kind, Node, NodeOutcome, Rule};

const TEXTS: [&str; 6] = ["late", "over budget", "no member knows", "fine", "", "more warmth"];

fn text() -> impl Strategy<Value = String> {
    // A lock is hit now and then, not at every node.
    prop_oneof![30 => 0..5_usize, 1 => Just(5_usize)].prop_map(|at| TEXTS[at].to_owned())
}

fn says() -> impl Strategy<Value = Advice> {
    (0..=10_u8, text(), vec(text(), 0..4), text()).prop_map(|(severity, concern, evidence, suggestion)| {
        Advice { severity, concern, evidence, suggestion }
    })
}

/// A tree of up to `most` nodes whose roster is in any order.
fn nodes(most: usize) -> impl Strategy<Value = Vec<Node>> {
    let node = (any::<Index>(), prop_oneof![4 => says().prop_map(Some), 1 => Just(None)]);
    let tree = vec(node, 1..=most).prop_map(|drawn| {
        let node = |(at, (parent, says)): (usize, (Index, Option<Advice>))| Node {
            parent: (at > 0).then(|| parent.index(at)),
            says,
        };
        drawn.into_iter().enumerate().map(node).collect::<Vec<Node>>()
    });
    tree.prop_flat_map(|nodes| {
        let places: Vec<usize> = (0..nodes.len()).collect();
        (Just(nodes), Just(places).prop_shuffle())
    })
    .prop_map(|(nodes, places)| {
        let mut seated: Vec<Option<Node>> = vec![None; nodes.len()];
        for (at, node) in nodes.into_iter().enumerate() {
            seated[places[at]] = Some(Node { parent: node.parent.map(|parent| places[parent]), ..node });
        }
        seated.into_iter().flatten().collect()
    })
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let gives = prop_oneof![
        Just(Behavior::Nothing),
        Just(Behavior::Fails),
        Just(Behavior::Nonsense),
        says().prop_map(Behavior::Says)
    ];
    let kind = prop_oneof![
        Just(Kind::Escalate),
        (proptest::option::of(1..4_usize), 0..6_u8, 4..=10_u8)
            .prop_map(|(top, least, most)| Kind::Aggregate { top, least, most }),
        proptest::option::of(0..=10_u8).prop_map(|trigger| Kind::Terminal { trigger }),
        gives.prop_map(Kind::Host),
    ];
    let of = proptest::option::of(proptest::collection::btree_set(0..30_usize, 0..20));
    vec((kind, of).prop_map(|(kind, of)| Rule { kind, of }), 0..5)
}

/// Chooses by a list of indices, over and over.
fn by(order: &[Index]) -> impl FnMut(usize) -> usize + '_ {
    let mut order = order.iter().cycle();
    move |many| order.next().map_or(0, |index| index.index(many))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    // H1, H2, H3, L1
    #[test]
    fn any_tree_reports_as_the_oracle_says_in_any_order(
        nodes in nodes(30),
        rules in rules(),
        one in vec(any::<Index>(), 1..40),
        other in vec(any::<Index>(), 1..40),
    ) {
        let first = tree::run(&nodes, &rules, by(&one));
        tree::assert_agrees(&nodes, &rules, &first);
        let second = tree::run(&nodes, &rules, by(&other));
        prop_assert_eq!(tree::unordered(&first), tree::unordered(&second), "the order of arrival changes nothing");
    }

    // H3: where rules only escalate, a node that passes something up never passes less than a child of it.
    #[test]
    fn the_severity_of_a_child_is_never_lost(nodes in nodes(30), which in 0..3_usize) {
        let of = |indices: Vec<usize>| Rule { kind: Kind::Escalate, of: Some(indices.into_iter().collect::<BTreeSet<_>>()) };
        let all: Vec<usize> = (0..nodes.len()).collect();
        let failed: Vec<usize> = all.iter().copied().filter(|index| nodes[*index].says.is_none()).collect();
        let rules = match which {
            0 => vec![Rule { kind: Kind::Escalate, of: None }],
            1 => vec![of(all)],
            _ => vec![Rule { kind: Kind::Host(Behavior::Fails), of: None }],
        };
        let sitting = tree::run(&nodes, &rules, |_| 0);
        let severity = |index: usize| sitting.outcome()["nodes"][index]["output"]["severity"].as_u64();
        for (index, node) in nodes.iter().enumerate() {
            if let (Some(child), Some(parent)) = (severity(index), node.parent.and_then(severity)) {
                prop_assert!(parent >= child, "{parent} of {child} in {:#}", sitting.outcome());
            }
        }
        // Without any rule it still holds for every node that failed.
        let sitting = tree::run(&nodes, &[], |many| many - 1);
        let severity = |index: usize| sitting.outcome()["nodes"][index]["output"]["severity"].as_u64();
        for (index, node) in nodes.iter().enumerate() {
            if let Some(parent) = node.parent.filter(|parent| failed.contains(parent))
                && let (Some(child), Some(parent)) = (severity(index), severity(parent))
            {
                prop_assert!(parent >= child);
            }
        }
    }
}

fn node(parent: Option<usize>, severity: Option<u8>) -> Node {
    let says = severity.map(|severity| Advice {
        severity,
        concern: format!("c{severity}"),
        evidence: vec![format!("e{severity}")],
        suggestion: String::new(),
    });
    Node { parent, says }
}

#[test]
fn a_severity_keeps_its_reason_on_the_way_up() {
    // H2, H3: a manager who finds nothing grave does not leave a 10 without the reason for it.
    let nodes = [node(None, Some(1)), node(Some(0), Some(10)), node(Some(0), Some(4))];
    let rules = [Rule { kind: Kind::Escalate, of: None }];
    let sitting = tree::run(&nodes, &rules, |_| 0);
    tree::assert_agrees(&nodes, &rules, &sitting);
    let rollup = &sitting.outcome()["rollup"];
    assert_eq!((&rollup["severity"], &rollup["concern"]), (&10.into(), &"c10\nc4\nc1".into()));
}

#[test]
fn two_hundred_deep() {
    // H1, H3: no node above the deepest leaf answers, and its report arrives.
    let nodes: Vec<Node> =
        (0..200_usize).map(|index| node(index.checked_sub(1), (index == 199).then_some(10))).collect();
    let sitting = tree::run(&nodes, &[], |_| 0);
    tree::assert_agrees(&nodes, &[], &sitting);
    assert_eq!(sitting.outcome()["rollup"]["severity"], 10);
    assert_eq!(sitting.outcome()["risk"]["level"], "escalate");
    assert_eq!(sitting.outcome()["shouldEscalate"], true);
}

#[test]
fn five_hundred_wide() {
    // H1, H2
    let leaf = |index: usize| {
        node(Some(0), (!index.is_multiple_of(3)).then(|| u8::try_from(index % 10).unwrap_or(0)))
    };
    let nodes: Vec<Node> = std::iter::once(node(None, None)).chain((1..500).map(leaf)).collect();
    let rules = [Rule { kind: Kind::Aggregate { top: Some(7), least: 0, most: 10 }, of: None }];
    let sitting = tree::run(&nodes, &rules, |many| many / 2);
    tree::assert_agrees(&nodes, &rules, &sitting);
    assert_eq!(sitting.outcome()["nodes"][0]["from"].as_array().map(Vec::len), Some(7));
}

#[test]
fn a_root_alone_and_a_root_that_says_nothing() {
    // H3
    let alone = |severity, word: (&str, &str)| {
        let nodes = [node(None, severity)];
        let sitting = tree::run(&nodes, &[Rule { kind: Kind::Escalate, of: None }], |_| 0);
        tree::assert_agrees(&nodes, &[], &sitting);
        assert_eq!((sitting.word("verdict"), sitting.word("code")), word);
    };
    alone(Some(3), ("done", ""));
    alone(None, ("refused", "no_output"));
    let silent = [node(None, None), node(Some(0), None)];
    assert_eq!(tree::run(&silent, &[], |_| 0).word("code"), "no_output");
}

#[test]
fn the_first_rule_that_is_for_a_node_wins() {
    // H2: `appliesTo` names nodes, for every kind.
    let nodes = [node(None, Some(1)), node(Some(0), Some(2)), node(Some(1), Some(9)), node(Some(1), Some(4))];
    let of = |index| Some(BTreeSet::from([index]));
    let rules = [
        Rule { kind: Kind::Terminal { trigger: None }, of: of(1) },
        Rule { kind: Kind::Aggregate { top: Some(1), least: 0, most: 10 }, of: of(1) },
        Rule { kind: Kind::Escalate, of: of(0) },
    ];
    let sitting = tree::run(&nodes, &rules, |_| 0);
    tree::assert_agrees(&nodes, &rules, &sitting);
    let node_outcome = |index: usize| sitting.outcome()["nodes"][index].clone();
    assert_eq!(
        (&node_outcome(1)["rule"], &node_outcome(1)["output"]["concern"]),
        (&"r0".into(), &"c9".into())
    );
    assert_eq!((&node_outcome(0)["rule"], &node_outcome(0)["output"]["severity"]), (&"r2".into(), &9.into()));
    assert!(matches!(oracle::outcomes(&nodes, &rules)[0], NodeOutcome::Passed(_, Some(2))));
}

#[test]
fn a_rule_of_the_hosts_is_shown_the_branch() {
    let mut setup = tree::setup(&[node(None, None), node(Some(0), None), node(Some(0), None)], &[]);
    setup.rules = vec![test_run::rule("own", "custom:own", None, json!({"k": 1}))];
    let mut run = TestRun::open(&setup, "r", "How is it going?");
    let says = |severity: u8| test_run::advice(severity, "c", &["e"], "s");
    run.answer("node/n1", says(4));
    run.give_no_answer("node/n2");
    run.answer("node/n0", says(2));
    let input = json!(run.applies[0].input);
    let mut child = says(4);
    child["member"] = json!("n1");
    assert_eq!(
        input,
        json!({"mode": "hierarchy", "rule": setup.rules[0], "node": "n0", "own": says(2), "children": [child]})
    );
}

#[test]
fn what_a_lock_keeps_below_is_noted_and_escalates() {
    for (suggestion, refused) in [("fine", false), (oracle::LOCKED, true)] {
        let setup = tree::setup(&[node(None, None), node(Some(0), None)], &[]);
        let mut run = TestRun::open(&setup, "r", "How is it going?");
        run.answer("node/n1", test_run::advice(0, "c", &[], suggestion));
        run.answer("node/n0", test_run::advice(0, "c", &[], "s"));
        let outcome = run.outcome();
        let notes = outcome["notes"].to_string();
        assert_eq!(
            notes.contains("nothing was passed up by n1; look at what is below"),
            refused,
            "{outcome:#}"
        );
        assert_eq!(outcome["shouldEscalate"], json!(refused));
        assert_eq!(outcome["risk"]["level"], if refused { "watch" } else { "ok" });
    }
}
