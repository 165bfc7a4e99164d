//! Exports (D2) of sealed records for other programs: as JSON Lines with all proofs, as OpenTelemetry traces, as CSV.
//!
//! An export is a function of the ledger: the same records give the same bytes. It covers the records of the last
//! checkpoint in the ledger's order, and is streamed page by page. [`jsonl`] also reads JSON Lines and checks each line as it
//! comes. `docs/ledger-export.md` specifies the formats.

pub mod csv;
pub mod jsonl;
pub mod otel;

use std::io::Write;

use quorate_kernel::clock::parse_rfc3339;
use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Name;

use crate::Store;
use crate::merkle::Hash;
use crate::prove::check::RecordChecker;
use crate::prove::{self, CheckedRecord, GapRule, InclusionPaths, ProvableRecord};
use crate::record::Head;
use crate::signing::PublicKey;
use crate::store::engine::{Column, Engine, Row, Value, sql, sql_rows};
use crate::store::tiles::{self, StoredTree};
use crate::store::{CheckpointRecord, STREAM};

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExportFormat {
    /// One JSON object in a line, with proofs.
    #[default]
    Jsonl,
    /// OTLP/JSON: one document of traces.
    Otel,
    /// Comma-separated values (RFC 4180).
    Csv,
}

/// The contents of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// The number of records.
    pub records: u64,
    /// The number of texts.
    pub bodies: u64,
    /// The number of signatures over records.
    pub signatures: u64,
    /// Names of keys that signed records, but whose public halves are unknown.
    pub unknown_keys: Vec<String>,
    /// Whether its checkpoint is signed.
    pub sealed_by_key: bool,
}

/// Why an export failed or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger has no checkpoint.
    #[error("the ledger has no checkpoint yet")]
    NoCheckpoint,
    #[error("the ledger has no run {run}")]
    UnknownRun { run: Name },
    /// The export would start after the last sealed record.
    #[error("cannot start after {since} records: only {size} are sealed")]
    SinceTooLarge {
        /// The requested start.
        since: u64,
        /// The number of sealed records.
        size: u64,
    },
    /// The ledger is inconsistent or unavailable.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The output cannot be written.
    #[error("it cannot be written")]
    Write(#[from] std::io::Error),
}

impl Store {
    /// Writes an export. `known` are public keys that may have signed records.
    ///
    /// # Errors
    /// [`ExportError`]. The output written so far is incomplete, and a reader detects that.
    #[crate::boxed]
    pub async fn export(
        &self,
        selection: &Selection,
        form: ExportFormat,
        known: &[PublicKey],
        out: &mut (dyn Write + Send),
    ) -> Result<ExportSummary, ExportError> {
        let selected = Cursor::open(self, selection).await?;
        let mut records = CheckedRecords::open(self, selected, known).await?;
        match form {
            ExportFormat::Jsonl => jsonl::write(&mut records, out).await?,
            ExportFormat::Csv => csv::write(&mut records, out).await?,
            ExportFormat::Otel => otel::write(&mut records, out).await?,
        }
        out.flush()?;
        Ok(records.summary)
    }

    /// The root of the tree of the first `size` records; `None` if fewer are sealed.
    ///
    /// # Errors
    /// When the ledger does not answer, or its stored tree is not whole.
    #[crate::boxed]
    pub async fn root_at(&self, size: u64) -> Result<Option<Hash>, LedgerError> {
        let sealed = self.last_checkpoint().await?.map_or(0, |sealed| sealed.tree.size);
        if size > sealed {
            return Ok(None);
        }
        let tree = self.read(async |engine| Ok(StoredTree::default().tree(engine, 0..size).await?)).await?;
        Ok(Some(tree.root()))
    }

    /// The number of sealed records before the first record at or after a time, or of all sealed records if there is
    /// none. If a clock went back, earlier records may follow that record.
    ///
    /// # Errors
    /// When the ledger does not answer, or a head cannot be read.
    #[crate::boxed]
    pub async fn records_before(&self, at_ms: i64) -> Result<u64, LedgerError> {
        let size = self.last_checkpoint().await?.map_or(0, |sealed| sealed.tree.size);
        let mut position = 0;
        while position < size {
            let statement =
                sql("SELECT seq, n, head, data, run FROM record WHERE seq > $1 AND seq <= $2 ORDER BY seq");
            let rows = self.rows(statement.bind(position).bind(size.min(position + 1000)), &COLUMNS).await?;
            for row in &rows {
                let head: Option<Head<&str>> = serde_json::from_str(row.text(2)).ok();
                let at = head.and_then(|head| parse_rfc3339(head.at));
                if at.ok_or_else(|| corrupt_record(row, "its time cannot be read"))? >= at_ms {
                    return Ok(row.count(0) - 1);
                }
            }
            position += 1000;
        }
        Ok(size)
    }
}

/// Converts a malformed record into the ledger's error.
fn corrupt_record(row: &Row, what: impl Into<String>) -> LedgerError {
    LedgerError::Corrupt { run: row.text(4).into(), n: row.count(1), what: what.into() }
}

