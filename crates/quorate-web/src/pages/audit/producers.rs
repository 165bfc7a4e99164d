//! What becomes of each producer's artifacts, with the drift of their verdicts as a line.

use std::cmp::Reverse;

use quorate::service::audit::Audit;
use quorate_ledger::council_log::priors::{ProducerStats, ReviewCounts, producer_drifts};

use super::super::chart::{self, Line};
use super::{Mix, day, mix, share};

/// The most producers, those with the most reviews, and the most weeks of each, the newest ones.
const MAX_PRODUCERS: usize = 10;
const MAX_WEEKS: usize = 12;
/// The days of a week.
const WEEK: i64 = 7;

/// A producer.
pub(super) struct Producer {
    pub(super) mix: Mix,
    pub(super) overrides: u64,
    pub(super) means: Means,
    /// `tightening` or `improving`.
    pub(super) drift: Option<&'static str>,
    pub(super) line: Line,
    /// What the line shows, in a sentence.
    pub(super) about: String,
    pub(super) weeks: Vec<Week>,
}

pub(super) struct Week {
    pub(super) name: String,
    pub(super) reviews: u64,
    pub(super) means: Means,
}

/// Means, each with the number that it is of.
pub(super) struct Means {
    pub(super) verdict: String,
    pub(super) blocks: String,
    pub(super) score: String,
}

/// The producers with the most reviews, and how many others there are.
pub(super) fn producers(audit: &Audit) -> (Vec<Producer>, usize) {
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
    let from = stats.weeks.len().saturating_sub(MAX_WEEKS);
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
        line: chart::line(&values),
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
