//! Merges imported records: what this ledger has of their streams, and the rows that are added.

use sqlx::Error as StoreError;

use super::engine::{Column, Engine, Value, sql};
use super::index::{Change, is_imported};
use super::queue;
use crate::prove::{CheckedRecord, ProvableRecord};

pub(crate) use super::queue::insert_body;

/// The tail of a run in this ledger.
pub(crate) struct StreamTail {
    /// The number of its next record.
    pub(crate) next: u64,
    /// The leaf of its last record.
    pub(crate) leaf: String,
    /// Whether its records are signed.
    pub(crate) signed: bool,
    /// Whether the index has it as a run.
    pub(crate) is_run: bool,
    /// Whether it was recorded in another ledger.
    pub(crate) imported: bool,
}

/// The tail of a run in this ledger; `None` if it has no records.
pub(crate) async fn stream_tail(engine: &mut Engine, run: &str) -> Result<Option<StreamTail>, StoreError> {
    let Some((n, leaf, signed)) = queue::last_record(engine, run).await? else { return Ok(None) };
    let indexed = sql("SELECT seq FROM run WHERE run = $1").bind(run).row(engine, &[Column::Int]).await?;
    Ok(Some(StreamTail {
        next: n + 1,
        leaf,
        signed,
        is_run: indexed.is_some(),
        imported: is_imported(engine, run).await?,
    }))
}

/// Records to write together, with their signatures.
#[derive(Default)]
pub(crate) struct PendingRows {
    records: Vec<queue::RecordRow>,
    signatures: Vec<Vec<Value>>,
}

impl PendingRows {
    /// Adds a record, and applies its change to the index.
    pub(crate) async fn add(
        &mut self,
        engine: &mut Engine,
        item: &ProvableRecord,
        record: &CheckedRecord,
    ) -> Result<(), StoreError> {
        let head = &record.head;
        let (run, kind) = (head.run.as_str(), head.kind.as_str());
        self.records.push([
            run.into(),
            head.n.into(),
            kind.into(),
            item.head.as_str().into(),
            item.data.clone().into(),
        ]);
        for signed in item.signatures.iter().flat_map(|envelope| &envelope.signatures) {
            let (key, signature) = (signed.keyid.as_str(), signed.sig.as_str());
            self.signatures.push(vec![run.into(), head.n.into(), key.into(), signature.into()]);
        }
        if self.records.len() == queue::MAX_ROWS {
            self.flush(engine).await?;
        }
        match record.data.as_ref().and_then(|data| Change::from_record(kind, record.at_ms, data)) {
            Some(change) => change.apply(engine, run).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn flush(&mut self, engine: &mut Engine) -> Result<(), StoreError> {
        let records = std::mem::take(&mut self.records);
        if !records.is_empty() {
            queue::insert_rows(engine, records.into_iter()).await?;
        }
        queue::insert_signatures(engine, std::mem::take(&mut self.signatures)).await
    }
}
