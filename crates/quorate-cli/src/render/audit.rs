//! An audit: the counts of the log as tables with rates. One file for each format; this one holds what they share.

mod agreement;
mod costs;
mod human;
mod markdown;
mod producers;

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_ledger::council_log::priors::producer_drifts as find_producer_drift;
use quorate_ledger::council_log::priors::{Drift, find_drift};
use quorate_ledger::council_log::stats::DeliberatorStats;

use super::paint::one_line;
use super::wording::{amount, day, duration, instant};
use quorate::service::audit::{self, Audit};

pub(crate) use human::human;
pub(crate) use markdown::markdown;

/// The verdicts with a column; other verdicts of a log are counted together.
const VERDICTS: [&str; 4] = ["SHIP", "REVISE", "HOLD", "INCOMPLETE"];
/// The most weeks shown, the newest ones.
const MAX_WEEKS: usize = 26;

/// Counts of the verdicts with a column, and of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tally {
    columns: [u64; 4],
    other: u64,
}

impl Tally {
    fn of<'c>(counts: impl IntoIterator<Item = &'c BTreeMap<String, u64>>) -> Tally {
        let mut tally = Tally::default();
        for (verdict, count) in counts.into_iter().flatten() {
            match VERDICTS.iter().position(|known| verdict.eq_ignore_ascii_case(known)) {
                Some(column) => tally.columns[column] += count,
                None => tally.other += count,
            }
        }
        tally
    }

    fn all(self) -> u64 {
        self.columns.iter().sum::<u64>() + self.other
    }
}

/// A percentage: `–` of zero.
fn percent(part: u64, total: u64) -> String {
    audit::percent(part, total).unwrap_or_else(|| super::deliberator_row::DASH.to_owned())
}

fn summary(audit: &Audit) -> Vec<String> {
    if !audit.log_exists {
        return vec![format!("{} does not exist yet: every review adds a line.", one_line(&audit.log))];
    }
    let stats = &audit.stats;
    let reviews = stats.reviews();
    let mut out =
        vec![format!("{} in {}{}.", amount(reviews, "review"), one_line(&audit.log), filter(audit))];
    if let Some(mean) = stats.elapsed_ms.checked_div(reviews) {
        let (counting, calls) = stats.calls;
        let average = calls
            .checked_div(counting)
            .map_or_else(String::new, |_| format!(", {:.1} a review", calls as f64 / counting as f64));
        let [all, mean] = [stats.elapsed_ms, mean].map(|ms| duration(Duration::from_millis(ms)));
        let time = format!("{all} ({mean} a review)");
        let (telling, tokens) = stats.tokens;
        let tokens = tokens.checked_div(telling).map_or_else(String::new, |average| {
            let [all, average] = [tokens, average].map(|count| amount(count, "token"));
            format!("; {all} in {} with known usage ({average} each)", amount(telling, "review"))
        });
        out.push(format!("{}{average}; {time}{tokens}.", amount(calls, "call")));
        out.push(format!(
            "{} by people ({} of reviews).",
            amount(stats.overrides, "override"),
            percent(stats.overrides, reviews)
        ));
    }
    out.extend(find_drift(stats).iter().map(|drift| drifting("", drift)));
    out.extend(find_producer_drift(&audit.producers).iter().map(|drift| drifting("what is made by ", drift)));
    for (run, what) in &audit.altered {
        out.push(format!("ALTERED, not counted: run {run}: {}.", one_line(what)));
    }
    if audit.corrupt_lines > 0 {
        out.push(format!(
            "{} of the log cannot be read and {} not counted.",
            amount(audit.corrupt_lines, "line"),
            if audit.corrupt_lines == 1 { "is" } else { "are" }
        ));
    }
    out
}

/// A drift as a sentence; `of` is the beginning of its subject.
fn drifting(of: &str, drift: &Drift) -> String {
    let means: Vec<String> = drift.weeks.iter().map(|(_, mean)| format!("{mean:.2}")).collect();
    let weeks: Vec<String> = drift.weeks.iter().map(|(monday, _)| day(*monday)).collect();
    format!(
        "Drift: {of}{} is {}, mean verdict {} in the weeks of {}.",
        one_line(&drift.of),
        drift.direction.as_str(),
        means.join(" → "),
        weeks.join(", ")
    )
}

