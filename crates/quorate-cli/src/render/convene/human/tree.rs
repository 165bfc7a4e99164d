//! A hierarchy at a terminal: what the root passes up, and the tree with what each node saw, said and passed up.

use std::collections::BTreeMap;

use super::super::super::layout::{columns_of, prose, wrap_prefixed};
use super::super::super::paint::{Paint, one_line};
use super::super::super::wording::amount;
use super::super::forest::{Drawing, Forest, Kind, Row};
use super::super::rejections::reason_for;
use super::super::{bars, phrases};
use super::{guidance, heading, roster};
use quorate::service::convene::report::{Node, Report, Rollup};

/// How many lines of what a node says, or of anything else about it, are shown.
const LINES: usize = 3;
/// How many children are named.
const NAMED: usize = 8;
/// How many columns a level takes.
const LEVEL: usize = 3;
/// What is said needs so many columns.
const WORDS: usize = 26;
/// The most levels that are drawn in one tree.
const DEEPEST: usize = 16;

/// The sections of a hierarchy.
pub(super) fn sections(report: &Report, width: usize) -> Vec<String> {
    let forest = Forest::of(report);
    let deepest = (width.saturating_sub(2 + WORDS) / LEVEL).clamp(2, DEEPEST);
    let drawing = forest.drawing(deepest);
    let rollup = report.rollup.as_ref().map_or_else(String::new, |rollup| assessment(rollup, width));
    let mut all = vec![rollup];
    all.extend(trees(report, &forest, &drawing, width));
    all.push(summary(report, &drawing, width));
    all
}

/// What the root passes up.
fn assessment(rollup: &Rollup, width: usize) -> String {
    let mut out = heading("Passed up by the root");
    let lines = usize::from(u8::MAX);
    out.push_str(&format!(
        "  severity {} {}\n",
        bars::paint_by_severity(rollup.severity, &rollup.severity.to_string()),
        bars::scale(rollup.severity)
    ));
    for (label, text) in [("concern", &rollup.concern), ("suggestion", &rollup.suggestion)] {
        if !text.trim().is_empty() {
            out.push_str(&format!("  {}\n", Paint::Faint.on(label)));
            out.push_str(&wrap_prefixed("    ", "    ", &one_line(text), lines, width));
        }
    }
    if !rollup.evidence.is_empty() {
        out.push_str(&format!("  {}\n", Paint::Faint.on("evidence")));
        out.push_str(&guidance::evidence(&rollup.evidence, width));
    }
    out
}

fn trees(report: &Report, forest: &Forest<'_>, drawing: &Drawing, width: usize) -> Vec<String> {
    let mut all = Vec::new();
    for tree in &drawing.trees {
        let title = match tree.from {
            None => "Tree".to_owned(),
            Some(at) => format!("Tree, below {}", one_line(&forest.twigs[at].member.id)),
        };
        let mut out = heading(&title);
        for (at, row) in tree.rows.iter().enumerate() {
            let again = tree.from.is_some() && at == 0;
            out.push_str(&drawn_row(report, forest, row, again, width));
        }
        all.push(out);
    }
    all
}

