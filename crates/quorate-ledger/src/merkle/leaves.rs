//! Sources of hashes for roots and proofs; stored subtree roots replace their leaves.

use std::ops::Range;

use super::subtree::{Subtree, complete_subtrees};
use super::{Frontier, Hash};

/// A source of leaf hashes, and of the hashes of complete subtrees as far as they are kept.
///
/// Leaves are level 0 and always there. A source that keeps each eighth level (see [`super::STRIDE`]) needs one more
/// hash for 255 leaves, and any proof reads a few hundred hashes from it, however large the tree is.
pub trait HashSource {
    /// Why hashes cannot be read.
    type Error;

    /// How many leaves there are.
    fn size(&self) -> u64;

    /// Whether the roots of complete subtrees of this level are kept, every one of them up to [`HashSource::size`].
    fn stores_level(&self, level: u32) -> bool {
        level == 0
    }

    /// Hashes of complete subtrees in their order. Asked only at kept levels, at most [`MAX_HASHES_PER_READ`] at once and within
    /// the size.
    ///
    /// # Errors
    /// When the hashes cannot be read.
    fn hashes(&self, level: u32, indices: Range<u64>) -> Result<Vec<Hash>, Self::Error>;
}

/// How many hashes are asked for at once.
pub const MAX_HASHES_PER_READ: u64 = 256;

/// Why no root or proof can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error<Source> {
    /// The tree has fewer leaves.
    #[error("the tree has {size} leaves, and {asked} are asked for")]
    OutOfRange {
        /// How many leaves are asked for.
        asked: u64,
        /// How many there are.
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
    /// The source gave another number of hashes than it was asked for.
    #[error("{given} hashes of level {level} came where {asked} were asked for")]
    WrongCount {
        level: u32,
        /// How many were asked for.
        asked: u64,
        given: usize,
    },
    #[error(transparent)]
    Source(#[from] Source),
}

/// The root of the tree of the first `size` leaves.
///
/// # Errors
/// [`Error`] if the tree has fewer leaves or they cannot be read.
pub fn root<Source: HashSource>(source: &Source, size: u64) -> Result<Hash, Error<Source::Error>> {
    check_size(source, size)?;
    range_root(source, 0..size)
}

/// The frontier of the tree of the first `size` leaves: what is needed to append to it.
///
/// # Errors
/// As [`root`].
pub fn frontier<Source: HashSource>(source: &Source, size: u64) -> Result<Frontier, Error<Source::Error>> {
    check_size(source, size)?;
    let peaks = complete_subtrees(0..size).into_iter().map(|piece| subtree_root(source, piece));
    Ok(Frontier::from_peaks(size, peaks.collect::<Result<_, _>>()?))
}

/// Holds a size against the source's.
pub(super) fn check_size<Source: HashSource>(
    source: &Source,
    asked: u64,
) -> Result<(), Error<Source::Error>> {
    let size = source.size();
    if asked > size { Err(Error::OutOfRange { asked, size }) } else { Ok(()) }
}

/// The root of the tree of a range of leaves.
pub(super) fn range_root<Source: HashSource>(
    source: &Source,
    leaves: Range<u64>,
) -> Result<Hash, Error<Source::Error>> {
    let mut peaks = Vec::new();
    for piece in complete_subtrees(leaves) {
        peaks.push(subtree_root(source, piece)?);
    }
    // From the right: the pieces are a frontier of their own.
    Ok(peaks.into_iter().rev().reduce(|right, left| super::node(&left, &right)).unwrap_or(super::EMPTY))
}

/// The root of a complete subtree, from the highest level that is kept.
fn subtree_root<Source: HashSource>(source: &Source, subtree: Subtree) -> Result<Hash, Error<Source::Error>> {
    let level = highest_stored_level(subtree.level, |level| source.stores_level(level));
    let Range { start, end } = subtree.descendants(level);
    // A complete tree over complete subtrees is built like any other.
    let mut frontier = Frontier::new();
    let mut first = start;
    while first < end {
        let next = end.min(first.saturating_add(MAX_HASHES_PER_READ));
        let hashes = source.hashes(level, first..next)?;
        if hashes.len() as u64 != next - first {
            return Err(Error::WrongCount { level, asked: next - first, given: hashes.len() });
        }
        hashes.into_iter().for_each(|hash| frontier.push(hash));
        first = next;
    }
    Ok(frontier.root())
}

/// The highest kept level that is not above a level. Leaves are always kept.
pub(super) fn highest_stored_level(level: u32, keeps: impl Fn(u32) -> bool) -> u32 {
    (1..=level).rev().find(|&level| keeps(level)).unwrap_or(0)
}
