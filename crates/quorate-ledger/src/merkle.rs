//! The Merkle tree over the ledger's leaves (D2), as in RFC 9162, section 2.1: hashes, the append-only [`Frontier`],
//! proofs and their verification.
//!
//! Nothing here reads a store, which has the hashes that a proof consists of. Verification needs a leaf, a
//! proof and a [`TreeHead`], which are public; it accepts untrusted input and never panics. A proof has the roots of listed
//! ranges of leaves; a surplus or missing hash refuses it. [`crate::record`] defines the leaf, [`crate::note`] the signature of
//! a root.

use std::ops::Range;

use quorate_kernel::entropy::hex;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A SHA-256 hash: 32 bytes.
pub type Hash = [u8; 32];

/// Size and root of a tree. A proof always concerns both, because a root alone does not determine the number of leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TreeHead {
    /// The number of leaves of the tree.
    pub size: u64,
    #[serde(serialize_with = "as_hex")]
    pub root: Hash,
}

fn as_hex<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(hash))
}

/// The root of the tree without leaves: SHA-256 of nothing.
pub const EMPTY: Hash = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// The hash of a leaf: SHA-256 over a zero byte and the leaf's content. A record's leaf contains its head.
pub fn leaf(entry: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

/// The hash of an inner node: SHA-256 over a one byte and the hashes of its two children. The bytes before leaves and
/// nodes differ, so that no node can be passed off as a leaf.
pub fn node(left: &Hash, right: &Hash) -> Hash {
    // Hashed in one call: walks through a tree spend most of their time here.
    let mut both = [1; 65];
    both[1..33].copy_from_slice(left);
    both[33..].copy_from_slice(right);
    Sha256::digest(both).into()
}

/// The store keeps every eighth level above the leaves. That is one more hash for 255 leaves, a proof reads at most 256
/// hashes at a time, and the levels are those of the tiles that transparency logs serve.
pub const STRIDE: u32 = 8;

/// A complete subtree: the `1 << level` leaves from `index << level` on. At level 0 it is one leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subtree {
    /// The level above the leaves, from 0 to 63.
    pub level: u32,
    /// The number of subtrees of its level to the left of it.
    pub index: u64,
}

/// The complete subtrees that make up a range of leaves, from left to right. For the RFC's ranges they follow the
/// binary digits of the range's length, largest first, because such a range starts at a multiple of its largest
/// subtree.
pub(crate) fn complete_subtrees(leaves: Range<u64>) -> Vec<Subtree> {
    let mut pieces = Vec::new();
    let mut first = leaves.start;
    while first < leaves.end {
        let level = (leaves.end - first).ilog2().min(first.trailing_zeros());
        pieces.push(Subtree { level, index: first >> level });
        first += 1 << level;
    }
    pieces
}

/// The ranges of leaves whose roots prove that leaf `index` is in the tree of the first `size` leaves: from the leaf's
/// sibling up to the root's child. Empty if there is no such leaf.
pub fn inclusion_ranges(index: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut within = 0..if index < size { size } else { 0 };
    while let Some(middle) = split(&within) {
        if index < middle {
            ranges.push(middle..within.end);
            within.end = middle;
        } else {
            ranges.push(within.start..middle);
            within.start = middle;
        }
    }
    ranges.reverse();
    ranges
}

/// The ranges of leaves whose roots prove that the tree of the first `old` leaves is a prefix of that of the first
/// `new`. Empty for an empty or equal prefix, which needs no proof, and if `old` is greater than `new`.
pub fn consistency_ranges(old: u64, new: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    if old == 0 || old >= new {
        return ranges;
    }
    let mut within = 0..new;
    while within.end > old {
        let Some(middle) = split(&within) else { break };
        if old <= middle {
            ranges.push(middle..within.end);
            within.end = middle;
        } else {
            ranges.push(within.start..middle);
            within.start = middle;
        }
    }
    // The verifier knows the old root itself. Any other subtree in which the old tree ends must be part of the proof.
    if within.start > 0 {
        ranges.push(within);
    }
    ranges.reverse();
    ranges
}

/// Where a range is split: after the largest power of two that is less than its length. A leaf is not split.
fn split(range: &Range<u64>) -> Option<u64> {
    let length = range.end - range.start;
    (length > 1).then(|| range.start + (1 << (length - 1).ilog2()))
}

/// Proof that a leaf is at an index of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inclusion {
    /// The leaf's index, from 0.
    pub index: u64,
    /// How many leaves the tree has.
    pub size: u64,
    /// Hashes from the leaf's sibling up to the root's child.
    pub path: Vec<Hash>,
}