/// A row: the lines of those above it, its own arm, and everything about it beside them.
fn drawn_row(report: &Report, forest: &Forest<'_>, row: &Row, again: bool, width: usize) -> String {
    let (above, own) = match row.continues.split_last() {
        Some((own, above)) => (above, Some(*own)),
        None => (&[][..], None),
    };
    let rail = |goes: &bool| if *goes { "│  " } else { "   " };
    let above = above.iter().fold("  ".to_owned(), |lines, goes| lines + rail(goes));
    let first = match own {
        None => above.clone(),
        Some(true) => format!("{above}├─ "),
        Some(false) => format!("{above}└─ "),
    };
    let rest = above + own.as_ref().map_or("", rail) + if row.has_children { "│ " } else { "  " };
    let mut out = String::new();
    let told = match row.kind {
        Kind::Node(at) if again => vec![("", format!("{}  (from above)", name(forest, at)))],
        Kind::Node(at) => node(report, forest, at),
        Kind::Chain { first, last, length } => {
            let id = |at: usize| one_line(&forest.twigs[at].member.id);
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
            let id = one_line(&forest.twigs[at].member.id);
            vec![("", format!("… {} below {id}: drawn further down", amount(members as u64, "member")))]
        }
    };
    for (number, (label, text)) in told.iter().enumerate() {
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
    Paint::Strong.on(&one_line(&forest.twigs[at].member.id))
}

/// A node: who, what it saw, said and passed up.
fn node(report: &Report, forest: &Forest<'_>, at: usize) -> Vec<(&'static str, String)> {
    let twig = &forest.twigs[at];
    let severity = twig.node.and_then(|node| Some(node.output.as_ref()?.severity));
    let (mark, paint) = status_mark(twig.node, &twig.member.status);
    let mut head = format!("{}  {}", name(forest, at), one_line(&twig.member.role));
    if let Some(severity) = severity {
        head.push_str(&format!(
            "  {} {}",
            bars::paint_by_severity(severity, &severity.to_string()),
            bars::scale(severity)
        ));
    }
    if let Some(paint) = paint {
        head.push_str(&format!("  {}", paint.on(&format!("[{mark}]"))));
    }
    let mut told = vec![("", head)];
    if !twig.children.is_empty() {
        told.push(("saw ", children_summary(forest, &twig.children)));
    }
    let said = phrases::assessment(twig.member);
    told.push((
        "said",
        match &said {
            Some(said) => {
                let suggestion = if said.suggestion.is_empty() {
                    String::new()
                } else {
                    format!(" Do: {}", said.suggestion)
                };
                format!("{}: {}{suggestion}", said.severity, said.concern)
            }
            None => phrases::last_status(twig.member),
        },
    ));
    if let Some(node) = twig.node {
        told.extend(passed_up(report, node, said.map(|said| said.concern)).map(|text| ("up  ", text)));
    }
    told
}

/// What a node is marked with, where it did not pass on an answer of its own.
fn status_mark(node: Option<&Node>, asked: &str) -> (String, Option<Paint>) {
    match node.map(|node| &*node.status) {
        Some("passed") => (String::new(), None),
        Some("passed_up") => ("passed up without it".to_owned(), Some(Paint::Fair)),
        Some("refused") => ("refused".to_owned(), Some(Paint::Bad)),
        Some(other) => (one_line(&other.replace('_', " ")), Some(Paint::Absent)),
        None if asked == "answered" => (String::new(), None),
        None => (one_line(&asked.replace('_', " ")), Some(Paint::Absent)),
    }
}

fn children_summary(forest: &Forest<'_>, children: &[usize]) -> String {
    let one = |at: &usize| {
        let twig = &forest.twigs[*at];
        let passed = match twig.node.map(|node| (node, node.output.as_ref())) {
            Some((_, Some(output))) => output.severity.to_string(),
            Some((node, None)) => node.status.replace('_', " "),
            // While nothing is decided, what it has answered is all there is.
            None => match phrases::assessment(twig.member) {
                Some(said) => said.severity.to_string(),
                None => twig.member.status.replace('_', " "),
            },
        };
        format!("{} {passed}", twig.member.id)
    };
    let all: Vec<String> = children.iter().map(one).collect();
    phrases::names(&all.iter().map(String::as_str).collect::<Vec<_>>(), NAMED)
}

/// What a node passes up, and how it came about; nothing where it is the answer of a node with nobody below it.
fn passed_up(report: &Report, node: &Node, said: Option<String>) -> Option<String> {
    if node.status == "refused" {
        let why = reason_for(report, &format!("node/{}", node.member)).unwrap_or_default();
        return Some(format!(
            "nothing: what it would pass up {}",
            if why.is_empty() { "is refused" } else { &why }
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
                .find(|one| one.id == *rule)
                .map(|one| format!(" ({})", one_line(&one.kind)));
            format!("by {}{}{of}", one_line(rule), kind.unwrap_or_default())
        }
        (None, "passed_up") => format!("without it, the gravest below{of}"),
        (None, _) if from.is_empty() => return None,
        (None, _) => format!("no rule{of}"),
    };
    let concern = match said.as_deref() == Some(&*one_line(&output.concern)) {
        true => String::new(),
        false => format!(": {}", one_line(&output.concern)),
    };
    Some(format!("{} {by}{concern}", output.severity))
}

/// How many nodes there are of each status, where a drawing does not show that by itself.
fn summary(report: &Report, drawing: &Drawing, width: usize) -> String {
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
    out + &roster::more(report, drawing.more, width)
}
