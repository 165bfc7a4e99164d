//! A hierarchy: what its root passes up, and the tree with each node's input, answer and output. Members beyond a depth or a
//! number are counted.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use quorate_kernel::record::Status;

use super::{Assessment, diagrams, last_status, names, severity_text};
use crate::service::convene::report::{Decision, Member, Node};
use crate::view::wording::amount;
use crate::view::{Doc, Entry, Text, Tone};

/// The most members shown.
const MEMBERS: usize = 150;
/// The most levels shown.
const LEVELS: usize = 8;
/// The most members named in a sentence.
const NAMED: usize = 8;
/// The most quotes shown.
const QUOTES: usize = 12;

/// The output of the root.
pub(super) fn root(decision: &Decision) -> Doc {
    let mut doc = Doc::new();
    if let Some(rollup) = &decision.rollup {
        doc.heading("Passed up by the root");
        doc.line(Text::from("severity ").and(severity_text(rollup.severity)));
        for (label, text) in [("concern", &rollup.concern), ("suggestion", &rollup.suggestion)] {
            if !text.trim().is_empty() {
                doc.line(Text::faint(label));
                doc.passage(text.as_str());
            }
        }
        if !rollup.evidence.is_empty() {
            doc.line(Text::faint("evidence"));
            doc.items(rollup.evidence.iter().take(QUOTES).map(|quote| format!("“{quote}”")));
            if let more @ 1.. = rollup.evidence.len().saturating_sub(QUOTES) {
                doc.line(format!("… and {more} more"));
            }
        }
    }
    doc
}

/// The output of the root, and the tree.
pub(super) fn doc(decision: &Decision) -> Doc {
    let mut doc = root(decision);
    let forest = Forest::of(decision);
    doc.diagram(tree_diagram(&forest));
    let mut shown = 0;
    if !forest.roots.is_empty() {
        doc.heading("Tree");
        doc.tree(entries(&forest, &forest.roots, 0, &mut shown));
    }
    let reached: usize = forest.roots.iter().map(|root| 1 + forest.descendant_count(*root)).sum();
    let more = reached.saturating_sub(shown);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let nodes = decision.nodes.as_deref().unwrap_or_default();
    for node in nodes {
        *counts.entry(&node.status).or_default() += 1;
    }
    if counts.len() > 1 || (more > 0 && !counts.is_empty()) {
        let counts: Vec<String> =
            counts.iter().map(|(status, count)| format!("{count} {}", status.replace('_', " "))).collect();
        doc.line(format!("{}: {}.", amount(nodes.len() as u64, "node"), counts.join(", ")));
    }
    decision.add_more(&mut doc, more, "more member");
    doc
}

/// Members with what is below them; `shown` counts them.
fn entries(forest: &Forest<'_>, places: &[usize], level: usize, shown: &mut usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for at in places {
        if *shown >= MEMBERS {
            break;
        }
        *shown += 1;
        let mut entry = entry(forest, *at);
        let TreeNode { member, children, .. } = &forest.tree_nodes[*at];
        let below = match level + 1 < LEVELS || children.is_empty() {
            true => self::entries(forest, children, level + 1, shown),
            false => {
                let below = amount(forest.descendant_count(*at) as u64, "member");
                vec![Entry::from(format!("… {below} below {}", member.id))]
            }
        };
        if !below.is_empty() {
            entry.body.tree(below);
        }
        entries.push(entry);
    }
    entries
}

/// A member: its name, what it saw, its answer and its output.
fn entry(forest: &Forest<'_>, at: usize) -> Entry {
    let TreeNode { member, node, children } = &forest.tree_nodes[at];
    let mut line = Text::strong(&member.id).and(format!("  {}", member.role));
    if let Some(output) = node.and_then(|node| node.output.as_ref()) {
        line = line.and("  ").and(severity_text(output.severity));
    }
    let (label, tone) = match node.map(|node| &*node.status) {
        Some("passed") => (String::new(), Tone::Plain),
        Some("passed_up") => ("passed up without it".to_owned(), Tone::Fair),
        Some("refused") => ("refused".to_owned(), Tone::Bad),
        None if member.status() == Status::Answered.as_str() => (String::new(), Tone::Plain),
        status => (status.unwrap_or(member.status()).replace('_', " "), Tone::Absent),
    };
    if !label.is_empty() {
        line = line.and("  ").and(Text::toned(tone, format!("[{label}]")));
    }
    let assessment = Assessment::of(member);
    let said = match &assessment {
        Some(Assessment { severity, concern, suggestion: "", .. }) => format!("{severity}: {concern}"),
        Some(Assessment { severity, concern, suggestion, .. }) => {
            format!("{severity}: {concern} Do: {suggestion}")
        }
        None => last_status(member),
    };
    let saw = (!children.is_empty()).then(|| ("saw", seen(forest, children)));
    let concern = assessment.as_ref().map(|assessment| assessment.concern);
    let up = node.and_then(|node| passed_up(forest.decision, node, concern)).map(|up| ("up", up));
    let mut body = Doc::new();
    body.facts(saw.into_iter().chain([("said", said)]).chain(up));
    Entry { line, body }
}

