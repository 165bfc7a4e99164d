//! The brief as text for a terminal: each place with its line, the underlined quote, and the points about it.

use quorate_diagnostics::render::{Level, TextOptions, underline};

use super::super::brief::{Brief, MAX_PLACES, Place, Point};
use super::super::layout::{hanging, indented, prose};
use super::super::paint::Paint;
use super::super::wording::{amount, list, truncate};
use super::super::{deliberator_row, level};
use super::heading;
use quorate::service::report::Report;

/// The indent of the points about a place.
const INDENT: usize = 5;
/// The longest quote shown without underlining, in characters.
const QUOTE: usize = 200;

/// The brief; empty without findings.
pub(super) fn brief(report: &Report, options: TextOptions) -> String {
    let brief = Brief::of(report);
    if brief.is_empty() {
        return String::new();
    }
    let mut out = heading(&format!("Brief: {}", amount(brief.findings as u64, "finding")));
    for (at, place) in brief.places.iter().enumerate() {
        out.push_str(&item(report, place, at + 1, options));
    }
    if !brief.ungrounded.is_empty() {
        out.push('\n');
        out.push_str(&heading("Ungrounded: not in the text"));
    }
    for (at, place) in brief.ungrounded.iter().enumerate() {
        out.push_str(&item(report, place, brief.places.len() + at + 1, options));
    }
    if brief.more > 0 {
        let remainder = format!(
            "… and {} beyond the first {MAX_PLACES} places: `quorate show {} --format json` lists all.",
            amount(brief.more as u64, "more finding"),
            report.run
        );
        out.push('\n');
        out.push_str(&prose(&remainder, 2, options.width));
    }
    out
}

fn item(report: &Report, place: &Place<'_>, number: usize, options: TextOptions) -> String {
    let name_of = |member: &&str| {
        if deliberator_row::blocks(report, member) {
            format!("{member} (blocks)")
        } else {
            (*member).to_owned()
        }
    };
    let names: Vec<String> = place.by.iter().map(name_of).collect();
    let names = list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut out =
        format!("\n{}", hanging(&format!("{number:>3}."), &Paint::Strong.on(&names), 0, options.width));
    out.push_str(&source(report, place, options));
    let everybody = |point: &Point<'_>| point.by == place.by;
    for point in &place.points {
        let by = if everybody(point) { String::new() } else { format!("{}: ", list(&point.by)) };
        out.push_str(&hanging("-", &format!("{by}{}", point.issue), INDENT, options.width));
        if let Some(fix) = &point.fix {
            out.push_str(&hanging(&format!("  {}", Paint::Strong.on("fix:")), fix, INDENT, options.width));
        }
    }
    out
}

/// The line of a place with its quote underlined; only the quote if the text is unavailable.
fn source(report: &Report, place: &Place<'_>, options: TextOptions) -> String {
    if let (Some(text), Some(span)) = (&report.text, &place.span) {
        let options = TextOptions { width: options.width.saturating_sub(INDENT), ..options };
        let excerpt = underline(text, span.clone(), "", grave(report, place), &report.artifact, options);
        return indented(&excerpt, INDENT);
    }
    let at = match place.at {
        Some((line, column)) => format!("line {line}, column {column}:"),
        None => "quoted:".to_owned(),
    };
    hanging(&at, &format!("“{}”", truncate(&place.quote, QUOTE)), INDENT, options.width)
}

fn grave(report: &Report, place: &Place<'_>) -> Level {
    place.by.iter().map(|member| level::of_member(report, member)).min().unwrap_or(Level::Note)
}
