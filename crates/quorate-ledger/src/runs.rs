//! The runs of a ledger, read from its index, and lists of them in pages: open ones first, then the newest. Each row of
//! a list is compared with its run's records (D13).

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::clock::rfc3339;
use quorate_kernel::ports::ledger::LedgerError;
use quorate_kernel::record::{CountedAnswer, VoteCount};
use quorate_protocol::Name;
use serde::Deserialize;

use crate::Store;
use crate::store::engine::{Column, Row, Statement, Value, sql, sql_rows};
use crate::verify::shown_runs::{Compared, Extent, SHOWN_COLUMNS, ShownQuery, UNLISTED, shown_columns};

pub use crate::verify::RunFinding;
pub use crate::verify::shown_runs::{ListedRun, RunCursor};

/// The most later verdicts that are returned for a text.
const MAX_LATER: i64 = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub run: Name,
    /// When it was opened, in milliseconds since the Unix epoch.
    pub opened_ms: i64,
    /// The subject: a path, or `-`.
    pub subject: String,
    pub artifact_type: String,
    /// The verdict; `None` while the run is undecided.
    pub verdict: Option<String>,
    /// A person's overriding decision.
    pub overridden: Option<String>,
    /// The log that contains its line.
    pub log_path: String,
    /// Whether its follow-up work is done.
    pub ended: bool,
    /// Whether it was imported from another ledger. Follow-up work is done only where a run was recorded.
    pub imported: bool,
}

impl RunRow {
    /// Whether the run is undecided.
    pub fn is_open(&self) -> bool {
        self.verdict.is_none() && !self.ended
    }
}

/// The result of looking up a run by a prefix of its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrefixMatch {
    One(RunRow),
    /// Several runs match; these are some of them.
    Several(Vec<Name>),
    None,
}

/// A statement over the index of runs.
macro_rules! runs {
    ($rest:literal) => {
        concat!("SELECT ", shown_columns!(), " FROM run LEFT JOIN run_origin USING (run) ", $rest)
    };
}

/// The condition on a run that no stand-in gave one of its answers. The data of a record is canonical JSON, in which a quote
/// inside of a text follows a backslash.
macro_rules! without_stand_ins {
    () => {
        "NOT EXISTS (SELECT 1 FROM record WHERE record.run = run.run AND record.kind = 'consultation' \
         AND record.data LIKE '%,\"stand_in_for\":\"%\",\"status\":\"answered\",%')"
    };
}

