//! Hierarchy: a tree that reports upwards. A node is asked as soon as all its children have ended, a rule makes its report
//! of its answer and theirs, and a report that touches a lock is dropped (H1 to H3).

use serde_json::json;

use super::advisory::risk_of;
use super::assembly::{
    AskMember, Candidate, Completion, Effect, LockResult, Mode, OnHit, Run, RunStatus, Text,
};
use crate::answers::advice::Advice;
use crate::assembly::{Member, Rule, Setup};
use crate::rules::advice::{Branch, Child, Rollup};
use crate::rules::custom::RuleRequest;
use crate::rules::{self, aggregate};
use crate::{Json, Name, Part, PartKind};

/// The step of all questions, and the prefix of their invocation ids.
const NODE: &str = "node";

const LEAF: &str = "You assess the request from where you stand, and report upwards. Say how grave it is, what concerns \
                    you, on what evidence, and what should be done.";
const PARENT: &str = "You assess the request from where you stand, with what those who report to you have passed up. Say \
                      how grave it is, what concerns you, on what evidence, and what should be done. You may raise what \
                      they report; you cannot make it go away.";

/// A node of the tree.
#[derive(Default)]
struct Node {
    children: Vec<usize>,
    /// How many children have not ended.
    pending: usize,
    own: Option<Advice>,
    rollup: Option<Rollup>,
    /// The place of the rule that made it; `None` is the node's own answer, or the escalation of H3.
    rule: Option<usize>,
    state: NodeState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum NodeState {
    #[default]
    Waiting,
    /// It passes something up.
    Passed,
    /// It has nothing to pass up.
    Silent,
    /// A lock keeps it from passing anything up.
    Refused,
}

pub(super) struct Hierarchy {
    nodes: Vec<Node>,
    parents: Vec<Option<usize>>,
}

impl Hierarchy {
    pub(super) fn new(setup: &Setup) -> Self {
        let indices: std::collections::BTreeMap<&str, usize> =
            setup.members.iter().enumerate().map(|(index, member)| (&*member.id, index)).collect();
        let parent = |member: &Member| indices.get(member.parent.as_deref()?).copied();
        let parents: Vec<Option<usize>> = setup.members.iter().map(parent).collect();
        let mut nodes: Vec<Node> = setup.members.iter().map(|_| Node::default()).collect();
        for (index, parent) in parents.iter().enumerate().filter_map(|(at, parent)| Some((at, (*parent)?))) {
            nodes[parent].children.push(index);
            nodes[parent].pending += 1;
        }
        Hierarchy { nodes, parents }
    }

    fn ask(&self, run: &Run, index: usize) -> Effect {
        let member = run.member(index);
        let leaf = self.nodes[index].children.is_empty();
        let text = || Json::from(children_json(self, run, index)).to_string();
        let parts = (!leaf).then(|| Part::new(PartKind::ChildrenOutputs, "", text()));
        Effect::Ask(AskMember {
            id: invocation_id(&member.id),
            step: NODE.into(),
            member_index: index,
            parts: parts.into_iter().collect(),
            task: if leaf { LEAF } else { PARENT }.into(),
            extra_fields: vec![("parent", json!(member.parent))],
        })
    }

    fn branch(&self, run: &Run, index: usize) -> Branch {
        let child = |index: &usize| {
            let node = &self.nodes[*index];
            let passed = node.rollup.as_ref().filter(|_| node.state == NodeState::Passed)?;
            Some(Child { member: run.member(*index).id.clone(), advice: passed.advice.clone() })
        };
        let node = &self.nodes[index];
        Branch { own: node.own.clone(), children: node.children.iter().filter_map(child).collect() }
    }

    /// H2: the first matching rule decides what a branch passes up; without one it is the node's own answer.
    fn apply_rules(&mut self, run: &mut Run, index: usize, from: usize) -> Vec<Effect> {
        let branch = self.branch(run, index);
        let member = &run.member(index).id;
        for (at, rule) in run.setup.rules.iter().enumerate().skip(from) {
            if !rule.applies_to_member(member) || branch.children.is_empty() {
                continue;
            }
            match rules::built_in(&rule.kind) {
                Some(logic) => {
                    if let Some(rolled) = logic.roll.and_then(|roll| roll(rule, &branch)) {
                        return self.check_rollup(run, index, Some(at), Some(rolled));
                    }
                }
                None => {
                    let input = host_rule_input(rule, &branch, member);
                    return Effect::apply(format!("{at}/{member}"), &rule.kind, input);
                }
            }
        }
        let rollup = match branch.own.clone() {
            Some(advice) => Some(Rollup { advice, sources: Vec::new() }),
            // H3: a node that failed must not hide what its children say.
            None => aggregate::roll_by_severity(&default_rule(), &branch),
        };
        self.check_rollup(run, index, None, rollup)
    }

