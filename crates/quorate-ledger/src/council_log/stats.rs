//! Statistics of a council over time, counted from the index: verdicts and their drift, the behaviour of deliberators,
//! how far pairs of them agree, and producers. Lines of runs without a producer count for none.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::ports::ledger::LedgerError;
use sqlx::Row as _;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteRow};

use super::CountedLog;
use crate::Store;
use crate::stats::ReviewFilter;

/// A statement over the deliberators of lines, in the order of their table, in which rows with the same behaviour are
/// adjacent.
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

/// A statement over the reviews that a [`ReviewFilter`] selects, without closed runs. Its parameters are the log, the
/// filter and the excluded rows. It reads all rows in order: by an index, each page would be read again for each type.
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

/// Reviews by week, type, verdict and producer. The week comes first, because a log is almost sorted by time.
const REVIEWS: &str = reviews!(
    "SELECT artifact_type, verdict, at_ms, COUNT(*), SUM(elapsed_ms), \
                SUM(CASE WHEN calls >= 0 THEN calls ELSE 0 END), SUM(CASE WHEN calls >= 0 THEN 1 ELSE 0 END), \
                SUM(CASE WHEN tokens >= 0 THEN tokens ELSE 0 END), SUM(CASE WHEN tokens >= 0 THEN 1 ELSE 0 END), \
                producer, SUM(positioned * prior), SUM(blocking * prior), SUM(scored * prior), SUM(scores * prior)",
    "GROUP BY CASE WHEN at_ms = 0 THEN NULL ELSE (at_ms - 345600000) / 604800000 END, artifact_type, verdict, producer"
);

/// The deliberators of all counted lines.
const SEATS: &str = seats!("line NOT IN (SELECT value FROM json_each(?5))");

/// Binds the parameters of [`reviews`].
pub(super) fn filtered<'q>(
    statement: &'static str,
    log: i64,
    counted: &'q CountedLog,
    filter: &'q ReviewFilter,
) -> Query<'q, Sqlite, SqliteArguments> {
    let ReviewFilter { since_ms, verdict, artifact_type } = filter;
    sqlx::query(statement).bind(log).bind(since_ms).bind(verdict).bind(artifact_type).bind(&*counted.excluded)
}

