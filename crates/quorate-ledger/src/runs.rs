//! The runs of a ledger, read from its index.

mod listed;

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::ports::ledger::Error;
use quorate_protocol::Name;

pub use crate::verify::Finding;
pub use listed::{Cursor, Filter, Listed};

use crate::Store;
use crate::store::engine::{Column, Row, Statement, Value, sql, sql_rows};
use crate::verify::shown_runs::{Extent, SHOWN_COLUMNS, ShownQuery, shown_columns};

/// The most later verdicts that are given of a text.
const MAX_LATER: i64 = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub run: Name,
    /// When it was opened, in milliseconds since the Unix epoch.
    pub opened_ms: i64,
    /// What it is about: a path, or `-`.
    pub subject: String,
    pub artifact_type: String,
    /// The verdict; `None` while nothing is decided.
    pub verdict: Option<String>,
    /// A person's decision beside it.
    pub overridden: Option<String>,
    /// The log that its line belongs to.
    pub log_path: String,
    /// Whether everything that follows from the outcome is done.
    pub ended: bool,
    /// Whether it was recorded in another ledger: nothing that follows from it is done here.
    pub imported: bool,
}

impl Run {
    /// Whether nothing is decided yet.
    pub fn is_open(&self) -> bool {
        self.verdict.is_none() && !self.ended
    }
}

/// What a prefix of a run's id names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrefixMatch {
    One(Run),
    /// Several match; these are some of them.
    Several(Vec<Name>),
    None,
}

/// A statement over the index of runs.
macro_rules! runs {
    ($rest:literal) => {
        concat!("SELECT ", shown_columns!(), " FROM run LEFT JOIN run_origin USING (run) ", $rest)
    };
}

