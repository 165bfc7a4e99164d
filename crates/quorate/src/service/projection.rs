//! The state that results from a stream's records, kept in memory and updated with new records: a prompt is composed for each
//! turn, and a stream only grows.

use quorate_kernel::ports::ledger::Record;
use quorate_ledger::Store;
use quorate_ledger::store::StreamPosition;
use quorate_protocol::Name;

use super::error::ServiceError;

/// The state of a stream up to the last record read.
#[derive(Debug, Clone, Default)]
pub struct Projection<T> {
    seen: StreamPosition,
    value: T,
}

impl<T: Default> Projection<T> {
    /// Applies new records and returns the state. If the last record read is gone, the whole stream is read again.
    ///
    /// # Errors
    /// If the ledger does not answer, or a record is malformed; the next call then reads everything again.
    pub async fn catch_up(
        &mut self,
        store: &Store,
        stream: &Name,
        take: impl Fn(&mut T, &Record) -> Result<(), ServiceError>,
    ) -> Result<&T, ServiceError> {
        let before = std::mem::take(self);
        let (mut value, behind) = match store.records_after(stream, &before.seen).await? {
            Some(behind) => (before.value, Some(behind)),
            None => (T::default(), store.records_after(stream, &StreamPosition::default()).await?),
        };
        let (records, seen) = behind.unwrap_or_default();
        for record in &records {
            take(&mut value, record)?;
        }
        *self = Projection { seen, value };
        Ok(&self.value)
    }

    /// The number of the stream's next record.
    pub fn next_n(&self) -> u64 {
        self.seen.next()
    }
}