/// Counts reviews, in total and for each producer.
///
/// # Errors
/// When the store does not answer.
#[crate::boxed]
pub async fn stats(
    store: &Store,
    counted: &CountedLog,
    filter: &ReviewFilter,
) -> Result<(LogStats, Producers), LedgerError> {
    let (mut stats, mut producers) = (LogStats::default(), Producers::new());
    let Some(log) = counted.id else { return Ok((stats, producers)) };
    let mut writer = store.writer().await;
    let connection = writer.log_index();
    let rows = filtered(REVIEWS, log, counted, filter)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| store.error(error))?;
    for row in &rows {
        stats.add_row(row);
        add_producer_row(&mut producers, row);
    }
    let (overrides, by_producer) = counted.overrides(filter);
    stats.overrides = overrides;
    for (producer, overrides) in by_producer {
        if !producer.is_empty() {
            producers.entry(producer.to_owned()).or_default().overrides = overrides;
        }
    }
    let statement = match *filter == ReviewFilter::default() {
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
            // A negative number stands for no score.
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

impl LogStats {
    fn add_row(&mut self, row: &SqliteRow) {
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

    /// The number of counted reviews.
    pub fn reviews(&self) -> u64 {
        self.verdicts.values().flat_map(BTreeMap::values).sum()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogStats {
    /// Verdicts by type of artifact, then by verdict.
    pub verdicts: BTreeMap<String, BTreeMap<String, u64>>,
    pub deliberators: BTreeMap<String, DeliberatorStats>,
    /// Verdicts by week (Monday's day number since the Unix epoch), type and verdict. Lines without a time have no
    /// week.
    pub weeks: BTreeMap<i64, BTreeMap<String, BTreeMap<String, u64>>>,
    /// The number of reviews that record calls, and the number of calls.
    pub calls: (u64, u64),
    /// Time spent in reviews, in milliseconds.
    pub elapsed_ms: u64,
    /// The number of reviews that record tokens, and the number of tokens.
    pub tokens: (u64, u64),
    /// The number of overridden reviews.
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
    /// It gave an invalid answer.
    pub schema_failed: u64,
    /// It timed out.
    pub timed_out: u64,
    /// Reviews that it scored in round 1, and the sum of these scores in hundredths.
    pub first_scores: (u64, u64),
    /// Reviews that it scored in round 2, and the sum of these scores in hundredths.
    pub last_scores: (u64, u64),
    /// The number of reprompts after invalid answers.
    pub reprompts: u64,
}

impl DeliberatorStats {
    /// The counts behind its rates, by name.
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
fn monday(at_ms: i64) -> Option<i64> {
    (at_ms != 0).then(|| MONDAY_DAY + 7 * ((at_ms - MONDAY_DAY * DAY_MS) / (7 * DAY_MS)))
}

/// The least number of common reviews for a rate.
pub const MIN_SHARED: u64 = 20;
/// The most deliberators that are paired, those with the most positions: a log can name any number.
pub const MAX_MEMBERS: usize = 64;

/// The agreement of pairs of deliberators.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agreement {
    /// For each paired deliberator, the number of decided reviews in which it has a position.
    pub members: BTreeMap<String, u64>,
    /// Each pair with common reviews, its names in order.
    pub pairs: BTreeMap<(String, String), Pair>,
    /// The number of unpaired deliberators beyond [`MAX_MEMBERS`].
    pub omitted: u64,
}

/// The positions of two deliberators in the reviews in which both have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pair {
    pub both_block: u64,
    pub both_pass: u64,
    /// The number of reviews in which only the first one blocks.
    pub first_blocks: u64,
    /// The number of reviews in which only the second one blocks.
    pub second_blocks: u64,
}

impl Pair {
    /// The number of reviews in which both have a position.
    pub fn shared(&self) -> u64 {
        self.agreed() + self.first_blocks + self.second_blocks
    }

    /// The number of reviews in which both have the same position.
    pub fn agreed(&self) -> u64 {
        self.both_block + self.both_pass
    }

    /// Whether there are enough common reviews for a rate.
    pub fn is_enough(&self) -> bool {
        self.shared() >= MIN_SHARED
    }

    /// The share of reviews in which they agree, 0 to 1; `None` if they have too few common reviews.
    pub fn rate(&self) -> Option<f64> {
        self.is_enough().then(|| self.agreed() as f64 / self.shared() as f64)
    }

    /// Cohen's kappa: how far they agree beyond what their rates of blocking alone predict, up to 1. `None` if they
    /// have too few common reviews, or if each always takes the same position.
    pub fn kappa(&self) -> Option<f64> {
        let observed = self.rate()?;
        let shared = self.shared() as f64;
        let first = (self.both_block + self.first_blocks) as f64 / shared;
        let second = (self.both_block + self.second_blocks) as f64 / shared;
        let expected = first * second + (1.0 - first) * (1.0 - second);
        (expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
    }

    fn add(&mut self, first: bool, second: bool, reviews: u64) {
        let counted = match (first, second) {
            (true, true) => &mut self.both_block,
            (false, false) => &mut self.both_pass,
            (true, false) => &mut self.first_blocks,
            (false, true) => &mut self.second_blocks,
        };
        *counted += reviews;
    }
}

/// Counts the agreement of deliberators.
///
/// # Errors
/// When the store does not answer.
#[crate::boxed]
pub async fn agreement(
    store: &Store,
    counted: &CountedLog,
    filter: &ReviewFilter,
) -> Result<Agreement, LedgerError> {
    let Some(log) = counted.id else { return Ok(Agreement::default()) };
    let rows = {
        let mut writer = store.writer().await;
        filtered(
            reviews!("SELECT positions, COUNT(*)", "AND prior = 1 AND positions <> '' GROUP BY positions"),
            log,
            counted,
            filter,
        )
        .fetch_all(&mut *writer.log_index())
        .await
        .map_err(|error| store.error(error))?
    };
    // Few combinations of positions occur, each of them often.
    let decided = rows.iter().filter_map(|row| {
        let positions: BTreeMap<String, bool> = serde_json::from_str(row.get(0)).ok()?;
        Some((positions, row.get::<i64, _>(1).unsigned_abs()))
    });
    Ok(Agreement::count(&decided.collect::<Vec<_>>()))
}

impl Agreement {
    fn count(decided: &[(BTreeMap<String, bool>, u64)]) -> Agreement {
        let mut members: BTreeMap<&str, u64> = BTreeMap::new();
        for (positions, reviews) in decided {
            for name in positions.keys() {
                *members.entry(name).or_default() += reviews;
            }
        }
        let mut ranked: Vec<_> = members.iter().map(|(name, reviews)| (*name, *reviews)).collect();
        ranked.sort_by_key(|(name, reviews)| (std::cmp::Reverse(*reviews), *name));
        let omitted = ranked.len().saturating_sub(MAX_MEMBERS) as u64;
        ranked.truncate(MAX_MEMBERS);
        let paired: BTreeSet<&str> = ranked.iter().map(|(name, _)| *name).collect();
        let mut pairs: BTreeMap<(&str, &str), Pair> = BTreeMap::new();
        for (positions, reviews) in decided {
            let positions: Vec<(&str, bool)> = positions
                .iter()
                .map(|(name, block)| (&**name, *block))
                .filter(|(name, _)| paired.contains(name))
                .collect();
            for (at, (first, block)) in positions.iter().enumerate() {
                for (second, other) in &positions[at + 1..] {
                    pairs.entry((first, second)).or_default().add(*block, *other, *reviews);
                }
            }
        }
        let owned =
            |((first, second), pair): ((&str, &str), Pair)| ((first.to_owned(), second.to_owned()), pair);
        Agreement {
            members: ranked.into_iter().map(|(name, reviews)| (name.to_owned(), reviews)).collect(),
            pairs: pairs.into_iter().map(owned).collect(),
            omitted,
        }
    }
}

/// Weeks with fewer reviews of a type are ignored.
const MIN_REVIEWS: u64 = 5;

/// The number of consecutive weeks that make a drift.
const MIN_WEEKS: usize = 3;

/// The least change of the mean from each of these weeks to the next.
const MIN_STEP: f64 = 0.05;

/// Three consecutive weeks with enough reviews, each stricter than the one before, or each more lenient.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// The type of artifact, or the producer.
    pub of: String,
    pub direction: Direction,
    /// Each week (Monday's day number since the Unix epoch) and its mean verdict: SHIP is 1, REVISE 0.5, any other 0.
    pub weeks: Vec<(i64, f64)>,
}

/// The direction of a drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More artifacts pass.
    Improving,
    /// Fewer artifacts pass.
    Tightening,
}

impl Direction {
    /// The public tool's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Improving => "improving",
            Direction::Tightening => "tightening",
        }
    }
}

