//! A Merkle tree in memory, for tests.

use std::convert::Infallible;
use std::ops::Range;

use quorate_ledger::merkle::{Frontier, Hash, HashSource, STRIDE};

/// A tree in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MerkleTree {
    frontier: Frontier,
    /// The stored levels, leaves first.
    levels: Vec<Vec<Hash>>,
}

impl MerkleTree {
    pub(crate) fn new() -> Self {
        MerkleTree::default()
    }

    /// Appends a leaf's hash.
    pub(crate) fn push(&mut self, leaf: Hash) {
        let MerkleTree { frontier, levels: kept } = self;
        frontier.push_with(leaf, |subtree, hash| {
            if subtree.level.is_multiple_of(STRIDE) {
                let at = (subtree.level / STRIDE) as usize;
                if kept.len() <= at {
                    kept.push(Vec::new());
                }
                kept[at].push(*hash);
            }
        });
    }

    /// The tree's frontier: its size and its root.
    pub(crate) fn frontier(&self) -> &Frontier {
        &self.frontier
    }
}

impl Extend<Hash> for MerkleTree {
    fn extend<All: IntoIterator<Item = Hash>>(&mut self, leaves: All) {
        leaves.into_iter().for_each(|leaf| self.push(leaf));
    }
}

impl FromIterator<Hash> for MerkleTree {
    fn from_iter<All: IntoIterator<Item = Hash>>(leaves: All) -> Self {
        let mut tree = MerkleTree::new();
        tree.extend(leaves);
        tree
    }
}

impl HashSource for MerkleTree {
    type Error = Infallible;

    fn size(&self) -> u64 {
        self.frontier.size()
    }

    fn stores_level(&self, level: u32) -> bool {
        level.is_multiple_of(STRIDE)
    }

    fn hashes(&self, level: u32, indices: Range<u64>) -> Result<Vec<Hash>, Infallible> {
        // A missing hash makes the result too short, and the caller reports it.
        let all = self.levels.get((level / STRIDE) as usize).map(Vec::as_slice).unwrap_or_default();
        let within = usize::try_from(indices.start).ok().zip(usize::try_from(indices.end).ok());
        Ok(within.and_then(|(start, end)| all.get(start..end)).unwrap_or_default().to_vec())
    }
}
