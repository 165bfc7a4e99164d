//! The tree of a hierarchy: how grave each node's report is, what it passes up and what it drops, and which of its texts
//! hit a lock.

use std::collections::BTreeMap;

use quorate::service::convene::report::{Node, Report};

use super::wording::plain;

/// The deepest level that is drawn inside of its parent; deeper ones are listed with their level. Browsers flatten what is
/// nested deeper than some hundred elements.
const DEEPEST: usize = 40;

/// A node, and how the list around it goes on.
pub(super) struct Branch {
    /// 1 for the root.
    pub(super) level: usize,
    pub(super) member: String,
    pub(super) status: String,
    pub(super) severity: Option<u64>,
    /// How what it passes up came about.
    pub(super) made: String,
    /// What its parent makes of it, if it has a parent.
    pub(super) fate: Option<Fate>,
    pub(super) concern: Option<String>,
    pub(super) suggestion: Option<String>,
    pub(super) evidence: Vec<String>,
    pub(super) hits: Vec<Hit>,
    /// Whether a list of its reports follows inside of it.
    pub(super) opens: bool,
    /// How many lists end after it.
    pub(super) closes: usize,
}

/// What became of what a node passed up.
pub(super) struct Fate {
    pub(super) word: String,
    pub(super) is_dropped: bool,
}

/// A text that was refused.
pub(super) struct Hit {
    pub(super) code: String,
    pub(super) locked: String,
    pub(super) excerpt: String,
}

/// The nodes from the root down.
pub(super) fn branches(report: &Report) -> Vec<Branch> {
    let mut children: BTreeMap<Option<&str>, Vec<&Node>> = BTreeMap::new();
    for node in &report.nodes {
        children.entry(node.parent.as_deref()).or_default().push(node);
    }
    let mut branches: Vec<Branch> = Vec::new();
    // Each node once, whatever the records say.
    let roots = children.remove(&None).unwrap_or_default();
    let mut open: Vec<(&Node, Option<&Node>, usize)> =
        roots.into_iter().rev().map(|root| (root, None, 1)).collect();
    while let Some((node, parent, level)) = open.pop() {
        let reports = children.remove(&Some(&*node.member)).unwrap_or_default();
        branches.push(branch(report, node, parent, level));
        open.extend(reports.into_iter().rev().map(|child| (child, Some(node), level + 1)));
    }
    let levels: Vec<usize> = branches.iter().map(|branch| branch.level.min(DEEPEST)).collect();
    for (at, branch) in branches.iter_mut().enumerate() {
        let next = levels.get(at + 1).copied().unwrap_or(1);
        branch.opens = next > levels[at];
        branch.closes = levels[at].saturating_sub(next);
    }
    branches
}

fn branch(report: &Report, node: &Node, parent: Option<&Node>, level: usize) -> Branch {
    let candidate = format!("node/{}", node.member);
    let hits = report.violations.iter().filter(|violation| violation.candidate == candidate);
    let output = node.output.as_ref();
    Branch {
        level,
        member: node.member.clone(),
        status: plain(&node.status),
        severity: output.map(|output| output.severity),
        made: made(report, node),
        fate: parent.map(|parent| fate(node, parent)),
        concern: output.map(|output| output.concern.clone()),
        suggestion: output.map(|output| output.suggestion.clone()).filter(|text| !text.is_empty()),
        evidence: output.map(|output| output.evidence.clone()).unwrap_or_default(),
        hits: hits
            .map(|violation| Hit {
                code: violation.code.clone(),
                locked: violation.locked.clone().unwrap_or_default(),
                excerpt: violation.excerpt.clone().or_else(|| violation.why.clone()).unwrap_or_default(),
            })
            .collect(),
        opens: false,
        closes: 0,
    }
}

fn made(report: &Report, node: &Node) -> String {
    if node.output.is_none() {
        return "passes nothing up".to_owned();
    }
    let of = match node.from.is_empty() {
        true => String::new(),
        false => format!(" of {}", node.from.join(", ")),
    };
    match &node.rule {
        Some(rule) => {
            let kind = report.rules.iter().find(|applied| applied.id == *rule).map(|applied| &*applied.kind);
            let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
            format!("passes up what the rule {rule}{kind} makes{of}")
        }
        None if node.status == "passed_up" => format!("gave no answer: the gravest report{of} goes up"),
        None => "passes up its own answer".to_owned(),
    }
}

fn fate(node: &Node, parent: &Node) -> Fate {
    let (word, is_dropped) = match (&node.output, parent.from.contains(&node.member)) {
        (None, _) => return Fate { word: "nothing to pass up".to_owned(), is_dropped: true },
        (Some(_), true) if parent.output.is_none() => ("used and refused", true),
        (Some(_), true) => ("passed up", false),
        (Some(_), false) => ("dropped", true),
    };
    Fate { word: format!("{word} by {}", parent.member), is_dropped }
}
