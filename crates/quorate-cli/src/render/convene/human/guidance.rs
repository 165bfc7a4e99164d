//! Guidance as text for a terminal: each fragment with its author, the rule that emitted it and why, and its validity.

use super::super::super::layout::{hanging, indented, prose, wrap_prefixed};
use super::super::super::paint::{Paint, one_line};
use super::super::super::wording::{amount, truncate};
use super::super::{bars, phrases};
use super::{heading, labelled, roster};
use quorate::service::convene::report::{Fragment, Report};

/// The longest shown fragment or concern, in characters.
const TEXT: usize = 4000;
const CONCERN: usize = 400;
const SHOWN: usize = 40;
/// The indent of the facts about a fragment.
const INDENT: usize = 6;
/// The width of the labels below a fragment.
const LABEL: usize = 5;

pub(super) fn sections(report: &Report, width: usize) -> Vec<String> {
    vec![fragments(report, width), roster::assessments(report, width)]
}

fn fragments(report: &Report, width: usize) -> String {
    if report.fragments.is_empty() {
        return String::new();
    }
    let number = amount(report.fragments.len() as u64, "fragment");
    let mut out = heading(&format!("Guidance: {number}"));
    for (at, fragment) in report.fragments.iter().take(SHOWN).enumerate() {
        out.push_str(&one(report, fragment, at + 1, width));
    }
    let more = report.fragments.len().saturating_sub(SHOWN);
    if more > 0 {
        let text =
            format!("… and {more} more: `quorate show {} --format json` lists all.", one_line(&report.run));
        out.push_str(&format!("\n{}", prose(&text, 2, width)));
    }
    out
}

fn one(report: &Report, fragment: &Fragment, number: usize, width: usize) -> String {
    let member = phrases::member(report, &fragment.member);
    let role = member.map_or_else(String::new, |member| format!(", {}", one_line(&member.role)));
    let head = format!(
        "{}{role}  severity {} {}  priority {}",
        Paint::Strong.on(&one_line(&fragment.member)),
        bars::paint_by_severity(fragment.severity, &fragment.severity.to_string()),
        bars::scale(fragment.severity),
        fragment.priority
    );
    let mut out = format!("\n{}", hanging(&format!("{number:>3}."), &head, 1, width));
    let text = prose(&truncate(&fragment.text, TEXT), 0, width.saturating_sub(INDENT + 2));
    out.push_str(&indented(&framed(&text), INDENT - 1));
    let kind = report.rules.iter().find(|rule| rule.id == fragment.rule).map(|rule| one_line(&rule.kind));
    let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    let concern =
        member.and_then(phrases::assessment).map(|assessment| assessment.concern).unwrap_or_default();
    let concern = match concern.is_empty() {
        true => String::new(),
        false => format!(" on the concern “{}”", truncate(&concern, CONCERN)),
    };
    let reason = format!("rule {}{kind}{concern}", one_line(&fragment.rule));
    out.push_str(&labelled("why", LABEL, &reason, INDENT - 1, width));
    out.push_str(&labelled("holds", LABEL, &phrases::validity(report, fragment), INDENT - 1, width));
    out
}

/// A member's text after a vertical line, which sets it apart from Quorate's own.
fn framed(text: &str) -> String {
    text.lines().map(|line| format!("│ {line}").trim_end().to_owned() + "\n").collect()
}

/// The evidence of a member's assessment.
pub(super) fn evidence(all: &[String], width: usize) -> String {
    const QUOTES: usize = 12;
    const LINES: usize = 3;
    let quotes = all.iter().take(QUOTES);
    let mut out: String = quotes
        .map(|item| wrap_prefixed("    - ", "      ", &format!("“{}”", one_line(item)), LINES, width))
        .collect();
    if all.len() > QUOTES {
        out.push_str(&prose(&format!("… and {} more", all.len() - QUOTES), 4, width));
    }
    out
}
