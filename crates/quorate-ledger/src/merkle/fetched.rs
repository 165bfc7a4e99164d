//! Proofs from a store that cannot be queried in the middle of one: lists the hashes to fetch, then makes the proof of
//! them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Hash;
use super::leaves::{HashSource, highest_stored_level};
use super::subtree::{Subtree, complete_subtrees};

/// Hashes that a proof reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashRange {
    /// The level: 0 for leaves.
    pub level: u32,
    /// The first index at that level.
    pub first: u64,
    pub count: u64,
}

/// What is read for the roots of ranges of leaves, where the levels that `keeps` names are kept. The ranges of a proof
/// come from [`super::inclusion_ranges`] and [`super::consistency_ranges`]; a root's range is all of its leaves.
///
/// How much that is depends on what is kept: with nothing but leaves, it is all of them.
pub fn required_hashes(
    ranges: impl IntoIterator<Item = Range<u64>>,
    keeps: impl Fn(u32) -> bool,
) -> Vec<HashRange> {
    let subtrees = ranges.into_iter().flat_map(complete_subtrees);
    let mut reads: Vec<HashRange> = subtrees
        .map(|subtree| {
            let level = highest_stored_level(subtree.level, &keeps);
            let Range { start, end } = subtree.descendants(level);
            HashRange { level, first: start, count: end - start }
        })
        .collect();
    reads.sort_unstable();
    reads.dedup_by(|next, one| {
        let adjoins = next.level == one.level && next.first == one.first + one.count;
        if adjoins {
            one.count += next.count;
        }
        adjoins || next == one
    });
    reads
}

/// Hashes that were fetched, as a source of proofs.
#[derive(Debug, Clone, Default)]
pub struct FetchedHashes {
    size: u64,
    stored_levels: u64,
    hashes: BTreeMap<Subtree, Hash>,
}

/// A hash that a proof needs was not fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hash of subtree {index} of level {level} is not there")]
pub struct MissingHash {
    pub level: u32,
    /// Its index at that level.
    pub index: u64,
}

impl FetchedHashes {
    /// Nothing fetched yet, for a tree of this size and the kept levels given to [`required_hashes`].
    pub fn new(size: u64, keeps: impl Fn(u32) -> bool) -> Self {
        let stored_levels =
            (0..u64::BITS).filter(|&level| keeps(level)).fold(1, |kept, level| kept | 1 << level);
        FetchedHashes { size, stored_levels, hashes: BTreeMap::new() }
    }

    /// Takes the hash of a subtree; at level 0 that is a leaf.
    pub fn insert(&mut self, subtree: Subtree, hash: Hash) {
        self.hashes.insert(subtree, hash);
    }
}

impl HashSource for FetchedHashes {
    type Error = MissingHash;

    fn size(&self) -> u64 {
        self.size
    }

    fn stores_level(&self, level: u32) -> bool {
        level < u64::BITS && self.stored_levels >> level & 1 == 1
    }

    fn hashes(&self, level: u32, indices: Range<u64>) -> Result<Vec<Hash>, MissingHash> {
        let hash =
            |index| self.hashes.get(&Subtree { level, index }).copied().ok_or(MissingHash { level, index });
        indices.map(hash).collect()
    }
}