    /// Checks a node's report against the locks.
    fn check_rollup(
        &mut self,
        run: &mut Run,
        index: usize,
        rule: Option<usize>,
        rolled: Option<Rollup>,
    ) -> Vec<Effect> {
        let member = run.member(index).id.clone();
        let mut effects = Vec::new();
        if let Some((rule, rolled)) = rule.map(|at| &run.setup.rules[at]).zip(rolled.as_ref()) {
            let also = json!({"node": &*member, "severity": rolled.advice.severity});
            effects.push(run.state.record_rule(rule, true, &rolled.sources, also));
        }
        let node = &mut self.nodes[index];
        node.rule = rule;
        node.rollup = rolled;
        let Some(rolled) = &node.rollup else {
            node.state = NodeState::Silent;
            effects.extend(self.on_node_ended(run, index));
            return effects;
        };
        if node.own.is_none() {
            run.state.note(format!(
                "`{member}` gave no answer; what its children report is passed up all the same"
            ));
        }
        effects.push(Effect::Check(candidate(&member, &rolled.advice)));
        effects
    }

    /// A node has ended: its parent may be next, or the run is over.
    fn on_node_ended(&mut self, run: &mut Run, index: usize) -> Vec<Effect> {
        match self.parents[index] {
            None => vec![Effect::End(completion(self, run, index))],
            Some(parent) => {
                self.nodes[parent].pending -= 1;
                let ready = self.nodes[parent].pending == 0;
                ready.then(|| self.ask(run, parent)).into_iter().collect()
            }
        }
    }
}

/// What a node would pass up, text by text.
fn candidate(member: &Name, advice: &Advice) -> Candidate {
    let text = |kind, text: &str| Text::of_member(member, invocation_id(member), kind, text);
    let mut texts = vec![text("concern", &advice.concern), text("suggestion", &advice.suggestion)];
    texts.extend(advice.evidence.iter().map(|piece| text("evidence", piece)));
    Candidate { name: invocation_id(member), texts, on_hit: OnHit::Drop }
}

/// The invocation of a node, and its id as a candidate.
fn invocation_id(member: &str) -> Name {
    format!("{NODE}/{member}").into()
}

impl Mode for Hierarchy {
    fn on_opened(&mut self, run: &mut Run) -> Vec<Effect> {
        let leaves = (0..self.nodes.len()).filter(|index| self.nodes[*index].children.is_empty());
        leaves.map(|index| self.ask(run, index)).collect()
    }

    fn store_answer(&mut self, index: usize, answer: Option<&Json>) {
        self.nodes[index].own = answer.and_then(Advice::read);
    }

    fn on_answer(&mut self, run: &mut Run, index: usize) -> Vec<Effect> {
        self.apply_rules(run, index, 0)
    }

    fn on_rule_result(&mut self, run: &mut Run, ticket: &str, result: Result<&Json, &str>) -> Vec<Effect> {
        let found = ticket
            .split_once('/')
            .and_then(|(at, member)| Some((at.parse::<usize>().ok()?, *run.member_indices.get(member)?)));
        let Some((at, index)) = found else { return Vec::new() };
        let rule: &Rule = &run.setup.rules[at];
        let failed = match result {
            Ok(Json::Null) => return self.apply_rules(run, index, at + 1),
            Ok(output) => match Advice::read(output) {
                Some(advice) => {
                    let sources =
                        self.branch(run, index).children.into_iter().map(|one| one.member).collect();
                    return self.check_rollup(run, index, Some(at), Some(Rollup { advice, sources }));
                }
                None => "what it gives is no assessment",
            },
            Err(why) => why,
        };
        // The children's gravest report must get through, even if the rule fails.
        run.state.note_failed_rule(&rule.id, failed);
        let escalated = aggregate::roll_by_severity(&default_rule(), &self.branch(run, index));
        self.check_rollup(run, index, None, escalated)
    }

    fn on_checked(&mut self, run: &mut Run, candidate: &Name, result: &LockResult) -> Vec<Effect> {
        let member = candidate.strip_prefix(NODE).and_then(|rest| rest.strip_prefix('/'));
        let Some(index) = member.and_then(|member| run.member_indices.get(member).copied()) else {
            return Vec::new();
        };
        self.nodes[index].state = if result.is_clean() { NodeState::Passed } else { NodeState::Refused };
        self.on_node_ended(run, index)
    }

