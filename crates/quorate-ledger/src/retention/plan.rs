//! The plan of an erasure: which records of which runs, and which texts that no remaining record names. Planning
//! changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::clock::parse_rfc3339;
use quorate_kernel::ports::ledger::{Kind, LedgerError};
use quorate_kernel::record::RunOpened;
use quorate_protocol::{Json, Name};
use serde_json::Map;

use super::{Erasure, ErasureTarget, Period, StatedPeriod, has_answers, hashes_in, to_ranges};
use crate::record::Head;
use crate::store::engine::{Column, Engine, sql};
use crate::store::index::Change;
use crate::store::{STREAM, Store, index};

/// The rules for which bodies are kept.
pub struct RetentionSettings<'a> {
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// The number of days that bodies of a run are kept if its first record, which is the argument, has no retention;
    /// `None` is for ever. Imported runs without a retention are kept for ever.
    pub default_days: &'a (dyn Fn(&RunOpened) -> Option<u32> + Sync),
    /// The number of days that bodies of a conversation are kept. A conversation never ends, so the days count from
    /// each record.
    pub conversation_days: Option<u32>,
}

/// The erasures in one run, or in a conversation's stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannedErasure {
    pub run: Name,
    /// The retention that applies.
    pub period: Period,
    /// The time of its end, in milliseconds since the Unix epoch; `None` for a conversation.
    pub ended_ms: Option<i64>,
    /// The records, as inclusive ranges of their numbers.
    pub records: Vec<(u64, u64)>,
    /// The size of their bodies in bytes.
    pub bytes: u64,
    /// The texts, by SHA-256.
    pub texts: BTreeSet<String>,
    /// The log that contains its line, if the run was recorded here.
    pub log_path: Option<String>,
}

/// All planned erasures.
#[derive(Debug, Default)]
pub struct ErasurePlan {
    /// The runs with erasures.
    pub erasures: Vec<PlannedErasure>,
    /// Runs that would have erasures if they were not on hold.
    pub held: Vec<Name>,
    /// The number of open runs, which are never erased.
    pub open: u64,
    /// Texts that the erased records name.
    pub(crate) texts: BTreeSet<String>,
    pub(crate) references: TextReferences,
    /// Runs whose retention is over.
    pub(crate) expired: BTreeSet<Name>,
    /// A run that is about to end.
    pub(crate) ending: Option<Name>,
}

impl PlannedErasure {
    pub fn count(&self) -> u64 {
        self.records.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// The period, as the erasure's record states it.
    pub(crate) fn to_erasure(&self) -> Erasure {
        Erasure {
            run: self.run.to_string(),
            records: self.records.iter().map(|(first, last)| *first..last + 1).collect(),
            texts: self.texts.iter().cloned().collect(),
            days: self.period.days(),
        }
    }
}

impl ErasurePlan {
    /// Assigns each unreferenced text to the first run that names it, and removes runs without erasures.
    pub(crate) fn assign_texts(&mut self) {
        let needed = |text: &String| {
            self.references
                .by_stream
                .iter()
                .any(|(run, texts)| !self.expired.contains(run) && texts.contains(text))
        };
        let mut free: BTreeSet<String> = self.texts.iter().filter(|text| !needed(text)).cloned().collect();
        for due in &mut self.erasures {
            let named = self.references.by_stream.get(&due.run);
            due.texts = named.into_iter().flatten().filter(|text| free.remove(*text)).cloned().collect();
        }
        self.erasures.retain(|due| !due.records.is_empty() || !due.texts.is_empty());
    }
}

impl Store {
    /// The erasures that are due now.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn plan_erasure(&self, terms: &RetentionSettings<'_>) -> Result<ErasurePlan, LedgerError> {
        let planning = async |engine: &mut Engine| {
            let mut plan = ErasurePlan::default();
            let runs = sql("SELECT run, ended, log_path FROM run ORDER BY seq");
            let runs = runs.rows(engine, &[Column::Text, Column::Int, Column::Text]).await?;
            plan.open = runs.iter().filter(|row| row.int(1) == 0).count() as u64;
            let on_hold = runs_on_hold(engine).await?;
            for row in runs.iter().filter(|row| row.int(1) != 0) {
                let run: Name = row.text(0).into();
                let Some((keep, ended_ms)) = period_and_end(engine, &run, terms).await? else { continue };
                if !keep.has_expired(ended_ms, terms.now_ms) {
                    continue;
                }
                let mut erasure = plan_run(engine, &run, keep, ended_ms).await?;
                // The log of an imported run belongs to another workspace.
                let ours = !row.text(2).is_empty() && !index::is_imported(engine, &run).await?;
                erasure.log_path = ours.then(|| row.text(2).to_owned());
                if !on_hold.contains(&run) {
                    plan.expired.insert(run);
                    plan.erasures.push(erasure);
                } else if !erasure.records.is_empty() {
                    plan.held.push(run);
                }
            }
            if let Some(days) = terms.conversation_days {
                for due in plan_conversations(engine, days, terms.now_ms).await? {
                    match on_hold.contains(&due.run) {
                        true => plan.held.push(due.run),
                        false => plan.erasures.push(due),
                    }
                }
            }
            find_unneeded_texts(engine, &mut plan, terms).await?;
            Ok(plan)
        };
        self.read(planning).await
    }

