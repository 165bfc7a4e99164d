//! What is to be erased: which records of which runs, and which texts nobody else names. Looking changes nothing.

use std::collections::BTreeSet;

use quorate_kernel::clock::parse_rfc3339;
use quorate_kernel::ports::ledger::{Error, Kind};
use quorate_protocol::{Json, Name};
use serde_json::Map;

use super::rules::{Erasure, Keeps, Subject};
use super::scan::Named;
use super::{Keep, hashes, holds_words, ranges};
use crate::record::Head;
use crate::store::engine::{Column, Engine, sql};
use crate::store::index::Change;
use crate::store::{STREAM, Store, merge};

/// By what is judged whether bodies are kept.
pub struct Terms<'a> {
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// For how many days bodies of a run are kept whose first record, which is given, does not say; `None` is for ever.
    /// A run that was imported is kept for ever where it does not say so itself.
    pub unsaid: &'a (dyn Fn(&Map<String, Json>) -> Option<u32> + Sync),
    /// For how many days those of a conversation are kept, which never ends: counted from each record.
    pub conversations: Option<u32>,
}

/// What is to be erased of a run, or of a conversation's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The run.
    pub run: Name,
    /// How long its bodies are kept.
    pub keep: Keep,
    /// When it ended, in milliseconds since the Unix epoch; `None` of a conversation.
    pub ended_ms: Option<i64>,
    /// The records, as ranges of their numbers, both ends included.
    pub records: Vec<(u64, u64)>,
    /// How many bytes their bodies have.
    pub bytes: u64,
    /// The texts, by SHA-256.
    pub texts: BTreeSet<String>,
    /// The log that has a line of it, where it was recorded here.
    pub log: Option<String>,
}

/// All that is to be erased.
#[derive(Debug, Default)]
pub struct Plan {
    /// The runs that something is erased of.
    pub due: Vec<Due>,
    /// Runs that something would be erased of if they were not on hold.
    pub held: Vec<Name>,
    /// How many runs have not ended; nothing is erased of these.
    pub open: u64,
    /// What the runs name that bodies are erased of.
    pub(crate) texts: BTreeSet<String>,
    pub(crate) named: Named,
    /// Runs whose bodies are not to be kept any more.
    pub(crate) over: BTreeSet<Name>,
    /// A run that is just ending.
    pub(crate) ending: Option<Name>,
}

impl Due {
    /// How many records.
    pub fn count(&self) -> u64 {
        self.records.iter().map(|(first, last)| last - first + 1).sum()
    }
}

impl Due {
    /// As the record of it says.
    pub(crate) fn erasure(&self) -> Erasure {
        Erasure {
            run: self.run.to_string(),
            records: self.records.iter().map(|(first, last)| *first..last + 1).collect(),
            texts: self.texts.iter().cloned().collect(),
            days: self.keep.days(),
        }
    }
}

impl Plan {
    /// Gives each text that nobody needs any more to the first run that names it, and leaves out runs that nothing is
    /// to be erased of.
    pub(crate) fn settle(&mut self) {
        let needed = |text: &String| {
            self.named.by.iter().any(|(run, texts)| !self.over.contains(run) && texts.contains(text))
        };
        let mut free: BTreeSet<String> = self.texts.iter().filter(|text| !needed(text)).cloned().collect();
        for due in &mut self.due {
            let named = self.named.by.get(&due.run);
            due.texts = named.into_iter().flatten().filter(|text| free.remove(*text)).cloned().collect();
        }
        self.due.retain(|due| !due.records.is_empty() || !due.texts.is_empty());
    }
}

