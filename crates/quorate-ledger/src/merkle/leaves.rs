//! Sources of hashes for roots and proofs. Stored roots of subtrees replace their leaves. [`FetchedHashes`] serves
//! stores that cannot be queried in the middle of a proof.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Frontier, Hash, Subtree, complete_subtrees};

/// A source of leaf hashes, and of those hashes of complete subtrees that it stores.
///
/// Leaves are level 0 and always stored. A source that stores every eighth level (see [`super::STRIDE`]) needs one more
/// hash for 255 leaves. Any proof then reads a few hundred hashes, however large the tree is.
pub trait HashSource {
    /// Why hashes cannot be read.
    type Error;

    /// The number of leaves.
    fn size(&self) -> u64;

    /// Whether the source stores the roots of complete subtrees of this level, all of them up to [`HashSource::size`].
    fn stores_level(&self, level: u32) -> bool {
        level == 0
    }

    /// Hashes of consecutive complete subtrees. Callers ask for stored levels only, for at most [`MAX_HASHES_PER_READ`]
    /// hashes, and within the size.
    ///
    /// # Errors
    /// When the hashes cannot be read.
    fn hashes(&self, level: u32, indices: Range<u64>) -> Result<Vec<Hash>, Self::Error>;
}

/// The most hashes per read.
pub const MAX_HASHES_PER_READ: u64 = 256;

/// Why a root or proof cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeafError<Source> {
    /// The tree has fewer leaves.
    #[error("the tree has {size} leaves, but {asked} were requested")]
    OutOfRange {
        /// The requested number of leaves.
        asked: u64,
        /// The number of leaves in the tree.
        size: u64,
    },
    /// The prefix has more leaves than the whole.
    #[error("a tree of {new} leaves has no prefix of {old}")]
    PrefixTooLarge {
        /// The size of the prefix.
        old: u64,
        /// The size of the whole.
        new: u64,
    },
    /// The source returned another number of hashes than requested.
    #[error("received {given} hashes of level {level} instead of {asked}")]
    WrongCount {
        level: u32,
        /// The requested number.
        asked: u64,
        given: usize,
    },
    #[error(transparent)]
    Source(#[from] Source),
}

/// The root of the tree of the first `size` leaves.
///
/// # Errors
/// [`LeafError`] if the tree has fewer leaves or they cannot be read.
pub fn root<Source: HashSource>(source: &Source, size: u64) -> Result<Hash, LeafError<Source::Error>> {
    check_source_size(source, size)?;
    range_root(source, 0..size)
}

/// The frontier of the tree of the first `size` leaves, for appending to it.
///
/// # Errors
/// As [`root`].
pub fn frontier<Source: HashSource>(
    source: &Source,
    size: u64,
) -> Result<Frontier, LeafError<Source::Error>> {
    check_source_size(source, size)?;
    let peaks = complete_subtrees(0..size).into_iter().map(|piece| subtree_root(source, piece));
    Ok(Frontier { size, peaks: peaks.collect::<Result<_, _>>()? })
}

/// Checks a size against the source's.
pub(super) fn check_source_size<Source: HashSource>(
    source: &Source,
    asked: u64,
) -> Result<(), LeafError<Source::Error>> {
    let size = source.size();
    if asked > size { Err(LeafError::OutOfRange { asked, size }) } else { Ok(()) }
}

/// The root of the tree of a range of leaves.
pub(super) fn range_root<Source: HashSource>(
    source: &Source,
    leaves: Range<u64>,
) -> Result<Hash, LeafError<Source::Error>> {
    let mut peaks = Vec::new();
    for piece in complete_subtrees(leaves) {
        peaks.push(subtree_root(source, piece)?);
    }
    // From the right: the pieces form a frontier.
    Ok(peaks.into_iter().rev().reduce(|right, left| super::node(&left, &right)).unwrap_or(super::EMPTY))
}

/// The root of a complete subtree, computed from the highest stored level.
fn subtree_root<Source: HashSource>(
    source: &Source,
    subtree: Subtree,
) -> Result<Hash, LeafError<Source::Error>> {
    let level = highest_stored_level(subtree.level, |level| source.stores_level(level));
    let Range { start, end } = subtree.descendants(level);
    // A complete tree over complete subtrees has the same structure as any other.
    let mut frontier = Frontier::new();
    let mut first = start;
    while first < end {
        let next = end.min(first.saturating_add(MAX_HASHES_PER_READ));
        let hashes = source.hashes(level, first..next)?;
        if hashes.len() as u64 != next - first {
            return Err(LeafError::WrongCount { level, asked: next - first, given: hashes.len() });
        }
        hashes.into_iter().for_each(|hash| frontier.push(hash));
        first = next;
    }
    Ok(frontier.root())
}

/// The highest stored level that is not above a level. Leaves are always stored.
pub(super) fn highest_stored_level(level: u32, keeps: impl Fn(u32) -> bool) -> u32 {
    (1..=level).rev().find(|&level| keeps(level)).unwrap_or(0)
}

/// A range of hashes that a proof reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashRange {
    /// The level: 0 for leaves.
    pub level: u32,
    /// The first index at that level.
    pub first: u64,
    pub count: u64,
}

/// The hashes needed for the roots of ranges of leaves, given the stored levels (`keeps`). The ranges of a proof come
/// from [`super::inclusion_ranges`] and [`super::consistency_ranges`]; a root's range is all of its leaves.
///
/// If only leaves are stored, these are all leaves of the ranges.
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
#[error("the hash of subtree {index} of level {level} is missing")]
pub struct MissingHash {
    pub level: u32,
    /// Its index at that level.
    pub index: u64,
}

impl FetchedHashes {
    /// An empty source for a tree of this size and the stored levels given to [`required_hashes`].
    pub fn new(size: u64, keeps: impl Fn(u32) -> bool) -> Self {
        let stored_levels =
            (0..u64::BITS).filter(|&level| keeps(level)).fold(1, |kept, level| kept | 1 << level);
        FetchedHashes { size, stored_levels, hashes: BTreeMap::new() }
    }

    /// Adds the hash of a subtree, which is a leaf at level 0.
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
