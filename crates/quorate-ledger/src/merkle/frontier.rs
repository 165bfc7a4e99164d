//! The frontier: what of a tree is needed to append to it (RFC 9162, section 2.1.2). These are the roots of the complete
//! subtrees that the tree is made of, at most one of each size.

use super::subtree::Subtree;
use super::{EMPTY, Hash, TreeHead, node};

/// How many leaves a frontier that is read back may have: as many as a signed 64-bit column counts, halved, so that
/// what is appended to it still counts.
pub const MAX_SIZE: u64 = 1 << 62;

/// The right edge of an append-only tree: it takes leaves and tells size and root, in as many hashes as the size has
/// binary digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    /// The roots of the complete subtrees, largest first: one for each one in the size's binary digits.
    peaks: Vec<Hash>,
}

/// Why bytes are no frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrontier {
    /// Fewer than the 8 bytes of a size.
    #[error("a frontier starts with 8 bytes of size, and there are {bytes} bytes")]
    Short {
        /// How many bytes there are.
        bytes: usize,
    },
    /// More leaves than [`MAX_SIZE`].
    #[error("a frontier of {size} leaves is out of range")]
    Size {
        /// The size it says.
        size: u64,
    },
    /// Not 32 bytes for each subtree that a tree of this size is made of.
    #[error("a frontier of {size} leaves has {expected} bytes, and there are {bytes}")]
    Length {
        /// The size it says.
        size: u64,
        /// How many bytes a frontier of that size has.
        expected: usize,
        /// How many bytes there are.
        bytes: usize,
    },
}

impl Frontier {
    /// The frontier of the empty tree.
    pub fn new() -> Self {
        Frontier::default()
    }

    /// The frontier over complete subtrees, largest first, as many as the size has binary digits.
    pub(super) fn over(size: u64, peaks: Vec<Hash>) -> Self {
        Frontier { size, peaks }
    }

    /// How many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf's hash.
    pub fn push(&mut self, leaf: Hash) {
        self.push_closing(leaf, |_, _| {});
    }

    /// Appends a leaf's hash and names every subtree that it completes with its root, the leaf itself first: what a
    /// store may keep for proofs.
    pub fn push_closing(&mut self, leaf: Hash, mut closed: impl FnMut(Subtree, &Hash)) {
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

    /// The frontier as bytes: the size as 8 bytes, big-endian, then the subtrees' roots, largest first. A million
    /// leaves take 232 bytes, and no ledger takes more than 2,000.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 32 * self.peaks.len());
        bytes.extend(self.size.to_be_bytes());
        bytes.extend(self.peaks.as_flattened());
        bytes
    }

    /// Reads a frontier back. That it belongs to a tree, only its root can tell.
    ///
    /// # Errors
    /// [`BadFrontier`] where the bytes are not what [`Frontier::to_bytes`] writes for any tree.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadFrontier> {
        let short = BadFrontier::Short { bytes: bytes.len() };
        let (size, peaks) = bytes.split_first_chunk().ok_or(short)?;
        let size = u64::from_be_bytes(*size);
        if size > MAX_SIZE {
            return Err(BadFrontier::Size { size });
        }
        let (peaks, rest) = peaks.as_chunks::<32>();
        let expected = size.count_ones() as usize;
        if peaks.len() != expected || !rest.is_empty() {
            return Err(BadFrontier::Length { size, expected: 8 + 32 * expected, bytes: bytes.len() });
        }
        Ok(Frontier { size, peaks: peaks.to_vec() })
    }
}
