//! `/audit`: verdicts by week and type, members' behaviour, the agreement of deliberators as a matrix, producers with the
//! drift of their verdicts as a line, and cost by month.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::audit::{Audit, Sum, percent};
use quorate_ledger::council_log::stats::{
    Agreement, MIN_SHARED, Pair, ProducerStats, ReviewCounts, producer_drifts,
};
use quorate_manifest::timestamp;

use super::chart::{Line, Segment, line, stacked};
use super::wording::{digit_groups, plain, usd};
use super::{Frame, query, respond};
use crate::Server;
use crate::api::runs::{AuditQuery, load_audit};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    since: String,
    artifact_type: String,
    /// Each group of mixes with its title.
    mixes: Vec<(&'static str, Vec<Mix>)>,
    /// Weeks before those that are shown.
    earlier: usize,
    members: Vec<Behaviour>,
    matrix: Matrix,
    min_shared: u64,
    producers: Vec<Producer>,
    /// Producers that are not shown.
    more_producers: usize,
    costs: Vec<(&'static str, Vec<Cost>)>,
    overrides: u64,
    log: String,
    corrupt_lines: u64,
    /// Runs that differ from their records, with what differs.
    altered: Vec<(String, String)>,
}

/// How verdicts mix in a week or of a type.
struct Mix {
    name: String,
    bar: Vec<Segment>,
    counts: Vec<u64>,
    total: u64,
}

/// A deliberator over time.
struct Behaviour {
    id: String,
    reviews: u64,
    rates: Vec<String>,
    first: String,
    last: String,
}

struct Cost {
    name: String,
    calls: String,
    read: String,
    written: String,
    money: String,
    /// How long its bar is, of 1,000.
    width: u64,
}

/// The verdicts of a mix, each with its style.
const VERDICTS: [(&str, &str); 4] =
    [("SHIP", "good"), ("REVISE", "fair"), ("HOLD", "bad"), ("INCOMPLETE", "none")];

/// The most weeks, types, members or months that are listed; the JSON has all.
const MAX_WEEKS: usize = 26;
const MAX_ROWS: usize = 40;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// The page.
pub(super) async fn show(server: &Arc<Server>, text: &str) -> Response {
    respond(server, page(server, text).await)
}

async fn page(server: &Arc<Server>, text: &str) -> Result<AuditPage, Failure> {
    let asked: AuditQuery = query(text)?;
    let (since, artifact_type) =
        (asked.since.clone().unwrap_or_default(), asked.artifact_type.clone().unwrap_or_default());
    let audit = load_audit(server, asked).await?;
    let (producers, more_producers) = producers(&audit);
    let flag = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!(" --{name} {value}"),
    };
    let command = format!("quorate audit{}{}", flag("since", &since), flag("type", &artifact_type));
    let frame = Frame::new(server, "Audit", "audit", command).with_json(format!("/api/v1/audit?{text}"));
    Ok(AuditPage {
        frame,
        since,
        artifact_type,
        mixes: mixes(&audit),
        earlier: audit.stats.weeks.len().saturating_sub(MAX_WEEKS),
        members: members(&audit),
        matrix: matrix(&audit.agreement),
        min_shared: MIN_SHARED,
        producers,
        more_producers,
        costs: costs(&audit),
        overrides: audit.stats.overrides,
        altered: audit.altered.iter().map(|(run, what)| (run.to_string(), what.clone())).collect(),
        log: audit.log,
        corrupt_lines: audit.corrupt_lines,
    })
}

fn mixes(audit: &Audit) -> Vec<(&'static str, Vec<Mix>)> {
    let types = audit.stats.verdicts.iter().take(MAX_ROWS);
    let types = types.map(|(name, counts)| mix(plain(name), counts)).collect();
    let all = [("Verdicts by week", weeks(audit)), ("Verdicts by type", types)];
    all.into_iter().filter(|(_, mixes)| !mixes.is_empty()).collect()
}

fn weeks(audit: &Audit) -> Vec<Mix> {
    let of_week = |(day, types): (&i64, &BTreeMap<String, BTreeMap<String, u64>>)| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (verdict, count) in types.values().flatten() {
            *counts.entry(verdict.clone()).or_default() += count;
        }
        mix(format!("week of {}", self::day(*day)), &counts)
    };
    audit.stats.weeks.iter().rev().take(MAX_WEEKS).map(of_week).collect()
}

/// The date of a day number.
fn day(day: i64) -> String {
    let text = timestamp::format(day.saturating_mul(DAY_MS));
    text.get(..10).unwrap_or(&text).to_owned()
}

