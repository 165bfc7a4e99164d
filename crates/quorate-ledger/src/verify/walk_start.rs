//! The start of a walk and the reading of its pages. A walk starts at the first record or after a trusted checkpoint.
//! In the second case the stored tree must have the trusted root, and the state of runs that continue after it is
//! loaded.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use quorate_kernel::ports::ledger::Kind;
use quorate_protocol::Json;
use serde_json::Map;

use super::checkpoints::Checkpoints;
use super::divergence::{Divergence, DivergenceKind, LedgerPart};
use super::runs::StreamState;
use super::tree::{TileRows, TreeCheck};
use super::{StartPoint, VerifyOptions, tables};
use crate::merkle::{self, Frontier, Hash, TreeHead, leaf};
use crate::signing::run::RunKeyring;
use crate::store::engine::{Column, Engine, Row, sql};
use crate::store::tiles::{self, HASHES_PER_ROW, TreeError};
use crate::store::{CheckpointRecord, STREAM};

/// The beginning of a walk.
pub(super) struct WalkStart {
    pub(super) tree: TreeCheck,
    pub(super) seals: Checkpoints,
    pub(super) runs: HashMap<Box<str>, StreamState>,
    /// The lengths of the stored rows above the leaves.
    pub(super) upper_row_lengths: std::collections::BTreeMap<(u32, u64), usize>,
    /// Why the stored tree cannot be used, and the trusted tree if known. In that case the walk starts at the first
    /// record.
    pub(super) mismatch: Option<(Option<TreeHead>, Divergence)>,
}

/// Why the checkpoint does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointNotFound {
    /// No checkpoint has this size.
    #[error("this ledger has no checkpoint over {0} records")]
    Size(u64),
    /// No checkpoint has this number.
    #[error("{STREAM}/{0} is not a checkpoint of this ledger")]
    Number(u64),
}

/// Starts at the first record.
pub(super) async fn from_first_record(engine: &mut Engine, has_tree: bool) -> Result<WalkStart, sqlx::Error> {
    let rows = if has_tree { tables::upper_rows(engine).await? } else { TileRows::new() };
    let upper_row_lengths = row_lengths(&rows);
    Ok(WalkStart {
        tree: TreeCheck::new(Frontier::new(), rows),
        seals: Checkpoints::default(),
        runs: HashMap::new(),
        upper_row_lengths,
        mismatch: None,
    })
}

/// Starts after a checkpoint.
pub(super) async fn after_checkpoint(
    engine: &mut Engine,
    options: &VerifyOptions,
    since: &StartPoint,
) -> Result<Result<WalkStart, CheckpointNotFound>, sqlx::Error> {
    let last = last_seq(engine).await?;
    let cut = |size: u64| {
        // Without newer records the walk covers all from the first one.
        let what = format!("the trusted checkpoint covers {size} records, but there are only {last}");
        Divergence::new(DivergenceKind::Cut, LedgerPart::Checkpoint, what).at_seq(last + 1).up_to_seq(size)
    };
    let mut begin = from_first_record(engine, true).await?;
    let sealed = match find_checkpoint(engine, since).await? {
        Ok(sealed) => sealed,
        Err(CheckpointNotFound::Size(size)) if last < size => {
            begin.mismatch = Some((None, cut(size)));
            return Ok(Ok(begin));
        }
        Err(error) => return Ok(Err(error)),
    };
    let trusted = match since {
        StartPoint::Tree(tree) => *tree,
        StartPoint::Size(_) | StartPoint::Number(_) => match &sealed {
            Some(sealed) => sealed.tree,
            None => return Ok(Ok(begin)),
        },
    };
    let size = trusted.size;
    if last < size {
        begin.mismatch = Some((Some(trusted), cut(size)));
        return Ok(Ok(begin));
    }
    let frontier = match tiles::fetch_tree(engine, size).await {
        Ok(fetched) => merkle::frontier(&fetched, size).map_err(|error| error.to_string()),
        Err(TreeError::Store(error)) => return Err(error),
        Err(error) => Err(error.to_string()),
    };
    match frontier {
        Ok(frontier) if frontier.tree_head() == trusted => {
            let rows = tables::upper_rows(engine).await?;
            begin.tree = TreeCheck::new(frontier, rows);
        }
        frontier => {
            let what = match frontier {
                Ok(_) => "its root differs from that of the trusted checkpoint".to_owned(),
                Err(error) => error,
            };
            let divergence = Divergence::new(DivergenceKind::Changed, LedgerPart::Tree, what);
            begin.mismatch = Some((Some(trusted), divergence));
            return Ok(Ok(begin));
        }
    }
    if let Some(sealed) = &sealed {
        begin.seals = Checkpoints::starting_after(sealed);
    }
    begin.runs = run_states_at(engine, options, size).await?;
    let origin = read_origin(engine).await;
    for wanted in witness_trees(options, origin.as_deref()).filter(|tree| tree.size < size) {
        let root = match tiles::fetch(engine, std::iter::once(0..wanted.size), size).await {
            Ok(fetched) => merkle::root(&fetched, wanted.size).ok(),
            Err(TreeError::Store(error)) => return Err(error),
            Err(TreeError::Incomplete(_)) => None,
        };
        if root != Some(wanted.root) {
            let what = format!(
                "the records differ from those under a checkpoint of {} records that is kept elsewhere",
                wanted.size
            );
            let divergence = Divergence::new(DivergenceKind::Changed, LedgerPart::Witness, what)
                .at_seq(1)
                .up_to_seq(wanted.size);
            begin.mismatch = Some((Some(trusted), divergence));
            return Ok(Ok(WalkStart { mismatch: begin.mismatch, ..from_first_record(engine, true).await? }));
        }
    }
    Ok(Ok(begin))
}

