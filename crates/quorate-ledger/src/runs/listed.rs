//! The runs that a filter accepts, in pages: open ones first, then the newest, each with what its last outcome says and
//! whether a checkpoint covers it. The filter selects by the table of runs; each row that it accepts is compared with its
//! records (D13).

use std::fmt;

use quorate_kernel::ports::ledger::Error;
use quorate_kernel::record::{CountedAnswer, Decision};
use quorate_protocol::Name;
use serde::Deserialize;

use super::{Finding, Run, UNLISTED, run};
use crate::Store;
use crate::store::engine::{Column, Row, Statement, sql};
use crate::verify::shown_runs::{Compared, Extent, ShownQuery, UnlistedRun, shown_columns};

/// Which runs are listed; all of them unless said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Not opened before this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// This verdict or outcome alone, in any case; `open` where nothing is decided.
    pub verdict: Option<String>,
    /// This type of artifact alone.
    pub artifact_type: Option<String>,
    /// `council`, or this mode of assemblies alone.
    pub mode: Option<String>,
    /// What this operator made alone.
    pub producer: Option<String>,
    /// After this run of the list alone: the last one of the page before.
    pub after: Option<Cursor>,
}

/// A place in the list. A run that is decided between two pages is in none of them or in both; others are in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub run: Name,
    /// Whether it was among the open ones.
    pub open: bool,
}

/// What the text of a cursor begins with that is among the open runs.
const OPEN_MARK: &str = "open:";

impl From<&str> for Cursor {
    fn from(text: &str) -> Self {
        match text.strip_prefix(OPEN_MARK) {
            Some(run) => Cursor { run: run.into(), open: true },
            None => Cursor { run: text.into(), open: false },
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.open { OPEN_MARK } else { "" };
        write!(f, "{mark}{}", self.run)
    }
}

/// A run of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where row and records differ, a word for that stands in the place of the verdict.
    pub run: Run,
    /// The difference behind that word.
    pub finding: Option<Finding>,
    /// Its place in the list; `None` of a run without a row, which stands before the first page.
    pub place: Option<Cursor>,
    /// `council`, or an assembly's mode.
    pub mode: String,
    /// The operator that made what it is about; empty where none is recorded.
    pub producer: String,
    /// The members whose answers stand against it: deliberators that block, votes of no, objections that stand.
    pub blockers: Vec<String>,
    /// The members without an answer.
    pub missing: Vec<String>,
    /// Whether the last checkpoint covers all its records, and row, records and tree agree.
    pub sealed: bool,
}

impl Listed {
    /// What differs between row, records and tree, if anything does.
    pub fn difference(&self) -> Option<&str> {
        self.finding.as_ref().and_then(Finding::difference)
    }
}

/// The statement over open or decided runs. The last record is looked up for the rows of the page alone, since their order
/// is an index's.
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
    /// The runs that a filter lets through: open ones first, in each part the newest first. Before the first page stand runs
    /// that the table does not have, whatever the filter.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn listed_runs(&self, filter: &Filter, limit: u32) -> Result<Vec<Listed>, Error> {
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
        let unlisted = shown.unlisted.into_iter().map(listed_without_row);
        Ok(unlisted.chain(shown.runs.into_iter().map(|(row, compared)| listed(&row, compared))).collect())
    }

    /// How many runs a filter lets through, wherever a page of the list begins.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn count_listed(&self, filter: &Filter) -> Result<u64, Error> {
        let query = sql("SELECT COUNT(*) FROM run LEFT JOIN run_origin USING (run) \
             WHERE opened_ms >= $1 AND ($2 = '' OR LOWER(COALESCE(verdict, 'open')) = $2) \
             AND ($3 = '' OR artifact_type = $3) AND ($4 = '' OR mode = $4) AND ($5 = '' OR producer = $5)");
        let rows = self.rows(bind(query, filter), &[Column::Int]).await?;
        Ok(rows.first().map_or(0, |row| row.int(0).unsigned_abs()))
    }
}

/// The first five parameters: what a filter asks for.
fn bind(query: Statement, filter: &Filter) -> Statement {
    let query = query.bind(filter.since_ms.unwrap_or(i64::MIN));
    let query = query.bind(filter.verdict.as_deref().unwrap_or_default().to_lowercase());
    let texts = [&filter.artifact_type, &filter.mode, &filter.producer];
    texts.iter().fold(query, |query, text| query.bind(text.as_deref().unwrap_or_default()))
}

/// What a list shows of an outcome.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shown {
    missing: Vec<String>,
    deliberators: Vec<CountedAnswer>,
    decision: Option<Decision>,
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

fn listed(row: &Row, compared: Compared) -> Listed {
    let mut run = run(row);
    let outcome = compared.outcome.filter(|_| run.verdict.is_some() && compared.finding.is_none());
    // What cannot be read is `ledger verify`'s to report.
    let shown: Shown = outcome.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let place = Some(Cursor { run: run.run.clone(), open: run.is_open() });
    if let Some(finding) = &compared.finding {
        (run.verdict, run.overridden) = (Some(finding.word().to_owned()), None);
    }
    Listed {
        mode: row.text(12).to_owned(),
        producer: row.text(13).to_owned(),
        missing: shown.missing.clone(),
        blockers: shown.blockers(),
        sealed: compared.sealed,
        finding: compared.finding,
        place,
        run,
    }
}

fn listed_without_row(unlisted: UnlistedRun) -> Listed {
    let UnlistedRun { run, opened_ms, subject, artifact_type, mode } = unlisted;
    let finding = Finding::Altered(UNLISTED.to_owned());
    let run = Run {
        run: run.into(),
        opened_ms,
        subject,
        artifact_type,
        verdict: Some(finding.word().to_owned()),
        overridden: None,
        log_path: String::new(),
        ended: true,
        imported: false,
    };
    Listed {
        run,
        finding: Some(finding),
        place: None,
        mode,
        producer: String::new(),
        blockers: Vec::new(),
        missing: Vec::new(),
        sealed: false,
    }
}
