//! The runs of a ledger, as its index has them.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::ports::ledger::Error;
use quorate_protocol::Name;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::Store;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub run: Name,
    /// When it was opened, in milliseconds since the Unix epoch.
    pub opened_ms: i64,
    /// What it is about: a path, or `-`.
    pub subject: String,
    /// The artifact's type.
    pub artifact_type: String,
    /// The verdict; `None` while nothing is decided.
    pub verdict: Option<String>,
    /// A person's decision beside it.
    pub overridden: Option<String>,
    /// The log that its line belongs to.
    pub log_path: String,
    /// Whether everything that follows from the outcome is done.
    pub ended: bool,
}

/// What a prefix of a run's id names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// One run.
    One(Run),
    /// Several, of which these are some.
    Several(Vec<Name>),
    /// None.
    None,
}

/// A statement over the index of runs.
macro_rules! runs {
    ($rest:literal) => {
        concat!(
            "SELECT run, opened_ms, subject, artifact_type, verdict, override, log_path, ended FROM run ",
            $rest
        )
    };
}

impl Store {
    /// The newest runs, newest first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn runs(&self, limit: u32) -> Result<Vec<Run>, Error> {
        self.select(sqlx::query(runs!("ORDER BY seq DESC LIMIT ?")).bind(i64::from(limit))).await
    }

    /// The run that an id or a prefix of one names.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn find(&self, prefix: &str) -> Result<Found, Error> {
        let prefix = prefix.to_ascii_lowercase();
        let end = format!("{prefix}\u{7f}");
        let query = sqlx::query(runs!("WHERE run >= ? AND run < ? ORDER BY run LIMIT 5"));
        let mut runs = self.select(query.bind(prefix).bind(end)).await?;
        Ok(match runs.len() {
            0 => Found::None,
            1 => runs.pop().map_or(Found::None, Found::One),
            _ => Found::Several(runs.into_iter().map(|run| run.run).collect()),
        })
    }

    /// Runs that have an outcome and whose follow-up is not done: their process died in between.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn unended(&self) -> Result<Vec<Run>, Error> {
        self.select(sqlx::query(runs!("WHERE ended = 0 AND verdict IS NOT NULL ORDER BY seq"))).await
    }

    /// The runs of a type, newest first; a few of them.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn of_type(&self, artifact_type: &str) -> Result<Vec<Name>, Error> {
        let query = sqlx::query(runs!("WHERE artifact_type = ? ORDER BY seq DESC LIMIT 20"));
        let runs = self.select(query.bind(artifact_type.to_owned())).await?;
        Ok(runs.into_iter().map(|run| run.run).collect())
    }

    /// The streams that are no runs and whose names begin so, sorted.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn streams(&self, prefix: &str) -> Result<Vec<Name>, Error> {
        let mut connection = self.connection().await;
        let rows = sqlx::query("SELECT run FROM record WHERE n = 0 AND run >= ? AND run < ? ORDER BY run")
            .bind(prefix)
            .bind(format!("{prefix}\u{7f}"))
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| self.error(error))?;
        let streams = rows.iter().map(|row| Name::from(row.get::<String, _>(0)));
        Ok(streams.filter(|stream| stream.starts_with(prefix)).collect())
    }

    /// Runs of a council (by fingerprint) on which nothing is decided, by subject and artifact hash; of several the
    /// newest.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn undecided(&self, council: &str) -> Result<BTreeMap<(String, String), Name>, Error> {
        let mut connection = self.connection().await;
        let rows = sqlx::query("SELECT subject, artifact_sha256, run FROM run WHERE council = ? AND verdict IS NULL ORDER BY seq")
            .bind(council)
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| self.error(error))?;
        Ok(rows.iter().map(|row| ((row.get(0), row.get(1)), row.get::<String, _>(2).into())).collect())
    }

    /// The hashes of all artifacts that a council (by fingerprint) has judged, INCOMPLETE not counting.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn judged(&self, council: &str) -> Result<BTreeSet<String>, Error> {
        let mut connection = self.connection().await;
        let rows = sqlx::query(
            "SELECT artifact_sha256 FROM run WHERE council = ? AND verdict IN ('SHIP', 'REVISE', 'HOLD')",
        )
        .bind(council)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| self.error(error))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn select(
        &self,
        query: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<Vec<Run>, Error> {
        let mut connection = self.connection().await;
        let rows = query.fetch_all(&mut *connection).await.map_err(|error| self.error(error))?;
        Ok(rows.iter().map(run).collect())
    }
}

fn run(row: &SqliteRow) -> Run {
    Run {
        run: row.get::<String, _>(0).into(),
        opened_ms: row.get(1),
        subject: row.get(2),
        artifact_type: row.get(3),
        verdict: row.get(4),
        overridden: row.get(5),
        log_path: row.get(6),
        ended: row.get::<i64, _>(7) != 0,
    }
}
