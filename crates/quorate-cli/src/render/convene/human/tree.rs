//! A hierarchy as text for a terminal: the root's output, and the tree with each node's input, answer and output.

use std::collections::BTreeMap;

use super::super::super::layout::{columns_of, prose, wrap_prefixed};
use super::super::super::wording::amount;
use super::super::forest::{Drawing, Forest, Kind, Row};
use super::super::phrases;
use super::super::phrases::reason_for;
use super::heading;
use crate::render::layout::{Paint, one_line};
use quorate::service::convene::report::{Decision, Node, Rollup};

/// The most lines of a fact about a node.
const LINES: usize = 3;
const NAMED: usize = 8;
/// The columns of a level.
const LEVEL: usize = 3;
/// The columns that a text needs.
const WORDS: usize = 26;
/// The most levels that are drawn in one tree.
const DEEPEST: usize = 16;

pub(super) fn sections(report: &Decision, width: usize) -> Vec<String> {
    let forest = Forest::of(report);
    let deepest = (width.saturating_sub(2 + WORDS) / LEVEL).clamp(2, DEEPEST);
    let drawing = forest.drawing(deepest);
    let rollup = report.rollup.as_ref().map_or_else(String::new, |rollup| assessment(rollup, width));
    let mut all = vec![rollup];
    all.extend(trees(report, &forest, &drawing, width));
    all.push(summary(report, &drawing, width));
    all
}

/// The root's output.
fn assessment(rollup: &Rollup, width: usize) -> String {
    let mut out = heading("Passed up by the root");
    let lines = usize::from(u8::MAX);
    out.push_str(&format!(
        "  severity {} {}\n",
        super::paint_by_severity(rollup.severity, &rollup.severity.to_string()),
        super::severity_scale(rollup.severity)
    ));
    for (label, text) in [("concern", &rollup.concern), ("suggestion", &rollup.suggestion)] {
        if !text.trim().is_empty() {
            out.push_str(&format!("  {}\n", Paint::Faint.on(label)));
            out.push_str(&wrap_prefixed("    ", "    ", &one_line(text), lines, width));
        }
    }
    if !rollup.evidence.is_empty() {
        out.push_str(&format!("  {}\n", Paint::Faint.on("evidence")));
        out.push_str(&super::evidence(&rollup.evidence, width));
    }
    out
}

fn trees(report: &Decision, forest: &Forest<'_>, drawing: &Drawing, width: usize) -> Vec<String> {
    let mut all = Vec::new();
    for tree in &drawing.trees {
        let title = match tree.from {
            None => "Tree".to_owned(),
            Some(at) => format!("Tree, below {}", one_line(&forest.tree_nodes[at].member.id)),
        };
        let mut out = heading(&title);
        for (at, row) in tree.rows.iter().enumerate() {
            let is_repeated = tree.from.is_some() && at == 0;
            out.push_str(&drawn_row(report, forest, row, is_repeated, width));
        }
        all.push(out);
    }
    all
}

/// A row: the lines of the levels above, its own connector, and the facts about it.
fn drawn_row(
    report: &Decision,
    forest: &Forest<'_>,
    row: &Row,
    is_repeated: bool,
    width: usize,
) -> String {
    let (ancestors, connector) = match row.continues.split_last() {
        Some((connector, ancestors)) => (ancestors, Some(*connector)),
        None => (&[][..], None),
    };
    let rail = |goes: &bool| if *goes { "│  " } else { "   " };
    let ancestors = ancestors.iter().fold("  ".to_owned(), |lines, goes| lines + rail(goes));
    let first = match connector {
        None => ancestors.clone(),
        Some(true) => format!("{ancestors}├─ "),
        Some(false) => format!("{ancestors}└─ "),
    };
    let rest = ancestors + connector.as_ref().map_or("", rail) + if row.has_children { "│ " } else { "  " };
    let mut out = String::new();
    let facts = match row.kind {
        Kind::Node(at) if is_repeated => vec![("", format!("{}  (from above)", name(forest, at)))],
        Kind::Node(at) => node(report, forest, at),
        Kind::Chain { first, last, length } => {
            let id = |at: usize| one_line(&forest.tree_nodes[at].member.id);
            vec![(
                "",
                format!(
                    "⋮ {} one below the other pass up the same: {} … {}",
                    amount(length as u64, "member"),
                    id(first),
                    id(last)
                ),
            )]
        }
        Kind::Below { at, members } => {
            let id = one_line(&forest.tree_nodes[at].member.id);
            vec![("", format!("… {} below {id}: drawn further down", amount(members as u64, "member")))]
        }
    };
    for (number, (label, text)) in facts.iter().enumerate() {
        let lead = if number == 0 { &first } else { &rest };
        match label.is_empty() {
            true => out.push_str(&wrap_prefixed(lead, &rest, text, LINES, width)),
            false => {
                let gap = " ".repeat(columns_of(label) + 1);
                let lead = format!("{lead}{} ", Paint::Faint.on(label));
                out.push_str(&wrap_prefixed(&lead, &format!("{rest}{gap}"), text, LINES, width));
            }
        }
    }
    out
}

fn name(forest: &Forest<'_>, at: usize) -> String {
    Paint::Strong.on(&one_line(&forest.tree_nodes[at].member.id))
}