/// What the reports of a member passed up.
fn seen(forest: &Forest<'_>, children: &[usize]) -> String {
    let child_text = |at: &usize| {
        let TreeNode { member, node, .. } = &forest.tree_nodes[*at];
        let passed = match node.map(|node| (node, node.output.as_ref())) {
            Some((_, Some(output))) => output.severity.to_string(),
            Some((node, None)) => node.status.replace('_', " "),
            // Before the decision only its answer exists.
            None => match Assessment::of(member) {
                Some(assessment) => assessment.severity.to_string(),
                None => member.status().replace('_', " "),
            },
        };
        format!("{} {passed}", member.id)
    };
    names(&children.iter().map(child_text).collect::<Vec<_>>(), NAMED)
}

/// A node's output and how it came about; `None` for the answer of a leaf.
fn passed_up(decision: &Decision, node: &Node, said: Option<&str>) -> Option<String> {
    if node.status == "refused" {
        let reason = decision.refusal_of(&format!("node/{}", node.member));
        return Some(format!("nothing: what it would pass up {}", reason.as_deref().unwrap_or("is refused")));
    }
    let output = node.output.as_ref()?;
    let of = match node.from.is_empty() {
        true => String::new(),
        false => format!(", of {}", names(&node.from, NAMED)),
    };
    let by = match (&node.rule, &*node.status) {
        (Some(rule), _) => {
            let applied = decision.rules.iter().find(|applied| applied.id == *rule);
            format!("by {rule}{}{of}", applied.map_or_else(String::new, |rule| format!(" ({})", rule.kind)))
        }
        (None, "passed_up") => format!("without it, the gravest below{of}"),
        (None, _) if node.from.is_empty() => return None,
        (None, _) => format!("no rule{of}"),
    };
    let concern = match said == Some(output.concern.trim()) {
        true => String::new(),
        false => format!(": {}", output.concern),
    };
    Some(format!("{} {by}{concern}", output.severity))
}

/// A member in the tree.
pub(super) struct TreeNode<'r> {
    pub(super) member: &'r Member,
    /// Its result; `None` while the run is undecided.
    pub(super) node: Option<&'r Node>,
    /// Indices of the members that report to it, in roster order.
    pub(super) children: Vec<usize>,
}

/// All members, by their index in the roster.
pub(super) struct Forest<'r> {
    pub(super) decision: &'r Decision,
    pub(super) tree_nodes: Vec<TreeNode<'r>>,
    pub(super) roots: Vec<usize>,
}

impl<'r> Forest<'r> {
    pub(super) fn of(decision: &'r Decision) -> Forest<'r> {
        let places: BTreeMap<&str, usize> =
            decision.members.iter().enumerate().map(|(at, member)| (&*member.id, at)).collect();
        let nodes: BTreeMap<&str, &Node> =
            decision.nodes.iter().flatten().map(|node| (&*node.member, node)).collect();
        let tree_node = |member: &'r Member| TreeNode {
            member,
            node: nodes.get(&*member.id).copied(),
            children: Vec::new(),
        };
        let mut tree_nodes: Vec<TreeNode<'r>> = decision.members.iter().map(tree_node).collect();
        let mut roots = Vec::new();
        for (at, member) in decision.members.iter().enumerate() {
            match member.parent.as_deref().and_then(|parent| places.get(parent)) {
                Some(parent) => tree_nodes[*parent].children.push(at),
                None => roots.push(at),
            }
        }
        Forest { decision, tree_nodes, roots }
    }

    /// The number of direct and indirect reports of a member.
    pub(super) fn descendant_count(&self, at: usize) -> usize {
        let (mut open, mut count) = (vec![at], 0);
        while let Some(at) = open.pop() {
            count += self.tree_nodes[at].children.len();
            open.extend(&self.tree_nodes[at].children);
        }
        count
    }
}

/// The most nodes drawn; renderers fail on much larger diagrams.
const NODES: usize = 60;

/// The tree, from the root down as far as it can be drawn; arrows point upwards.
fn tree_diagram(forest: &Forest<'_>) -> String {
    if forest.tree_nodes.is_empty() {
        return String::new();
    }
    let mut open: VecDeque<(Option<usize>, usize)> = forest.roots.iter().map(|root| (None, *root)).collect();
    let mut flow = "flowchart BT\n".to_owned();
    let mut drawn = 0;
    while let Some((parent, at)) = open.pop_front() {
        if drawn == NODES {
            break;
        }
        drawn += 1;
        let tree_node = &forest.tree_nodes[at];
        let id = &tree_node.member.id;
        let output = tree_node.node.and_then(|node| node.output.as_ref());
        let status = tree_node.node.map_or(tree_node.member.status(), |node| &node.status);
        let (text, class) = match output {
            Some(output) => {
                let suffix = if status == "passed" { "" } else { " (passed up without it)" };
                (
                    format!("{id}: {}{suffix} {}", output.severity, output.concern),
                    diagrams::class(output.severity),
                )
            }
            None => (format!("{id}: {}", status.replace('_', " ")), "gone"),
        };
        let _ = writeln!(flow, "  n{at}[\"{}\"]:::{class}", diagrams::label(&text));
        if let Some(parent) = parent {
            let arrow = if output.is_some() { "-->" } else { "-.->" };
            let _ = writeln!(flow, "  n{at} {arrow} n{parent}");
        }
        open.extend(tree_node.children.iter().map(|child| (Some(at), *child)));
    }
    diagrams::add_rest(&mut flow, forest.tree_nodes.len() - drawn, "more node");
    flow + diagrams::CLASSES
}