/// Proof that a tree is a prefix of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consistency {
    /// The number of leaves of the prefix.
    pub old: u64,
    /// The number of leaves of the whole tree.
    pub new: u64,
    /// Hashes in the RFC's order. Empty if both trees are equal or the prefix is empty.
    pub path: Vec<Hash>,
}

impl Inclusion {
    /// Checks that this leaf is in this tree, at the proof's index.
    ///
    /// # Errors
    /// The reason why it is not.
    pub fn verify(&self, leaf: &Hash, tree: &TreeHead) -> Result<(), String> {
        let Inclusion { index, size, ref path } = *self;
        check_size(size, tree)?;
        if index >= size {
            return Err(format!("a tree of {size} leaves has no leaf {index}"));
        }
        let ranges = inclusion_ranges(index, size);
        if ranges.len() != path.len() {
            return Err(wrong_length(path));
        }
        let hash = ranges.iter().zip(path).fold(*leaf, |hash, (leaves, other)| match leaves.end <= index {
            true => node(other, &hash),
            false => node(&hash, other),
        });
        check_root(&hash, &tree.root, "")
    }
}

impl Consistency {
    /// Checks that the new tree starts with all leaves of the old one, in their order. The empty tree is a prefix of
    /// every tree, so the new root is not checked in that case.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn verify(&self, old_tree: &TreeHead, new_tree: &TreeHead) -> Result<(), String> {
        let (old, new, path) = (self.old, self.new, self.path.as_slice());
        check_size(old, old_tree)?;
        check_size(new, new_tree)?;
        if old > new {
            return Err(format!("a tree of {new} leaves has no prefix of {old}"));
        }
        let ranges = consistency_ranges(old, new);
        if ranges.len() != path.len() {
            return Err(wrong_length(path));
        }
        if old == 0 {
            check_root(&old_tree.root, &EMPTY, OF_PREFIX)?;
            if new > 0 {
                return Ok(());
            }
        }
        let mut steps = ranges.iter().zip(path).peekable();
        // If the old tree is a complete subtree of the new one or all of it, its root is not part of the proof.
        let start = steps.next_if(|(leaves, _)| leaves.end == old).map_or(old_tree.root, |(_, start)| *start);
        let (mut older, mut newer) = (start, start);
        for (leaves, other) in steps {
            if leaves.end <= old {
                older = node(other, &older);
                newer = node(other, &newer);
            } else {
                newer = node(&newer, other);
            }
        }
        check_root(&older, &old_tree.root, OF_PREFIX)?;
        check_root(&newer, &new_tree.root, "")
    }
}

/// The right edge of an append-only tree: the hashes needed to append to it (RFC 9162, section 2.1.2), one for each one
/// in the binary digits of its size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    /// The roots of the complete subtrees, largest first: one for each one in the binary digits of the size.
    peaks: Vec<Hash>,
}

impl Frontier {
    /// The frontier of the empty tree.
    pub fn new() -> Self {
        Frontier::default()
    }

    /// The frontier of the tree with these complete subtrees, largest first.
    pub(crate) fn of_peaks(size: u64, peaks: Vec<Hash>) -> Self {
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

    /// Appends a leaf's hash and calls `each` for every subtree that it completes, the leaf first. A store may keep
    /// these hashes for proofs.
    pub fn push_with(&mut self, leaf: Hash, mut closed: impl FnMut(Subtree, &Hash)) {
        let index = self.size;
        let mut hash = leaf;
        closed(Subtree { level: 0, index }, &hash);
        // As in binary addition: each carry joins two subtrees of the same size.
        for level in 1..=index.trailing_ones() {
            let Some(left) = self.peaks.pop() else { break };
            hash = node(&left, &hash);
            closed(Subtree { level, index: index >> level }, &hash);
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    /// The current root.
    pub fn root(&self) -> Hash {
        let right_to_left = self.peaks.iter().rev().copied();
        right_to_left.reduce(|right, left| node(&left, &right)).unwrap_or(EMPTY)
    }

    /// The current size and root.
    pub fn tree_head(&self) -> TreeHead {
        TreeHead { size: self.size, root: self.root() }
    }
}

fn check_size(proof: u64, tree: &TreeHead) -> Result<(), String> {
    match proof == tree.size {
        true => Ok(()),
        false => Err(format!("the proof is for a tree of {proof} leaves, but this one has {}", tree.size)),
    }
}

fn check_root(found: &Hash, root: &Hash, of: &str) -> Result<(), String> {
    if found == root { Ok(()) } else { Err(format!("the proof leads to another root{of}")) }
}

/// The end of the message about a proof for a prefix.
const OF_PREFIX: &str = " for the older tree";

/// Why a path cannot be one between two sizes.
fn wrong_length(path: &[Hash]) -> String {
    format!("the proof has {} hashes, which does not match its sizes", path.len())
}