/// The facts about a node: name, input, answer and output.
fn node(report: &Decision, forest: &Forest<'_>, at: usize) -> Vec<(&'static str, String)> {
    let tree_node = &forest.tree_nodes[at];
    let severity = tree_node.node.and_then(|node| Some(node.output.as_ref()?.severity));
    let (label, paint) = status_mark(tree_node.node, &tree_node.member.status);
    let mut head = format!("{}  {}", name(forest, at), one_line(&tree_node.member.role));
    if let Some(severity) = severity {
        head.push_str(&format!(
            "  {} {}",
            super::paint_by_severity(severity, &severity.to_string()),
            super::severity_scale(severity)
        ));
    }
    if let Some(paint) = paint {
        head.push_str(&format!("  {}", paint.on(&format!("[{label}]"))));
    }
    let mut facts = vec![("", head)];
    if !tree_node.children.is_empty() {
        facts.push(("saw ", children_summary(forest, &tree_node.children)));
    }
    let assessment = phrases::assessment(tree_node.member);
    facts.push((
        "said",
        match &assessment {
            Some(assessment) => {
                let suggestion = if assessment.suggestion.is_empty() {
                    String::new()
                } else {
                    format!(" Do: {}", assessment.suggestion)
                };
                format!("{}: {}{suggestion}", assessment.severity, assessment.concern)
            }
            None => phrases::last_status(tree_node.member),
        },
    ));
    if let Some(node) = tree_node.node {
        facts.extend(
            passed_up(report, node, assessment.map(|assessment| assessment.concern))
                .map(|text| ("up  ", text)),
        );
    }
    facts
}

/// The label of a node that did not pass on an answer of its own.
fn status_mark(node: Option<&Node>, member_status: &str) -> (String, Option<Paint>) {
    match node.map(|node| &*node.status) {
        Some("passed") => (String::new(), None),
        Some("passed_up") => ("passed up without it".to_owned(), Some(Paint::Fair)),
        Some("refused") => ("refused".to_owned(), Some(Paint::Bad)),
        Some(status) => (one_line(&status.replace('_', " ")), Some(Paint::Absent)),
        None if member_status == "answered" => (String::new(), None),
        None => (one_line(&member_status.replace('_', " ")), Some(Paint::Absent)),
    }
}

fn children_summary(forest: &Forest<'_>, children: &[usize]) -> String {
    let child_text = |at: &usize| {
        let tree_node = &forest.tree_nodes[*at];
        let passed = match tree_node.node.map(|node| (node, node.output.as_ref())) {
            Some((_, Some(output))) => output.severity.to_string(),
            Some((node, None)) => node.status.replace('_', " "),
            // Before the decision only its answer exists.
            None => match phrases::assessment(tree_node.member) {
                Some(assessment) => assessment.severity.to_string(),
                None => tree_node.member.status.replace('_', " "),
            },
        };
        format!("{} {passed}", tree_node.member.id)
    };
    let all: Vec<String> = children.iter().map(child_text).collect();
    phrases::names(&all.iter().map(String::as_str).collect::<Vec<_>>(), NAMED)
}

/// A node's output and how it came about; `None` for the answer of a leaf.
fn passed_up(report: &Decision, node: &Node, concern_said: Option<String>) -> Option<String> {
    if node.status == "refused" {
        let reason = reason_for(report, &format!("node/{}", node.member)).unwrap_or_default();
        return Some(format!(
            "nothing: what it would pass up {}",
            if reason.is_empty() { "is refused" } else { &reason }
        ));
    }
    let output = node.output.as_ref()?;
    let from: Vec<&str> = node.from.iter().map(String::as_str).collect();
    let of = if from.is_empty() { String::new() } else { format!(", of {}", phrases::names(&from, NAMED)) };
    let by = match (&node.rule, &*node.status) {
        (Some(rule), _) => {
            let kind = report
                .rules
                .iter()
                .find(|applied| applied.id == *rule)
                .map(|applied| format!(" ({})", one_line(&applied.kind)));
            format!("by {}{}{of}", one_line(rule), kind.unwrap_or_default())
        }
        (None, "passed_up") => format!("without it, the gravest below{of}"),
        (None, _) if from.is_empty() => return None,
        (None, _) => format!("no rule{of}"),
    };
    let concern = match concern_said.as_deref() == Some(&*one_line(&output.concern)) {
        true => String::new(),
        false => format!(": {}", one_line(&output.concern)),
    };
    Some(format!("{} {by}{concern}", output.severity))
}

/// The number of nodes of each status, if the drawing does not show all nodes.
fn summary(report: &Decision, drawing: &Drawing, width: usize) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for node in &report.nodes {
        *counts.entry(&node.status).or_default() += 1;
    }
    let mut out = String::new();
    if counts.len() > 1 || drawing.more > 0 {
        let counts: Vec<String> = counts
            .iter()
            .map(|(status, count)| format!("{count} {}", one_line(&status.replace('_', " "))))
            .collect();
        let nodes = amount(report.nodes.len() as u64, "node");
        let counts =
            if counts.is_empty() { String::new() } else { format!("{nodes}: {}.", counts.join(", ")) };
        out.push_str(&prose(&counts, 2, width));
    }
    out + &super::more(report, drawing.more, width)
}
