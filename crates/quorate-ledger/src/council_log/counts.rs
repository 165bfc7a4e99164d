//! What is counted of a log: the filter, and the counts by week, type and deliberator.

use std::collections::BTreeMap;

/// Which lines are counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Not before this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// This verdict alone, in upper case.
    pub verdict: Option<String>,
    /// This type of artifact alone.
    pub artifact_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// Verdicts by type of artifact, then by verdict.
    pub verdicts: BTreeMap<String, BTreeMap<String, u64>>,
    pub deliberators: BTreeMap<String, DeliberatorStats>,
    /// Verdicts by week (Monday's day number since the Unix epoch), type and verdict. Lines without a time have none.
    pub weeks: BTreeMap<i64, BTreeMap<String, BTreeMap<String, u64>>>,
    /// Reviews that say how many calls they made, and how many that were.
    pub calls: (u64, u64),
    /// Time spent in reviews, in milliseconds.
    pub elapsed_ms: u64,
    /// Reviews that say how many tokens they took, and how many that were.
    pub tokens: (u64, u64),
    /// Reviews that people decided otherwise on.
    pub overrides: u64,
}

/// A deliberator's behaviour, as counts of reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliberatorStats {
    pub reviews: u64,
    /// It blocked at the end.
    pub blocks: u64,
    pub irreducible: u64,
    /// Its block changed from round 1 to round 2.
    pub flipped: u64,
    /// It gave an answer that did not fit.
    pub schema_failed: u64,
    /// It ran out of time.
    pub timed_out: u64,
    /// Reviews that it scored in round 1, and the sum of these scores in hundredths.
    pub first_scores: (u64, u64),
    /// Reviews that it scored in round 2, and the sum of these scores in hundredths.
    pub last_scores: (u64, u64),
    /// How often it was asked again, since its answer did not fit.
    pub reprompts: u64,
}

impl DeliberatorStats {
    /// What its rates count, by name.
    pub fn counts(&self) -> [(&'static str, u64); 5] {
        [
            ("block", self.blocks),
            ("irreducible", self.irreducible),
            ("flip", self.flipped),
            ("schema_failed", self.schema_failed),
            ("timed_out", self.timed_out),
        ]
    }
}

/// The day number of the first Monday, 1970-01-05.
const MONDAY_DAY: i64 = 4;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// The Monday of a time's week, as its day number; `None` without a time. Statements group by the same division.
pub(super) fn monday(at_ms: i64) -> Option<i64> {
    (at_ms != 0).then(|| MONDAY_DAY + 7 * ((at_ms - MONDAY_DAY * DAY_MS) / (7 * DAY_MS)))
}