/// The witness's trees of this ledger.
pub(super) fn witness_trees<'a>(
    options: &'a VerifyOptions,
    origin: Option<&'a str>,
) -> impl Iterator<Item = TreeHead> + use<'a> {
    let cosigned = options.remote_witness.iter().filter_map(|(_, copy)| copy.as_ref());
    let kept = options
        .local_checkpoints
        .iter()
        .filter(move |kept| origin.is_some() || kept.replaced_origin.is_none());
    let copies = kept.flat_map(|kept| &kept.copies).chain(cosigned);
    let copies = copies.filter_map(|copy| copy.note.as_ref().ok());
    let notes = options.witness.iter().flat_map(|witness| &witness.notes).chain(copies);
    let checkpoints = notes.filter_map(|note| super::parse_checkpoint(note));
    let ours =
        checkpoints.filter(move |checkpoint| origin.is_none_or(|origin| origin == checkpoint.origin()));
    ours.map(|checkpoint| *checkpoint.tree())
}

/// The ledger's origin, from its first checkpoint; `None` without a readable one.
pub(super) async fn read_origin(engine: &mut Engine) -> Option<String> {
    let row = sql("SELECT n, data FROM record WHERE run = $1 AND kind = $2 ORDER BY n LIMIT 1")
        .bind(STREAM)
        .bind(Kind::Checkpoint.as_str())
        .row(engine, &[Column::Int, Column::Text])
        .await;
    let row = row.ok().flatten()?;
    let data = serde_json::from_str(row.opt_text(1)?).ok()?;
    Some(CheckpointRecord::from_data(row.count(0), &data)?.origin)
}

/// The position of the last record.
async fn last_seq(engine: &mut Engine) -> Result<u64, sqlx::Error> {
    let row = sql("SELECT COALESCE(MAX(seq), 0) FROM record").row(engine, &[Column::Int]).await?;
    Ok(row.map_or(0, |row| row.count(0)))
}

/// The record of the checkpoint; `None` for a tree that another party vouches for.
async fn find_checkpoint(
    engine: &mut Engine,
    since: &StartPoint,
) -> Result<Result<Option<CheckpointRecord>, CheckpointNotFound>, sqlx::Error> {
    let (n, none) = match since {
        StartPoint::Number(n) => (Some(*n), CheckpointNotFound::Number(*n)),
        StartPoint::Size(size) | StartPoint::Tree(TreeHead { size, .. }) => {
            let row = sql("SELECT n FROM checkpoint WHERE size = $1").bind(*size);
            let row = row.row(engine, &[Column::Int]).await?;
            (row.map(|row| row.count(0)), CheckpointNotFound::Size(*size))
        }
    };
    let mut sealed = None;
    if let Some(n) = n {
        let row = sql("SELECT data FROM record WHERE run = $1 AND n = $2 AND kind = $3")
            .bind(STREAM)
            .bind(n)
            .bind(Kind::Checkpoint.as_str())
            .row(engine, &[Column::Text])
            .await?;
        let data = row.and_then(|row| serde_json::from_str(row.opt_text(0)?).ok());
        sealed = data.and_then(|data| CheckpointRecord::from_data(n, &data));
    }
    match (sealed, since) {
        (None, StartPoint::Size(_) | StartPoint::Number(_)) => Ok(Err(none)),
        (sealed, _) => Ok(Ok(sealed)),
    }
}

