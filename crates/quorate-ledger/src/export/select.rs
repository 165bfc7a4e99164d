//! Selects the records of an export, and reads them page by page.

use quorate_kernel::clock::parse_rfc3339;
use quorate_kernel::ports::ledger::Error;
use quorate_protocol::{Json, Name};

use super::{ExportError, corrupt_record};
use crate::Store;
use crate::store::CheckpointRecord;
use crate::store::engine::{Column, Engine, Row, Value, sql, sql_rows};

/// How many records are read at once.
const PAGE: u64 = 256;

/// What an export is of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these runs or streams; empty for all.
    pub runs: Vec<Name>,
    /// Records after the first `after` ones.
    pub since: u64,
}

/// What was selected, of what is sealed.
pub(super) struct Cursor {
    pub(super) sealed: CheckpointRecord,
    /// The runs, sorted; `None` for all.
    pub(super) runs: Option<Vec<Name>>,
    pub(super) since: u64,
    /// The places of the runs' records.
    seqs: Option<Vec<u64>>,
    /// How far it was read: places, or how many of `places`.
    position: u64,
}

/// Place, number, head, data and run of a record.
const COLUMNS: [Column; 5] = [Column::Int, Column::Int, Column::Text, Column::Text, Column::Text];

impl Cursor {
    pub(super) async fn open(store: &Store, selection: &Selection) -> Result<Cursor, ExportError> {
        let sealed = store.last_checkpoint().await?.ok_or(ExportError::NoCheckpoint)?;
        let (size, since) = (sealed.tree.size, selection.since);
        if since > size {
            return Err(ExportError::SinceTooLarge { since, size });
        }
        let mut selected = Cursor { sealed, runs: None, since, seqs: None, position: since };
        if !selection.runs.is_empty() {
            let mut runs = selection.runs.clone();
            runs.sort_unstable();
            runs.dedup();
            let mut seqs = Vec::new();
            for run in &runs {
                let statement = sql("SELECT seq FROM record WHERE run = $1 ORDER BY n").bind(&**run);
                let rows = store.rows(statement, &[Column::Int]).await?;
                if rows.is_empty() {
                    return Err(ExportError::UnknownRun { run: run.clone() });
                }
                seqs.extend(rows.iter().map(|row| row.count(0)).filter(|seq| *seq > since && *seq <= size));
            }
            seqs.sort_unstable();
            (selected.runs, selected.seqs, selected.position) = (Some(runs), Some(seqs), 0);
        }
        Ok(selected)
    }

    /// The next records; none at the end.
    pub(super) async fn next_page(&mut self, store: &Store) -> Result<Vec<Row>, Error> {
        let head = "SELECT seq, n, head, data, run FROM record WHERE seq ";
        let (statement, expected) = match &self.seqs {
            Some(places) => {
                let position = usize::try_from(self.position).unwrap_or(usize::MAX);
                let some: Vec<u64> = places.iter().skip(position).take(PAGE as usize).copied().collect();
                if some.is_empty() {
                    return Ok(Vec::new());
                }
                let values = some.iter().map(|seq| vec![Value::from(*seq)]);
                (sql_rows(format!("{head} IN (VALUES "), values, ") ORDER BY seq"), some)
            }
            None => {
                // In steps of the blocks that paths are made in.
                let end = ((self.position / PAGE + 1) * PAGE).min(self.sealed.tree.size);
                let statement =
                    "SELECT seq, n, head, data, run FROM record WHERE seq > $1 AND seq <= $2 ORDER BY seq";
                (sql(statement).bind(self.position).bind(end), (self.position + 1..=end).collect())
            }
        };
        let rows = store.rows(statement, &COLUMNS).await?;
        if !rows.iter().map(|row| row.count(0)).eq(expected.iter().copied()) {
            let what = "records that it covers are missing; see `quorate ledger verify`".to_owned();
            return Err(Error::Corrupt { run: crate::store::STREAM.into(), n: self.sealed.n, what });
        }
        self.position += rows.len() as u64;
        Ok(rows)
    }

    /// The names of the keys that signed any of it.
    pub(super) async fn key_names(&self, engine: &mut Engine) -> Result<Vec<String>, sqlx::Error> {
        let mut names = Vec::new();
        let rows = match &self.runs {
            None => {
                let statement = "SELECT DISTINCT signature.key FROM signature \
                     JOIN record ON record.run = signature.run AND record.n = signature.n \
                     WHERE record.seq > $1 AND record.seq <= $2";
                let statement = sql(statement).bind(self.since).bind(self.sealed.tree.size);
                statement.rows(engine, &[Column::Text]).await?
            }
            Some(runs) => {
                let mut rows = Vec::new();
                for run in runs {
                    let statement = "SELECT DISTINCT signature.key FROM signature \
                         JOIN record ON record.run = signature.run AND record.n = signature.n \
                         WHERE signature.run = $1 AND record.seq > $2 AND record.seq <= $3";
                    let statement = sql(statement).bind(&**run).bind(self.since).bind(self.sealed.tree.size);
                    rows.extend(statement.rows(engine, &[Column::Text]).await?);
                }
                rows
            }
        };
        names.extend(rows.iter().map(|row| row.text(0).to_owned()));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

/// See [`Store::records_before`].
pub(super) async fn records_before(store: &Store, at_ms: i64) -> Result<u64, Error> {
    let size = store.last_checkpoint().await?.map_or(0, |sealed| sealed.tree.size);
    let mut position = 0;
    while position < size {
        let statement =
            sql("SELECT seq, n, head, data, run FROM record WHERE seq > $1 AND seq <= $2 ORDER BY seq");
        let rows = store.rows(statement.bind(position).bind(size.min(position + 1000)), &COLUMNS).await?;
        for row in &rows {
            let head: Option<Json> = serde_json::from_str(row.text(2)).ok();
            let at = head.as_ref().and_then(|head| parse_rfc3339(head.get("at")?.as_str()?));
            if at.ok_or_else(|| corrupt_record(row, "its time cannot be read"))? >= at_ms {
                return Ok(row.count(0) - 1);
            }
        }
        position += 1000;
    }
    Ok(size)
}
