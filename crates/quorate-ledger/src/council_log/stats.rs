//! Statistics of a council over time, counted from the index.

use std::collections::BTreeMap;

use quorate_kernel::ports::ledger::Error;
use sqlx::Row as _;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};

use super::IndexedLog;
use crate::Store;

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
pub(super) const MONDAY_DAY: i64 = 4;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// The number of the week of a time, in milliseconds since the Unix epoch; `None` where there is no time. Statements group
/// by the same division.
pub(super) fn week(at_ms: i64) -> Option<i64> {
    (at_ms != 0).then(|| (at_ms - MONDAY_DAY * DAY_MS) / (7 * DAY_MS))
}

/// A statement over the lines that a [`Filter`] accepts, bound as `?1` (the log), `?2`, `?3` and `?4`.
macro_rules! counted_lines {
    ($select:literal, $rest:literal) => {
        concat!(
            $select,
            " FROM log_line WHERE log = ?1 AND (?2 IS NULL OR at_ms >= ?2) AND (?3 IS NULL OR verdict = ?3) \
             AND (?4 IS NULL OR artifact_type = ?4) ",
            $rest
        )
    };
}

/// The same over reviews: no overrides and no closed runs, and a review that was resumed to a verdict by that alone.
macro_rules! reviews {
    ($select:literal, $rest:literal) => {
        concat!(
            $select,
            " FROM log_line WHERE log = ?1 AND (?2 IS NULL OR at_ms >= ?2) AND (?3 IS NULL OR verdict = ?3) \
             AND (?4 IS NULL OR artifact_type = ?4) AND event <> 'override' AND verdict <> 'SUPERSEDED' \
             AND NOT (event = 'verdict' AND verdict = 'INCOMPLETE' \
                      AND span IN (SELECT span FROM log_line WHERE log = ?1 AND event = 'resumed')) ",
            $rest
        )
    };
}
pub(super) use {counted_lines, reviews};

/// A statement of [`counted_lines`] or [`reviews`] with what it binds.
pub(super) fn filtered<'q>(
    statement: &'static str,
    log: i64,
    filter: &'q Filter,
) -> Query<'q, Sqlite, SqliteArguments> {
    sqlx::query(statement).bind(log).bind(filter.since_ms).bind(&filter.verdict).bind(&filter.artifact_type)
}

/// Counts.
///
/// # Errors
/// When the store does not answer.
#[crate::boxed]
pub async fn stats(store: &Store, indexed: IndexedLog, filter: &Filter) -> Result<Stats, Error> {
    let Some(log) = indexed.id else { return Ok(Stats::default()) };
    let mut stats = Stats::default();
    let mut writer = store.writer().await;
    let connection = writer.log_index();
    let rows = filtered(reviews!(
        "SELECT artifact_type, verdict, at_ms, COUNT(*), SUM(elapsed_ms), \
                SUM(CASE WHEN calls >= 0 THEN calls ELSE 0 END), SUM(CASE WHEN calls >= 0 THEN 1 ELSE 0 END), \
                SUM(CASE WHEN tokens >= 0 THEN tokens ELSE 0 END), SUM(CASE WHEN tokens >= 0 THEN 1 ELSE 0 END)",
        "GROUP BY artifact_type, verdict, CASE WHEN at_ms = 0 THEN NULL ELSE (at_ms - 345600000) / 604800000 END"
    ), log, filter)
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| store.error(error))?;
    for row in &rows {
        stats.add_row(row);
    }
    // A review that was overridden twice is one that was overridden; a line of others may name no review.
    let row = filtered(
        counted_lines!(
            "SELECT COUNT(DISTINCT CASE WHEN span = '' THEN CAST(id AS TEXT) ELSE span END)",
            "AND event IN ('override', 'overridden')"
        ),
        log,
        filter,
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| store.error(error))?;
    stats.overrides = row.get::<i64, _>(0).unsigned_abs();
    let everything = *filter == Filter::default();
    let query = if everything {
        sqlx::query(
            "SELECT member, blocks, irreducible, flipped, schema_failed, timed_out, COUNT(*), \
             SUM(first_score >= 0), SUM(MAX(first_score, 0)), SUM(last_score >= 0), SUM(MAX(last_score, 0)), SUM(reprompts) \
             FROM log_seat WHERE log = ?1 AND line NOT IN (SELECT id FROM log_line WHERE log = ?1 AND event = 'verdict' \
                 AND verdict = 'INCOMPLETE' AND span IN (SELECT span FROM log_line WHERE log = ?1 AND event = 'resumed')) \
             GROUP BY member, blocks, irreducible, flipped, schema_failed, timed_out",
        )
        .bind(log)
    } else {
        sqlx::query(
            "SELECT member, blocks, irreducible, flipped, schema_failed, timed_out, COUNT(*), \
             SUM(first_score >= 0), SUM(MAX(first_score, 0)), SUM(last_score >= 0), SUM(MAX(last_score, 0)), SUM(reprompts) \
             FROM log_seat JOIN log_line ON log_line.id = log_seat.line \
             WHERE log_seat.log = ?1 AND (?2 IS NULL OR at_ms >= ?2) AND (?3 IS NULL OR verdict = ?3) \
               AND (?4 IS NULL OR artifact_type = ?4) AND NOT (event = 'verdict' AND verdict = 'INCOMPLETE' \
                   AND span IN (SELECT span FROM log_line WHERE log = ?1 AND event = 'resumed')) \
             GROUP BY member, blocks, irreducible, flipped, schema_failed, timed_out",
        )
        .bind(log)
        .bind(filter.since_ms)
        .bind(&filter.verdict)
        .bind(&filter.artifact_type)
    };
    for row in query.fetch_all(&mut *connection).await.map_err(|error| store.error(error))? {
        let count = row.get::<i64, _>(6).unsigned_abs();
        let when = |at: usize| if row.get::<i64, _>(at) == 0 { 0 } else { count };
        let behavior = stats.deliberators.entry(row.get(0)).or_default();
        behavior.reviews += count;
        behavior.blocks += when(1);
        behavior.irreducible += when(2);
        behavior.flipped += when(3);
        behavior.schema_failed += when(4);
        behavior.timed_out += when(5);
        let sum = |at: usize| row.get::<i64, _>(at).unsigned_abs();
        for (scores, at) in [(&mut behavior.first_scores, 7), (&mut behavior.last_scores, 9)] {
            scores.0 += sum(at);
            scores.1 += sum(at + 1);
        }
        behavior.reprompts += sum(11);
    }
    Ok(stats)
}

impl Stats {
    fn add_row(&mut self, row: &sqlx::sqlite::SqliteRow) {
        let number = |at: usize| row.get::<i64, _>(at).unsigned_abs();
        let (artifact_type, verdict, count): (String, String, u64) = (row.get(0), row.get(1), number(3));
        self.elapsed_ms += number(4);
        self.calls.1 += number(5);
        self.calls.0 += number(6);
        self.tokens.1 += number(7);
        self.tokens.0 += number(8);
        if let Some(week) = week(row.get(2)) {
            let types = self.weeks.entry(MONDAY_DAY + 7 * week).or_default();
            *types.entry(artifact_type.clone()).or_default().entry(verdict.clone()).or_default() += count;
        }
        *self.verdicts.entry(artifact_type).or_default().entry(verdict).or_default() += count;
    }

    /// How many reviews were counted.
    pub fn reviews(&self) -> u64 {
        self.verdicts.values().flat_map(BTreeMap::values).sum()
    }
}
