//! Chooses the lines of the index that are counted. Lines of this ledger's runs are compared with the records (D13),
//! and a line that differs does not count as a verdict. A resumed review counts by its last line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Name;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::IndexedLog;
use super::index::key;
use super::line::LogEvent;
use crate::Store;
use crate::runs::{MAX_COMPARED, RunFinding, rows_of};
use crate::stats::ReviewFilter;
use crate::store::engine::{Row, sql};
use crate::verify::shown_runs::{Compared, Extent, LoggedFacts, ShownQuery, UNLISTED};

/// The lines of a log that are counted.
#[derive(Debug, Clone, Default)]
pub struct CountedLog {
    /// The log's row in the index; `None` without a log.
    pub(super) id: Option<i64>,
    /// The lines that do not count as reviews, as a JSON array of their row ids.
    pub(super) excluded: String,
    /// Lines with a person's override.
    overrides: Vec<IndexedLine>,
    /// The runs whose rows or lines differ from their records, with the difference. Their lines do not count.
    pub altered: BTreeMap<Name, String>,
}

/// A line of the index.
#[derive(Debug, Clone)]
struct IndexedLine {
    id: i64,
    span: String,
    event: String,
    verdict: String,
    artifact_type: String,
    at_ms: i64,
    producer: String,
}

/// A statement that selects lines of a log.
macro_rules! lines {
    ($which:literal) => {
        concat!(
            "SELECT id, span, event, verdict, artifact_type, at_ms, producer FROM log_line NOT INDEXED \
             WHERE log = ?1 AND ",
            $which
        )
    };
}

impl IndexedLine {
    fn of(row: &SqliteRow) -> Self {
        IndexedLine {
            id: row.get(0),
            span: row.get(1),
            event: row.get(2),
            verdict: row.get(3),
            artifact_type: row.get(4),
            at_ms: row.get(5),
            producer: row.get(6),
        }
    }

    fn is(&self, event: LogEvent) -> bool {
        self.event == event.as_str()
    }

    /// The overridden review, or the line itself if it names none.
    fn review(&self) -> (&str, i64) {
        (&self.span, if self.span.is_empty() { self.id } else { 0 })
    }
}

impl CountedLog {
    /// The number of overridden reviews, in total and for each producer. A review that was overridden twice counts
    /// once.
    pub(super) fn overrides(&self, filter: &ReviewFilter) -> (u64, BTreeMap<&str, u64>) {
        let accepts = |line: &&IndexedLine| {
            filter.since_ms.is_none_or(|since_ms| line.at_ms >= since_ms)
                && filter.verdict.as_ref().is_none_or(|verdict| *verdict == line.verdict)
                && filter.artifact_type.as_ref().is_none_or(|wanted| *wanted == line.artifact_type)
        };
        let (mut reviews, mut producers) = (BTreeSet::new(), BTreeMap::<&str, BTreeSet<_>>::new());
        for line in self.overrides.iter().filter(accepts) {
            reviews.insert(line.review());
            producers.entry(&line.producer).or_default().insert(line.review());
        }
        let producers = producers.into_iter().map(|(producer, reviews)| (producer, reviews.len() as u64));
        (reviews.len() as u64, producers.collect())
    }
}