fn filter(audit: &Audit) -> String {
    let mut out = String::new();
    if let Some(since) = audit.filter.since_ms {
        out.push_str(&format!(" since {}", instant(since)));
    }
    if let Some(verdict) = &audit.filter.verdict {
        out.push_str(&format!(", verdict {}", one_line(verdict)));
    }
    if let Some(artifact_type) = &audit.filter.artifact_type {
        out.push_str(&format!(", type {}", one_line(artifact_type)));
    }
    out
}

/// A table in words: headings and rows, the first column a name.
struct Table {
    title: &'static str,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// A note on omitted rows or on how to read the table.
    note: Option<String>,
}

impl Table {
    fn new<H: Into<String>>(
        title: &'static str,
        headings: impl IntoIterator<Item = H>,
        rows: Vec<Vec<String>>,
    ) -> Table {
        Table { title, headings: headings.into_iter().map(Into::into).collect(), rows, note: None }
    }
}

/// Verdicts by type, deliberators, agreement, weeks, producers, costs; tables without rows are omitted.
fn tables(audit: &Audit) -> Vec<Table> {
    let first =
        [verdicts(audit), deliberators_table(audit), agreement::table(&audit.agreement), weeks(audit)];
    let producers = producers::tables(&audit.producers);
    let all = first.into_iter().chain(producers).chain(costs::tables(&audit.costs));
    all.filter(|table| !table.rows.is_empty()).collect()
}

fn verdicts(audit: &Audit) -> Table {
    let types = &audit.stats.verdicts;
    let has_other = Tally::of(types.values()).other > 0;
    let row = |(name, counts): (&String, &BTreeMap<String, u64>)| {
        row(one_line(name), Tally::of([counts]), has_other)
    };
    let mut rows: Vec<Vec<String>> = types.iter().map(row).collect();
    if rows.len() > 1 {
        rows.push(self::row("all".to_owned(), Tally::of(types.values()), has_other));
    }
    Table::new("Verdicts by type", columns("type", has_other), rows)
}

fn weeks(audit: &Audit) -> Table {
    let weeks = &audit.stats.weeks;
    let has_other = weeks.values().any(|types| Tally::of(types.values()).other > 0);
    let shown = weeks.iter().skip(weeks.len().saturating_sub(MAX_WEEKS));
    let rows = shown.map(|(monday, types)| row(day(*monday), Tally::of(types.values()), has_other)).collect();
    Table::new("Drift by week", columns("week of", has_other), rows)
}

fn columns(first: &'static str, has_other: bool) -> Vec<&'static str> {
    let mut headings = vec![first, "reviews"];
    headings.extend(VERDICTS);
    headings.extend(has_other.then_some("other"));
    headings
}

fn row(name: String, tally: Tally, has_other: bool) -> Vec<String> {
    let share = |count: u64| {
        if count == 0 { "0".to_owned() } else { format!("{count} ({})", percent(count, tally.all())) }
    };
    let mut row = vec![name, tally.all().to_string()];
    row.extend(tally.columns.map(share));
    row.extend(has_other.then(|| share(tally.other)));
    row
}

fn deliberators_table(audit: &Audit) -> Table {
    let row = |(name, stats): (&String, &DeliberatorStats)| {
        let mut row = vec![one_line(name), stats.reviews.to_string()];
        row.extend(stats.counts().map(|(_, count)| percent(count, stats.reviews)));
        row.extend([stats.first_scores, stats.last_scores].map(score));
        row.push(stats.reprompts.to_string());
        row
    };
    let headings = [
        "deliberator",
        "reviews",
        "block",
        "irreducible",
        "flip R1→R2",
        "did not fit",
        "timed out",
        "score R1",
        "score R2",
        "re-prompts",
    ];
    Table::new("Deliberators", headings, audit.stats.deliberators.iter().map(row).collect())
}

/// A mean of scores: `–` without scores.
fn score((count, sum): (u64, u64)) -> String {
    match count {
        0 => super::deliberator_row::DASH.to_owned(),
        count => format!("{:.2}", sum as f64 / 100.0 / count as f64),
    }
}

#[cfg(test)]
mod tests;
