//! A tree in memory: every leaf's hash, and the roots of the complete subtrees of each eighth level.

use std::convert::Infallible;
use std::ops::Range;

use super::leaves::HashSource;
use super::{Frontier, Hash};

/// Of the levels above the leaves, each eighth is kept. One more hash for 255 leaves leaves a proof no more than 256 to
/// read at a time, and the levels are those of the tiles in which transparency logs are served.
pub const STRIDE: u32 = 8;

/// A tree in memory.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    frontier: Frontier,
    /// The kept levels, leaves first.
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    pub fn new() -> Self {
        Tree::default()
    }

    /// Appends a leaf's hash.
    pub fn push(&mut self, leaf: Hash) {
        let Tree { frontier, levels: kept } = self;
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
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }
}

impl Extend<Hash> for Tree {
    fn extend<All: IntoIterator<Item = Hash>>(&mut self, leaves: All) {
        leaves.into_iter().for_each(|leaf| self.push(leaf));
    }
}

impl FromIterator<Hash> for Tree {
    fn from_iter<All: IntoIterator<Item = Hash>>(leaves: All) -> Self {
        let mut tree = Tree::new();
        tree.extend(leaves);
        tree
    }
}

impl HashSource for Tree {
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
