//! The frontier: the hashes needed to append to a tree (RFC 9162, section 2.1.2). They are the roots of its complete
//! subtrees, at most one of each size.

use super::subtree::Subtree;
use super::{EMPTY, Hash, TreeHead, node};

/// The right edge of an append-only tree: it takes leaves and tells size and root, in as many hashes as the size has
/// binary digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    /// The roots of the complete subtrees, largest first: one for each one in the size's binary digits.
    peaks: Vec<Hash>,
}

impl Frontier {
    /// The frontier of the empty tree.
    pub fn new() -> Self {
        Frontier::default()
    }

    /// The frontier over complete subtrees, largest first, as many as the size has binary digits.
    pub(super) fn from_peaks(size: u64, peaks: Vec<Hash>) -> Self {
        Frontier { size, peaks }
    }

    /// How many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf's hash.
    pub fn push(&mut self, leaf: Hash) {
        self.push_with(leaf, |_, _| {});
    }

    /// Appends a leaf's hash and names every subtree that it completes with its root, the leaf itself first: what a
    /// store may keep for proofs.
    pub fn push_with(&mut self, leaf: Hash, mut closed: impl FnMut(Subtree, &Hash)) {
        let index = self.size;
        let mut hash = leaf;
        closed(Subtree { level: 0, index }, &hash);
        // As in counting: each one that is carried joins two subtrees of one size.
        for level in 1..=index.trailing_ones() {
            let Some(left) = self.peaks.pop() else { break };
            hash = node(&left, &hash);
            closed(Subtree { level, index: index >> level }, &hash);
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    /// The root of the tree as it stands.
    pub fn root(&self) -> Hash {
        let right_to_left = self.peaks.iter().rev().copied();
        right_to_left.reduce(|right, left| node(&left, &right)).unwrap_or(EMPTY)
    }

    /// Size and root of the tree as it stands.
    pub fn tree_head(&self) -> TreeHead {
        TreeHead { size: self.size, root: self.root() }
    }
}
