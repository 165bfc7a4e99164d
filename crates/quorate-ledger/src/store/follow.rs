//! Follows a stream: reads only the records added since the last read.

use quorate_kernel::ports::ledger::{Error, Record};
use quorate_protocol::Name;

use super::Store;
use super::engine::{Column, Row, sql};
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
    /// The place of the ledger's last record; 0 without one.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn last_place(&self) -> Result<u64, Error> {
        let rows = self.rows(sql("SELECT COALESCE(MAX(seq), 0) FROM record"), &[Column::Int]).await?;
        Ok(rows.first().map_or(0, |row| row.count(0)))
    }

    /// The records of all runs and streams behind a place, in their order, at most so many, each with its place. How they
    /// are chained is not checked.
    ///
    /// # Errors
    /// When the store does not answer, or a record is malformed.
    #[crate::boxed]
    pub async fn records_behind(&self, place: u64, limit: u32) -> Result<Vec<(u64, Name, Record)>, Error> {
        let statement =
            sql("SELECT seq, run, n, head, data FROM record WHERE seq > $1 ORDER BY seq LIMIT $2");
        let columns = [Column::Int, Column::Text, Column::Int, Column::Text, Column::Text];
        let rows = self.rows(statement.bind(place).bind(i64::from(limit)), &columns).await?;
        let record = |row: &Row| {
            let run = Name::from(row.text(1));
            let record =
                ChainReader::at(&run, row.count(2), row.text(3)).read_next(row.text(3), row.opt_text(4))?;
            Ok((row.count(0), run, record))
        };
        rows.iter().map(record).collect()
    }

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
