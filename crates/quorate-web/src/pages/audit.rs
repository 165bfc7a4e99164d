//! `/audit`: verdicts by week and type, members' behaviour and agreement, producers, cost by month.

mod agreement;
mod producers;

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::audit::costs::Sum;
use quorate::service::audit::{Audit, percent};
use quorate_ledger::council_log::stats::MIN_SHARED;
use quorate_manifest::timestamp;

use self::agreement::{Matrix, matrix};
use self::producers::{Producer, producers};
use super::chart::{self, Segment};
use super::wording::{grouped, money, plain};
use super::{Frame, query, respond};
use crate::Server;
use crate::api::audit::{Query, load};
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
    let asked: Query = query(text)?;
    let (since, artifact_type) =
        (asked.since.clone().unwrap_or_default(), asked.artifact_type.clone().unwrap_or_default());
    let audit = load(server, asked).await?;
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
        bar: chart::stacked(&parts),
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
            calls: grouped(sum.calls),
            read: sum.usage.tokens_in.map(grouped).unwrap_or_default(),
            written: sum.usage.tokens_out.map(grouped).unwrap_or_default(),
            money: match (sum.usage.usd_nanos, sum.unpriced) {
                (None, _) => "unknown".to_owned(),
                (Some(nanos), 0) => money(nanos),
                // Some of the calls have no known price.
                (Some(nanos), _) => format!("{} or more", money(nanos)),
            },
            width: (u128::from(nanos) * 1_000).checked_div(u128::from(most)).unwrap_or(0) as u64,
        }
    };
    sums.into_iter().map(row).collect()
}
