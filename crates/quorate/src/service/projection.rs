//! What follows from a stream of the ledger, kept in memory and brought up to date by the records that came since: a
//! prompt is composed for each turn, and a stream only grows.

use quorate_kernel::ports::ledger::Record;
use quorate_ledger::Store;
use quorate_ledger::store::StreamPosition;
use quorate_protocol::Name;

use super::error::ServiceError;

/// What follows from a stream as far as it was read.
#[derive(Debug, Clone, Default)]
pub struct Projection<T> {
    seen: StreamPosition,
    value: T,
}

impl<T: Default> Projection<T> {
    /// Reads what came since, and gives what follows from all of it. Where what was read is not there any more, all of
    /// it is read again.
    ///
    /// # Errors
    /// When the ledger does not answer, or a record is not as it should be: then all is read again the next time.
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

    /// The number of the stream's next record, as far as it was read.
    pub fn next_n(&self) -> u64 {
        self.seen.next()
    }
}
