//! The ranges of leaves in a proof (RFC 9162, sections 2.1.3.1 and 2.1.4.1), and the complete subtrees of a range.
//! Arithmetic only; `leaves` reads the hashes.

use std::ops::Range;

/// A complete subtree: the leaves from `index << level` on, `1 << level` of them. At level 0 it is one leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subtree {
    /// How many levels it is above the leaves, from 0 to 63.
    pub level: u32,
    /// How many subtrees of its level stand left of it.
    pub index: u64,
}

impl Subtree {
    /// Its descendants at a level that is not above its own, by their indices there.
    pub(super) fn descendants(self, level: u32) -> Range<u64> {
        let down = self.level - level;
        self.index << down..(self.index + 1) << down
    }
}

/// The complete subtrees that make up a range of leaves, from left to right. For a range that the RFC speaks of, they
/// are those of its binary digits, largest first, since such a range starts where a subtree as large could.
pub(super) fn complete_subtrees(leaves: Range<u64>) -> Vec<Subtree> {
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
/// sibling up to the root's child. Nothing where there is no such leaf.
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
/// `new`. Nothing for an empty or an equal prefix, which need no proof, and where `old` is more than `new`.
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
    // The verifier knows the old root itself; any other subtree in which the old tree ends must be part of the proof.
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