fn mix(name: String, counts: &BTreeMap<String, u64>) -> Mix {
    let count = |verdict: &str| counts.get(verdict).copied().unwrap_or(0);
    let parts = VERDICTS.map(|(verdict, class)| (class, count(verdict) as f64));
    Mix {
        name,
        bar: stacked(&parts),
        counts: VERDICTS.iter().map(|(verdict, _)| count(verdict)).collect(),
        total: counts.values().sum(),
    }
}

fn members(audit: &Audit) -> Vec<Behaviour> {
    let mean = |(reviews, sum): (u64, u64)| match reviews {
        0 => String::new(),
        reviews => format!("{:.2}", sum as f64 / reviews as f64 / 100.0),
    };
    let of_member =
        |(id, stats): (&String, &quorate_ledger::council_log::stats::DeliberatorStats)| Behaviour {
            id: id.clone(),
            reviews: stats.reviews,
            rates: stats.counts().iter().map(|(_, count)| share(*count, stats.reviews)).collect(),
            first: mean(stats.first_scores),
            last: mean(stats.last_scores),
        };
    audit.stats.deliberators.iter().take(MAX_ROWS).map(of_member).collect()
}

/// A count with its share.
fn share(count: u64, total: u64) -> String {
    percent(count, total).map_or_else(|| "–".to_owned(), |percent| format!("{count} ({percent})"))
}

fn costs(audit: &Audit) -> Vec<(&'static str, Vec<Cost>)> {
    let costs = &audit.costs;
    let named = |sums: &BTreeMap<String, Sum>| rows(sums.iter().map(|(name, sum)| (plain(name), sum)));
    let executors = costs.executors.iter().map(|((executor, model), sum)| {
        (model.as_ref().map_or_else(|| executor.clone(), |model| format!("{executor}: {model}")), sum)
    });
    let all = [
        // The newest one first, as weeks are.
        ("by month", rows(costs.months.iter().rev().map(|(name, sum)| (name.clone(), sum)))),
        ("by executor", rows(executors)),
        ("by member", named(&costs.members)),
        ("by type", named(&costs.types)),
    ];
    all.into_iter().filter(|(_, rows)| !rows.is_empty()).collect()
}

fn rows<'a>(sums: impl Iterator<Item = (String, &'a Sum)>) -> Vec<Cost> {
    let sums: Vec<_> = sums.take(MAX_ROWS).collect();
    let most = sums.iter().filter_map(|(_, sum)| sum.usage.usd_nanos).max().unwrap_or(0);
    let row = |(name, sum): (String, &Sum)| {
        let nanos = sum.usage.usd_nanos.unwrap_or(0);
        Cost {
            name,
            calls: digit_groups(sum.calls),
            read: sum.usage.tokens_in.map(digit_groups).unwrap_or_default(),
            written: sum.usage.tokens_out.map(digit_groups).unwrap_or_default(),
            money: match (sum.usage.usd_nanos, sum.unpriced) {
                (None, _) => "unknown".to_owned(),
                (Some(nanos), 0) => usd(nanos),
                // Some of the calls have no known price.
                (Some(nanos), _) => format!("{} or more", usd(nanos)),
            },
            width: (u128::from(nanos) * 1_000).checked_div(u128::from(most)).unwrap_or(0) as u64,
        }
    };
    sums.into_iter().map(row).collect()
}

/// The most deliberators of the matrix, those with the most positions.
const MAX_MEMBERS: usize = 10;

#[derive(Default)]
struct Matrix {
    /// The deliberators of the columns.
    columns: Vec<String>,
    /// Each with its pairs.
    rows: Vec<(String, Vec<Option<Cell>>)>,
    /// Deliberators that are not shown.
    omitted: u64,
}

/// A pair.
struct Cell {
    shared: u64,
    /// In percent; `None` where they have met too rarely.
    rate: Option<String>,
    /// How long its bar is, of 100.
    width: u64,
    /// Cohen's kappa.
    kappa: Option<String>,
}

