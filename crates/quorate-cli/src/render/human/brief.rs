//! The brief at a terminal: each place with its line, the quoted words underlined, and what was said about them.

use quorate_diagnostics::render::{Level, TextOptions, underline};

use super::super::brief::{Brief, MAX_PLACES, Place, Point};
use super::super::layout::{hanging, indented, prose};
use super::super::paint::Paint;
use super::super::wording::{amount, list, truncate};
use super::super::{deliberator_row, level};
use super::heading;
use quorate::service::report::Report;

/// How far what is said about a place stands from the edge.
const INDENT: usize = 5;
/// How much of a quote is shown where it cannot be underlined.
const QUOTE: usize = 200;

/// The brief; empty where nothing was found.
pub(super) fn brief(report: &Report, look: TextOptions) -> String {
    let brief = Brief::of(report);
    if brief.is_empty() {
        return String::new();
    }
    let mut out = heading(&format!("Brief: {}", amount(brief.findings as u64, "finding")));
    for (at, place) in brief.places.iter().enumerate() {
        out.push_str(&item(report, place, at + 1, look));
    }
    if !brief.ungrounded.is_empty() {
        out.push('\n');
        out.push_str(&heading("Ungrounded: not in the text"));
    }
    for (at, place) in brief.ungrounded.iter().enumerate() {
        out.push_str(&item(report, place, brief.places.len() + at + 1, look));
    }
    if brief.more > 0 {
        let more = format!(
            "… and {} beyond the first {MAX_PLACES} places: `quorate show {} --format json` lists all.",
            amount(brief.more as u64, "more finding"),
            report.run
        );
        out.push('\n');
        out.push_str(&prose(&more, 2, look.width));
    }
    out
}

fn item(report: &Report, place: &Place<'_>, number: usize, look: TextOptions) -> String {
    let named = |by: &&str| {
        if deliberator_row::blocks(report, by) { format!("{by} (blocks)") } else { (*by).to_owned() }
    };
    let names: Vec<String> = place.by.iter().map(named).collect();
    let names = list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut out =
        format!("\n{}", hanging(&format!("{number:>3}."), &Paint::Strong.on(&names), 0, look.width));
    out.push_str(&source(report, place, look));
    let everybody = |point: &Point<'_>| point.by == place.by;
    for point in &place.points {
        let by = if everybody(point) { String::new() } else { format!("{}: ", list(&point.by)) };
        out.push_str(&hanging("-", &format!("{by}{}", point.issue), INDENT, look.width));
        if let Some(fix) = &point.fix {
            out.push_str(&hanging(&format!("  {}", Paint::Strong.on("fix:")), fix, INDENT, look.width));
        }
    }
    out
}

/// The words in their line, underlined; where the text is not there, the words alone.
fn source(report: &Report, place: &Place<'_>, look: TextOptions) -> String {
    if let (Some(text), Some(span)) = (&report.text, &place.span) {
        let look = TextOptions { width: look.width.saturating_sub(INDENT), ..look };
        let shown = underline(text, span.clone(), "", grave(report, place), &report.artifact, look);
        return indented(&shown, INDENT);
    }
    let at = match place.at {
        Some((line, column)) => format!("line {line}, column {column}:"),
        None => "quoted:".to_owned(),
    };
    hanging(&at, &format!("“{}”", truncate(&place.quote, QUOTE)), INDENT, look.width)
}

fn grave(report: &Report, place: &Place<'_>) -> Level {
    place.by.iter().map(|by| level::of_member(report, by)).min().unwrap_or(Level::Note)
}