/// Chooses the counted lines of a ledger's log: lines of its own runs that follow from the records, and all others.
///
/// # Errors
/// When the store does not answer.
#[crate::boxed]
pub async fn compare(store: &Store, log: &Path, indexed: IndexedLog) -> Result<CountedLog, LedgerError> {
    let Some(id) = indexed.id else { return Ok(CountedLog::default()) };
    let (mut altered, mut excluded) = (BTreeMap::new(), BTreeSet::new());
    let query = ShownQuery { statements: Vec::new(), limit: 0, extent: Extent::Row, unlisted: true };
    for run in store.shown(&query).await?.unlisted {
        altered.insert(run.run, UNLISTED.to_owned());
    }
    let runs = store.names(sql("SELECT run FROM run ORDER BY seq")).await?;
    let mut lines = own_lines(store, id, runs.iter().chain(altered.keys())).await?;
    for run in altered.keys() {
        excluded.extend(lines.remove(&**run).into_iter().flatten().map(|line| line.id));
    }
    let key = key(log);
    let mut presence = LinePresence::default();
    for some in runs.iter().collect::<Vec<_>>().chunks(MAX_COMPARED) {
        for (row, compared) in store.shown(&rows_of(some)).await?.runs {
            let run = row.text(1);
            // An imported run is logged where it was recorded.
            if row.int(14) != 0 && compared.finding.is_none() {
                continue;
            }
            let lines = lines.remove(run).unwrap_or_default();
            match compare_lines(&row, &compared, &lines) {
                Ok(absent) => {
                    let is_here = row.text(7) == key && compared.logged.is_logged;
                    presence.add(run, &lines, if is_here { absent } else { Vec::new() });
                }
                Err(what) => {
                    excluded.extend(lines.iter().map(|line| line.id));
                    altered.insert(run.into(), what);
                }
            }
        }
    }
    for run in presence.removed(indexed.is_cut) {
        excluded.extend(presence.ids(&run));
        altered.insert(run, "the log has no line for it".to_owned());
    }
    count_others(store, CountedLog { id: Some(id), altered, ..CountedLog::default() }, excluded).await
}

/// Chooses the lines of a log without a ledger, whose lines have no records to compare with.
///
/// # Errors
/// When the store does not answer.
#[crate::boxed]
pub async fn without_ledger(store: &Store, indexed: IndexedLog) -> Result<CountedLog, LedgerError> {
    match indexed.id {
        None => Ok(CountedLog::default()),
        id => count_others(store, CountedLog { id, ..CountedLog::default() }, BTreeSet::new()).await,
    }
}

/// Adds the lines other than plain verdicts.
async fn count_others(
    store: &Store,
    mut counted: CountedLog,
    mut excluded: BTreeSet<i64>,
) -> Result<CountedLog, LedgerError> {
    let Some(log) = counted.id else { return Ok(counted) };
    let mut writer = store.writer().await;
    let index = writer.log_index();
    let mut resumed = BTreeSet::new();
    let other = lines!("event <> 'verdict'");
    let rows = sqlx::query(other).bind(log).fetch_all(&mut *index).await;
    for line in rows.map_err(|error| store.error(error))?.iter().map(IndexedLine::of) {
        if excluded.contains(&line.id) {
            continue;
        }
        if line.is(LogEvent::Resumed) {
            resumed.insert(line.span);
            continue;
        }
        if line.is(LogEvent::Override) {
            excluded.insert(line.id);
        }
        counted.overrides.push(line);
    }
    excluded.extend(incomplete_lines(index, log, &resumed).await.map_err(|error| store.error(error))?);
    counted.excluded = json_array(&excluded);
    Ok(counted)
}

/// The lines of runs of this ledger, by run.
async fn own_lines<'r>(
    store: &Store,
    log: i64,
    runs: impl Iterator<Item = &'r Name>,
) -> Result<BTreeMap<String, Vec<IndexedLine>>, LedgerError> {
    let runs: Vec<&Name> = runs.collect();
    let mut own: BTreeMap<String, Vec<IndexedLine>> = BTreeMap::new();
    if runs.is_empty() {
        return Ok(own);
    }
    let mut writer = store.writer().await;
    let rows = sqlx::query(lines!("span IN (SELECT value FROM json_each(?2)) ORDER BY id"))
        .bind(log)
        .bind(json_array(&runs))
        .fetch_all(writer.log_index())
        .await
        .map_err(|error| store.error(error))?;
    for line in rows.iter().map(IndexedLine::of) {
        own.entry(line.span.clone()).or_default().push(line);
    }
    Ok(own)
}

