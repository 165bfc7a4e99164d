//! Verification (RFC 9162, sections 2.1.3.2 and 2.1.4.2), from public data alone and for untrusted input.
//!
//! The steps are the RFC's: two counters walk from leaf to root, and a surplus or missing hash refuses the proof. A path
//! that is too long costs at most 65 steps.

use super::{EMPTY, Hash, TreeHead, node};

/// Why a proof proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The proof speaks of a tree of another size.
    #[error("the proof is for a tree of {proof} leaves, and this one has {tree}")]
    Size {
        /// The tree size of the proof.
        proof: u64,
        tree: u64,
    },
    /// The tree that the proof speaks of has no such leaf.
    #[error("a tree of {size} leaves has no leaf {index}")]
    Index {
        /// The leaf's index.
        index: u64,
        size: u64,
    },
    /// The prefix would be larger than the whole.
    #[error("a tree of {new} leaves has no prefix of {old}")]
    PrefixTooLarge { old: u64, new: u64 },
    /// More or fewer hashes than a proof between these sizes has.
    #[error("the proof has {hashes} hashes, which is not what its sizes need")]
    Length {
        /// How many hashes it has.
        hashes: usize,
    },
    /// The leaf and the path lead to another root.
    #[error("the proof leads to another root")]
    Root,
    /// The path leads to another root for the prefix.
    #[error("the proof leads to another root for the older tree")]
    PrefixRoot,
}

/// Whether the path leads from the leaf at `index` to the root of a tree of `size` leaves.
pub(super) fn verify_inclusion(
    (index, size, path): (u64, u64, &[Hash]),
    leaf: &Hash,
    tree: &TreeHead,
) -> Result<(), Mismatch> {
    check_size(size, tree)?;
    if index >= size {
        return Err(Mismatch::Index { index, size });
    }
    let mut walk = PathWalk { at: index, last: size - 1 };
    let mut hash = *leaf;
    for other in path {
        hash = match walk.step(path)? {
            Side::Left => node(other, &hash),
            Side::Right => node(&hash, other),
        };
    }
    walk.finish(path)?;
    if hash == tree.root { Ok(()) } else { Err(Mismatch::Root) }
}

/// Whether the path leads from the `old` first leaves to the root of both trees.
pub(super) fn verify_consistency(
    (old, new, path): (u64, u64, &[Hash]),
    old_tree: &TreeHead,
    new_tree: &TreeHead,
) -> Result<(), Mismatch> {
    check_size(old, old_tree)?;
    check_size(new, new_tree)?;
    if old > new {
        return Err(Mismatch::PrefixTooLarge { old, new });
    }
    if old == 0 || old == new {
        return verify_without_path(path, old_tree, new_tree);
    }
    let mut walk = PathWalk { at: old - 1, last: new - 1 };
    walk.up(walk.at.trailing_ones());
    // An old tree that is a complete subtree of the new one is where the walk starts, and its root is not sent.
    let (start, rest) = match path.split_first() {
        Some(_) if old.is_power_of_two() => (&old_tree.root, path),
        Some((start, rest)) => (start, rest),
        None => return Err(Mismatch::Length { hashes: 0 }),
    };
    let (mut older, mut newer) = (*start, *start);
    for other in rest {
        match walk.step(path)? {
            Side::Left => {
                older = node(other, &older);
                newer = node(other, &newer);
            }
            Side::Right => newer = node(&newer, other),
        }
    }
    walk.finish(path)?;
    if older != old_tree.root {
        Err(Mismatch::PrefixRoot)
    } else if newer != new_tree.root {
        Err(Mismatch::Root)
    } else {
        Ok(())
    }
}

fn check_size(proof: u64, tree: &TreeHead) -> Result<(), Mismatch> {
    if proof == tree.size { Ok(()) } else { Err(Mismatch::Size { proof, tree: tree.size }) }
}

/// The same tree twice, or the empty one first: there is nothing to prove.
fn verify_without_path(path: &[Hash], old: &TreeHead, new: &TreeHead) -> Result<(), Mismatch> {
    if !path.is_empty() {
        return Err(Mismatch::Length { hashes: path.len() });
    }
    if old.size == 0 && old.root != EMPTY {
        return Err(Mismatch::PrefixRoot);
    }
    if old.size == new.size && old.root != new.root { Err(Mismatch::Root) } else { Ok(()) }
}

/// On which side of the hash so far the next one of the path stands.
enum Side {
    Left,
    Right,
}

/// A walk from a node to the root: the node's index at its level and the last index there. The RFC calls them fn and sn.
struct PathWalk {
    at: u64,
    last: u64,
}

impl PathWalk {
    /// Takes one hash of the path.
    fn step(&mut self, path: &[Hash]) -> Result<Side, Mismatch> {
        if self.last == 0 {
            return Err(Mismatch::Length { hashes: path.len() });
        }
        let side = if self.at & 1 == 1 {
            Side::Left
        } else if self.at == self.last {
            // The right edge: levels at which it has no sibling are skipped. It is not the leftmost node here, since
            // `last` is not 0, so there is a level at which it has one.
            self.up(self.at.trailing_zeros());
            Side::Left
        } else {
            Side::Right
        };
        self.up(1);
        Ok(side)
    }

    fn up(&mut self, levels: u32) {
        self.at = self.at.checked_shr(levels).unwrap_or(0);
        self.last = self.last.checked_shr(levels).unwrap_or(0);
    }

    /// Whether the root is reached.
    fn finish(&self, path: &[Hash]) -> Result<(), Mismatch> {
        if self.last == 0 { Ok(()) } else { Err(Mismatch::Length { hashes: path.len() }) }
    }
}
