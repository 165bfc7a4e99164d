//! Trees as a protocol is given them, and a run in which answers arrive in any order.

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{AssemblyRequest, Member, Setup};
use quorate_protocol::{Json, PartKind};
use serde_json::json;

use super::oracle::{self, Advice, Behavior, Kind, Node, NodeOutcome, Rule};
use crate::test_run::{self, TestRun};

/// The member at an index.
pub(crate) fn name(index: usize) -> String {
    format!("n{index}")
}

fn seat_of(id: &str) -> usize {
    let digits = id.rsplit('n').next().unwrap_or_default();
    digits.parse().expect("a node's id ends in its index")
}

pub(crate) fn setup(nodes: &[Node], rules: &[Rule]) -> Setup {
    let mut setup = test_run::setup(Mode::Hierarchy, AssemblyRequest::Hierarchy);
    let member = |(index, node): (usize, &Node)| Member {
        parent: node.parent.map(|parent| name(parent).into()),
        ..test_run::member(&name(index))
    };
    setup.members = nodes.iter().enumerate().map(member).collect();
    setup.rules = rules.iter().enumerate().map(|(at, one)| rule_setup(at, one)).collect();
    setup.locked_traits = vec![test_run::locked(oracle::LOCKED)];
    setup
}

fn rule_setup(at: usize, rule: &Rule) -> quorate_protocol::assembly::Rule {
    let (kind, params) = match &rule.kind {
        Kind::Escalate => ("escalate-on-severity", json!({})),
        Kind::Aggregate { top, least, most } => {
            ("aggregate", json!({"topN": top, "minSeverity": least, "maxSeverity": most}))
        }
        Kind::Terminal { trigger } => ("terminal", json!({"triggerSeverity": trigger})),
        Kind::Host(_) => ("custom:own", json!({})),
    };
    let of: Option<Vec<String>> = rule.of.as_ref().map(|of| of.iter().map(|index| name(*index)).collect());
    let of: Option<Vec<&str>> = of.as_ref().map(|of| of.iter().map(String::as_str).collect());
    test_run::rule(&format!("r{at}"), kind, of.as_deref(), params)
}

pub(crate) fn json_of(says: &Advice) -> Json {
    json!({
        "severity": says.severity, "concern": says.concern,
        "evidence": says.evidence, "suggestion": says.suggestion,
    })
}

/// Runs a tree; `next` chooses the next member to end. The pending members are compared with H1 after every step.
pub(crate) fn run(nodes: &[Node], rules: &[Rule], mut next: impl FnMut(usize) -> usize) -> TestRun {
    let setup = setup(nodes, rules);
    let ends = oracle::outcomes(nodes, rules);
    let mut sitting = TestRun::open(&setup, "r", "How is it going?");
    let mut ended = vec![false; nodes.len()];
    while !sitting.finished {
        asked_when_ready(nodes, &ended, &sitting);
        let out: Vec<String> = sitting.out.keys().map(ToString::to_string).collect();
        let id = &out[next(out.len())];
        let index = seat_of(id);
        shown_its_children(nodes, &ends, index, &sitting);
        match &nodes[index].says {
            Some(says) => sitting.answer(id, json_of(says)),
            None => sitting.give_no_answer(id),
        }
        while let Some(apply) = sitting.applies.first().cloned() {
            let at: usize =
                apply.ticket.split('/').next().and_then(|at| at.parse().ok()).expect("the rule's place");
            let Kind::Host(gives) = &rules[at].kind else { panic!("{apply:?} is of no rule of the host's") };
            match gives {
                Behavior::Nothing => sitting.rule_applied(&apply.ticket, Ok(Json::Null)),
                Behavior::Fails => sitting.rule_applied(&apply.ticket, Err("it broke")),
                Behavior::Nonsense => sitting.rule_applied(&apply.ticket, Ok(json!({"severity": "high"}))),
                Behavior::Says(says) => sitting.rule_applied(&apply.ticket, Ok(json_of(says))),
            }
        }
        ended[index] = true;
    }
    assert!(ended.iter().all(|ended| *ended), "everybody is asked before the root has ended");
    sitting
}

