//! Reads the records in pages, each with its signatures and with the stored leaves of its positions, up to the first record
//! that cannot be read.

use std::collections::BTreeMap;

use crate::merkle::Hash;
use crate::store::engine::{Column, Engine, Row, sql};
use crate::store::tiles::{self, HASHES_PER_ROW};

/// The number of records per read.
const PAGE: i64 = 2048;

/// The most empty positions that are looked up in the stored tree. A larger gap is not the trace of a removed record.
pub(super) const MAX_GAP: u64 = 1 << 16;

/// A stored record.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredRecord {
    pub(super) seq: i64,
    pub(super) run: String,
    pub(super) n: i64,
    pub(super) kind: String,
    pub(super) head: String,
    pub(super) data: Option<String>,
    /// Its signers and signatures.
    pub(super) signatures: Vec<(String, String)>,
}

/// Consecutive records, and the stored leaves of their positions.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) records: Vec<StoredRecord>,
    leaves: BTreeMap<u64, Vec<u8>>,
    /// Why nothing after them can be read.
    pub(super) error: Option<String>,
}

impl Page {
    /// Whether its records are in order and all of them follow a position.
    fn is_ordered_after(&self, after: i64) -> bool {
        // The lowest position means that nothing has been read yet.
        let begins = self.records.first().is_none_or(|first| first.seq > after || after == i64::MIN);
        begins && self.records.is_sorted_by(|one, next| one.seq < next.seq)
    }

    /// The stored leaf of a position, from 1.
    pub(super) fn leaf(&self, place: u64) -> Option<Hash> {
        tiles::hash_at(&self.leaves, place.checked_sub(1)?)
    }
}

/// Reads the rows.
pub(super) struct Reader {
    after: i64,
    /// Whether the stored leaves are read as well.
    with_leaves: bool,
}

impl Reader {
    /// Reads the records after a position; `None` for all.
    pub(super) fn after(place: Option<u64>, with_leaves: bool) -> Self {
        let after = place.map_or(i64::MIN, |place| i64::try_from(place).unwrap_or(i64::MAX));
        Reader { after, with_leaves }
    }

    /// The next page; `None` at the end. A page that cannot be read is read record by record, up to the first one that
    /// cannot be read.
    pub(super) async fn next(&mut self, engine: &mut Engine) -> Option<Page> {
        let before = u64::try_from(self.after).unwrap_or(0);
        let read = match self.read_page(engine, PAGE).await {
            Err(_) => self.read_page(engine, 1).await,
            read => read,
        };
        let mut page = match read {
            Ok(records) => Page { records, ..Page::default() },
            Err(error) => return Some(Page { error: Some(error.to_string()), ..Page::default() }),
        };
        let last = page.records.last()?.seq;
        // Reading a corrupt file may never end.
        if !page.is_ordered_after(self.after) {
            let error = Some("the database returns its rows out of order".to_owned());
            return Some(Page { error, ..Page::default() });
        }
        self.after = last;
        if self.with_leaves
            && let Ok(last) = u64::try_from(last)
        {
            let last = last.min(before.saturating_add(MAX_GAP)) / HASHES_PER_ROW;
            let rows = (before / HASHES_PER_ROW..=last).collect();
            // Unreadable rows are found when all rows are counted.
            page.leaves = tiles::read_rows(engine, 0, &rows).await.unwrap_or_default();
        }
        Some(page)
    }

    async fn read_page(&self, engine: &mut Engine, limit: i64) -> Result<Vec<StoredRecord>, sqlx::Error> {
        use Column::{Int, Text};
        let rows =
            sql("SELECT seq, run, n, kind, head, data FROM record WHERE seq > $1 ORDER BY seq LIMIT $2")
                .bind(self.after)
                .bind(limit)
                .rows(engine, &[Int, Text, Int, Text, Text, Text])
                .await?;
        let mut records: Vec<StoredRecord> = rows.into_iter().map(record_from_row).collect();
        let Some((first, last)) =
            records.first().zip(records.last()).map(|(first, last)| (first.seq, last.seq))
        else {
            return Ok(records);
        };
        let mut unsigned = records.iter_mut();
        let mut record = unsigned.next();
        for (seq, key, signature) in signatures(engine, first, last).await? {
            while record.as_ref().is_some_and(|record| record.seq < seq) {
                record = unsigned.next();
            }
            if let Some(record) = &mut record {
                record.signatures.push((key, signature));
            }
        }
        Ok(records)
    }
}

pub(super) fn record_from_row(row: Row) -> StoredRecord {
    let text = |at| row.text(at).to_owned();
    StoredRecord {
        seq: row.int(0),
        run: text(1),
        n: row.int(2),
        kind: text(3),
        head: text(4),
        data: row.opt_text(5).map(str::to_owned),
        signatures: Vec::new(),
    }
}

/// Position, key and signature, for the records at some positions, in order.
pub(super) async fn signatures(
    engine: &mut Engine,
    first: i64,
    last: i64,
) -> Result<Vec<(i64, String, String)>, sqlx::Error> {
    // The join starts from the records: the other direction would read all signatures for each page.
    let rows = sql("SELECT record.seq, signature.key, signature.signature FROM record CROSS JOIN signature \
         WHERE record.seq >= $1 AND record.seq <= $2 AND signature.run = record.run AND signature.n = record.n \
         ORDER BY record.seq")
        .bind(first)
        .bind(last)
        .rows(engine, &[Column::Int, Column::Text, Column::Text])
        .await?;
    Ok(rows.iter().map(|row| (row.int(0), row.text(1).to_owned(), row.text(2).to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_in_order_after_the_one_before_it() {
        let page = |seqs: &[i64]| {
            let record = |seq: &i64| StoredRecord { seq: *seq, ..StoredRecord::default() };
            Page { records: seqs.iter().map(record).collect(), ..Page::default() }
        };
        let cases: [(&[i64], i64, bool); 9] = [
            (&[], 7, true),
            (&[8], 7, true),
            (&[8, 9, 12], 7, true),
            (&[7, 8], 7, false),
            (&[3], 7, false),
            (&[8, 8], 7, false),
            (&[9, 8], 7, false),
            (&[i64::MIN, 1], i64::MIN, true),
            (&[2, 1], i64::MIN, false),
        ];
        for (seqs, after, ordered) in cases {
            assert_eq!(page(seqs).is_ordered_after(after), ordered, "{seqs:?} after {after}");
        }
    }
}
