//! Statistics of a council over time, counted from the index.

use std::collections::BTreeMap;

use quorate_kernel::ports::ledger::Error;
use sqlx::Row as _;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};

use super::CountedLog;
use super::producers::{self, Producers};
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
const MONDAY_DAY: i64 = 4;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// A statement over the deliberators of lines, in the order of their table.
macro_rules! seats {
    ($which:literal) => {
        concat!(
            "SELECT member, blocks, irreducible, flipped, schema_failed, timed_out, COUNT(*), \
             SUM(first_score >= 0), SUM(MAX(first_score, 0)), SUM(last_score >= 0), SUM(MAX(last_score, 0)), SUM(reprompts) \
             FROM log_seat WHERE log = ?1 AND ",
            $which,
            " GROUP BY member, blocks, irreducible, flipped, schema_failed, timed_out"
        )
    };
}

/// The Monday of a time's week, as its day number; `None` without a time. Statements group by the same division.
pub(super) fn monday(at_ms: i64) -> Option<i64> {
    (at_ms != 0).then(|| MONDAY_DAY + 7 * ((at_ms - MONDAY_DAY * DAY_MS) / (7 * DAY_MS)))
}

/// A statement over the reviews that a [`Filter`] accepts, without closed runs. Bound are the log, the filter and the rows
/// that are not counted. Read from the first row to the last: by an index, each page would be read for each type again.
macro_rules! reviews {
    ($select:literal, $rest:literal) => {
        concat!(
            $select,
            " FROM log_line NOT INDEXED WHERE log = ?1 AND (?2 IS NULL OR at_ms >= ?2) AND (?3 IS NULL OR verdict = ?3) \
             AND (?4 IS NULL OR artifact_type = ?4) AND verdict <> 'SUPERSEDED' \
             AND id NOT IN (SELECT value FROM json_each(?5)) ",
            $rest
        )
    };
}
pub(super) use reviews;

/// A statement with what [`reviews`] binds.
pub(super) fn filtered<'q>(
    statement: &'static str,
    log: i64,
    counted: &'q CountedLog,
    filter: &'q Filter,
) -> Query<'q, Sqlite, SqliteArguments> {
    let Filter { since_ms, verdict, artifact_type } = filter;
    sqlx::query(statement).bind(log).bind(since_ms).bind(verdict).bind(artifact_type).bind(&*counted.excluded)
}

/// Counts reviews, and those of each producer.
///
/// # Errors
/// When the store does not answer.
#[crate::boxed]
pub async fn stats(
    store: &Store,
    counted: &CountedLog,
    filter: &Filter,
) -> Result<(Stats, Producers), Error> {
    let (mut stats, mut producers) = (Stats::default(), Producers::new());
    let Some(log) = counted.id else { return Ok((stats, producers)) };
    let mut writer = store.writer().await;
    let connection = writer.log_index();
    let rows = filtered(reviews!(
        "SELECT artifact_type, verdict, at_ms, COUNT(*), SUM(elapsed_ms), \
                SUM(CASE WHEN calls >= 0 THEN calls ELSE 0 END), SUM(CASE WHEN calls >= 0 THEN 1 ELSE 0 END), \
                SUM(CASE WHEN tokens >= 0 THEN tokens ELSE 0 END), SUM(CASE WHEN tokens >= 0 THEN 1 ELSE 0 END), \
                producer, SUM(positioned * prior), SUM(blocking * prior), SUM(scored * prior), SUM(scores * prior)",
        "GROUP BY artifact_type, verdict, producer, CASE WHEN at_ms = 0 THEN NULL ELSE (at_ms - 345600000) / 604800000 END"
    ), log, counted, filter)
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| store.error(error))?;
    for row in &rows {
        stats.add_row(row);
        producers::add_row(&mut producers, row);
    }
    let (overrides, by_producer) = counted.overrides(filter);
    stats.overrides = overrides;
    for (producer, overrides) in by_producer {
        if !producer.is_empty() {
            producers.entry(producer.to_owned()).or_default().overrides = overrides;
        }
    }
    let statement = match *filter == Filter::default() {
        true => seats!("line NOT IN (SELECT value FROM json_each(?5))"),
        false => seats!(
            "line IN (SELECT id FROM log_line NOT INDEXED WHERE log = ?1 AND (?2 IS NULL OR at_ms >= ?2) \
                         AND (?3 IS NULL OR verdict = ?3) AND (?4 IS NULL OR artifact_type = ?4) \
                         AND id NOT IN (SELECT value FROM json_each(?5)))"
        ),
    };
    let query = filtered(statement, log, counted, filter);
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
    Ok((stats, producers))
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
        if let Some(monday) = monday(row.get(2)) {
            let types = self.weeks.entry(monday).or_default();
            *types.entry(artifact_type.clone()).or_default().entry(verdict.clone()).or_default() += count;
        }
        *self.verdicts.entry(artifact_type).or_default().entry(verdict).or_default() += count;
    }

    /// How many reviews were counted.
    pub fn reviews(&self) -> u64 {
        self.verdicts.values().flat_map(BTreeMap::values).sum()
    }
}