impl Store {
    /// The newest runs, newest first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn runs(&self, limit: u32) -> Result<Vec<RunRow>, LedgerError> {
        self.select(sql(runs!("ORDER BY seq DESC LIMIT $1")).bind(i64::from(limit))).await
    }

    /// The runs on files with this name, in any folder, newest first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn runs_on_files_named(&self, name: &str) -> Result<Vec<RunRow>, LedgerError> {
        let in_folder = name.replace('!', "!!").replace('%', "!%").replace('_', "!_");
        let query = sql(runs!("WHERE subject = $1 OR subject LIKE $2 ESCAPE '!' ORDER BY seq DESC"));
        self.select(query.bind(name).bind(format!("%/{in_folder}"))).await
    }

    /// Undecided runs on a subject that were recorded here, each with the hash of its input.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn open_runs_on(&self, subject: &str) -> Result<Vec<(Name, String)>, LedgerError> {
        let query =
            sql("SELECT run, artifact_sha256 FROM run WHERE ended = 0 AND verdict IS NULL AND subject = $1 \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq");
        let rows = self.rows(query.bind(subject), &[Column::Text; 2]).await?;
        Ok(rows.iter().map(|row| (row.text(0).into(), row.text(1).to_owned())).collect())
    }

    /// The runs opened since a time that have an outcome, ordered by the position of each run's last outcome.
    /// `since_ms` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn decided_since(&self, since_ms: i64) -> Result<Vec<Name>, LedgerError> {
        let query = sql("SELECT record.run FROM record JOIN run ON run.run = record.run \
             WHERE record.kind = 'outcome' AND run.verdict IS NOT NULL AND run.opened_ms >= $1 \
             GROUP BY record.run ORDER BY MAX(record.seq)");
        self.names(query.bind(since_ms)).await
    }

    /// A run with this id prefix that has records but no row in the table of runs, if any.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn find_unlisted(&self, prefix: &str) -> Result<Option<Name>, LedgerError> {
        let prefix = prefix.to_ascii_lowercase();
        let query =
            sql("SELECT run FROM record WHERE run >= $1 AND run < $2 AND n = 0 AND kind = 'run.opened' \
             AND run NOT IN (SELECT run FROM run) ORDER BY run LIMIT 1");
        Ok(self.names(query.bind(&*prefix).bind(format!("{prefix}\u{7f}"))).await?.into_iter().next())
    }

    /// The run with this id or prefix of an id.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn find_by_prefix(&self, prefix: &str) -> Result<PrefixMatch, LedgerError> {
        let prefix = prefix.to_ascii_lowercase();
        let end = format!("{prefix}\u{7f}");
        let query = sql(runs!("WHERE run >= $1 AND run < $2 ORDER BY run LIMIT 5"));
        let mut runs = self.select(query.bind(&*prefix).bind(&*end)).await?;
        // A complete id names its run even if it is a prefix of another id. It sorts first.
        if runs.first().is_some_and(|run| *run.run == *prefix) {
            runs.truncate(1);
        }
        Ok(match runs.len() {
            0 => PrefixMatch::None,
            1 => runs.pop().map_or(PrefixMatch::None, PrefixMatch::One),
            _ => PrefixMatch::Several(runs.into_iter().map(|run| run.run).collect()),
        })
    }

    /// Runs with an outcome whose follow-up work is not done, because their process crashed. Excludes imported runs.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn decided_unfinished(&self) -> Result<Vec<RunRow>, LedgerError> {
        self.select(sql(runs!(
            "WHERE ended = 0 AND verdict IS NOT NULL \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq"
        )))
        .await
    }

    /// Whether a run was recorded in another ledger.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn is_imported(&self, run: &Name) -> Result<bool, LedgerError> {
        Ok(!self.names(sql("SELECT run FROM imported WHERE run = $1").bind(&**run)).await?.is_empty())
    }

    /// The newest runs of a type that were recorded here, newest first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn runs_of_type(&self, artifact_type: &str) -> Result<Vec<Name>, LedgerError> {
        let query = sql("SELECT run FROM run WHERE artifact_type = $1 \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq DESC LIMIT 20");
        self.names(query.bind(artifact_type)).await
    }

    /// The newest decided run before this one on the same artifact: a review, or a run of the same assembly, on the
    /// same subject, or on the same text if the subject is standard input.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn previous_run(&self, run: &Name) -> Result<Option<Name>, LedgerError> {
        let query = sql("SELECT before.run FROM run AS before JOIN run AS this ON this.run = $1 \
             WHERE before.seq < this.seq AND before.verdict IS NOT NULL AND before.subject = this.subject \
             AND (this.council <> '' OR before.artifact_type = this.artifact_type) \
             AND (before.subject <> '-' OR before.artifact_sha256 = this.artifact_sha256) \
             AND ((before.council = '') = (this.council = '')) ORDER BY before.seq DESC LIMIT 1");
        Ok(self.names(query.bind(&**run)).await?.into_iter().next())
    }

    /// The streams other than runs whose names start with a prefix, sorted.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn streams(&self, prefix: &str) -> Result<Vec<Name>, LedgerError> {
        // Jumps from one name to the next, so the cost does not depend on the number of records.
        let query = sql(
            "WITH RECURSIVE stream (run) AS (SELECT MIN(run) FROM record WHERE run >= $1 AND run < $2 \
             UNION ALL SELECT (SELECT MIN(record.run) FROM record WHERE record.run > stream.run AND record.run < $2) \
             FROM stream WHERE stream.run IS NOT NULL) SELECT run FROM stream WHERE run IS NOT NULL ORDER BY run",
        );
        let mut streams = self.names(query.bind(prefix).bind(format!("{prefix}\u{7f}"))).await?;
        streams.retain(|stream| stream.starts_with(prefix));
        Ok(streams)
    }

    /// Undecided runs of a council (by fingerprint) that were recorded here, by subject and artifact hash. If there are
    /// several, the newest.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn undecided_runs(
        &self,
        council: &str,
    ) -> Result<BTreeMap<(String, String), Name>, LedgerError> {
        let query =
            sql("SELECT subject, artifact_sha256, run FROM run WHERE council = $1 AND verdict IS NULL \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq");
        let rows = self.rows(query.bind(council), &[Column::Text; 3]).await?;
        let text = |row: &Row, at| row.text(at).to_owned();
        Ok(rows.iter().map(|row| ((text(row, 0), text(row, 1)), row.text(2).into())).collect())
    }

    /// All artifacts that a council (by fingerprint) decided on here, by hash, each with its last run. INCOMPLETE does
    /// not count, nor does a run in which a stand-in answered.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn judged_artifacts(&self, council: &str) -> Result<BTreeMap<String, Name>, LedgerError> {
        let query = sql(concat!(
            "SELECT artifact_sha256, run FROM run WHERE council = $1 AND verdict IN ('SHIP', 'REVISE', 'HOLD') \
             AND run NOT IN (SELECT run FROM imported) AND ",
            without_stand_ins!(),
            " ORDER BY seq"
        ));
        let rows = self.rows(query.bind(council), &[Column::Text; 2]).await?;
        Ok(rows.iter().map(|row| (row.text(0).to_owned(), row.text(1).into())).collect())
    }

    /// The last run in which a council (by fingerprint) decided on an artifact here. INCOMPLETE does not count.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn last_judgement(
        &self,
        council: &str,
        artifact_sha256: &str,
    ) -> Result<Option<Name>, LedgerError> {
        let query = sql("SELECT run FROM run WHERE council = $1 AND artifact_sha256 = $2 \
             AND verdict IN ('SHIP', 'REVISE', 'HOLD') AND run NOT IN (SELECT run FROM imported) \
             ORDER BY seq DESC LIMIT 1");
        Ok(self.names(query.bind(council).bind(artifact_sha256)).await?.into_iter().next())
    }

    /// As [`Store::last_judgement`], without the runs in which a stand-in answered.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn last_own_judgement(
        &self,
        council: &str,
        artifact_sha256: &str,
    ) -> Result<Option<Name>, LedgerError> {
        let query = sql(concat!(
            "SELECT run FROM run WHERE council = $1 AND artifact_sha256 = $2 AND verdict IN ('SHIP', 'REVISE', 'HOLD') \
             AND run NOT IN (SELECT run FROM imported) AND ",
            without_stand_ins!(),
            " ORDER BY seq DESC LIMIT 1"
        ));
        Ok(self.names(query.bind(council).bind(artifact_sha256)).await?.into_iter().next())
    }

    /// The last run here in which a council (by fingerprint) decided on something. INCOMPLETE does not count.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn last_decided(&self, council: &str) -> Result<Option<Name>, LedgerError> {
        let query = sql("SELECT run FROM run WHERE council = $1 AND verdict IS NOT NULL \
             AND lower(verdict) <> 'incomplete' AND run NOT IN (SELECT run FROM imported) ORDER BY seq DESC LIMIT 1");
        Ok(self.names(query.bind(council)).await?.into_iter().next())
    }

    /// The runs recorded here after this one that decided on the same artifact, oldest first; at most the last 100.
    /// INCOMPLETE does not count.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn verdicts_after(
        &self,
        run: &Name,
        artifact_sha256: &str,
    ) -> Result<Vec<RunRow>, LedgerError> {
        let query = sql(runs!(
            "WHERE artifact_sha256 = $1 AND seq > (SELECT this.seq FROM run AS this WHERE this.run = $2) \
             AND verdict IS NOT NULL AND lower(verdict) <> 'incomplete' \
             AND run NOT IN (SELECT run FROM imported) ORDER BY run.seq DESC LIMIT $3"
        ));
        let mut runs = self.select(query.bind(artifact_sha256).bind(&**run).bind(MAX_LATER)).await?;
        runs.reverse();
        Ok(runs)
    }

    /// The run with a person's last decision on a text, for any council.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn last_decision(&self, artifact_sha256: &str) -> Result<Option<Name>, LedgerError> {
        let query = sql("SELECT run.run FROM record JOIN run ON run.run = record.run \
             WHERE run.artifact_sha256 = $1 AND record.kind = 'override' \
             AND run.run NOT IN (SELECT run FROM imported) ORDER BY record.seq DESC LIMIT 1");
        Ok(self.names(query.bind(artifact_sha256)).await?.into_iter().next())
    }

    /// The names of runs in the first column.
    pub(crate) async fn names(&self, query: Statement) -> Result<Vec<Name>, LedgerError> {
        let rows = self.rows(query, &[Column::Text]).await?;
        Ok(rows.iter().map(|row| row.text(0).into()).collect())
    }

    async fn select(&self, query: Statement) -> Result<Vec<RunRow>, LedgerError> {
        let rows = self.rows(query, &SHOWN_COLUMNS).await?;
        Ok(rows.iter().map(run).collect())
    }

    /// Compares a run's row and all its records with each other and with the tree (D13). `None` if they agree, and if
    /// there is no such run.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn compare_run(&self, run: &Name) -> Result<Option<RunFinding>, LedgerError> {
        let statement = sql(runs!("WHERE run = $1")).bind(&**run);
        let query =
            ShownQuery { statements: vec![statement], limit: 1, extent: Extent::Whole, unlisted: false };
        if let Some((_, compared)) = self.shown(&query).await?.runs.pop() {
            return Ok(compared.finding);
        }
        let opened = sql("SELECT run FROM record WHERE run = $1 AND n = 0 AND kind = 'run.opened'");
        let opened = self.names(opened.bind(&**run)).await?;
        Ok((!opened.is_empty()).then(|| RunFinding::Altered(UNLISTED.to_owned())))
    }

    /// Whether a person's decision on a run follows the last checkpoint, so that only its chain protects it.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn has_unsealed_decision(&self, run: &Name) -> Result<bool, LedgerError> {
        let query = sql("SELECT run FROM record WHERE run = $1 AND kind = 'override' \
             AND seq > (SELECT COALESCE(MAX(size), 0) FROM checkpoint) LIMIT 1");
        Ok(!self.names(query.bind(&**run)).await?.is_empty())
    }

    /// Compares the rows of some runs with their records, and the records with the tree (D13). Returns the differences.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn compare_rows(
        &self,
        runs: &BTreeSet<Name>,
    ) -> Result<BTreeMap<Name, RunFinding>, LedgerError> {
        let mut findings = BTreeMap::new();
        for some in runs.iter().collect::<Vec<_>>().chunks(MAX_COMPARED) {
            let shown = self.shown(&rows_of(some)).await?;
            let differing = shown
                .runs
                .into_iter()
                .filter_map(|(row, compared)| Some((row.text(1).into(), compared.finding?)));
            findings.extend(differing);
        }
        Ok(findings)
    }
}