/// The last drift of each type that has one, by type.
pub fn find_drift(stats: &LogStats) -> Vec<Drift> {
    let weeks = stats.weeks.iter().flat_map(|(monday, types)| {
        types.iter().map(move |(artifact_type, verdicts)| (&**artifact_type, *monday, verdicts))
    });
    drifts(weeks)
}

/// The last drift of each name that has one, by name. The input has a name, a week's Monday and the verdicts of that
/// week, with the weeks of a name in order.
fn drifts<'c>(weeks: impl Iterator<Item = (&'c str, i64, &'c BTreeMap<String, u64>)>) -> Vec<Drift> {
    let mut names: BTreeMap<&str, Vec<(i64, f64)>> = BTreeMap::new();
    for (name, monday, verdicts) in weeks {
        if let Some((mean, _)) = mean(verdicts).filter(|(_, reviews)| *reviews >= MIN_REVIEWS) {
            names.entry(name).or_default().push((monday, mean));
        }
    }
    let drifts = names.into_iter().filter_map(|(name, weeks)| {
        let last = weeks.windows(MIN_WEEKS).rev().find_map(|weeks| Some((direction(weeks)?, weeks.to_vec())));
        let (direction, weeks) = last?;
        Some(Drift { of: name.to_owned(), direction, weeks })
    });
    drifts.collect()
}

