//! An audit: the counts of the log as tables with rates, as text with bars and as Markdown.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use quorate::service::audit::{self, Audit, Costs, Sum};
use quorate_diagnostics::render::TextOptions;
use quorate_ledger::council_log::stats::{
    Agreement, DeliberatorStats, Drift, MIN_SHARED, Pair, ProducerStats, Producers, ReviewCounts, find_drift,
    producer_drifts as find_producer_drift,
};

use super::wording::DASH;
use super::layout::{Paint, finish, one_line};
use super::layout::{prose, table};
use super::markdown::inline;
use super::wording::{amount, day, digit_groups, dollars, duration, instant};

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
    audit::percent(part, total).unwrap_or_else(|| super::wording::DASH.to_owned())
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
    let first = [verdicts(audit), deliberators_table(audit), agreement_table(&audit.agreement), weeks(audit)];
    let producers = producer_tables(&audit.producers);
    let all = first.into_iter().chain(producers).chain(cost_tables(&audit.costs));
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
        0 => super::wording::DASH.to_owned(),
        count => format!("{:.2}", sum as f64 / 100.0 / count as f64),
    }
}

/// The most deliberators of a matrix, those with the most positions.
const MAX_MEMBERS: usize = 8;

fn agreement_table(agreement: &Agreement) -> Table {
    let mut ranked: Vec<(&String, &u64)> = agreement.members.iter().collect();
    ranked.sort_by_key(|(name, reviews)| (Reverse(**reviews), (*name).clone()));
    let omitted = agreement.omitted + ranked.len().saturating_sub(MAX_MEMBERS) as u64;
    ranked.truncate(MAX_MEMBERS);
    let mut names: Vec<&String> = ranked.into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    let row = |(at, first): (usize, &&String)| {
        let cells = names.iter().enumerate().skip(1).map(|(other, second)| match other > at {
            true => agreement.pairs.get(&((*first).clone(), (*second).clone())).map_or_else(never, cell),
            false => String::new(),
        });
        [one_line(first)].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let rows = names.iter().enumerate().take(names.len().saturating_sub(1)).map(row).collect();
    let headings =
        ["agrees with".to_owned()].into_iter().chain(names.iter().skip(1).map(|name| one_line(name)));
    let mut note = format!("A pair that shares fewer than {MIN_SHARED} decided reviews has no rate.");
    if omitted > 0 {
        note.push_str(&format!(
            " {} not shown: `quorate audit --format json` lists more.",
            amount(omitted, "deliberator")
        ));
    }
    Table { note: Some(note), ..Table::new("Agreement of deliberators", headings, rows) }
}

fn cell(pair: &Pair) -> String {
    match audit::percent(pair.agreed(), pair.shared()).filter(|_| pair.is_enough()) {
        Some(rate) => format!("{rate} of {}", pair.shared()),
        None => format!("too few: {}", pair.shared()),
    }
}

fn never() -> String {
    "too few: 0".to_owned()
}

const HEADINGS: [&str; 5] = ["calls", "tokens read", "cached", "written", "US$"];

fn cost_tables(costs: &Costs) -> [Table; 4] {
    let executors = costs.executors.iter().map(|((executor, model), sum)| {
        let name = match model {
            Some(model) if !executor.contains(model.as_str()) => format!("{executor} ({model})"),
            _ => executor.clone(),
        };
        cost_row(&name, sum)
    });
    let mut executors: Vec<Vec<String>> = executors.collect();
    if executors.len() > 1 {
        executors.push(cost_row("all", &costs.all));
    }
    [
        Table::new("Cost by executor", cost_headings("executor"), executors),
        named("Cost by member", "member", &costs.members),
        named("Cost by type", "type", &costs.types),
        named("Cost by month", "month", &costs.months),
    ]
}

fn named(title: &'static str, first: &'static str, sums: &BTreeMap<String, Sum>) -> Table {
    let rows = sums.iter().map(|(name, sum)| cost_row(name, sum)).collect();
    Table::new(title, cost_headings(first), rows)
}

fn cost_headings(first: &'static str) -> Vec<&'static str> {
    [first].into_iter().chain(HEADINGS).collect()
}

fn cost_row(name: &str, sum: &Sum) -> Vec<String> {
    let count = |count: Option<u64>| count.map_or_else(|| DASH.to_owned(), digit_groups);
    let usage = &sum.usage;
    let money = match (usage.usd_nanos, sum.unpriced) {
        (None, _) => DASH.to_owned(),
        (Some(nanos), 0) => dollars(nanos),
        // Some of the calls have no known price.
        (Some(nanos), _) => format!("{} or more", dollars(nanos)),
    };
    vec![
        one_line(name),
        digit_groups(sum.calls),
        count(usage.tokens_in),
        count(usage.tokens_cached),
        count(usage.tokens_out),
        money,
    ]
}

/// The most producers, those with the most reviews, and the most weeks of each, the newest ones.
const MAX_PRODUCERS: usize = 12;
const PRODUCERS_MAX_WEEKS: usize = 8;

fn producer_tables(producers: &Producers) -> [Table; 2] {
    let mut shown: Vec<(&String, &ProducerStats)> = producers.iter().collect();
    shown.sort_by_key(|(name, stats)| (Reverse(stats.all.reviews()), (*name).clone()));
    let omitted = shown.len().saturating_sub(MAX_PRODUCERS) as u64;
    shown.truncate(MAX_PRODUCERS);
    let has_other = Tally::of(shown.iter().map(|(_, stats)| &stats.all.verdicts)).other > 0;
    let all = shown.iter().map(|(name, stats)| {
        let mut row = row(one_line(name), Tally::of([&stats.all.verdicts]), has_other);
        row.extend(means(&stats.all));
        row.push(stats.overrides.to_string());
        row
    });
    let headings = columns("producer", has_other).into_iter().chain([MEAN, BLOCKS, SCORE, "overrides"]);
    let note = (omitted > 0).then(|| {
        format!("{} not shown: `quorate audit --format json` lists all.", amount(omitted, "producer"))
    });
    let weeks = shown.iter().flat_map(|(name, stats)| {
        let weeks = stats.weeks.iter().skip(stats.weeks.len().saturating_sub(PRODUCERS_MAX_WEEKS));
        weeks.map(|(monday, counts)| {
            let mut row = vec![one_line(name), day(*monday), counts.reviews().to_string()];
            row.extend(means(counts));
            row
        })
    });
    [
        Table { note, ..Table::new("Producers", headings, all.collect()) },
        Table::new(
            "Producers by week",
            ["producer", "week of", "reviews", MEAN, BLOCKS, SCORE],
            weeks.collect(),
        ),
    ]
}

const MEAN: &str = "mean verdict";
const BLOCKS: &str = "blocks";
const SCORE: &str = "score";

/// The mean verdict, the share of positions that block, and the mean score, each with the number that it is of.
fn means(counts: &ReviewCounts) -> [String; 3] {
    let dash = || DASH.to_owned();
    let (positions, blocks) = counts.positions;
    let blocks = match positions {
        0 => dash(),
        _ => format!("{} of {positions}", percent(blocks, positions)),
    };
    [
        counts.mean_verdict().map_or_else(dash, |mean| format!("{mean:.2}")),
        blocks,
        counts.mean_score().map_or_else(dash, |mean| format!("{mean:.2} of {}", counts.scores.0)),
    ]
}

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

pub(crate) fn markdown(audit: &Audit) -> String {
    let mut out = "## Audit of the council\n".to_owned();
    for sentence in summary(audit) {
        out.push_str(&format!("\n- {}", inline(&sentence)));
    }
    out.push('\n');
    for table in tables(audit) {
        out.push_str(&format!(
            "\n### {}\n\n| {} |\n| --- |{}\n",
            table.title,
            table.headings.iter().map(|heading| inline(heading)).collect::<Vec<_>>().join(" | "),
            " ---: |".repeat(table.headings.len() - 1)
        ));
        for row in &table.rows {
            let cells: Vec<String> = row.iter().map(|cell| inline(cell)).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        if let Some(note) = &table.note {
            out.push_str(&format!("\n{}\n", inline(note)));
        }
    }
    out
}

#[cfg(test)]
mod tests;