/// The state at a size of the runs with records after it.
pub(super) async fn run_states_at(
    engine: &mut Engine,
    options: &VerifyOptions,
    size: u64,
) -> Result<HashMap<Box<str>, StreamState>, sqlx::Error> {
    use Column::{Int, Text};
    let rows = sql("SELECT record.run, record.n, record.head FROM record JOIN \
         (SELECT run, MIN(n) AS first FROM record WHERE seq > $1 GROUP BY run) AS later \
         ON record.run = later.run AND record.n = later.first - 1")
    .bind(size)
    .rows(engine, &[Text, Int, Text])
    .await?;
    let mut runs = HashMap::with_capacity(rows.len());
    for row in &rows {
        let run = row.text(0);
        let signed = sql("SELECT n FROM signature WHERE run = $1 AND n = 0 LIMIT 1").bind(run);
        let signed = signed.row(engine, &[Int]).await?.is_some();
        let upto = row.int(1);
        let says = sql(
            "SELECT kind, data FROM record WHERE run = $1 AND n <= $2 AND (n = 0 OR kind = $3) ORDER BY n",
        );
        let says = says.bind(run).bind(upto).bind(Kind::Keyring.as_str());
        let mut audit = None;
        for says in says.rows(engine, &[Text, Text]).await? {
            let data = says.opt_text(1).and_then(|data| serde_json::from_str::<Map<String, Json>>(data).ok());
            match (data, &mut audit) {
                (Some(data), None) => audit = RunKeyring::from_opened(&data).map(Arc::new),
                // An invalid one is reported at its own record.
                (Some(data), Some(audit)) => {
                    drop(Arc::make_mut(audit).extend(&data, options.external_keys()))
                }
                (None, _) => {}
            }
        }
        let state = StreamState::after(row.count(1), leaf(row.text(2).as_bytes()), signed, audit);
        runs.insert(run.into(), state);
    }
    Ok(runs)
}

fn row_lengths(rows: &TileRows) -> std::collections::BTreeMap<(u32, u64), usize> {
    rows.iter().map(|(key, hashes)| (*key, hashes.len())).collect()
}

/// The number of records per read.
const PAGE: i64 = 2048;
/// The most empty positions that are looked up in the stored tree. A larger gap is not the trace of a removed record.
const MAX_GAP: u64 = 1 << 16;

/// A stored record.
#[derive(Debug, Clone)]
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

/// A row of the table of records.
#[derive(Debug)]
pub(super) enum PageRow {
    Record(StoredRecord),
    /// The row exists but cannot be read.
    Unreadable {
        seq: i64,
        why: String,
    },
}

/// Consecutive records, and the stored leaves of their positions.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) rows: Vec<PageRow>,
    leaves: BTreeMap<u64, Vec<u8>>,
    /// Why nothing after them can be read.
    pub(super) error: Option<String>,
}

impl Page {
    /// Whether its rows are in order and all of them follow a position.
    fn is_ordered_after(&self, after: i64) -> bool {
        let seqs = self.rows.iter().map(|line| match line {
            PageRow::Record(StoredRecord { seq, .. }) | PageRow::Unreadable { seq, .. } => *seq,
        });
        // The lowest position means that nothing has been read yet.
        let begins = self.rows.is_empty() || seqs.clone().next() > Some(after) || after == i64::MIN;
        begins && seqs.is_sorted_by(|one, next| one < next)
    }

    /// The stored leaf of a position, from 1.
    pub(super) fn leaf(&self, place: u64) -> Option<Hash> {
        let index = place.checked_sub(1)?;
        let start = usize::try_from(index % HASHES_PER_ROW).ok()? * 32;
        self.leaves.get(&(index / HASHES_PER_ROW))?.get(start..start + 32)?.try_into().ok()
    }
}

/// Reads the rows.
pub(super) struct Reader {
    after: i64,
    /// Whether the file has the tables of schema 2.
    has_tree: bool,
    has_signatures: bool,
}

impl Reader {
    /// Reads the records after a position; `None` for all.
    pub(super) fn after(place: Option<i64>, has_tree: bool, has_signatures: bool) -> Self {
        Reader { after: place.unwrap_or(i64::MIN), has_tree, has_signatures }
    }

    /// The next page; `None` at the end.
    pub(super) async fn next(&mut self, engine: &mut Engine) -> Option<Page> {
        let before = u64::try_from(self.after).unwrap_or(0);
        let mut page = match self.read_page(engine).await {
            Ok(lines) => Page { rows: lines, ..Page::default() },
            Err(_) => self.read_one_by_one(engine).await,
        };
        let last = match page.rows.last() {
            Some(PageRow::Record(StoredRecord { seq, .. }) | PageRow::Unreadable { seq, .. }) => *seq,
            None if page.error.is_some() => return Some(page),
            None => return None,
        };
        // Reading a corrupt file may never end.
        if !page.is_ordered_after(self.after) {
            let error = Some("the database returns its rows out of order".to_owned());
            return Some(Page { error, ..Page::default() });
        }
        self.after = last;
        if self.has_tree
            && let Ok(last) = u64::try_from(last)
        {
            let first = before / HASHES_PER_ROW;
            let last = last.min(before.saturating_add(MAX_GAP)) / HASHES_PER_ROW;
            // Unreadable rows are found when all rows are counted.
            if let Ok(leaves) = leaves(engine, first, last).await {
                page.leaves = leaves;
            }
        }
        Some(page)
    }

