//! Follows a stream: reads only the records added since the last read.

use quorate_kernel::ports::ledger::{Error, Record};
use quorate_protocol::Name;

use super::Store;
use super::engine::{Column, sql};
use crate::record::{ChainReader, leaf};

/// How far a stream was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamPosition {
    next: u64,
    /// The leaf of the last record that was read.
    leaf: Option<String>,
}

impl StreamPosition {
    /// The number of the next record.
    pub fn next(&self) -> u64 {
        self.next
    }
}

impl Store {
    /// The records after the last seen one of a stream, in order, and the new position. `None` where the
    /// last seen record is gone or replaced, which invalidates the projection.
    ///
    /// # Errors
    /// When the store does not answer, or a record is malformed.
    #[crate::boxed]
    pub async fn records_after(
        &self,
        run: &Name,
        seen: &StreamPosition,
    ) -> Result<Option<(Vec<Record>, StreamPosition)>, Error> {
        // From the last one that was seen on, whose hash the next one names.
        let last = i64::try_from(seen.next).unwrap_or(i64::MAX) - 1;
        let statement = sql("SELECT head, CASE WHEN n > $2 THEN data END FROM record \
                             WHERE run = $1 AND n >= $2 ORDER BY n");
        let rows = self.rows(statement.bind(&**run).bind(last), &[Column::Text, Column::Text]).await?;
        let (before, rows) = match (&seen.leaf, rows.split_first()) {
            (None, _) => (None, &rows[..]),
            (Some(known), Some((last, rows))) if leaf(last.text(0)) == *known => (Some(last.text(0)), rows),
            (Some(_), _) => return Ok(None),
        };
        let mut chain = ChainReader::after(run, seen.next, before);
        let records: Vec<Record> =
            rows.iter().map(|row| chain.read_next(row.text(0), row.opt_text(1))).collect::<Result<_, _>>()?;
        let leaf = rows.last().map(|row| leaf(row.text(0))).or_else(|| seen.leaf.clone());
        Ok(Some((records, StreamPosition { next: seen.next + rows.len() as u64, leaf })))
    }
}
