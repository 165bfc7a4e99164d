//! An audit as text for a terminal, the weeks with bars.

use quorate_diagnostics::render::TextOptions;

use super::super::layout::{prose, table};
use super::super::paint::{Paint, finish};
use super::{MAX_WEEKS, Tally, summary, tables};
use quorate::service::audit::Audit;

/// The length of a bar, in cells.
const BAR: usize = 20;
/// The character and colour of each verdict in a bar.
const FILL: [(char, Paint); 4] =
    [('█', Paint::Good), ('▓', Paint::Fair), ('▒', Paint::Bad), ('░', Paint::Absent)];

pub(crate) fn human(audit: &Audit, options: TextOptions) -> String {
    let mut out = prose(&summary(audit).join(" "), 0, options.width);
    for mut section in tables(audit) {
        let weekly = section.title == "Drift by week";
        if weekly {
            section.headings.push("mix".to_owned());
            let weeks = &audit.stats.weeks;
            let shown = weeks.values().skip(weeks.len().saturating_sub(MAX_WEEKS));
            for (row, types) in section.rows.iter_mut().zip(shown) {
                row.push(bar(Tally::of(types.values())));
            }
        }
        let legend = if weekly { ": █ SHIP, ▓ REVISE, ▒ HOLD, ░ INCOMPLETE" } else { "" };
        out.push_str(&format!("\n{}{legend}\n", Paint::Strong.on(section.title)));
        let headings: Vec<&str> = section.headings.iter().map(String::as_str).collect();
        out.push_str(&table(&headings, section.rows, 2, options.width));
        if let Some(note) = &section.note {
            out.push_str(&prose(note, 2, options.width));
        }
        if weekly && audit.stats.weeks.len() > MAX_WEEKS {
            let earlier = audit.stats.weeks.len() - MAX_WEEKS;
            out.push_str(&prose(
                &format!("… and {earlier} weeks before: `quorate audit --format json` lists all."),
                2,
                options.width,
            ));
        }
    }
    finish(&out, options)
}

/// A bar with a share for each verdict; boundaries are rounded, so that the bar is always full.
fn bar(tally: Tally) -> String {
    let all: u64 = tally.columns.iter().sum();
    if all == 0 {
        return String::new();
    }
    let mut out = String::new();
    let (mut sum, mut filled) = (0, 0);
    for ((glyph, paint), count) in FILL.iter().zip(tally.columns) {
        sum += count;
        let until = (sum * BAR as u64).div_ceil(all) as usize;
        if until > filled {
            out.push_str(&paint.on(&glyph.to_string().repeat(until - filled)));
            filled = until;
        }
    }
    out
}
