//! Statistics of a council over time, counted from the index.

use std::collections::BTreeMap;

use quorate_kernel::ports::ledger::Error;
use sqlx::Row as _;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};

use super::CountedLog;
use super::counts::monday;
pub use super::counts::{DeliberatorStats, Filter, Stats};
use super::producers::{self, Producers};
use crate::Store;

/// A statement over the deliberators of lines, in the order of their table, in which rows of one behaviour stand together.
macro_rules! seats {
    ($which:literal) => {
        concat!(
            "SELECT member, blocks, irreducible, flipped, schema_failed, timed_out, first_score, last_score, reprompts, \
             COUNT(*) FROM log_seat WHERE log = ?1 AND ",
            $which,
            " GROUP BY member, blocks, irreducible, flipped, schema_failed, timed_out, first_score, last_score, reprompts"
        )
    };
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

/// Reviews by week, type, verdict and producer. The week comes first: a log is in the order of time, and almost sorted by it.
const REVIEWS: &str = reviews!(
    "SELECT artifact_type, verdict, at_ms, COUNT(*), SUM(elapsed_ms), \
                SUM(CASE WHEN calls >= 0 THEN calls ELSE 0 END), SUM(CASE WHEN calls >= 0 THEN 1 ELSE 0 END), \
                SUM(CASE WHEN tokens >= 0 THEN tokens ELSE 0 END), SUM(CASE WHEN tokens >= 0 THEN 1 ELSE 0 END), \
                producer, SUM(positioned * prior), SUM(blocking * prior), SUM(scored * prior), SUM(scores * prior)",
    "GROUP BY CASE WHEN at_ms = 0 THEN NULL ELSE (at_ms - 345600000) / 604800000 END, artifact_type, verdict, producer"
);

/// The deliberators of all lines that are counted.
const SEATS: &str = seats!("line NOT IN (SELECT value FROM json_each(?5))");

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
    let rows = filtered(REVIEWS, log, counted, filter)
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
        true => SEATS,
        false => seats!(
            "line IN (SELECT id FROM log_line NOT INDEXED WHERE log = ?1 AND (?2 IS NULL OR at_ms >= ?2) \
                         AND (?3 IS NULL OR verdict = ?3) AND (?4 IS NULL OR artifact_type = ?4) \
                         AND id NOT IN (SELECT value FROM json_each(?5)))"
        ),
    };
    let query = filtered(statement, log, counted, filter);
    for row in query.fetch_all(&mut *connection).await.map_err(|error| store.error(error))? {
        let number = |at: usize| row.get::<i64, _>(at);
        let count = number(9).unsigned_abs();
        let when = |at: usize| if number(at) == 0 { 0 } else { count };
        let behavior = stats.deliberators.entry(row.get(0)).or_default();
        behavior.reviews += count;
        behavior.blocks += when(1);
        behavior.irreducible += when(2);
        behavior.flipped += when(3);
        behavior.schema_failed += when(4);
        behavior.timed_out += when(5);
        for (scores, at) in [(&mut behavior.first_scores, 6), (&mut behavior.last_scores, 7)] {
            // A negative score stands for none.
            if let Ok(score) = u64::try_from(number(at)) {
                scores.0 += count;
                scores.1 = scores.1.saturating_add(count.saturating_mul(score));
            }
        }
        let reprompts = count.saturating_mul(number(8).unsigned_abs());
        behavior.reprompts = behavior.reprompts.saturating_add(reprompts);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn each_page_of_the_index_is_read_once() {
        let store = Store::open_log_only(Path::new("council_log.jsonl")).await.unwrap();
        let mut writer = store.writer().await;
        for (statement, table, wanted) in [
            (REVIEWS, "log_line", "SCAN log_line"),
            (SEATS, "log_seat", "SEARCH log_seat USING PRIMARY KEY (log=?)"),
        ] {
            let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            let plan = sqlx::query(explain).fetch_all(writer.log_index()).await.unwrap();
            let steps: Vec<String> = plan.iter().map(|step| step.get(3)).collect();
            let of_table: Vec<&String> = steps.iter().filter(|step| step.contains(table)).collect();
            assert_eq!(of_table, [wanted], "{steps:?}");
            // The order of the deliberators' table is that of the groups.
            assert_eq!(
                steps.iter().any(|step| step.contains("TEMP B-TREE")),
                table == "log_line",
                "{steps:?}"
            );
        }
    }
}
