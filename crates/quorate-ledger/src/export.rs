//! Exports (D2) of sealed records for other programs: as JSON Lines with all proofs, as OpenTelemetry traces, as CSV.
//!
//! An export is a function of the ledger: the same records give the same bytes. It covers the records of the last
//! checkpoint in the ledger's order, and is streamed page by page. [`read`] parses JSON Lines and checks each line as it
//! comes. `docs/ledger-export.md` specifies the formats.

mod checked_records;
pub mod csv;
mod jsonl;
pub mod otel;
pub mod read;
mod select;
pub mod wire;

use std::io::Write;

use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Error;
use quorate_protocol::{Json, Name};
use serde_json::Map;

use crate::Store;
use crate::merkle::{self, Hash};
use crate::prove::{CheckedRecord, ProvableRecord, ReadError};
use crate::record::Head;
use crate::signing::{KeyId, PublicKey};
use crate::store::engine::Row;
use crate::store::tiles;
use select::Cursor;
pub use select::Selection;

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One JSON object in a line, with proofs.
    Jsonl,
    /// OTLP/JSON: one document of traces.
    Otel,
    /// Comma-separated values (RFC 4180).
    Csv,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportSummary {
    pub records: u64,
    /// How many texts beside them.
    pub bodies: u64,
    pub signatures: u64,
    /// Keys that signed some of the records, but whose public halves are unknown.
    pub unknown_keys: Vec<String>,
    /// Whether its checkpoint is signed.
    pub sealed_by_key: bool,
}

/// Why there is no export, or no whole one.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is no checkpoint.
    #[error("nothing is sealed yet")]
    NoCheckpoint,
    #[error("the ledger has no run {run}")]
    UnknownRun { run: Name },
    /// It is to start after more records than are sealed.
    #[error("it would start after {since} records, and {size} are sealed")]
    SinceTooLarge {
        /// Where it would start.
        since: u64,
        /// How many there are.
        size: u64,
    },
    /// The ledger is inconsistent, or does not answer.
    #[error(transparent)]
    Ledger(#[from] Error),
    /// It cannot be written.
    #[error("it cannot be written")]
    Write(#[from] std::io::Error),
}

impl Store {
    /// Writes an export. `known` are public keys that may have signed records.
    ///
    /// # Errors
    /// [`ExportError`]; what was written by then is no whole export, and its reader sees that.
    #[crate::boxed]
    pub async fn export(
        &self,
        selection: &Selection,
        form: ExportFormat,
        known: &[PublicKey],
        out: &mut (dyn Write + Send),
    ) -> Result<ExportSummary, ExportError> {
        let selected = Cursor::open(self, selection).await?;
        match form {
            ExportFormat::Jsonl => jsonl::write(self, selected, known, out).await,
            ExportFormat::Csv => csv::write(self, selected, known, out).await,
            ExportFormat::Otel => otel::write(self, selected, known, out).await,
        }
    }

    /// The root of the tree of the first `size` records; `None` if fewer are sealed.
    ///
    /// # Errors
    /// When the ledger does not answer, or its stored tree is not whole.
    #[crate::boxed]
    pub async fn root_at(&self, size: u64) -> Result<Option<Hash>, Error> {
        let sealed = self.last_checkpoint().await?.map_or(0, |sealed| sealed.tree.size);
        if size > sealed {
            return Ok(None);
        }
        let mut connection = self.writer().await;
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        let fetched = tiles::fetch(engine, std::iter::once(0..size), sealed)
            .await
            .map_err(|error| self.tree_error(error))?;
        Ok(merkle::root(&fetched, size).ok())
    }

    /// The number of sealed records before the first one of a time or later; all, if none is. A clock may have
    /// gone back: then what follows that record has earlier ones, too.
    ///
    /// # Errors
    /// When the ledger does not answer, or a head cannot be read.
    #[crate::boxed]
    pub async fn records_before(&self, at_ms: i64) -> Result<u64, Error> {
        select::records_before(self, at_ms).await
    }
}

/// A record as exports without proofs show it.
struct ExportedRecord {
    seq: u64,
    head: Head,
    at_ms: i64,
    leaf: String,
    data: Option<Map<String, Json>>,
    signers: Vec<KeyId>,
}

impl From<(ProvableRecord, CheckedRecord)> for ExportedRecord {
    fn from((item, checked): (ProvableRecord, CheckedRecord)) -> Self {
        let CheckedRecord { head, leaf, at_ms, data, signers } = checked;
        ExportedRecord { seq: item.index + 1, head, at_ms, leaf: hex(&leaf), data, signers }
    }
}

/// What does not fit a record, as the ledger's error.
fn corrupt_record(row: &Row, what: impl Into<String>) -> Error {
    Error::Corrupt { run: row.text(4).into(), n: row.count(1), what: what.into() }
}

fn read_error(store: &Store, row: &Row, error: ReadError) -> Error {
    match error {
        ReadError::Store(error) => store.tree_error(error),
        ReadError::Differs(what) => corrupt_record(row, what),
    }
}