/// The query of the rows of some runs.
pub(crate) fn rows_of(runs: &[&Name]) -> ShownQuery {
    let values = runs.iter().map(|run| vec![Value::from(&***run)]);
    let statement = sql_rows(runs!("WHERE run IN (VALUES "), values, ")");
    ShownQuery { statements: vec![statement], limit: runs.len(), extent: Extent::Row, unlisted: false }
}

/// The number of runs that are compared in one snapshot.
pub(crate) const MAX_COMPARED: usize = 500;

fn run(row: &Row) -> RunRow {
    RunRow {
        run: row.text(1).into(),
        opened_ms: row.int(2),
        subject: row.text(3).to_owned(),
        artifact_type: row.text(4).to_owned(),
        verdict: row.opt_text(8).map(str::to_owned),
        overridden: row.opt_text(10).map(str::to_owned),
        log_path: row.text(7).to_owned(),
        ended: row.int(11) != 0,
        imported: row.int(14) != 0,
    }
}

/// Selects runs. A field that is `None` selects all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Opened at or after this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// The verdict or outcome, in any case; `open` for undecided runs.
    pub verdict: Option<String>,
    /// The type of the artifact.
    pub artifact_type: Option<String>,
    /// `council`, or the mode of an assembly.
    pub mode: Option<String>,
    /// The operator that made the subject.
    pub producer: Option<String>,
    /// Continue after this position: the last run of the preceding page.
    pub after: Option<RunCursor>,
}

