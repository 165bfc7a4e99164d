//! A Merkle tree in memory, for tests. Its hashes are roots of ranges of leaves, made by the frontier.

use std::ops::Range;

use quorate_ledger::merkle::{Consistency, Frontier, Hash, Inclusion, consistency_ranges, inclusion_ranges};

/// A tree in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MerkleTree {
    frontier: Frontier,
    leaves: Vec<Hash>,
}

impl MerkleTree {
    pub(crate) fn new() -> Self {
        MerkleTree::default()
    }

    /// Appends a leaf's hash.
    pub(crate) fn push(&mut self, leaf: Hash) {
        self.frontier.push(leaf);
        self.leaves.push(leaf);
    }

    /// The tree's frontier: its size and its root.
    pub(crate) fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The root of the tree of a range of leaves, which must exist.
    fn range(&self, leaves: Range<u64>) -> Hash {
        let place = |index| usize::try_from(index).expect("small");
        let mut frontier = Frontier::new();
        self.leaves[place(leaves.start)..place(leaves.end)].iter().for_each(|leaf| frontier.push(*leaf));
        frontier.root()
    }
}

/// The root of the tree of the first `size` leaves.
pub(crate) fn root(tree: &MerkleTree, size: u64) -> Hash {
    tree.range(0..size)
}

/// The proof that leaf `index` is in the tree of the first `size` leaves.
pub(crate) fn inclusion(tree: &MerkleTree, index: u64, size: u64) -> Inclusion {
    let path = inclusion_ranges(index, size).into_iter().map(|leaves| tree.range(leaves)).collect();
    Inclusion { index, size, path }
}

/// The proof that the tree of the first `old` leaves is a prefix of the tree of the first `new`.
pub(crate) fn consistency(tree: &MerkleTree, old: u64, new: u64) -> Consistency {
    let path = consistency_ranges(old, new).into_iter().map(|leaves| tree.range(leaves)).collect();
    Consistency { old, new, path }
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
