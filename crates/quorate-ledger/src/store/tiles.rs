//! The stored part of the Merkle tree: the hashes of complete subtrees, 256 in a row of the table `tile`, up to the last
//! checkpoint. They are derived from the records; `verify` checks them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::Range;

use quorate_kernel::ports::ledger::LedgerError;

use super::engine::{Column, Engine, Value, sql, sql_rows};
use super::{STREAM, refusal};
use crate::merkle::{self, FetchedHashes, Frontier, Hash, STRIDE, Subtree, TreeHead};

/// The most hashes per row.
pub(crate) const HASHES_PER_ROW: u64 = 1 << STRIDE;

/// The number of rows per read.
const MAX_ROWS_READ: usize = 500;

/// Whether hashes of a level are stored.
pub(crate) fn stores_level(level: u32) -> bool {
    level.is_multiple_of(STRIDE)
}

/// A growing tree, and the rows that change with it.
pub(crate) struct TreeWriter {
    frontier: Frontier,
    rows: BTreeMap<(u32, u64), Vec<u8>>,
}

/// Why stored hashes cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] sqlx::Error),
    /// A hash is missing, or more hashes were requested than exist.
    #[error("the stored tree is incomplete: {0}")]
    Incomplete(String),
}

impl TreeError {
    pub(crate) fn incomplete(why: impl Display) -> TreeError {
        TreeError::Incomplete(why.to_string())
    }
}

impl From<TreeError> for sqlx::Error {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Store(error) => error,
            TreeError::Incomplete(what) => {
                let what = format!(
                    "the stored tree does not lead to the last checkpoint ({what}); run `quorate ledger verify`"
                );
                refusal(LedgerError::Corrupt { run: STREAM.into(), n: 0, what })
            }
        }
    }
}

impl TreeWriter {
    pub(crate) fn new() -> Self {
        TreeWriter { frontier: Frontier::new(), rows: BTreeMap::new() }
    }

    /// The tree of the first records, from the stored hashes.
    pub(crate) async fn load(engine: &mut Engine, size: u64) -> Result<Self, TreeError> {
        let fetched = fetch_tree(engine, size).await?;
        let frontier = merkle::frontier(&fetched, size).map_err(TreeError::incomplete)?;
        let mut rows = BTreeMap::new();
        // New hashes go into the incomplete rows.
        for level in (0..u64::BITS).step_by(STRIDE as usize) {
            let hashes = size >> level;
            if !hashes.is_multiple_of(HASHES_PER_ROW) {
                let idx = hashes / HASHES_PER_ROW;
                let mut row = read_row(engine, level, idx).await?;
                row.truncate(byte_len(hashes % HASHES_PER_ROW));
                rows.insert((level, idx), row);
            }
        }
        Ok(TreeWriter { frontier, rows })
    }

    pub(crate) fn push(&mut self, leaf: Hash) {
        let TreeWriter { frontier, rows } = self;
        frontier.push_with(leaf, |Subtree { level, index }, hash| {
            if stores_level(level) {
                rows.entry((level, index / HASHES_PER_ROW)).or_default().extend(hash);
            }
        });
    }

    /// Its frontier: size and root.
    pub(crate) fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Rows to store, by level and index.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, u64, &[u8])> {
        self.rows.iter().map(|((level, idx), hashes)| (*level, *idx, &**hashes))
    }

    /// Stores the rows that are full or the last of their level. Drops full rows from memory.
    pub(crate) async fn store(&mut self, engine: &mut Engine) -> Result<(), sqlx::Error> {
        for (level, idx, hashes) in self.rows() {
            sql("INSERT INTO tile (level, idx, hashes) VALUES ($1, $2, $3) \
                 ON CONFLICT (level, idx) DO UPDATE SET hashes = excluded.hashes")
            .bind(i64::from(level))
            .bind(idx)
            .bind(hashes.to_vec())
            .insert_exactly(engine, 1)
            .await?;
        }
        self.rows.retain(|_, hashes| hashes.len() < byte_len(HASHES_PER_ROW));
        Ok(())
    }
}

/// The hashes that the root and the frontier of the tree of the first `size` records need.
pub(crate) async fn fetch_tree(engine: &mut Engine, size: u64) -> Result<FetchedHashes, TreeError> {
    fetch(engine, std::iter::once(0..size), size).await
}

/// The hashes that the roots of ranges of leaves need, in the tree of the first `size` records.
pub(crate) async fn fetch(
    engine: &mut Engine,
    ranges: impl IntoIterator<Item = Range<u64>>,
    size: u64,
) -> Result<FetchedHashes, TreeError> {
    let mut fetched = FetchedHashes::new(size, stores_level);
    let mut rows: BTreeMap<(u32, u64), Vec<u8>> = BTreeMap::new();
    for read in merkle::required_hashes(ranges, stores_level) {
        for index in read.first..read.first + read.count {
            let key = (read.level, index / HASHES_PER_ROW);
            let row = match rows.entry(key) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(place) => place.insert(read_row(engine, key.0, key.1).await?),
            };
            let start = byte_len(index % HASHES_PER_ROW);
            let hash = row.get(start..start + 32).and_then(|hash| hash.try_into().ok());
            let missing =
                || TreeError::Incomplete(format!("hash {index} of level {} is missing", read.level));
            fetched.insert(Subtree { level: read.level, index }, hash.ok_or_else(missing)?);
        }
    }
    Ok(fetched)
}