    /// The erasures in a run with an outcome that is about to end, if its bodies are not kept (D5).
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn plan_erasure_at_end(
        &self,
        run: &Name,
        terms: &RetentionSettings<'_>,
    ) -> Result<ErasurePlan, LedgerError> {
        let planning = async |engine: &mut Engine| {
            let mut plan = ErasurePlan::default();
            let period = run_opened(engine, run)
                .await?
                .map(|opened| Period::from_opened(&opened, (terms.default_days)(&opened)));
            if period == Some(Period::UntilEnd) && !runs_on_hold(engine).await?.contains(run) {
                plan.expired.insert(run.clone());
                plan.erasures.push(plan_run(engine, run, Period::UntilEnd, terms.now_ms).await?);
                plan.ending = Some(run.clone());
                find_unneeded_texts(engine, &mut plan, terms).await?;
            }
            Ok(plan)
        };
        self.read(planning).await
    }
}

/// The runs on hold, according to the index or to the records.
pub(crate) async fn runs_on_hold(engine: &mut Engine) -> Result<BTreeSet<Name>, sqlx::Error> {
    let rows = sql("SELECT run FROM held").rows(engine, &[Column::Text]).await?;
    let mut on_hold: BTreeSet<Name> = rows.iter().map(|row| row.text(0).into()).collect();
    let hold_records = sql("SELECT kind, data FROM record WHERE run = $1 AND kind IN ($2, $3) ORDER BY n");
    let hold_records = hold_records.bind(STREAM).bind(Kind::Held.as_str()).bind(Kind::Released.as_str());
    let mut by_records = BTreeSet::new();
    for row in hold_records.rows(engine, &[Column::Text, Column::Text]).await? {
        let data: Option<Map<String, Json>> =
            row.opt_text(1).and_then(|data| serde_json::from_str(data).ok());
        match data.and_then(|data| Change::from_record(row.text(0), 0, &data)) {
            Some(Change::Held { run }) => drop(by_records.insert(Name::from(run))),
            Some(Change::Released { run }) => drop(by_records.remove(&*run)),
            _ => {}
        }
    }
    on_hold.extend(by_records);
    Ok(on_hold)
}

/// The state of a run or a conversation's stream for the rules of erasure.
pub(crate) async fn erasure_target(
    engine: &mut Engine,
    run: &str,
    held: &BTreeSet<Name>,
) -> Result<ErasureTarget, sqlx::Error> {
    let row = sql("SELECT ended, verdict FROM run WHERE run = $1").bind(run);
    let row = row.row(engine, &[Column::Int, Column::Text]).await?;
    let ended_ms = ended_ms(engine, run).await?;
    let is_ended = row.as_ref().is_some_and(|row| row.int(0) != 0);
    Ok(ErasureTarget {
        period: run_opened(engine, run).await?.map(|opened| StatedPeriod::from_opened(&opened)),
        is_stream: row.is_none(),
        is_decided: row.is_some_and(|row| row.opt_text(1).is_some()),
        ended_ms: ended_ms.filter(|_| is_ended),
        held: held.contains(run),
        imported: index::is_imported(engine, run).await?,
    })
}