/// H1: out is exactly who has not ended and whose children all have.
fn asked_when_ready(nodes: &[Node], ended: &[bool], sitting: &TestRun) {
    let ready =
        |index: &usize| !ended[*index] && oracle::children(nodes, *index).iter().all(|one| ended[*one]);
    let mut ready: Vec<String> =
        (0..nodes.len()).filter(ready).map(|index| format!("node/n{index}")).collect();
    let mut out: Vec<String> = sitting.out.keys().map(ToString::to_string).collect();
    ready.sort();
    out.sort();
    assert_eq!(out, ready, "who is asked, and whose children have ended");
}

/// H1, H3: a node with children is shown what they pass up, in roster order, and who passes nothing up.
fn shown_its_children(nodes: &[Node], ends: &[NodeOutcome], index: usize, sitting: &TestRun) {
    let invoke = &sitting.out[format!("node/n{index}").as_str()];
    let children = oracle::children(nodes, index);
    let shown = test_run::part(invoke, PartKind::ChildrenOutputs);
    assert_eq!(shown.is_some(), !children.is_empty());
    let child = |child: &usize| match &ends[*child] {
        NodeOutcome::Passed(says, _) => {
            let mut shown = json_of(says);
            shown["member"] = json!(name(*child));
            shown["status"] = json!(if nodes[*child].says.is_some() { "passed" } else { "passed_up" });
            shown
        }
        NodeOutcome::Silent => json!({"member": name(*child), "status": "silent"}),
        NodeOutcome::Refused => json!({"member": name(*child), "status": "refused"}),
    };
    let expected: Vec<Json> = children.iter().map(child).collect();
    assert_eq!(shown.unwrap_or_else(|| json!([])), json!(expected));
}

/// Checks an outcome against the oracle's.
pub(crate) fn assert_agrees(nodes: &[Node], rules: &[Rule], sitting: &TestRun) {
    let ends = oracle::outcomes(nodes, rules);
    let outcome = sitting.outcome();
    let root = (0..nodes.len()).find(|index| nodes[*index].parent.is_none()).expect("a tree has a root");
    for (index, end) in ends.iter().enumerate() {
        let node = &outcome["nodes"][index];
        let (status, output, rule) = match end {
            NodeOutcome::Passed(says, rule) => {
                let status = if nodes[index].says.is_some() { "passed" } else { "passed_up" };
                (status, json_of(says), rule.map(|at| format!("r{at}")))
            }
            NodeOutcome::Silent => ("silent", Json::Null, None),
            NodeOutcome::Refused => ("refused", Json::Null, node["rule"].as_str().map(str::to_owned)),
        };
        assert_eq!(node["status"], status, "{index} of {outcome:#}");
        assert_eq!(node.get("output").cloned().unwrap_or_default(), output, "{index} of {outcome:#}");
        assert_eq!(node["rule"], json!(rule), "{index} of {outcome:#}");
    }
    let verdict = match &ends[root] {
        NodeOutcome::Passed(..) => ("done", ""),
        NodeOutcome::Refused => ("refused", "locked"),
        NodeOutcome::Silent => ("refused", "no_output"),
    };
    assert_eq!((sitting.word("verdict"), sitting.word("code")), verdict, "{outcome:#}");
    let rollup = match &ends[root] {
        NodeOutcome::Passed(says, _) => json_of(says),
        _ => Json::Null,
    };
    assert_eq!(outcome.get("rollup").cloned().unwrap_or_default(), rollup);
    // X12
    let missing: Vec<String> =
        (0..nodes.len()).filter(|index| nodes[*index].says.is_none()).map(name).collect();
    assert_eq!(outcome["missing"], json!(missing));
    assert_eq!(outcome["partial"], !missing.is_empty());
    assert!(missing.is_empty() || outcome["risk"]["level"] != "ok", "{outcome:#}");
}

/// An outcome without the order in which things became known: rules and notes are listed as they come.
pub(crate) fn unordered(sitting: &TestRun) -> Json {
    let mut outcome = sitting.outcome().clone();
    for key in ["rules", "notes"] {
        let mut listed: Vec<String> =
            outcome[key].as_array().into_iter().flatten().map(ToString::to_string).collect();
        listed.sort();
        outcome[key] = json!(listed);
    }
    outcome
}