/// Compares a run's lines with those that follow from its records: each verdict and each decision of a person once.
/// Returns the times of missing lines.
fn compare_lines(row: &Row, compared: &Compared, lines: &[IndexedLine]) -> Result<Vec<i64>, String> {
    match &compared.finding {
        Some(RunFinding::Altered(what) | RunFinding::Damaged(what)) => return Err(what.clone()),
        Some(RunFinding::Erased) => return Ok(Vec::new()),
        None => {}
    }
    let LoggedFacts { mut verdicts, mut overrides, .. } = compared.logged.clone();
    for line in lines {
        let facts = match () {
            () if line.is(LogEvent::Verdict) || line.is(LogEvent::Resumed) => &mut verdicts,
            () if line.is(LogEvent::Override) => &mut overrides,
            () => return Err("another program wrote a line of the log".to_owned()),
        };
        let place =
            facts.iter().position(|(verdict, at_ms)| *verdict == line.verdict && *at_ms == line.at_ms);
        let place = place.ok_or_else(|| {
            format!("the log has a line for it with {}, which does not match its records", line.verdict)
        })?;
        facts.remove(place);
        let artifact_type = Some(row.text(4)).filter(|text| !text.is_empty()).unwrap_or("unknown_type");
        if line.artifact_type != artifact_type || line.producer != row.text(13) {
            return Err("its line in the log does not match its records".to_owned());
        }
    }
    // A resumed run has no line for a second INCOMPLETE.
    let has_verdict = lines.iter().any(|line| !line.is(LogEvent::Override));
    let verdict = verdicts.last().filter(|_| !has_verdict);
    Ok(verdict.into_iter().chain(&overrides).map(|(_, at_ms)| *at_ms).collect())
}

/// The existing and the missing lines of this ledger's runs. A log may be rotated or started again, so that it lacks
/// all lines up to some time. A missing line after that time was removed.
#[derive(Default)]
struct LinePresence {
    lines: BTreeMap<Name, Vec<i64>>,
    first_ms: Option<i64>,
    last_ms: Option<i64>,
    absent: Vec<(i64, Name)>,
}

impl LinePresence {
    fn add(&mut self, run: &str, lines: &[IndexedLine], absent: Vec<i64>) {
        let first = lines.iter().map(|line| line.at_ms).min();
        let last = lines.iter().map(|line| line.at_ms).chain(absent.iter().copied()).max();
        self.first_ms = self.first_ms.into_iter().chain(first).min();
        self.last_ms = self.last_ms.max(last);
        if !absent.is_empty() {
            self.lines.insert(run.into(), lines.iter().map(|line| line.id).collect());
            self.absent.extend(absent.into_iter().map(|at_ms| (at_ms, Name::from(run))));
        }
    }

    /// The runs with a removed line. If the log's last line is incomplete, it exists but is not counted.
    fn removed(&self, is_cut: bool) -> BTreeSet<Name> {
        let is_removed = |at_ms: i64| {
            self.first_ms.is_some_and(|first_ms| at_ms > first_ms) && !(is_cut && Some(at_ms) == self.last_ms)
        };
        self.absent.iter().filter(|(at_ms, _)| is_removed(*at_ms)).map(|(_, run)| run.clone()).collect()
    }

    fn ids(&self, run: &Name) -> impl Iterator<Item = i64> {
        self.lines.get(run).cloned().unwrap_or_default().into_iter()
    }
}

/// The lines without a verdict of reviews that were resumed to one.
async fn incomplete_lines(
    index: &mut SqliteConnection,
    log: i64,
    resumed: &BTreeSet<String>,
) -> Result<Vec<i64>, sqlx::Error> {
    if resumed.is_empty() {
        return Ok(Vec::new());
    }
    let statement = "SELECT id FROM log_line NOT INDEXED WHERE log = ?1 AND event = 'verdict' AND verdict = 'INCOMPLETE' \
                     AND span IN (SELECT value FROM json_each(?2))";
    let rows = sqlx::query(statement).bind(log).bind(json_array(&resumed)).fetch_all(index).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn json_array(items: &impl serde::Serialize) -> String {
    // Names and numbers always have a JSON form.
    serde_json::to_string(items).unwrap_or_default()
}