/// The statement for open or decided runs. Only rows of the page look up the last record, because an index determines
/// the order.
macro_rules! listed {
    ($which:literal) => {
        concat!(
            "SELECT ",
            shown_columns!(),
            " FROM run LEFT JOIN run_origin USING (run) WHERE ",
            $which,
            " AND opened_ms >= $1 AND ($2 = '' OR LOWER(COALESCE(verdict, 'open')) = $2) \
             AND ($3 = '' OR artifact_type = $3) AND ($4 = '' OR mode = $4) AND ($5 = '' OR producer = $5) \
             AND ($6 = '' OR run.seq < (SELECT before.seq FROM run AS before WHERE before.run = $6)) \
             ORDER BY run.seq DESC LIMIT $7"
        )
    };
}

const OPEN: &str = listed!("ended = 0 AND verdict IS NULL");
const DECIDED: &str = listed!("NOT (ended = 0 AND verdict IS NULL)");

impl Store {
    /// The runs that match a filter: open ones first, each part newest first. Runs without a row precede the first
    /// page, regardless of the filter.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn listed_runs(&self, filter: &RunFilter, limit: u32) -> Result<Vec<ListedRun>, LedgerError> {
        let after = filter.after.as_ref();
        let part = |statement, open: bool| {
            let from = after.filter(|cursor| cursor.open == open).map_or("", |cursor| &*cursor.run);
            bind(sql(statement), filter).bind(from).bind(i64::from(limit))
        };
        let open = after.is_none_or(|cursor| cursor.open).then(|| part(OPEN, true));
        let query = ShownQuery {
            statements: open.into_iter().chain([part(DECIDED, false)]).collect(),
            limit: limit as usize,
            extent: Extent::Row,
            unlisted: after.is_none(),
        };
        let shown = self.shown(&query).await?;
        Ok(shown
            .unlisted
            .into_iter()
            .chain(shown.runs.into_iter().map(|(row, compared)| listed(&row, compared)))
            .collect())
    }

    /// The number of runs that match a filter, regardless of the page.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn count_listed(&self, filter: &RunFilter) -> Result<u64, LedgerError> {
        let query = sql("SELECT COUNT(*) FROM run LEFT JOIN run_origin USING (run) \
             WHERE opened_ms >= $1 AND ($2 = '' OR LOWER(COALESCE(verdict, 'open')) = $2) \
             AND ($3 = '' OR artifact_type = $3) AND ($4 = '' OR mode = $4) AND ($5 = '' OR producer = $5)");
        self.read(async |engine| bind(query, filter).number(engine).await).await
    }
}

