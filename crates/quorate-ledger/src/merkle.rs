//! The Merkle tree over the ledger's leaves (D2), as in RFC 9162, section 2.1: hashes, the append-only [`Frontier`],
//! proofs and their verification.
//!
//! Nothing here reads a store: proofs are made from a [`HashSource`]. Verification needs a leaf, a proof and a
//! [`TreeHead`], which are public; it accepts any input and never panics. [`crate::record`] defines the leaf,
//! [`crate::note`] the signature of a root.

mod fetched;
mod frontier;
mod leaves;
mod proof;
mod subtree;
mod tree;
mod verify;

use sha2::{Digest, Sha256};

pub use fetched::{FetchedHashes, HashRange, MissingHash, required_hashes};
pub use frontier::Frontier;
pub use leaves::{Error, HashSource, MAX_HASHES_PER_READ, frontier, root};
pub use proof::{Consistency, Inclusion, consistency, inclusion};
pub use subtree::{Subtree, consistency_ranges, inclusion_ranges};
pub use tree::{STRIDE, Tree};
pub use verify::Mismatch;

/// A SHA-256 hash: 32 bytes.
pub type Hash = [u8; 32];

/// What is said of a tree: its size and its root, which belong together. A proof holds for both or for nothing, since a
/// root alone leaves open how many leaves are under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeHead {
    /// How many leaves the tree has.
    pub size: u64,
    pub root: Hash,
}

/// The root of the tree without leaves: SHA-256 of nothing.
pub const EMPTY: Hash = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// The hash of a leaf: SHA-256 over a zero byte and what the leaf holds. A record's leaf holds its head.
pub fn leaf(entry: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

/// The hash of an inner node: SHA-256 over a one byte and the hashes of its two children. The bytes before leaves and
/// nodes differ, so that no node can be passed off as a leaf.
pub fn node(left: &Hash, right: &Hash) -> Hash {
    // In one piece: this is what every walk through a tree spends its time on.
    let mut both = [1; 65];
    both[1..33].copy_from_slice(left);
    both[33..].copy_from_slice(right);
    Sha256::digest(both).into()
}