/// The mean verdict and the number of reviews; `None` without reviews.
fn mean(verdicts: &BTreeMap<String, u64>) -> Option<(f64, u64)> {
    let (mut count, mut sum) = (0, 0.0);
    for (verdict, reviews) in verdicts {
        let worth = match &**verdict {
            "SHIP" => 1.0,
            "REVISE" => 0.5,
            "HOLD" | "INCOMPLETE" => 0.0,
            _ => continue,
        };
        count += reviews;
        sum += worth * *reviews as f64;
    }
    (count > 0).then(|| (sum / count as f64, count))
}

fn direction(weeks: &[(i64, f64)]) -> Option<Direction> {
    if weeks.windows(2).any(|pair| pair[1].0 - pair[0].0 != 7) {
        return None;
    }
    let all = |moved: fn(f64) -> bool| weeks.windows(2).all(|pair| moved(pair[1].1 - pair[0].1));
    if all(|step| step >= MIN_STEP) {
        Some(Direction::Improving)
    } else if all(|step| -step >= MIN_STEP) {
        Some(Direction::Tightening)
    } else {
        None
    }
}

/// Producers by name.
pub type Producers = BTreeMap<String, ProducerStats>;

/// A producer's reviews.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProducerStats {
    pub all: ReviewCounts,
    /// Counts by week (Monday's day number since the Unix epoch). Lines without a time have no week.
    pub weeks: BTreeMap<i64, ReviewCounts>,
    /// The number of overridden reviews.
    pub overrides: u64,
}

/// Counts of reviews.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewCounts {
    /// By verdict.
    pub verdicts: BTreeMap<String, u64>,
    /// Positions of deliberators in decided reviews, and the number of blocking ones.
    pub positions: (u64, u64),
    /// Deliberators that scored in decided reviews, and the sum of their last scores in hundredths.
    pub scores: (u64, u64),
}

impl ReviewCounts {
    pub fn reviews(&self) -> u64 {
        self.verdicts.values().sum()
    }

    /// The share of blocking positions, 0 to 1.
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
        mean(&self.verdicts).map(|(mean, _)| mean)
    }

    fn add(&mut self, verdict: &str, reviews: u64, positions: (u64, u64), scores: (u64, u64)) {
        *self.verdicts.entry(verdict.to_owned()).or_default() += reviews;
        for (sum, more) in [(&mut self.positions, positions), (&mut self.scores, scores)] {
            sum.0 += more.0;
            sum.1 += more.1;
        }
    }
}

