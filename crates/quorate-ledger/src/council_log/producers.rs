//! What becomes of each producer's artifacts over time, counted from the index. The lines of runs that record no producer
//! count for none.

use std::collections::BTreeMap;

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::counts::monday;
use super::drift::{self, Drift};

/// Producers by name.
pub type Producers = BTreeMap<String, ProducerStats>;

/// A producer's reviews.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProducerStats {
    pub all: ReviewCounts,
    /// By week (Monday's day number since the Unix epoch). Lines without a time have none.
    pub weeks: BTreeMap<i64, ReviewCounts>,
    /// Reviews that people decided otherwise on.
    pub overrides: u64,
}

/// Counts of reviews.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewCounts {
    /// By verdict.
    pub verdicts: BTreeMap<String, u64>,
    /// Positions of deliberators in decided reviews, and how many of them block.
    pub positions: (u64, u64),
    /// Deliberators that scored in decided reviews, and the sum of each one's last score in hundredths.
    pub scores: (u64, u64),
}

impl ReviewCounts {
    pub fn reviews(&self) -> u64 {
        self.verdicts.values().sum()
    }

    /// The share of positions that block, 0 to 1.
    pub fn block_rate(&self) -> Option<f64> {
        let (positions, blocks) = self.positions;
        (positions > 0).then(|| blocks as f64 / positions as f64)
    }

    pub fn mean_score(&self) -> Option<f64> {
        let (count, sum) = self.scores;
        (count > 0).then(|| sum as f64 / 100.0 / count as f64)
    }

    /// The mean of verdicts: SHIP is 1, REVISE 0.5, HOLD and INCOMPLETE 0.
    pub fn mean_verdict(&self) -> Option<f64> {
        drift::mean(&self.verdicts).map(|(mean, _)| mean)
    }

    fn add(&mut self, verdict: &str, reviews: u64, positions: (u64, u64), scores: (u64, u64)) {
        *self.verdicts.entry(verdict.to_owned()).or_default() += reviews;
        for (sum, more) in [(&mut self.positions, positions), (&mut self.scores, scores)] {
            sum.0 += more.0;
            sum.1 += more.1;
        }
    }
}

/// Adds a group of reviews as [`super::stats::stats`] selects it.
pub(super) fn add_row(producers: &mut Producers, row: &SqliteRow) {
    let producer: String = row.get(9);
    if producer.is_empty() {
        return;
    }
    let number = |at: usize| row.get::<i64, _>(at).unsigned_abs();
    let (positions, scores) = ((number(10), number(11)), (number(12), number(13)));
    let producer = producers.entry(producer).or_default();
    let verdict: String = row.get(1);
    producer.all.add(&verdict, number(3), positions, scores);
    if let Some(monday) = monday(row.get(2)) {
        producer.weeks.entry(monday).or_default().add(&verdict, number(3), positions, scores);
    }
}

/// The last drift of each producer that has one, by the rule of [`drift::find_drift`].
pub fn find_drift(producers: &Producers) -> Vec<Drift> {
    let weeks = producers.iter().flat_map(|(name, stats)| {
        stats.weeks.iter().map(move |(monday, counts)| (&**name, *monday, &counts.verdicts))
    });
    drift::drifts(weeks)
}
