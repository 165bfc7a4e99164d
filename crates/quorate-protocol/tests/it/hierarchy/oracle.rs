//! The oracle: what a tree reports, node by node from its leaves, said slowly (H1 to H3). It knows nothing of the
//! protocol.

use std::collections::BTreeSet;

/// Words that no node may pass up.
pub(crate) const LOCKED: &str = "warmth";

/// An assessment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) severity: u8,
    pub(crate) concern: String,
    pub(crate) evidence: Vec<String>,
    pub(crate) suggestion: String,
}

/// A node of a tree; indices are places in the roster.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) parent: Option<usize>,
    /// `None` means no answer.
    pub(crate) says: Option<Advice>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Escalate,
    Aggregate {
        top: Option<usize>,
        least: u8,
        most: u8,
    },
    Terminal {
        trigger: Option<u8>,
    },
    /// A custom rule, and what it gives for every node.
    Host(Behavior),
}

#[derive(Debug, Clone)]
pub(crate) enum Behavior {
    Nothing,
    Fails,
    Nonsense,
    Says(Advice),
}

/// A rule, and the nodes that it is for; `None` is all.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) kind: Kind,
    pub(crate) of: Option<BTreeSet<usize>>,
}

/// How a node ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeOutcome {
    /// It passes this up, made by a rule, or its own or its children's word.
    Passed(Advice, Option<usize>),
    Silent,
    Refused,
}

/// How every node ends.
pub(crate) fn outcomes(nodes: &[Node], rules: &[Rule]) -> Vec<NodeOutcome> {
    let mut ends: Vec<Option<NodeOutcome>> = vec![None; nodes.len()];
    while let Some(index) =
        (0..nodes.len()).find(|index| ends[*index].is_none() && ready(nodes, &ends, *index))
    {
        ends[index] = Some(outcome(nodes, rules, &ends, index));
    }
    ends.into_iter().map(|end| end.expect("a tree has no cycle")).collect()
}

/// H1: all children have ended.
fn ready(nodes: &[Node], ends: &[Option<NodeOutcome>], index: usize) -> bool {
    children(nodes, index).iter().all(|child| ends[*child].is_some())
}

pub(crate) fn children(nodes: &[Node], index: usize) -> Vec<usize> {
    (0..nodes.len()).filter(|child| nodes[*child].parent == Some(index)).collect()
}

fn outcome(nodes: &[Node], rules: &[Rule], ends: &[Option<NodeOutcome>], index: usize) -> NodeOutcome {
    let own = nodes[index].says.as_ref();
    let passed = |child: &usize| match &ends[*child] {
        Some(NodeOutcome::Passed(says, _)) => Some(says.clone()),
        _ => None,
    };
    let children: Vec<Advice> = children(nodes, index).iter().filter_map(passed).collect();
    match rolled(rules, index, own, &children) {
        None => NodeOutcome::Silent,
        Some((says, rule)) => {
            let hit = |text: &String| text.contains(LOCKED);
            let locked = hit(&says.concern) || hit(&says.suggestion) || says.evidence.iter().any(hit);
            if locked { NodeOutcome::Refused } else { NodeOutcome::Passed(says, rule) }
        }
    }
}

fn rolled(
    rules: &[Rule],
    index: usize,
    own: Option<&Advice>,
    children: &[Advice],
) -> Option<(Advice, Option<usize>)> {
    // A node without children, or without output from them, passes up its own answer.
    if children.is_empty() {
        return own.cloned().map(|says| (says, None));
    }
    for (at, rule) in rules.iter().enumerate() {
        if rule.of.as_ref().is_some_and(|of| !of.contains(&index)) {
            continue;
        }
        let says = match &rule.kind {
            Kind::Escalate => Some(escalated(own, children)),
            Kind::Aggregate { top, least, most } => aggregated(children, *top, *least, *most),
            Kind::Terminal { trigger } => gravest(children, trigger.unwrap_or(9)),
            Kind::Host(Behavior::Nothing) => None,
            // A fault of a rule must not hide the children's reports.
            Kind::Host(Behavior::Fails | Behavior::Nonsense) => {
                return Some((escalated(own, children), None));
            }
            Kind::Host(Behavior::Says(says)) => Some(says.clone()),
        };
        if let Some(says) = says {
            return Some((says, Some(at)));
        }
    }
    match own {
        Some(own) => Some((own.clone(), None)),
        None => Some((escalated(None, children), None)),
    }
}

/// H2: the highest severity of all, all evidence once, the node's own words, else those of its children; and before the
/// node's own words those of children who find it graver than the node does.
fn escalated(own: Option<&Advice>, children: &[Advice]) -> Advice {
    let all: Vec<&Advice> = children.iter().chain(own).collect();
    let mut by_gravity: Vec<&Advice> = children.iter().collect();
    by_gravity.sort_by_key(|report| 10 - report.severity);
    let severity = all.iter().map(|report| report.severity).max().unwrap_or(0);
    let said = |text: fn(&Advice) -> &String| match own.map(text).filter(|text| !text.is_empty()) {
        Some(words) if own.is_some_and(|own| own.severity == severity) => words.clone(),
        Some(words) => {
            let graver =
                by_gravity.iter().filter(|report| own.is_some_and(|own| report.severity > own.severity));
            joined(graver.map(|report| text(report)).chain([words]))
        }
        None => joined(by_gravity.iter().map(|report| text(report))),
    };
    Advice {
        severity,
        concern: said(|one| &one.concern),
        evidence: union(&all),
        suggestion: said(|one| &one.suggestion),
    }
}

/// H2: the gravest children, by severity, then evidence, then roster.
fn aggregated(children: &[Advice], top: Option<usize>, least: u8, most: u8) -> Option<Advice> {
    let mut within: Vec<&Advice> =
        children.iter().filter(|child| child.severity >= least && child.severity <= most).collect();
    within.sort_by_key(|child| (10 - child.severity, usize::MAX - child.evidence.len()));
    within.truncate(top.unwrap_or(usize::MAX));
    Some(Advice {
        severity: within.iter().map(|one| one.severity).max()?,
        concern: joined(within.iter().map(|one| &one.concern)),
        evidence: union(&within),
        suggestion: joined(within.iter().map(|one| &one.suggestion)),
    })
}

/// H2: the gravest child at or over the trigger, of equals the first.
fn gravest(children: &[Advice], trigger: u8) -> Option<Advice> {
    let mut best: Option<&Advice> = None;
    for child in children.iter().filter(|child| child.severity >= trigger) {
        if best.is_none_or(|best| child.severity > best.severity) {
            best = Some(child);
        }
    }
    best.cloned()
}

fn joined<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let texts: Vec<&str> = texts.map(String::as_str).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

fn union(all: &[&Advice]) -> Vec<String> {
    let mut union: Vec<String> = Vec::new();
    for piece in all.iter().flat_map(|report| &report.evidence) {
        if !union.contains(piece) {
            union.push(piece.clone());
        }
    }
    union
}