impl Store {
    /// The newest runs, newest first.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn runs(&self, limit: u32) -> Result<Vec<Run>, Error> {
        self.select(sql(runs!("ORDER BY seq DESC LIMIT $1")).bind(i64::from(limit))).await
    }

    /// Undecided runs on a subject that were recorded here, each with the hash of its input.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn open_runs_on(&self, subject: &str) -> Result<Vec<(Name, String)>, Error> {
        let query =
            sql("SELECT run, artifact_sha256 FROM run WHERE ended = 0 AND verdict IS NULL AND subject = $1 \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq");
        let rows = self.rows(query.bind(subject), &[Column::Text; 2]).await?;
        Ok(rows.iter().map(|row| (row.text(0).into(), row.text(1).to_owned())).collect())
    }

    /// The runs opened since a time that have an outcome, in the order in which the ledger took the last outcome of each:
    /// later records are appended after the existing ones. `since_ms` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn decided_since(&self, since_ms: i64) -> Result<Vec<Name>, Error> {
        let query = sql("SELECT record.run, MAX(record.seq) FROM record JOIN run ON run.run = record.run \
             WHERE record.kind = 'outcome' AND run.verdict IS NOT NULL AND run.opened_ms >= $1 \
             GROUP BY record.run ORDER BY MAX(record.seq)");
        let rows = self.rows(query.bind(since_ms), &[Column::Text, Column::Int]).await?;
        Ok(rows.iter().map(|row| row.text(0).into()).collect())
    }

    /// The run that records with this prefix of an id open and the table of runs does not have, if there is one.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn find_unlisted(&self, prefix: &str) -> Result<Option<Name>, Error> {
        let prefix = prefix.to_ascii_lowercase();
        let query =
            sql("SELECT run FROM record WHERE run >= $1 AND run < $2 AND n = 0 AND kind = 'run.opened' \
             AND run NOT IN (SELECT run FROM run) ORDER BY run LIMIT 1");
        let rows = self.rows(query.bind(&*prefix).bind(format!("{prefix}\u{7f}")), &[Column::Text]).await?;
        Ok(rows.first().map(|row| row.text(0).into()))
    }

    /// The run that an id or a prefix of one names.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn find_by_prefix(&self, prefix: &str) -> Result<PrefixMatch, Error> {
        let prefix = prefix.to_ascii_lowercase();
        let end = format!("{prefix}\u{7f}");
        let query = sql(runs!("WHERE run >= $1 AND run < $2 ORDER BY run LIMIT 5"));
        let mut runs = self.select(query.bind(&*prefix).bind(&*end)).await?;
        // A whole id names its run, also where another one begins with it; it comes first.
        if runs.first().is_some_and(|run| *run.run == *prefix) {
            runs.truncate(1);
        }
        Ok(match runs.len() {
            0 => PrefixMatch::None,
            1 => runs.pop().map_or(PrefixMatch::None, PrefixMatch::One),
            _ => PrefixMatch::Several(runs.into_iter().map(|run| run.run).collect()),
        })
    }

    /// Runs that have an outcome and whose follow-up is not done: their process died in between. What follows from an
    /// imported run is done where it was recorded.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn decided_unfinished(&self) -> Result<Vec<Run>, Error> {
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
    pub async fn is_imported(&self, run: &Name) -> Result<bool, Error> {
        let query = sql("SELECT run FROM imported WHERE run = $1").bind(&**run);
        Ok(!self.rows(query, &[Column::Text]).await?.is_empty())
    }

    /// The runs of a type that were recorded here, newest first; a few of them.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn runs_of_type(&self, artifact_type: &str) -> Result<Vec<Name>, Error> {
        let query = sql(runs!(
            "WHERE artifact_type = $1 \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq DESC LIMIT 20"
        ));
        let runs = self.select(query.bind(artifact_type.to_owned())).await?;
        Ok(runs.into_iter().map(|run| run.run).collect())
    }

    /// The newest decided run before this one on the same artifact: a review like it or a run of the same assembly, on the
    /// same subject, or, where the subject is standard input, on the same text.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn previous_run(&self, run: &Name) -> Result<Option<Name>, Error> {
        let query = sql("SELECT before.run FROM run AS before JOIN run AS this ON this.run = $1 \
             WHERE before.seq < this.seq AND before.verdict IS NOT NULL AND before.subject = this.subject \
             AND (this.council <> '' OR before.artifact_type = this.artifact_type) \
             AND (before.subject <> '-' OR before.artifact_sha256 = this.artifact_sha256) \
             AND ((before.council = '') = (this.council = '')) ORDER BY before.seq DESC LIMIT 1");
        let rows = self.rows(query.bind(&**run), &[Column::Text]).await?;
        Ok(rows.first().map(|row| row.text(0).into()))
    }

    /// The streams that are no runs and whose names begin so, sorted.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn streams(&self, prefix: &str) -> Result<Vec<Name>, Error> {
        // From one name to the next, however many records the streams have.
        let query = sql(
            "WITH RECURSIVE stream (run) AS (SELECT MIN(run) FROM record WHERE run >= $1 AND run < $2 \
             UNION ALL SELECT (SELECT MIN(record.run) FROM record WHERE record.run > stream.run AND record.run < $2) \
             FROM stream WHERE stream.run IS NOT NULL) SELECT run FROM stream WHERE run IS NOT NULL ORDER BY run",
        );
        let rows = self.rows(query.bind(prefix).bind(format!("{prefix}\u{7f}")), &[Column::Text]).await?;
        let streams = rows.iter().map(|row| Name::from(row.text(0)));
        Ok(streams.filter(|stream| stream.starts_with(prefix)).collect())
    }

    /// Runs of a council (by fingerprint) that were recorded here and on which nothing is decided, by subject and artifact hash; of several the
    /// newest.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn undecided_runs(&self, council: &str) -> Result<BTreeMap<(String, String), Name>, Error> {
        let query =
            sql("SELECT subject, artifact_sha256, run FROM run WHERE council = $1 AND verdict IS NULL \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq");
        let rows = self.rows(query.bind(council), &[Column::Text; 3]).await?;
        let text = |row: &Row, at| row.text(at).to_owned();
        Ok(rows.iter().map(|row| ((text(row, 0), text(row, 1)), row.text(2).into())).collect())
    }

    /// All artifacts that a council (by fingerprint) has judged here, by hash, each with the last run on it; INCOMPLETE does not
    /// count.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn judged_artifacts(&self, council: &str) -> Result<BTreeMap<String, Name>, Error> {
        let query = sql(
            "SELECT artifact_sha256, run FROM run WHERE council = $1 AND verdict IN ('SHIP', 'REVISE', 'HOLD') \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq",
        );
        let rows = self.rows(query.bind(council), &[Column::Text; 2]).await?;
        Ok(rows.iter().map(|row| (row.text(0).to_owned(), row.text(1).into())).collect())
    }

    /// The last run in which a council (by fingerprint) has judged an artifact here, INCOMPLETE not counting.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn last_judgement(&self, council: &str, artifact_sha256: &str) -> Result<Option<Name>, Error> {
        let query = sql(runs!(
            "WHERE council = $1 AND artifact_sha256 = $2 AND verdict IN ('SHIP', 'REVISE', 'HOLD') \
             AND run NOT IN (SELECT run FROM imported) ORDER BY seq DESC LIMIT 1"
        ));
        let mut runs = self.select(query.bind(council).bind(artifact_sha256)).await?;
        Ok(runs.pop().map(|run| run.run))
    }

    /// The runs recorded here after this one that decided on the same artifact, the oldest first, INCOMPLETE not counting; of
    /// many the last 100.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn verdicts_after(&self, run: &Name, artifact_sha256: &str) -> Result<Vec<Run>, Error> {
        let query = sql(runs!(
            "WHERE artifact_sha256 = $1 AND seq > (SELECT this.seq FROM run AS this WHERE this.run = $2) \
             AND verdict IS NOT NULL AND lower(verdict) <> 'incomplete' \
             AND run NOT IN (SELECT run FROM imported) ORDER BY run.seq DESC LIMIT $3"
        ));
        let mut runs = self.select(query.bind(artifact_sha256).bind(&**run).bind(MAX_LATER)).await?;
        runs.reverse();
        Ok(runs)
    }

    /// The run with a person's last decision on a text, whichever council was asked.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn last_decision(&self, artifact_sha256: &str) -> Result<Option<Name>, Error> {
        let query = sql("SELECT run.run FROM record JOIN run ON run.run = record.run \
             WHERE run.artifact_sha256 = $1 AND record.kind = 'override' \
             AND run.run NOT IN (SELECT run FROM imported) ORDER BY record.seq DESC LIMIT 1");
        let rows = self.rows(query.bind(artifact_sha256), &[Column::Text]).await?;
        Ok(rows.first().map(|row| row.text(0).into()))
    }

    async fn select(&self, query: Statement) -> Result<Vec<Run>, Error> {
        let rows = self.rows(query, &SHOWN_COLUMNS).await?;
        Ok(rows.iter().map(run).collect())
    }

    /// Compares a run's row and all its records with each other and with the tree (D13). `None` where nothing differs, and
    /// where there is no such run.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn compare_run(&self, run: &Name) -> Result<Option<Finding>, Error> {
        let statement = sql(runs!("WHERE run = $1")).bind(&**run);
        let query =
            ShownQuery { statements: vec![statement], limit: 1, extent: Extent::Whole, unlisted: false };
        if let Some((_, compared)) = self.shown(&query).await?.runs.pop() {
            return Ok(compared.finding);
        }
        let opened =
            sql("SELECT n FROM record WHERE run = $1 AND n = 0 AND kind = 'run.opened'").bind(&**run);
        let opened = self.rows(opened, &[Column::Int]).await?;
        Ok((!opened.is_empty()).then(|| Finding::Altered(UNLISTED.to_owned())))
    }

    /// Whether a person's decision on a run is behind the last checkpoint, where nothing but its chain covers it.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn has_unsealed_decision(&self, run: &Name) -> Result<bool, Error> {
        let query = sql("SELECT n FROM record WHERE run = $1 AND kind = 'override' \
             AND seq > (SELECT COALESCE(MAX(size), 0) FROM checkpoint) LIMIT 1");
        Ok(!self.rows(query.bind(&**run), &[Column::Int]).await?.is_empty())
    }

    /// Compares the rows of some runs with the records that they follow from, and these with the tree (D13). Gives what
    /// differs.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn compare_rows(&self, runs: &BTreeSet<Name>) -> Result<BTreeMap<Name, Finding>, Error> {
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

/// What differs where records open a run that the table does not have.
pub(crate) const UNLISTED: &str = "its records are there, and the table of runs does not have it";

/// How many runs are compared in one snapshot.
pub(crate) const MAX_COMPARED: usize = 500;

fn run(row: &Row) -> Run {
    Run {
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
