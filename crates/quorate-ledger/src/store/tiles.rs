//! The stored part of the Merkle tree: the hashes of complete subtrees, 256 in a row of the table `tile`, up to the last
//! checkpoint. They are derived from the records; `verify` checks them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use quorate_kernel::ports::ledger::LedgerError;

use super::engine::{Column, Engine, Value, sql, sql_rows};
use super::{STREAM, refusal};
use crate::merkle::{self, Frontier, Hash, STRIDE, Subtree, TreeHead, complete_subtrees};

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
        let frontier = StoredTree::default().tree(engine, 0..size).await?;
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

    /// Adds the leaves in the row that its next leaf belongs to. Keeps no row of leaves.
    pub(crate) fn push_leaves(&mut self, row: &[u8]) {
        let known = usize::try_from(self.frontier.size() % HASHES_PER_ROW).unwrap_or(0);
        for leaf in row.chunks_exact(32).skip(known) {
            self.push(leaf.try_into().unwrap_or_default());
        }
        self.rows.retain(|(level, _), _| *level > 0);
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

/// The most rows that a reader keeps.
const MAX_ROWS_KEPT: usize = 16;

/// Reads roots and proofs from the stored hashes. Keeps the rows that it read last, each with the hashes of the levels up to
/// the next stored one: consecutive records share most of their paths.
#[derive(Default)]
pub(crate) struct StoredTree {
    rows: BTreeMap<(u32, u64), Vec<Vec<Hash>>>,
}

impl StoredTree {
    /// The tree of a range of leaves.
    pub(crate) async fn tree(
        &mut self,
        engine: &mut Engine,
        leaves: Range<u64>,
    ) -> Result<Frontier, TreeError> {
        let size = leaves.end - leaves.start;
        let mut peaks = Vec::new();
        for subtree in complete_subtrees(leaves) {
            peaks.push(self.subtree(engine, subtree).await?);
        }
        Ok(Frontier::of_peaks(size, peaks))
    }

    /// The roots of ranges of leaves, which are a proof.
    pub(crate) async fn path(
        &mut self,
        engine: &mut Engine,
        ranges: Vec<Range<u64>>,
    ) -> Result<Vec<Hash>, TreeError> {
        let mut path = Vec::with_capacity(ranges.len());
        for leaves in ranges {
            path.push(self.tree(engine, leaves).await?.root());
        }
        Ok(path)
    }

    /// The root of a complete subtree.
    pub(crate) async fn subtree(
        &mut self,
        engine: &mut Engine,
        Subtree { level, index }: Subtree,
    ) -> Result<Hash, TreeError> {
        let above = level % STRIDE;
        let width = HASHES_PER_ROW >> above;
        let key = (level - above, index / width);
        if !self.rows.contains_key(&key) {
            if self.rows.len() >= MAX_ROWS_KEPT {
                self.rows.clear();
            }
            let hashes = read_row(engine, key.0, key.1).await?;
            self.rows.insert(key, levels(&hashes));
        }
        let level_of_row = self.rows.get(&key).and_then(|levels| levels.get(above as usize));
        let hash = level_of_row.and_then(|hashes| hashes.get(usize::try_from(index % width).ok()?));
        hash.copied()
            .ok_or_else(|| TreeError::Incomplete(format!("hash {index} of level {level} is missing")))
    }
}

/// The hashes of a row, and those of the complete subtrees above them, level by level.
fn levels(hashes: &[u8]) -> Vec<Vec<Hash>> {
    let hashes: Vec<Hash> = hashes.chunks_exact(32).map(|hash| hash.try_into().unwrap_or_default()).collect();
    let above = |below: &Vec<Hash>| {
        let above: Vec<Hash> = below.chunks_exact(2).map(|two| merkle::node(&two[0], &two[1])).collect();
        (!above.is_empty()).then_some(above)
    };
    std::iter::successors(Some(hashes), above).collect()
}

/// Checks that the stored hashes still lead to a checkpoint's root.
pub(crate) async fn ensure_root(engine: &mut Engine, tree: &TreeHead) -> Result<(), TreeError> {
    match leads_to_root(engine, tree).await? {
        true => Ok(()),
        false => Err(TreeError::Incomplete("its root differs from the checkpoint's".to_owned())),
    }
}

/// Whether the stored hashes still lead to a checkpoint's root.
async fn leads_to_root(engine: &mut Engine, tree: &TreeHead) -> Result<bool, TreeError> {
    Ok(StoredTree::default().tree(engine, 0..tree.size).await?.root() == tree.root)
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
            is_whole
                && (!is_full(level, *idx)
                    || hash_at(&above, *idx).as_ref() == levels(hashes).last().and_then(|top| top.first()))
        });
    }
    Ok(proven)
}

/// The hash of an index in rows of one level.
pub(crate) fn hash_at(rows: &BTreeMap<u64, Vec<u8>>, index: u64) -> Option<Hash> {
    let start = byte_len(index % HASHES_PER_ROW);
    rows.get(&(index / HASHES_PER_ROW))?.get(start..start + 32)?.try_into().ok()
}

/// Rows of one level, by index.
pub(crate) async fn read_rows(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::merkle::{Consistency, Inclusion, consistency_ranges, inclusion_ranges};

    fn leaf_of(index: u64) -> Hash {
        merkle::leaf(&index.to_be_bytes())
    }

    #[tokio::test]
    async fn every_proof_is_made_of_stored_hashes() {
        // D2: three levels are stored.
        const SIZE: u64 = 70_001;
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("ledger.db")).await.unwrap().store;
        let mut connection = store.writer().await;
        let engine = connection.engine().await.unwrap();
        let (mut tree, mut heads) = (TreeWriter::new(), BTreeMap::new());
        let places = [0, 1, 2, 255, 256, 257, 40_000, 65_535, 65_536, 65_537, 70_000];
        for index in 0..SIZE {
            if places.contains(&index) {
                heads.insert(index, tree.frontier().tree_head());
            }
            tree.push(leaf_of(index));
        }
        tree.store(engine).await.unwrap();
        let whole = tree.frontier().tree_head();
        let mut stored = StoredTree::default();
        assert_eq!(stored.tree(engine, 0..SIZE).await.unwrap(), *tree.frontier());
        for (index, before) in heads {
            let path = stored.path(engine, inclusion_ranges(index, SIZE)).await.unwrap();
            Inclusion { index, size: SIZE, path }.verify(&leaf_of(index), &whole).unwrap();
            let path = stored.path(engine, consistency_ranges(index, SIZE)).await.unwrap();
            Consistency { old: index, new: SIZE, path }.verify(&before, &whole).unwrap();
            assert_eq!(TreeWriter::load(engine, index).await.unwrap().frontier().tree_head(), before);
        }
        let beyond = stored.tree(engine, 0..SIZE + 1).await.unwrap_err().to_string();
        assert_eq!(beyond, "the stored tree is incomplete: hash 35000 of level 1 is missing");
    }
}