    async fn read_page(&self, engine: &mut Engine) -> Result<Vec<PageRow>, sqlx::Error> {
        use Column::{Int, Text};
        let rows =
            sql("SELECT seq, run, n, kind, head, data FROM record WHERE seq > $1 ORDER BY seq LIMIT $2")
                .bind(self.after)
                .bind(PAGE)
                .rows(engine, &[Int, Text, Int, Text, Text, Text])
                .await?;
        let mut records: Vec<StoredRecord> = rows.into_iter().map(record_from_row).collect();
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Ok(Vec::new()) };
        if self.has_signatures {
            let signatures = signatures(engine, first.seq, last.seq).await?;
            let mut records = records.iter_mut();
            let mut record = records.next();
            for (seq, key, signature) in signatures {
                while record.as_ref().is_some_and(|record| record.seq < seq) {
                    record = records.next();
                }
                if let Some(record) = &mut record {
                    record.signatures.push((key, signature));
                }
            }
        }
        Ok(records.into_iter().map(PageRow::Record).collect())
    }

    /// As [`Reader::read_page`], row by row, for a page with unreadable rows.
    async fn read_one_by_one(&self, engine: &mut Engine) -> Page {
        let seqs = sql("SELECT seq FROM record WHERE seq > $1 ORDER BY seq LIMIT $2");
        let seqs = match seqs.bind(self.after).bind(PAGE).rows(engine, &[Column::Int]).await {
            Ok(rows) => rows.iter().map(|row| row.int(0)).collect::<Vec<_>>(),
            Err(error) => match self.step_through_seqs(engine).await {
                seqs if seqs.is_empty() => {
                    return Page { error: Some(error.to_string()), ..Page::default() };
                }
                seqs => seqs,
            },
        };
        let mut page = Page::default();
        for seq in seqs {
            page.rows.push(match self.line(engine, seq).await {
                Ok(Some(record)) => PageRow::Record(record),
                Ok(None) => continue,
                Err(error) => PageRow::Unreadable { seq, why: error.to_string() },
            });
        }
        page
    }

    /// The positions up to the first one that the database cannot step to.
    async fn step_through_seqs(&self, engine: &mut Engine) -> Vec<i64> {
        let (mut seqs, mut after) = (Vec::new(), self.after);
        while seqs.len() < usize::try_from(PAGE).unwrap_or(0) {
            let next = sql("SELECT seq FROM record WHERE seq > $1 ORDER BY seq LIMIT 1").bind(after);
            match next.row(engine, &[Column::Int]).await {
                Ok(Some(row)) if row.int(0) > after => after = row.int(0),
                Ok(_) | Err(_) => break,
            }
            seqs.push(after);
        }
        seqs
    }

    async fn line(&self, engine: &mut Engine, seq: i64) -> Result<Option<StoredRecord>, sqlx::Error> {
        use Column::{Int, Text};
        let row = sql("SELECT seq, run, n, kind, head, data FROM record WHERE seq = $1")
            .bind(seq)
            .row(engine, &[Int, Text, Int, Text, Text, Text])
            .await?;
        let Some(mut record) = row.map(record_from_row) else { return Ok(None) };
        if self.has_signatures {
            let signatures = signatures(engine, seq, seq).await?;
            record.signatures = signatures.into_iter().map(|(_, key, signature)| (key, signature)).collect();
        }
        Ok(Some(record))
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

async fn leaves(engine: &mut Engine, first: u64, last: u64) -> Result<BTreeMap<u64, Vec<u8>>, sqlx::Error> {
    let rows = sql("SELECT idx, hashes FROM tile WHERE level = 0 AND idx >= $1 AND idx <= $2")
        .bind(first)
        .bind(last)
        .rows(engine, &[Column::Int, Column::Bytes])
        .await?;
    Ok(rows.iter().map(|row| (row.count(0), row.bytes(1).to_vec())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_in_order_after_the_one_before_it() {
        let page = |seqs: &[i64]| {
            let row = |seq: &i64| PageRow::Unreadable { seq: *seq, why: String::new() };
            Page { rows: seqs.iter().map(row).collect(), ..Page::default() }
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