/// A run's first record.
async fn run_opened(engine: &mut Engine, run: &str) -> Result<Option<RunOpened>, sqlx::Error> {
    let first = sql("SELECT data FROM record WHERE run = $1 AND n = 0").bind(run);
    let first = first.row(engine, &[Column::Text]).await?;
    Ok(first.and_then(|row| serde_json::from_str(row.opt_text(0)?).ok()))
}

/// The retention of an ended run, and the time of its end; `None` if its records lack either, which keeps its bodies.
async fn period_and_end(
    engine: &mut Engine,
    run: &str,
    terms: &RetentionSettings<'_>,
) -> Result<Option<(Period, i64)>, sqlx::Error> {
    let Some(opened) = run_opened(engine, run).await? else { return Ok(None) };
    let ended_ms = ended_ms(engine, run).await?;
    // This workspace's retention does not apply to runs of other workspaces.
    let default_days = match index::is_imported(engine, run).await? {
        true => None,
        false => (terms.default_days)(&opened),
    };
    let period = Period::from_opened(&opened, default_days);
    Ok(ended_ms.map(|ended_ms| (period, ended_ms)))
}

/// When the run ended last, in milliseconds since the Unix epoch.
async fn ended_ms(engine: &mut Engine, run: &str) -> Result<Option<i64>, sqlx::Error> {
    let ended = sql("SELECT head FROM record WHERE run = $1 AND kind = $2 ORDER BY n DESC LIMIT 1");
    let ended = ended.bind(run).bind(Kind::RunEnded.as_str()).row(engine, &[Column::Text]).await?;
    Ok(ended.and_then(|row| at_ms(row.text(0))))
}

fn at_ms(head: &str) -> Option<i64> {
    parse_rfc3339(&serde_json::from_str::<Head>(head).ok()?.at)
}

/// The erasable records of a run.
async fn plan_run(
    engine: &mut Engine,
    run: &Name,
    period: Period,
    ended_ms: i64,
) -> Result<PlannedErasure, sqlx::Error> {
    let statement = sql("SELECT n, kind, data FROM record WHERE run = $1 AND data IS NOT NULL ORDER BY n");
    let rows = statement.bind(&**run).rows(engine, &[Column::Int, Column::Text, Column::Text]).await?;
    let (mut numbers, mut bytes) = (BTreeSet::new(), 0);
    for row in &rows {
        let (kind, data) = (row.text(1), row.text(2));
        if has_answers(kind, data) {
            numbers.insert(row.count(0));
            bytes += data.len() as u64;
        }
    }
    let (records, ended_ms) = (to_ranges(&numbers), Some(ended_ms));
    Ok(PlannedErasure { run: run.clone(), period, ended_ms, records, bytes, ..PlannedErasure::default() })
}