impl Store {
    /// What is to be erased now.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn due(&self, terms: &Terms<'_>) -> Result<Plan, Error> {
        let mut connection = self.writer().await;
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        let planning = async {
            let mut plan = Plan::default();
            let runs = sql("SELECT run, ended, log_path FROM run ORDER BY seq");
            let runs = runs.rows(engine, &[Column::Text, Column::Int, Column::Text]).await?;
            plan.open = runs.iter().filter(|row| row.int(1) == 0).count() as u64;
            let held = held(engine).await?;
            for row in runs.iter().filter(|row| row.int(1) != 0) {
                let run: Name = row.text(0).into();
                let Some((keep, ended_ms)) = posture(engine, &run, terms).await? else { continue };
                if !keep.is_over(ended_ms, terms.now_ms) {
                    continue;
                }
                let mut due = due(engine, &run, keep, Some(ended_ms)).await?;
                // An imported run names a log of another workspace.
                let ours = !row.text(2).is_empty() && !merge::is_imported(engine, &run).await?;
                due.log = ours.then(|| row.text(2).to_owned());
                if !held.contains(&run) {
                    plan.over.insert(run);
                    plan.due.push(due);
                } else if !due.records.is_empty() {
                    plan.held.push(run);
                }
            }
            if let Some(days) = terms.conversations {
                for due in conversations(engine, days, terms.now_ms).await? {
                    match held.contains(&due.run) {
                        true => plan.held.push(due.run),
                        false => plan.due.push(due),
                    }
                }
            }
            look(engine, &mut plan, terms).await?;
            Ok(plan)
        };
        planning.await.map_err(|error| self.error(error))
    }

    /// What is to be erased of a run that has an outcome and is just ending, if its bodies are not kept (D5).
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn due_at_end(&self, run: &Name, terms: &Terms<'_>) -> Result<Plan, Error> {
        let mut connection = self.writer().await;
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        let planning = async {
            let mut plan = Plan::default();
            let keep = opened(engine, run).await?.map(|opened| Keep::of(&opened, (terms.unsaid)(&opened)));
            if keep == Some(Keep::UntilEnd) && !held(engine).await?.contains(run) {
                plan.over.insert(run.clone());
                plan.due.push(due(engine, run, Keep::UntilEnd, Some(terms.now_ms)).await?);
                plan.ending = Some(run.clone());
                look(engine, &mut plan, terms).await?;
            }
            Ok(plan)
        };
        planning.await.map_err(|error| self.error(error))
    }
}

/// The runs on hold: those that the index names, and those that the records do.
pub(crate) async fn held(engine: &mut Engine) -> Result<BTreeSet<Name>, sqlx::Error> {
    let rows = sql("SELECT run FROM held").rows(engine, &[Column::Text]).await?;
    let mut held: BTreeSet<Name> = rows.iter().map(|row| row.text(0).into()).collect();
    let told = sql("SELECT kind, data FROM record WHERE run = $1 AND kind IN ($2, $3) ORDER BY n");
    let told = told.bind(STREAM).bind(Kind::Held.as_str()).bind(Kind::Released.as_str());
    let mut by_records = BTreeSet::new();
    for row in told.rows(engine, &[Column::Text, Column::Text]).await? {
        let data: Option<Map<String, Json>> =
            row.some_text(1).and_then(|data| serde_json::from_str(data).ok());
        match data.and_then(|data| Change::of(row.text(0), 0, &data)) {
            Some(Change::Held { run }) => drop(by_records.insert(Name::from(run))),
            Some(Change::Released { run }) => drop(by_records.remove(&*run)),
            _ => {}
        }
    }
    held.extend(by_records);
    Ok(held)
}

/// What is known of a run or a conversation's stream when something of it is erased.
pub(crate) async fn subject(
    engine: &mut Engine,
    run: &str,
    held: &BTreeSet<Name>,
) -> Result<Subject, sqlx::Error> {
    let row = sql("SELECT ended, verdict FROM run WHERE run = $1").bind(run);
    let row = row.row(engine, &[Column::Int, Column::Text]).await?;
    let ended = sql("SELECT head FROM record WHERE run = $1 AND kind = $2 ORDER BY n DESC LIMIT 1");
    let ended = ended.bind(run).bind(Kind::RunEnded.as_str()).row(engine, &[Column::Text]).await?;
    let is_ended = row.as_ref().is_some_and(|row| row.int(0) != 0);
    Ok(Subject {
        keeps: opened(engine, run).await?.map(|opened| Keeps::of(&opened)),
        is_stream: row.is_none(),
        is_decided: row.is_some_and(|row| row.some_text(1).is_some()),
        ended_ms: ended.and_then(|row| at_ms(row.text(0))).filter(|_| is_ended),
        held: held.contains(run),
        imported: merge::is_imported(engine, run).await?,
    })
}

/// The body of a run's first record.
async fn opened(engine: &mut Engine, run: &str) -> Result<Option<Map<String, Json>>, sqlx::Error> {
    let first = sql("SELECT data FROM record WHERE run = $1 AND n = 0").bind(run);
    let first = first.row(engine, &[Column::Text]).await?;
    Ok(first.and_then(|row| serde_json::from_str(row.some_text(0)?).ok()))
}

