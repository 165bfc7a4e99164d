//! A SHIP on one screen: nothing has to be done about it, so that what could be done is said once, and the rest is named.

use super::super::brief::{Brief, Place};
use super::super::deliberator_row;
use super::super::layout::{hanging, prose};
use super::super::wording::{amount, list, truncate};
use super::{head, heading, notes, overridden};
use quorate::service::report::Report;

/// How many places are shown.
const PLACES: usize = 5;
/// How much of the words of a place is shown.
const QUOTE: usize = 40;
/// How many lines what is said of a place takes.
const LINES: usize = 2;

/// Its sections.
pub(super) fn sections(report: &Report, width: usize) -> Vec<String> {
    let brief = Brief::of(report);
    vec![
        head(report, width),
        absent(report, width),
        if brief.is_empty() { advised(report, width) } else { fixes(report, &brief, width) },
        overridden(report, width),
        notes(report, width),
        rest(report, &brief, width),
    ]
}

fn absent(report: &Report, width: usize) -> String {
    deliberator_row::absences(report)
        .iter()
        .map(|(who, what)| hanging("-", &truncate(&format!("{who}: {what}"), LINES * width), 2, width))
        .collect()
}

/// What the adjudicator would change, where nobody named a place.
fn advised(report: &Report, width: usize) -> String {
    match &report.revision_brief {
        Some(brief) => heading("Revision brief") + &prose(&truncate(brief, 2 * LINES * width), 2, width),
        None => String::new(),
    }
}

fn fixes(report: &Report, brief: &Brief<'_>, width: usize) -> String {
    let mut places: Vec<&Place<'_>> = brief.places.iter().chain(&brief.ungrounded).collect();
    // What somebody blocks for comes first.
    places.sort_by_key(|place| !place.by.iter().any(|by| deliberator_row::blocks(report, by)));
    let mut out = heading(&format!("Could be better: {}", amount(brief.findings as u64, "finding")));
    for (at, place) in places.iter().take(PLACES).enumerate() {
        out.push_str(&hanging(&format!("{}.", at + 1), &fix(report, place, width), 2, width));
    }
    out
}

/// A place on two lines: where, what to do (what is wrong, where nobody says what to do), and who says so.
fn fix(report: &Report, place: &Place<'_>, width: usize) -> String {
    let at = place.at.map_or_else(|| "not in the text".to_owned(), |(line, _)| format!("line {line}"));
    let mut said: Vec<&str> = Vec::new();
    for point in &place.points {
        let what = point.fix.as_deref().unwrap_or(&point.issue);
        if !said.contains(&what) {
            said.push(what);
        }
    }
    let named = |by: &&str| {
        if deliberator_row::blocks(report, by) { format!("{by} blocks") } else { (*by).to_owned() }
    };
    let by: Vec<String> = place.by.iter().map(named).collect();
    let by = list(&by.iter().map(String::as_str).collect::<Vec<_>>());
    let text = format!("{at}, “{}” ({by}): {}", truncate(&place.quote, QUOTE), said.join(" "));
    truncate(&text, LINES * width.saturating_sub(8))
}

/// Where everything else is.
fn rest(report: &Report, brief: &Brief<'_>, width: usize) -> String {
    let places = brief.places.len() + brief.ungrounded.len();
    let more = match places.saturating_sub(PLACES) + brief.more {
        0 => String::new(),
        more => format!("{} not shown. ", amount(more as u64, "more finding")),
    };
    let at = report.ledger.as_ref().map_or("", |kept| &kept.flag);
    let text =
        format!("{more}`quorate show {}{at}`, or --full, shows every answer and the reasoning.", report.run);
    prose(&text, 0, width)
}
