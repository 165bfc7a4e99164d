//! An assembly's run for people at a terminal: the outcome first, then what it rests on, then what was refused or is
//! missing.

mod decision;
mod discussion;
mod guidance;
mod roster;
mod tree;

use quorate_diagnostics::render::TextOptions;
use quorate_manifest::assembly::Mode;

use super::super::layout::{columns_of, hanging, prose, table, wrap_prefixed};
use super::super::paint::{Paint, finish, one_line};
use super::super::wording::truncate;
use super::{phrases, rejections, rules};
use quorate::service::convene::report::Report;

/// How much of a title is shown.
const TITLE: usize = 200;
/// How many lines of it.
const LINES: usize = 4;
/// How wide the labels of facts are.
const LABEL: usize = 8;

/// The whole report. It ends with one line break.
pub(super) fn human(report: &Report, look: TextOptions) -> String {
    let width = look.width;
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
        foot(report, width),
    ]);
    let sections: Vec<&str> =
        sections.iter().map(|section| section.trim_end()).filter(|text| !text.is_empty()).collect();
    finish(&sections.join("\n\n"), look)
}

/// A section's heading.
fn heading(text: &str) -> String {
    format!("{}\n", Paint::Strong.on(text))
}

/// A text that hangs from a label in a column of so many characters.
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

/// What each rule did, in order.
fn rules(report: &Report, width: usize) -> String {
    let told = rules::summaries(report);
    if told.is_empty() {
        return String::new();
    }
    let row = |(at, rule): (usize, &rules::RuleSummary)| {
        let did = rule.paint.map_or_else(|| rule.did.clone(), |paint| painted(&rule.did, paint));
        let id = if rule.fired { Paint::Strong.on(&rule.id) } else { rule.id.clone() };
        vec![at.to_string(), id, rule.kind.clone(), did]
    };
    let rows = (1..).zip(&told).map(row).collect();
    heading("Rules, in order") + &table(&["", "rule", "kind", "what it did"], rows, 2, width)
}

/// The first words painted, up to a colon or semicolon: the rest wraps.
fn painted(text: &str, paint: Paint) -> String {
    match text.find([':', ';', '(']) {
        Some(at) => format!("{}{}", paint.on(text[..at].trim_end()), &text[text[..at].trim_end().len()..]),
        None => text.to_owned(),
    }
}

/// Everything that was refused.
fn refused(report: &Report, width: usize) -> String {
    let all = rejections::rejections(report);
    if all.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", Paint::Bad.on("Refused"));
    for one in &all {
        out.push_str(&hanging("-", &format!("{} {}", one.what, one.why), 2, width));
        if let Some(excerpt) = &one.excerpt {
            out.push_str(&hanging(&Paint::Faint.on("words"), &format!("“{excerpt}”"), 4, width));
        }
    }
    out
}

/// Who gave no answer, and why. Those of a talk stand in their rounds too, without the reason.
fn absent(report: &Report, width: usize) -> String {
    let all = rejections::absences(report);
    if all.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", Paint::Absent.on("No answer"));
    for (who, why) in all {
        out.push_str(&hanging("-", &format!("{who}: {why}"), 2, width));
    }
    out
}

/// Whether a model was asked stands in the head.
fn notes(report: &Report, width: usize) -> String {
    let notes = rejections::notes(report).into_iter().skip(usize::from(!report.model_asked));
    let items: String = notes.map(|note| hanging("-", &note, 2, width)).collect();
    if items.is_empty() { String::new() } else { heading("Notes") + &items }
}

/// Where to see more, on one line: the longest that fits.
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