/// How long an ended run's bodies are kept, and when it ended; `None` where its records do not say, which keeps them.
async fn posture(
    engine: &mut Engine,
    run: &str,
    terms: &Terms<'_>,
) -> Result<Option<(Keep, i64)>, sqlx::Error> {
    let Some(opened) = opened(engine, run).await? else { return Ok(None) };
    let ended = sql("SELECT head FROM record WHERE run = $1 AND kind = $2 ORDER BY n DESC LIMIT 1");
    let ended = ended.bind(run).bind(Kind::RunEnded.as_str()).row(engine, &[Column::Text]).await?;
    // What this workspace keeps its own runs for says nothing of those of others.
    let unsaid = match merge::is_imported(engine, run).await? {
        true => None,
        false => (terms.unsaid)(&opened),
    };
    let keep = Keep::of(&opened, unsaid);
    Ok(ended.and_then(|row| at_ms(row.text(0))).map(|ended_ms| (keep, ended_ms)))
}

fn at_ms(head: &str) -> Option<i64> {
    parse_rfc3339(&serde_json::from_str::<Head>(head).ok()?.at)
}

/// What of a run can be erased, texts aside.
async fn due(engine: &mut Engine, run: &Name, keep: Keep, ended_ms: Option<i64>) -> Result<Due, sqlx::Error> {
    let statement = sql("SELECT n, kind, data FROM record WHERE run = $1 AND data IS NOT NULL ORDER BY n");
    let rows = statement.bind(&**run).rows(engine, &[Column::Int, Column::Text, Column::Text]).await?;
    let (mut numbers, mut bytes) = (BTreeSet::new(), 0);
    for row in &rows {
        let (kind, data) = (row.text(1), row.text(2));
        let read = || match kind == Kind::Rule.as_str() {
            true => serde_json::from_str(data).unwrap_or_default(),
            false => Map::new(),
        };
        if holds_words(kind, &read()) {
            numbers.insert(row.count(0));
            bytes += data.len() as u64;
        }
    }
    let (records, texts) = (ranges(&numbers), BTreeSet::new());
    Ok(Due { run: run.clone(), keep, ended_ms, records, bytes, texts, log: None })
}

/// What of conversations is older than so many days. Each record ages by itself; those after the last turn that is
/// settled stay, since it is still being worked on.
async fn conversations(engine: &mut Engine, days: u32, now_ms: i64) -> Result<Vec<Due>, sqlx::Error> {
    let keep = Keep::Days(days);
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
            .filter(|row| at_ms(row.text(1)).is_some_and(|at_ms| keep.is_over(at_ms, now_ms)))
            .collect();
        let numbers: BTreeSet<u64> = old.iter().map(|row| row.count(0)).collect();
        if !numbers.is_empty() {
            all.push(Due {
                run: stream.text(0).into(),
                keep,
                ended_ms: None,
                records: ranges(&numbers),
                bytes: old.iter().map(|row| row.count(2)).sum(),
                texts: BTreeSet::new(),
                log: None,
            });
        }
    }
    Ok(all)
}

/// Finds the texts that nobody needs any more.
async fn look(engine: &mut Engine, plan: &mut Plan, terms: &Terms<'_>) -> Result<(), sqlx::Error> {
    let kept = sql("SELECT sha256 FROM body").rows(engine, &[Column::Text]).await?;
    let kept: BTreeSet<&str> = kept.iter().map(|row| row.text(0)).collect();
    for run in &plan.over {
        let statement = sql("SELECT data FROM record WHERE run = $1 AND data IS NOT NULL").bind(&**run);
        for row in statement.rows(engine, &[Column::Text]).await? {
            let named = hashes(row.text(0)).filter(|hash| kept.contains(hash));
            plan.texts.extend(named.map(str::to_owned));
        }
    }
    plan.named.look_on(engine, &plan.texts).await?;
    // Who names such a text besides may be over as well.
    let held = held(engine).await?;
    let others: Vec<Name> = plan.named.by.keys().filter(|run| !plan.over.contains(*run)).cloned().collect();
    for run in others {
        let ended =
            sql("SELECT ended FROM run WHERE run = $1").bind(&*run).row(engine, &[Column::Int]).await?;
        if ended.is_some_and(|row| row.int(0) != 0)
            && !held.contains(&run)
            && let Some((keep, ended_ms)) = posture(engine, &run, terms).await?
            && keep.is_over(ended_ms, terms.now_ms)
        {
            plan.over.insert(run);
        }
    }
    plan.settle();
    Ok(())
}
