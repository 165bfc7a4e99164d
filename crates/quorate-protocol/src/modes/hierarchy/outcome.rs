//! A hierarchy's outcome, and what its nodes and rules see of others.

use serde_json::{Map, json};

use super::super::advisory::risk_of;
use super::super::assembly::{Completion, ModeContext, RunState, RunStatus};
use super::{Branch, Hierarchy, NodeState};
use crate::Json;
use crate::answers::advice::Advice;
use crate::assembly::Rule;
use crate::rules::escalate_on_severity;

/// The implicit rule of H3.
pub(super) fn default_rule() -> Rule {
    Rule {
        id: "passed-up".into(),
        kind: escalate_on_severity::KIND.into(),
        applies_to: None,
        params: Map::new(),
    }
}

/// What a node is shown of its children, in roster order.
pub(super) fn children_json(hierarchy: &Hierarchy, context: &ModeContext, index: usize) -> Vec<Json> {
    let child = |index: &usize| {
        let node = &hierarchy.nodes[*index];
        let mut shown = json!({"member": &*context.member(*index).id, "status": status(hierarchy, *index)});
        if let Some(rolled) = node.rollup.as_ref().filter(|_| node.state == NodeState::Passed) {
            add_advice(&mut shown, &rolled.advice);
        }
        shown
    };
    hierarchy.nodes[index].children.iter().map(child).collect()
}

/// What a custom rule is shown.
pub(super) fn host_rule_input(rule: &Rule, branch: &Branch, node: &str) -> Json {
    let children = branch.children.iter().map(|child| {
        let mut shown = json!({"member": &*child.member});
        add_advice(&mut shown, &child.advice);
        shown
    });
    json!({
        "mode": "hierarchy", "rule": rule, "node": node, "own": branch.own,
        "children": children.collect::<Vec<_>>(),
    })
}

/// The root has ended.
pub(super) fn completion(
    hierarchy: &Hierarchy,
    context: &ModeContext,
    run_state: &mut RunState,
    root: usize,
) -> Completion {
    let node = &hierarchy.nodes[root];
    let passed = node.rollup.as_ref().filter(|_| node.state == NodeState::Passed);
    let member = &context.member(root).id;
    let mut ending = match (passed, node.state) {
        (Some(_), _) => Completion::done(),
        (None, NodeState::Refused) => {
            let because = format!("the locked traits refuse what the root `{member}` would pass up");
            Completion::without_artifact(RunStatus::Refused, "locked", because)
        }
        (None, _) => {
            let because = format!("the root `{member}` gave no output, nor did anybody below it");
            Completion::without_artifact(RunStatus::Refused, "no_output", because)
        }
    };
    if let Some(rolled) = passed {
        ending.artifact.insert("rollup".into(), json!(rolled.advice));
    }
    let severity = passed.map(|rolled| rolled.advice.severity);
    add_details(hierarchy, context, run_state, severity, &mut ending);
    ending
}

/// The run's budget is spent before the root has ended: the risk is that of the gravest answer, wherever it stands, since
/// no node above it could have weighed it.
pub(super) fn budget_completion(
    hierarchy: &Hierarchy,
    context: &ModeContext,
    run_state: &mut RunState,
    mut ending: Completion,
) -> Completion {
    let of_node = |node: &super::Node| {
        let rolled = node.rollup.as_ref().map(|rolled| rolled.advice.severity);
        rolled.max(node.own.as_ref().map(|own| own.severity))
    };
    let severity = hierarchy.nodes.iter().filter_map(of_node).max();
    add_details(hierarchy, context, run_state, severity, &mut ending);
    ending
}

/// The nodes, the risk level, and whether to escalate (X12).
fn add_details(
    hierarchy: &Hierarchy,
    context: &ModeContext,
    run_state: &mut RunState,
    severity: Option<u8>,
    ending: &mut Completion,
) {
    ending.artifact.insert("nodes".into(), json!(nodes_json(hierarchy, context)));
    let lacking = (0..hierarchy.nodes.len()).any(|index| run_state.is_missing(index));
    // What a lock keeps from going up may have had something grave below it.
    let refused: Vec<&str> = (0..hierarchy.nodes.len())
        .filter(|index| hierarchy.nodes[*index].state == NodeState::Refused)
        .map(|index| &*context.member(index).id)
        .collect();
    if !refused.is_empty() {
        run_state.note(format!("nothing was passed up by {}; look at what is below", refused.join(", ")));
    }
    let (risk, mut escalates) = risk_of(context, run_state, severity, lacking || !refused.is_empty());
    escalates |= !refused.is_empty();
    ending.extra.insert("risk".into(), risk);
    ending.extra.insert("shouldEscalate".into(), json!(escalates));
}

fn nodes_json(hierarchy: &Hierarchy, context: &ModeContext) -> Vec<Json> {
    let node = |index: usize| {
        let node = &hierarchy.nodes[index];
        let member = context.member(index);
        let mut report = json!({
            "member": &*member.id,
            "parent": member.parent,
            "status": status(hierarchy, index),
            "rule": node.rule.map(|at| &*context.setup.rules[at].id),
        });
        if let Some(rolled) = node.rollup.as_ref().filter(|_| node.state == NodeState::Passed) {
            report["output"] = json!(rolled.advice);
            report["from"] = json!(rolled.sources.iter().map(|source| &**source).collect::<Vec<_>>());
        }
        report
    };
    (0..hierarchy.nodes.len()).map(node).collect()
}

/// `passed`, `passed_up` where the node itself gave nothing, `silent`, `refused`; where the run ended before it could pass
/// something up `answered` or `not_asked`.
fn status(hierarchy: &Hierarchy, index: usize) -> &'static str {
    let node = &hierarchy.nodes[index];
    match node.state {
        NodeState::Passed if node.own.is_none() => "passed_up",
        NodeState::Passed => "passed",
        NodeState::Silent => "silent",
        NodeState::Refused => "refused",
        NodeState::Waiting if node.own.is_some() => "answered",
        NodeState::Waiting => "not_asked",
    }
}

fn add_advice(shown: &mut Json, advice: &Advice) {
    if let (Json::Object(shown), Json::Object(advice)) = (shown, json!(advice)) {
        shown.extend(advice);
    }
}