/// Nothing where no two have met.
fn matrix(agreement: &Agreement) -> Matrix {
    if agreement.pairs.is_empty() {
        return Matrix::default();
    }
    let mut ranked: Vec<(&String, &u64)> = agreement.members.iter().collect();
    ranked.sort_by_key(|(name, reviews)| (Reverse(**reviews), (*name).clone()));
    let omitted = agreement.omitted + ranked.len().saturating_sub(MAX_MEMBERS) as u64;
    let mut names: Vec<&String> = ranked.into_iter().take(MAX_MEMBERS).map(|(name, _)| name).collect();
    names.sort_unstable();
    let row = |(at, first): (usize, &&String)| {
        let cells = names.iter().enumerate().skip(1).map(|(other, second)| {
            let pair = || agreement.pairs.get(&((*first).clone(), (*second).clone()));
            (other > at).then(|| cell(&pair().copied().unwrap_or_default()))
        });
        ((*first).clone(), cells.collect())
    };
    Matrix {
        columns: names.iter().skip(1).map(|name| (*name).clone()).collect(),
        rows: names.iter().enumerate().take(names.len() - 1).map(row).collect(),
        omitted,
    }
}

fn cell(pair: &Pair) -> Cell {
    Cell {
        shared: pair.shared(),
        rate: percent(pair.agreed(), pair.shared()).filter(|_| pair.is_enough()),
        width: (100 * pair.agreed()).checked_div(pair.shared()).unwrap_or(0),
        kappa: pair.kappa().map(|kappa| format!("{kappa:.2}")),
    }
}

/// The most producers, those with the most reviews, and the most weeks of each, the newest ones.
const MAX_PRODUCERS: usize = 10;
const MAX_PRODUCER_WEEKS: usize = 12;
/// The days of a week.
const WEEK: i64 = 7;

/// A producer.
struct Producer {
    mix: Mix,
    overrides: u64,
    means: Means,
    /// `tightening` or `improving`.
    drift: Option<&'static str>,
    line: Line,
    /// What the line shows, in a sentence.
    about: String,
    weeks: Vec<Week>,
}

struct Week {
    name: String,
    reviews: u64,
    means: Means,
}

/// Means, each with the number that it is of.
struct Means {
    verdict: String,
    blocks: String,
    score: String,
}

/// The producers with the most reviews, and how many others there are.
fn producers(audit: &Audit) -> (Vec<Producer>, usize) {
    let drifts = producer_drifts(&audit.producers);
    let mut all: Vec<(&String, &ProducerStats)> = audit.producers.iter().collect();
    all.sort_by_key(|(name, stats)| (Reverse(stats.all.reviews()), (*name).clone()));
    let omitted = all.len().saturating_sub(MAX_PRODUCERS);
    let producer = |(name, stats): &(&String, &ProducerStats)| {
        let drift = drifts.iter().find(|drift| drift.of == **name);
        producer(name, stats, drift.map(|drift| drift.direction.as_str()))
    };
    (all.iter().take(MAX_PRODUCERS).map(producer).collect(), omitted)
}

fn producer(name: &str, stats: &ProducerStats, drift: Option<&'static str>) -> Producer {
    let from = stats.weeks.len().saturating_sub(MAX_PRODUCER_WEEKS);
    let weeks: Vec<(i64, &ReviewCounts)> =
        stats.weeks.iter().skip(from).map(|(monday, counts)| (*monday, counts)).collect();
    let values = match (weeks.first(), weeks.last()) {
        // A week without reviews interrupts the line; so do the weeks before the last ones.
        (Some((first, _)), Some((last, _))) => {
            let first = (*first).max(last - WEEK * 51);
            (0..=(last - first) / WEEK)
                .map(|at| stats.weeks.get(&(first + at * WEEK))?.mean_verdict())
                .collect()
        }
        _ => Vec::new(),
    };
    let about: Vec<String> = weeks
        .iter()
        .map(|(monday, counts)| {
            format!("{}: {} of {}", day(*monday), means(counts).verdict, counts.reviews())
        })
        .collect();
    Producer {
        mix: mix(name.to_owned(), &stats.all.verdicts),
        overrides: stats.overrides,
        means: means(&stats.all),
        drift,
        line: line(&values),
        about: format!("Mean verdict by week, from HOLD at 0 to SHIP at 1. {}.", about.join("; ")),
        weeks: weeks
            .iter()
            .rev()
            .map(|(monday, counts)| Week {
                name: day(*monday),
                reviews: counts.reviews(),
                means: means(counts),
            })
            .collect(),
    }
}

fn means(counts: &ReviewCounts) -> Means {
    let none = || "–".to_owned();
    let (positions, blocks) = counts.positions;
    Means {
        verdict: counts.mean_verdict().map_or_else(none, |mean| format!("{mean:.2}")),
        blocks: match positions {
            0 => none(),
            _ => format!("{} of {positions}", share(blocks, positions)),
        },
        score: counts.mean_score().map_or_else(none, |mean| format!("{mean:.2} of {}", counts.scores.0)),
    }
}
