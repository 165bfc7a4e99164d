//! A SHIP on one screen: it needs no action, so each possible fix is shown once, and a command for the rest. A text that no
//! rule judges takes three lines.

use super::super::brief::{Brief, Place};
use super::super::deliberator_row;
use super::super::layout::{hanging, prose};
use super::super::wording::{amount, list, truncate};
use super::{head, heading, notes, overridden, verdict};
use quorate::service::report::Report;

const PLACES: usize = 5;
/// The longest shown quote, in characters.
const QUOTE: usize = 40;
/// The most lines of a place.
const LINES: usize = 2;

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

pub(super) fn unjudged(report: &Report, width: usize) -> String {
    let at = report.ledger.as_ref().map_or("", |reference| &reference.flag);
    verdict(report, width)
        + &prose(&format!("Run {}: `quorate show {0}{at}` shows all of it.", report.run), 0, width)
}

fn absent(report: &Report, width: usize) -> String {
    deliberator_row::absences(report)
        .iter()
        .map(|(member, text)| hanging("-", &truncate(&format!("{member}: {text}"), LINES * width), 2, width))
        .collect()
}

/// The adjudicator's revision brief, if no finding names a place.
fn advised(report: &Report, width: usize) -> String {
    match &report.revision_brief {
        Some(brief) => heading("Revision brief") + &prose(&truncate(brief, 2 * LINES * width), 2, width),
        None => String::new(),
    }
}

fn fixes(report: &Report, brief: &Brief<'_>, width: usize) -> String {
    let mut places: Vec<&Place<'_>> = brief.places.iter().chain(&brief.ungrounded).collect();
    // Places of blocking findings come first.
    places.sort_by_key(|place| !place.by.iter().any(|member| deliberator_row::blocks(report, member)));
    let mut out = heading(&format!("Could be better: {}", amount(brief.findings as u64, "finding")));
    for (at, place) in places.iter().take(PLACES).enumerate() {
        out.push_str(&hanging(&format!("{}.", at + 1), &fix(report, place, width), 2, width));
    }
    out
}

/// A place on two lines: its line, the fix (or the issue, without a fix), and the members.
fn fix(report: &Report, place: &Place<'_>, width: usize) -> String {
    let at = place.at.map_or_else(|| "not in the text".to_owned(), |(line, _)| format!("line {line}"));
    let mut texts: Vec<&str> = Vec::new();
    for point in &place.points {
        let text = point.fix.as_deref().unwrap_or(&point.issue);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let name_of = |member: &&str| {
        if deliberator_row::blocks(report, member) {
            format!("{member} blocks")
        } else {
            (*member).to_owned()
        }
    };
    let by: Vec<String> = place.by.iter().map(name_of).collect();
    let by = list(&by.iter().map(String::as_str).collect::<Vec<_>>());
    let text = format!("{at}, “{}” ({by}): {}", truncate(&place.quote, QUOTE), texts.join(" "));
    truncate(&text, LINES * width.saturating_sub(8))
}

/// The command that shows the rest.
fn rest(report: &Report, brief: &Brief<'_>, width: usize) -> String {
    let places = brief.places.len() + brief.ungrounded.len();
    let remainder = match places.saturating_sub(PLACES) + brief.more {
        0 => String::new(),
        remainder => format!("{} not shown. ", amount(remainder as u64, "more finding")),
    };
    let at = report.ledger.as_ref().map_or("", |reference| &reference.flag);
    let text = format!(
        "{remainder}`quorate show {}{at}` shows every answer and the reasoning, as `review --full` does.",
        report.run
    );
    prose(&text, 0, width)
}