/// Adds a group of reviews from a row of [`stats`].
fn add_producer_row(producers: &mut Producers, row: &SqliteRow) {
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

/// The last drift of each producer that has one, by the rule of [`find_drift`].
pub fn producer_drifts(producers: &Producers) -> Vec<Drift> {
    let weeks = producers.iter().flat_map(|(name, stats)| {
        stats.weeks.iter().map(move |(monday, counts)| (&**name, *monday, &counts.verdicts))
    });
    drifts(weeks)
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

#[cfg(test)]
mod agreement_tests {
    use super::*;

    fn pair(both_block: u64, both_pass: u64, first_blocks: u64, second_blocks: u64) -> Pair {
        Pair { both_block, both_pass, first_blocks, second_blocks }
    }

    #[test]
    fn a_pair_that_has_met_rarely_has_no_rate() {
        assert_eq!(pair(10, 9, 0, 0).rate(), None);
        assert_eq!(pair(10, 9, 0, 0).kappa(), None);
        assert_eq!(pair(10, 5, 3, 2).rate(), Some(0.75));
    }

    #[test]
    fn kappa_is_what_the_textbook_says() {
        // Cohen's example of two raters of 50 proposals: 20 and 15 together, 5 and 10 apart.
        let kappa = pair(20, 15, 5, 10).kappa().unwrap();
        assert!((kappa - 0.4).abs() < 1e-12, "{kappa}");
        assert_eq!(pair(0, 20, 0, 0).kappa(), None, "both always pass");
        assert_eq!(pair(10, 10, 0, 0).kappa(), Some(1.0));
        assert_eq!(pair(0, 0, 10, 10).kappa(), Some(-1.0));
    }

    #[test]
    fn of_too_many_the_most_frequent_are_paired() {
        let all: Vec<String> = (0..MAX_MEMBERS + 6).map(|n| format!("m{n:03}")).collect();
        let with = |names: &[String]| names.iter().map(|name| (name.clone(), true)).collect();
        // Two of the later names occur twice.
        let decided = [(with(&all), 1), (with(&all[MAX_MEMBERS + 4..]), 1)];
        let agreement = Agreement::count(&decided);
        assert_eq!((agreement.members.len(), agreement.omitted), (MAX_MEMBERS, 6));
        assert!(agreement.members.contains_key(&all[MAX_MEMBERS + 5]));
        assert!(!agreement.members.contains_key(&all[MAX_MEMBERS]));
        assert_eq!(agreement.pairs.len(), MAX_MEMBERS * (MAX_MEMBERS - 1) / 2);
    }
}

#[cfg(test)]
mod drift_tests {
    use super::*;

    /// Ships and holds of each week.
    fn drifts(weeks: &[(u64, u64)]) -> Vec<(Direction, Vec<i64>)> {
        let counts = |(ships, holds): (u64, u64)| {
            BTreeMap::from([
                ("SHIP".to_owned(), ships),
                ("HOLD".to_owned(), holds),
                ("UNKNOWN".to_owned(), 9),
            ])
        };
        let week = |(at, week): (usize, &(u64, u64))| {
            (at as i64 * 7, BTreeMap::from([("post".to_owned(), counts(*week))]))
        };
        let stats = LogStats { weeks: weeks.iter().enumerate().map(week).collect(), ..LogStats::default() };
        let days = |drift: Drift| (drift.direction, drift.weeks.iter().map(|(day, _)| *day).collect());
        find_drift(&stats).into_iter().map(days).collect()
    }

    #[test]
    fn three_weeks_in_one_direction_are_a_drift() {
        assert_eq!(drifts(&[(5, 0), (4, 1), (3, 2)]), [(Direction::Tightening, vec![0, 7, 14])]);
        assert_eq!(drifts(&[(0, 5), (1, 4), (3, 2)]), [(Direction::Improving, vec![0, 7, 14])]);
        assert_eq!(drifts(&[(5, 0), (4, 1)]), []);
        assert_eq!(drifts(&[(5, 0), (4, 1), (4, 1)]), []);
    }

    #[test]
    fn weeks_with_few_reviews_end_a_row_and_small_steps_are_none() {
        assert_eq!(drifts(&[(5, 0), (0, 4), (4, 1), (3, 2)]), []);
        assert_eq!(drifts(&[(5, 0), (4, 1), (0, 4), (3, 2), (2, 3)]), []);
        assert_eq!(drifts(&[(100, 0), (97, 3), (94, 6)]), []);
    }

    #[test]
    fn of_several_the_last_one_counts() {
        let weeks = [(5, 0), (4, 1), (3, 2), (4, 1), (5, 0)];
        assert_eq!(drifts(&weeks), [(Direction::Improving, vec![14, 21, 28])]);
    }
}