    /// Every node would have been asked, so each without an answer is missing.
    fn on_budget_exhausted(&mut self, run: &mut Run, ending: Completion) -> Completion {
        let unheard = (0..self.nodes.len()).filter(|index| self.nodes[*index].own.is_none());
        unheard.for_each(|index| run.state.mark_missing(index));
        budget_completion(self, run, ending)
    }
}

/// The implicit rule of H3.
fn default_rule() -> Rule {
    Rule::implicit("passed-up", aggregate::ESCALATE_ON_SEVERITY)
}

/// The reports of a node's children, in roster order.
fn children_json(hierarchy: &Hierarchy, run: &Run, index: usize) -> Vec<Json> {
    let child = |index: &usize| {
        let node = &hierarchy.nodes[*index];
        let mut shown = json!({"member": &*run.member(*index).id, "status": status(hierarchy, *index)});
        let passed = node.rollup.as_ref().filter(|_| node.state == NodeState::Passed);
        if let (Json::Object(shown), Some(Json::Object(advice))) =
            (&mut shown, passed.map(|rolled| json!(rolled.advice)))
        {
            shown.extend(advice);
        }
        shown
    };
    hierarchy.nodes[index].children.iter().map(child).collect()
}

/// The input of a custom rule.
fn host_rule_input(rule: &Rule, branch: &Branch, node: &Name) -> RuleRequest {
    RuleRequest::Hierarchy {
        rule: rule.clone(),
        node: node.clone(),
        own: branch.own.clone(),
        children: branch.children.clone(),
    }
}

/// The root has ended.
fn completion(hierarchy: &Hierarchy, run: &mut Run, root: usize) -> Completion {
    let node = &hierarchy.nodes[root];
    let passed = node.rollup.as_ref().filter(|_| node.state == NodeState::Passed);
    let member = &run.member(root).id;
    let refused = |code, because| Completion::without_artifact(RunStatus::Refused, code, because);
    let mut ending = match (passed, node.state) {
        (Some(_), _) => Completion::done(),
        (None, NodeState::Refused) => {
            refused("locked", format!("the locked traits refuse what the root `{member}` would pass up"))
        }
        (None, _) => {
            refused("no_output", format!("the root `{member}` gave no output, nor did anybody below it"))
        }
    };
    if let Some(rolled) = passed {
        ending.artifact.insert("rollup".into(), json!(rolled.advice));
    }
    let severity = passed.map(|rolled| rolled.advice.severity);
    add_details(hierarchy, run, severity, &mut ending);
    ending
}

/// The run's budget is spent before the root has ended: the risk is that of the gravest answer, wherever it stands, since
/// no node above it could have weighed it.
fn budget_completion(hierarchy: &Hierarchy, run: &mut Run, mut ending: Completion) -> Completion {
    let of_node = |node: &Node| {
        let rolled = node.rollup.as_ref().map(|rolled| rolled.advice.severity);
        rolled.max(node.own.as_ref().map(|own| own.severity))
    };
    let severity = hierarchy.nodes.iter().filter_map(of_node).max();
    add_details(hierarchy, run, severity, &mut ending);
    ending
}

/// The nodes, the risk level, and whether to escalate (X12).
fn add_details(hierarchy: &Hierarchy, run: &mut Run, severity: Option<u8>, ending: &mut Completion) {
    ending.artifact.insert("nodes".into(), json!(nodes_json(hierarchy, run)));
    let lacking = (0..hierarchy.nodes.len()).any(|index| run.state.is_missing(index));
    // A report that a lock dropped may have had something grave below it.
    let refused = hierarchy.nodes.iter().zip(&run.setup.members);
    let refused = refused.filter(|(node, _)| node.state == NodeState::Refused).map(|(_, member)| &*member.id);
    let refused = refused.collect::<Vec<_>>().join(", ");
    if !refused.is_empty() {
        run.state.note(format!("nothing was passed up by {refused}; look at what is below"));
    }
    let (risk, mut escalates) = risk_of(run, severity, lacking || !refused.is_empty());
    escalates |= !refused.is_empty();
    ending.extra.insert("risk".into(), risk);
    ending.extra.insert("shouldEscalate".into(), json!(escalates));
}

fn nodes_json(hierarchy: &Hierarchy, run: &Run) -> Vec<Json> {
    let node = |index: usize| {
        let node = &hierarchy.nodes[index];
        let member = run.member(index);
        let mut report = json!({
            "member": &*member.id,
            "parent": member.parent,
            "status": status(hierarchy, index),
            "rule": node.rule.map(|at| &*run.setup.rules[at].id),
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
