//! An audit for people at a terminal, the weeks with bars.

use quorate_diagnostics::render::TextOptions;

use super::super::layout::{prose, table};
use super::super::paint::{Paint, finish};
use super::{MAX_WEEKS, Tally, summary, tables};
use quorate::service::audit::Audit;

/// How long a bar is.
const BAR: usize = 20;
/// What fills a bar, verdict by verdict.
const FILL: [(char, Paint); 4] =
    [('█', Paint::Good), ('▓', Paint::Fair), ('▒', Paint::Bad), ('░', Paint::Absent)];

/// The whole audit.
pub(crate) fn human(audit: &Audit, look: TextOptions) -> String {
    let mut out = prose(&summary(audit).join(" "), 0, look.width);
    for mut one in tables(audit) {
        let weekly = one.title == "Drift by week";
        if weekly {
            one.headings.push("mix");
            let weeks = &audit.stats.weeks;
            let shown = weeks.values().skip(weeks.len().saturating_sub(MAX_WEEKS));
            for (row, types) in one.rows.iter_mut().zip(shown) {
                row.push(bar(Tally::of(types.values())));
            }
        }
        let legend = if weekly { ": █ SHIP, ▓ REVISE, ▒ HOLD, ░ INCOMPLETE" } else { "" };
        out.push_str(&format!("\n{}{legend}\n", Paint::Strong.on(one.title)));
        out.push_str(&table(&one.headings, one.rows, 2, look.width));
        if weekly && audit.stats.weeks.len() > MAX_WEEKS {
            let earlier = audit.stats.weeks.len() - MAX_WEEKS;
            out.push_str(&prose(
                &format!("… and {earlier} weeks before: `quorate audit --format json` lists all."),
                2,
                look.width,
            ));
        }
    }
    finish(&out, look)
}

/// A bar of which every verdict fills its share; cells go where the shares end, so that the bar is always full.
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