/// Binds the first five parameters: the filter.
fn bind(query: Statement, filter: &RunFilter) -> Statement {
    let query = query.bind(filter.since_ms.unwrap_or(i64::MIN));
    let query = query.bind(filter.verdict.as_deref().unwrap_or_default().to_lowercase());
    let texts = [&filter.artifact_type, &filter.mode, &filter.producer];
    texts.iter().fold(query, |query, text| query.bind(text.as_deref().unwrap_or_default()))
}

/// The part of an outcome that a list shows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shown {
    missing: Vec<String>,
    deliberators: Vec<CountedAnswer>,
    decision: Option<VoteCount>,
    objecting: Vec<String>,
}

impl Shown {
    fn blockers(self) -> Vec<String> {
        let blocks =
            self.deliberators.into_iter().filter(|answer| answer.would_block).map(|answer| answer.id);
        let votes = self.decision.into_iter().flat_map(|decision| decision.votes);
        let against = votes.filter(|vote| vote.vote == "no").map(|vote| vote.member);
        blocks.chain(against).chain(self.objecting).collect()
    }
}

fn listed(row: &Row, compared: Compared) -> ListedRun {
    let run = run(row);
    let outcome = compared.outcome.filter(|_| run.verdict.is_some() && compared.finding.is_none());
    // Unreadable data is skipped here; `ledger verify` reports it.
    let shown: Shown = outcome.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let place = Some(RunCursor { run: run.run.clone(), open: run.is_open() });
    let (verdict, overridden) = match &compared.finding {
        Some(finding) => (Some(finding.word().to_owned()), None),
        None => (run.verdict, run.overridden),
    };
    ListedRun {
        run: run.run,
        opened: rfc3339(run.opened_ms),
        artifact: run.subject,
        artifact_type: run.artifact_type,
        mode: row.text(12).to_owned(),
        producer: Some(row.text(13).to_owned()).filter(|producer| !producer.is_empty()),
        open: verdict.is_none(),
        verdict,
        finding: compared.finding,
        overridden,
        missing: shown.missing.clone(),
        blockers: shown.blockers(),
        sealed: compared.sealed,
        imported: run.imported,
        place,
    }
}