/// The records of conversations that are older than a number of days. Each record has its own period. Records after the
/// last settled turn stay, because that turn is still in progress.
async fn plan_conversations(
    engine: &mut Engine,
    days: u32,
    now_ms: i64,
) -> Result<Vec<PlannedErasure>, sqlx::Error> {
    let period = Period::Days(days);
    let streams = sql("SELECT run, MAX(n) FROM record WHERE kind = $1 GROUP BY run ORDER BY run");
    let streams = streams.bind(Kind::Turn.as_str()).rows(engine, &[Column::Text, Column::Int]).await?;
    let mut all = Vec::new();
    for stream in &streams {
        let statement = sql("SELECT n, head, CAST(LENGTH(data) AS BIGINT) FROM record \
                             WHERE run = $1 AND n < $2 AND data IS NOT NULL AND kind IN ($3, $4) ORDER BY n");
        let statement = statement.bind(stream.text(0)).bind(stream.int(1));
        let statement = statement.bind(Kind::Attempt.as_str()).bind(Kind::Consultation.as_str());
        let rows = statement.rows(engine, &[Column::Int, Column::Text, Column::Int]).await?;
        let old: Vec<_> = rows
            .iter()
            .filter(|row| at_ms(row.text(1)).is_some_and(|at_ms| period.has_expired(at_ms, now_ms)))
            .collect();
        let numbers: BTreeSet<u64> = old.iter().map(|row| row.count(0)).collect();
        if !numbers.is_empty() {
            all.push(PlannedErasure {
                run: stream.text(0).into(),
                period,
                records: to_ranges(&numbers),
                bytes: old.iter().map(|row| row.count(2)).sum(),
                ..PlannedErasure::default()
            });
        }
    }
    Ok(all)
}

/// Finds the texts that no remaining record names.
async fn find_unneeded_texts(
    engine: &mut Engine,
    plan: &mut ErasurePlan,
    terms: &RetentionSettings<'_>,
) -> Result<(), sqlx::Error> {
    let kept = sql("SELECT sha256 FROM body").rows(engine, &[Column::Text]).await?;
    let kept: BTreeSet<&str> = kept.iter().map(|row| row.text(0)).collect();
    for run in &plan.expired {
        let statement = sql("SELECT data FROM record WHERE run = $1 AND data IS NOT NULL").bind(&**run);
        for row in statement.rows(engine, &[Column::Text]).await? {
            let named = hashes_in(row.text(0)).filter(|hash| kept.contains(hash));
            plan.texts.extend(named.map(str::to_owned));
        }
    }
    plan.references.scan_on(engine, &plan.texts).await?;
    // Other runs that name such a text may have expired as well.
    let held = runs_on_hold(engine).await?;
    let others: Vec<Name> =
        plan.references.by_stream.keys().filter(|run| !plan.expired.contains(*run)).cloned().collect();
    for run in others {
        let ended =
            sql("SELECT ended FROM run WHERE run = $1").bind(&*run).row(engine, &[Column::Int]).await?;
        if ended.is_some_and(|row| row.int(0) != 0)
            && !held.contains(&run)
            && let Some((keep, ended_ms)) = period_and_end(engine, &run, terms).await?
            && keep.has_expired(ended_ms, terms.now_ms)
        {
            plan.expired.insert(run);
        }
    }
    plan.assign_texts();
    Ok(())
}

/// The number of records per read.
const PAGE: u64 = 1000;

/// References to some texts in the records.
#[derive(Debug, Default)]
pub(crate) struct TextReferences {
    /// The texts that each stream names.
    pub(crate) by_stream: BTreeMap<Name, BTreeSet<String>>,
    /// The number of scanned records, from the first on.
    pub(crate) scanned: u64,
}

impl TextReferences {
    /// Scans the next records for the names of texts.
    pub(crate) async fn scan_on(
        &mut self,
        engine: &mut Engine,
        texts: &BTreeSet<String>,
    ) -> Result<(), sqlx::Error> {
        // The ledger's own records describe operations. A text that only they name is not kept.
        let page = "SELECT seq, run, data FROM record WHERE seq > $1 AND data IS NOT NULL AND run <> $2 \
                    ORDER BY seq LIMIT $3";
        while !texts.is_empty() {
            let statement = sql(page).bind(self.scanned).bind(STREAM).bind(PAGE);
            let rows = statement.rows(engine, &[Column::Int, Column::Text, Column::Text]).await?;
            let Some(last) = rows.last() else { break };
            self.scanned = last.count(0);
            for row in &rows {
                let named = hashes_in(row.text(2)).filter(|hash| texts.contains(*hash));
                for hash in named {
                    self.by_stream.entry(row.text(1).into()).or_default().insert(hash.to_owned());
                }
            }
        }
        Ok(())
    }
}
