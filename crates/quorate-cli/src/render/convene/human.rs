//! The report of an assembly's run as text for a terminal: the outcome, its basis, then refusals and missing answers.

mod decision;
mod discussion;
mod guidance;
mod roster;
mod tree;
mod vote;

use quorate_diagnostics::render::TextOptions;
use quorate_manifest::assembly::Mode;

use super::super::Extent;
use super::super::human::members;
use super::super::layout::{columns_of, hanging, prose, table, wrap_prefixed};
use super::super::paint::{Paint, finish, one_line};
use super::super::wording::truncate;
use super::{phrases, rejections, rules};
use quorate::service::convene::report::Report;

/// The longest shown title, in characters.
const TITLE: usize = 200;
/// The most lines of a title.
const LINES: usize = 4;
/// The width of the labels of facts.
const LABEL: usize = 8;

/// The whole report, ending with one line break.
pub(super) fn human(report: &Report, extent: Extent, options: TextOptions) -> String {
    let width = options.width;
    let mut sections = vec![head(report, width)];
    sections.extend(match report.mode {
        Mode::Voting => decision::sections(report, width),
        Mode::Advisory => guidance::sections(report, width),
        Mode::Peer => discussion::sections(report, width),
        Mode::Hierarchy => tree::sections(report, width),
    });
    sections.extend([
        rules(report, width),
        refused(report, width),
        absent(report, width),
        notes(report, width),
        if extent == Extent::Full { members(&report.member_usage, width) } else { String::new() },
        foot(report, width),
    ]);
    let sections: Vec<&str> =
        sections.iter().map(|section| section.trim_end()).filter(|text| !text.is_empty()).collect();
    finish(&sections.join("\n\n"), options)
}

fn heading(text: &str) -> String {
    format!("{}\n", Paint::Strong.on(text))
}

/// A text that hangs from a label of `columns` characters.
fn labelled(label: &str, columns: usize, text: &str, indent: usize, width: usize) -> String {
    hanging(&Paint::Faint.on(&format!("{label:<columns$}")), text, indent, width)
}

fn head(report: &Report, width: usize) -> String {
    let word = phrases::paint(report).on(&phrases::verdict(report));
    let title = Paint::Strong.on(&truncate(&one_line(&report.title), TITLE));
    let gap = columns_of(&word) + 2;
    let mut out = wrap_prefixed(&format!("{word}  "), &" ".repeat(gap), &title, LINES, width);
    let because = phrases::because(report);
    if !because.is_empty() {
        out.push_str(&prose(&because, 0, width));
    }
    out.push('\n');
    for (label, text) in phrases::facts(report) {
        let text = if label == "risk" { phrases::risk_paint(report).on(&text) } else { text };
        out.push_str(&labelled(label, LABEL, &text, 2, width));
    }
    out
}

/// The effect of each rule, in order.
fn rules(report: &Report, width: usize) -> String {
    let summaries = rules::summaries(report);
    if summaries.is_empty() {
        return String::new();
    }
    let row = |(at, rule): (usize, &rules::RuleSummary)| {
        let did = rule.paint.map_or_else(|| rule.did.clone(), |paint| painted(&rule.did, paint));
        let id = if rule.fired { Paint::Strong.on(&rule.id) } else { rule.id.clone() };
        vec![at.to_string(), id, rule.kind.clone(), did]
    };
    let rows = (1..).zip(&summaries).map(row).collect();
    heading("Rules, in order") + &table(&["", "rule", "kind", "what it did"], rows, 2, width)
}

/// Paints the words up to the first colon or semicolon; the rest wraps.
fn painted(text: &str, paint: Paint) -> String {
    match text.find([':', ';', '(']) {
        Some(at) => format!("{}{}", paint.on(text[..at].trim_end()), &text[text[..at].trim_end().len()..]),
        None => text.to_owned(),
    }
}

fn refused(report: &Report, width: usize) -> String {
    let all = rejections::rejections(report);
    if all.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", Paint::Bad.on("Refused"));
    for rejection in &all {
        out.push_str(&hanging("-", &format!("{} {}", rejection.what, rejection.why), 2, width));
        if let Some(excerpt) = &rejection.excerpt {
            out.push_str(&hanging(&Paint::Faint.on("words"), &format!("“{excerpt}”"), 4, width));
        }
    }
    out
}

/// The members without an answer, with reasons. The rounds of a discussion list them again, without reasons.
fn absent(report: &Report, width: usize) -> String {
    let all = rejections::absences(report);
    if all.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", Paint::Absent.on("No answer"));
    for (member, reason) in all {
        out.push_str(&hanging("-", &format!("{member}: {reason}"), 2, width));
    }
    out
}

/// Notes, without the one on models, which the head has.
fn notes(report: &Report, width: usize) -> String {
    let notes = rejections::notes(report).into_iter().skip(usize::from(!report.model_asked));
    let items: String = notes.map(|note| hanging("-", &note, 2, width)).collect();
    if items.is_empty() { String::new() } else { heading("Notes") + &items }
}

/// Commands that show more, on one line: the longest list that fits.
fn foot(report: &Report, width: usize) -> String {
    let run = one_line(&format!("{}{}", report.run, report.ledger_flag));
    let lines = [
        format!("More: `quorate show {run} --format markdown`, `quorate replay {run}`"),
        format!("More: `quorate show {run} --format markdown`"),
        format!("`quorate replay {run}`"),
    ];
    let fits = lines.into_iter().find(|text| columns_of(text) <= width);
    fits.map_or_else(String::new, |text| Paint::Faint.on(&text))
}