/// How many records are read at once.
const PAGE: usize = 256;

/// The records that an export covers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these runs or streams; empty for all.
    pub runs: Vec<Name>,
    /// Records after the first `after` ones.
    pub since: u64,
}

/// A selection, resolved against the sealed records.
struct Cursor {
    sealed: CheckpointRecord,
    /// The runs, sorted; `None` for all.
    runs: Option<Vec<Name>>,
    since: u64,
    /// The positions of the records that follow.
    positions: Box<dyn Iterator<Item = u64> + Send + Sync>,
}

/// Place, number, head, data and run of a record.
const COLUMNS: [Column; 5] = [Column::Int, Column::Int, Column::Text, Column::Text, Column::Text];

impl Cursor {
    async fn open(store: &Store, selection: &Selection) -> Result<Cursor, ExportError> {
        let sealed = store.last_checkpoint().await?.ok_or(ExportError::NoCheckpoint)?;
        let (size, since) = (sealed.tree.size, selection.since);
        if since > size {
            return Err(ExportError::SinceTooLarge { since, size });
        }
        let mut selected = Cursor { sealed, runs: None, since, positions: Box::new(since + 1..=size) };
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
            (selected.runs, selected.positions) = (Some(runs), Box::new(seqs.into_iter()));
        }
        Ok(selected)
    }

    /// The next records; none at the end.
    async fn next_page(&mut self, store: &Store) -> Result<Vec<Row>, LedgerError> {
        let expected: Vec<u64> = self.positions.by_ref().take(PAGE).collect();
        if expected.is_empty() {
            return Ok(Vec::new());
        }
        let values = expected.iter().map(|seq| vec![Value::from(*seq)]);
        let head = "SELECT seq, n, head, data, run FROM record WHERE seq IN (VALUES ";
        let statement = sql_rows(head, values, ") ORDER BY seq");
        let rows = store.rows(statement, &COLUMNS).await?;
        if !rows.iter().map(|row| row.count(0)).eq(expected.iter().copied()) {
            let what = "records under the checkpoint are missing; run `quorate ledger verify`".to_owned();
            return Err(LedgerError::Corrupt { run: crate::store::STREAM.into(), n: self.sealed.n, what });
        }
        Ok(rows)
    }

    /// The names of the keys that signed any of the selected records.
    async fn key_names(&self, engine: &mut Engine) -> Result<Vec<String>, sqlx::Error> {
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

/// Reads the records of an export, checks each one and counts them.
struct CheckedRecords<'a> {
    store: &'a Store,
    selected: Cursor,
    paths: InclusionPaths,
    checking: RecordChecker,
    /// The public keys of the signers.
    signers: Vec<PublicKey>,
    summary: ExportSummary,
}

impl<'a> CheckedRecords<'a> {
    /// Starts with the first record of a selection. `known` are public keys that may have signed records.
    async fn open(store: &'a Store, selected: Cursor, known: &[PublicKey]) -> Result<Self, ExportError> {
        let Cursor { sealed, since, .. } = &selected;
        let gaps = if *since == 0 { GapRule::FromFirstRecord } else { GapRule::NotWithinRun };
        let seal = |what: String| LedgerError::Corrupt { run: STREAM.into(), n: sealed.n, what };
        let mut checking = RecordChecker::new(sealed, gaps).map_err(seal)?;
        let (mut signers, mut unknown) = (Vec::new(), Vec::new());
        let look_up = async |engine: &mut Engine| {
            tiles::ensure_root(engine, &sealed.tree).await?;
            for name in selected.key_names(engine).await? {
                let found = prove::find_signer(engine, known, &name).await?;
                checking.add_signer(&name, found);
                match found {
                    Some(key) => signers.push(key),
                    None => unknown.push(name),
                }
            }
            Ok(())
        };
        store.read(look_up).await?;
        let summary = ExportSummary {
            unknown_keys: unknown,
            sealed_by_key: sealed.note.is_some(),
            ..ExportSummary::default()
        };
        let paths = InclusionPaths::new(sealed.tree.size);
        Ok(CheckedRecords { store, selected, paths, checking, signers, summary })
    }

    /// The next records, with their paths and contents; `None` at the end.
    async fn next_page(&mut self) -> Result<Option<Vec<(ProvableRecord, CheckedRecord)>>, ExportError> {
        let store = self.store;
        let rows = self.selected.next_page(store).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut connection = store.writer().await;
        let engine = connection.engine().await.map_err(|error| store.error(error))?;
        let mut taken = Vec::with_capacity(rows.len());
        for row in &rows {
            let item = prove::read_item(store, engine, &mut self.paths, row, row.text(4)).await?;
            let checked = self.checking.check(&item).map_err(|what| corrupt_record(row, what))?;
            if checked.head.run != row.text(4) || checked.head.n != row.count(1) {
                return Err(corrupt_record(row, "its head belongs to another record").into());
            }
            self.summary.records += 1;
            self.summary.signatures += checked.signers.len() as u64;
            taken.push((item, checked));
        }
        Ok(Some(taken))
    }
}
