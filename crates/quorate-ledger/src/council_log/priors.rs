//! Reviews over time: the compounding loop, which shows the adjudicator earlier verdicts on the same type of artifact;
//! the drift of verdicts; and the statistics of producers. Lines of runs without a producer count for none.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Json;
use serde_json::json;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::IndexedLog;
use super::stats::{LogStats, monday};
use crate::{Store, files, verify};

/// The number of earlier verdicts that the adjudicator sees.
pub const LIMIT: u32 = 5;
/// The longest text of an earlier verdict, in characters.
const MAX_TEXT_CHARS: usize = 500;

/// The newest verdicts on a type of artifact, in the form that the adjudicator sees. Lines of this ledger's runs are
/// compared with the records.
///
/// # Errors
/// When log or store cannot be read.
#[crate::boxed]
pub async fn priors(
    store: &Store,
    log: &Path,
    indexed: IndexedLog,
    artifact_type: &str,
) -> Result<Vec<Json>, LedgerError> {
    let Some(id) = indexed.id else { return Ok(Vec::new()) };
    let places = {
        let mut writer = store.writer().await;
        let connection = writer.log_index();
        let rows = sqlx::query(
            "SELECT at_byte, bytes FROM log_line WHERE log = ? AND artifact_type = ? AND prior = 1 ORDER BY id DESC LIMIT ?",
        )
        .bind(id)
        .bind(artifact_type)
        .bind(i64::from(LIMIT))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| store.error(error))?;
        rows.iter()
            .map(|row| (row.get::<i64, _>(0).unsigned_abs(), row.get::<i64, _>(1).unsigned_abs()))
            .collect::<Vec<_>>()
    };
    let read = || -> std::io::Result<Vec<Vec<u8>>> {
        let mut file = files::open(log)?;
        let mut found = Vec::with_capacity(places.len());
        for (at, bytes) in &places {
            let mut text = vec![0; usize::try_from(*bytes).unwrap_or(0)];
            file.seek(SeekFrom::Start(*at))?;
            file.read_exact(&mut text)?;
            found.push(text);
        }
        Ok(found)
    };
    let lines = read().map_err(|error| LedgerError::Unavailable {
        what: format!("cannot read {}", log.display()),
        source: Some(Box::new(error)),
    })?;
    let mut priors = Vec::with_capacity(lines.len());
    for text in &lines {
        // According to the index, the line exists.
        let line: Json = serde_json::from_slice(text).unwrap_or_default();
        let is_altered = line.is_null() || verify::is_altered_line(store, &line, text).await?;
        priors.push(if is_altered { altered(&line) } else { prior(&line) });
    }
    Ok(priors)
}

/// The verdict shown for a line of this ledger that differs from its run's records (D13).
pub const ALTERED: &str = "ALTERED";

/// The entry for such a line, without its text.
fn altered(line: &Json) -> Json {
    let run = line["span_id"].as_str().unwrap_or_default();
    json!({"ts": null, "verdict": ALTERED, "artifact": format!("run {run}"), "reasoning": null, "revision_brief": null})
}

/// The entry for a line, in either form of the log.
fn prior(line: &Json) -> Json {
    let adjudicator = &line["adjudicator"];
    let first = |values: [&Json; 3]| {
        values.into_iter().find(|value| value.is_string()).cloned().unwrap_or(Json::Null)
    };
    let verdict = first([&line["verdict"], &adjudicator["final_verdict"], &adjudicator["verdict"]]);
    let brief = first([&line["revision_brief"], &adjudicator["revision_brief"], &Json::Null]);
    let reasoning = first([&line["reasoning"], &adjudicator["reasoning"], &line["adjudicator_reasoning"]]);
    json!({
        "ts": truncate(&line["ts"]),
        "verdict": verdict,
        "artifact": truncate(&first([&line["artifact"], &line["artifact_path"], &Json::Null])),
        "reasoning": truncate(&reasoning),
        "revision_brief": truncate(&brief),
    })
}

fn truncate(text: &Json) -> Json {
    let Some(text) = text.as_str() else { return Json::Null };
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        None => json!(text),
        Some((end, _)) => json!(format!("{}…", &text[..end])),
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
pub(super) fn drifts<'c>(
    weeks: impl Iterator<Item = (&'c str, i64, &'c BTreeMap<String, u64>)>,
) -> Vec<Drift> {
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
pub(super) fn mean(verdicts: &BTreeMap<String, u64>) -> Option<(f64, u64)> {
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

/// Adds a group of reviews from the rows of [`super::stats::stats`].
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

/// The last drift of each producer that has one, by the rule of [`find_drift`].
pub fn producer_drifts(producers: &Producers) -> Vec<Drift> {
    let weeks = producers.iter().flat_map(|(name, stats)| {
        stats.weeks.iter().map(move |(monday, counts)| (&**name, *monday, &counts.verdicts))
    });
    drifts(weeks)
}

#[cfg(test)]
mod tests {
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