/// Checks that the stored hashes still lead to a checkpoint's root.
pub(crate) async fn ensure_root(engine: &mut Engine, tree: &TreeHead) -> Result<(), TreeError> {
    match leads_to_root(engine, tree).await? {
        true => Ok(()),
        false => Err(TreeError::incomplete("its root differs from the checkpoint's")),
    }
}

/// Whether the stored hashes still lead to a checkpoint's root.
async fn leads_to_root(engine: &mut Engine, tree: &TreeHead) -> Result<bool, TreeError> {
    let fetched = fetch_tree(engine, tree.size).await?;
    let root = merkle::root(&fetched, tree.size);
    Ok(root.is_ok_and(|root| root == tree.root))
}

/// How many leaves are stored.
pub(crate) async fn stored_leaves(engine: &mut Engine) -> Result<u64, sqlx::Error> {
    let last =
        sql("SELECT idx, CAST(LENGTH(hashes) AS BIGINT) FROM tile WHERE level = 0 ORDER BY idx DESC LIMIT 1");
    let last = last.row(engine, &[Column::Int; 2]).await?;
    Ok(last.map_or(0, |row| row.count(0).saturating_mul(HASHES_PER_ROW).saturating_add(row.count(1) / 32)))
}

/// Which of these rows of stored leaves lead to a checkpoint's root, by index. An incomplete row leads there directly.
/// The hash of a full row is in a row eight levels above, which must lead there in turn.
pub(crate) async fn proven_leaves(
    engine: &mut Engine,
    tree: &TreeHead,
    rows: BTreeSet<u64>,
) -> Result<BTreeMap<u64, Vec<u8>>, sqlx::Error> {
    match leads_to_root(engine, tree).await {
        Ok(true) if !rows.is_empty() => {}
        Ok(_) | Err(TreeError::Incomplete(_)) => return Ok(BTreeMap::new()),
        Err(TreeError::Store(error)) => return Err(error),
    }
    let is_full = |level: u32, idx: u64| (idx + 1) * HASHES_PER_ROW <= tree.size >> level;
    let mut wanted = vec![rows];
    for level in (0..u64::BITS - STRIDE).step_by(STRIDE as usize) {
        let full = wanted.last().into_iter().flatten().filter(|idx| is_full(level, **idx));
        let above: BTreeSet<u64> = full.map(|idx| idx / HASHES_PER_ROW).collect();
        if above.is_empty() {
            break;
        }
        wanted.push(above);
    }
    let mut proven = BTreeMap::new();
    for (level, rows) in (0..).step_by(STRIDE as usize).zip(wanted).collect::<Vec<_>>().into_iter().rev() {
        let above = std::mem::replace(&mut proven, read_rows(engine, level, &rows).await?);
        proven.retain(|idx, hashes: &mut Vec<u8>| {
            let count = (tree.size >> level).saturating_sub(idx * HASHES_PER_ROW).min(HASHES_PER_ROW);
            hashes.truncate(byte_len(count));
            let is_whole = hashes.len() == byte_len(count);
            is_whole && (!is_full(level, *idx) || hash_at(&above, *idx) == Some(row_root(hashes)))
        });
    }
    Ok(proven)
}

/// The hash of an index in rows of one level.
pub(crate) fn hash_at(rows: &BTreeMap<u64, Vec<u8>>, index: u64) -> Option<Hash> {
    let start = byte_len(index % HASHES_PER_ROW);
    rows.get(&(index / HASHES_PER_ROW))?.get(start..start + 32)?.try_into().ok()
}

/// The root of a full row.
fn row_root(hashes: &[u8]) -> Hash {
    let mut level: Vec<Hash> =
        hashes.chunks_exact(32).map(|hash| hash.try_into().unwrap_or_default()).collect();
    while level.len() > 1 {
        level = level.chunks_exact(2).map(|two| merkle::node(&two[0], &two[1])).collect();
    }
    level.first().copied().unwrap_or_default()
}

async fn read_rows(
    engine: &mut Engine,
    level: u32,
    rows: &BTreeSet<u64>,
) -> Result<BTreeMap<u64, Vec<u8>>, sqlx::Error> {
    let mut read = BTreeMap::new();
    for some in rows.iter().copied().collect::<Vec<u64>>().chunks(MAX_ROWS_READ) {
        let head = format!("SELECT idx, hashes FROM tile WHERE level = {level} AND idx IN (VALUES ");
        let statement = sql_rows(head, some.iter().map(|idx| vec![Value::from(*idx)]), ")");
        for row in statement.rows(engine, &[Column::Int, Column::Bytes]).await? {
            read.insert(row.count(0), row.bytes(1).to_vec());
        }
    }
    Ok(read)
}

async fn read_row(engine: &mut Engine, level: u32, idx: u64) -> Result<Vec<u8>, sqlx::Error> {
    let row = sql("SELECT hashes FROM tile WHERE level = $1 AND idx = $2")
        .bind(i64::from(level))
        .bind(idx)
        .row(engine, &[Column::Bytes])
        .await?;
    Ok(row.map(|row| row.bytes(0).to_vec()).unwrap_or_default())
}

/// The length of a row with this number of hashes, in bytes.
fn byte_len(hashes: u64) -> usize {
    // A row has at most 256.
    usize::try_from(hashes).unwrap_or(0) * 32
}
