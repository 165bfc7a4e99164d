//! Proofs, and how they are made (RFC 9162, sections 2.1.3.1 and 2.1.4.1).

use super::leaves::{Error, HashSource, check_size, range_root};
use super::subtree::{consistency_ranges, inclusion_ranges};
use super::verify::{Mismatch, verify_consistency, verify_inclusion};
use super::{Hash, TreeHead};

/// That a leaf is at an index of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inclusion {
    /// The leaf's index, from 0.
    pub index: u64,
    /// How many leaves the tree has.
    pub size: u64,
    /// Hashes from the leaf's sibling up to the root's child.
    pub path: Vec<Hash>,
}

/// That a tree is a prefix of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consistency {
    /// How many leaves the prefix has.
    pub old: u64,
    /// How many leaves the other has.
    pub new: u64,
    /// Hashes as the RFC orders them. None where both trees are the same or the prefix is empty.
    pub path: Vec<Hash>,
}

impl Inclusion {
    /// Whether it proves that this leaf is in this tree, at the index that the proof names.
    ///
    /// # Errors
    /// [`Mismatch`] where it does not.
    pub fn verify(&self, leaf: &Hash, tree: &TreeHead) -> Result<(), Mismatch> {
        verify_inclusion((self.index, self.size, &self.path), leaf, tree)
    }
}

impl Consistency {
    /// Whether it proves that the new tree starts with all leaves of the old one, in their order. The empty tree is a
    /// prefix of any, and says nothing about it: then the new root is not looked at.
    ///
    /// # Errors
    /// [`Mismatch`] where it does not.
    pub fn verify(&self, old: &TreeHead, new: &TreeHead) -> Result<(), Mismatch> {
        verify_consistency((self.old, self.new, &self.path), old, new)
    }
}

/// Proves that leaf `index` is in the tree of the first `size` leaves.
///
/// # Errors
/// [`Error`] if the tree has fewer leaves or they cannot be read.
pub fn inclusion<Source: HashSource>(
    source: &Source,
    index: u64,
    size: u64,
) -> Result<Inclusion, Error<Source::Error>> {
    check_size(source, size)?;
    if index >= size {
        return Err(Error::OutOfRange { asked: index.saturating_add(1), size });
    }
    let ranges = inclusion_ranges(index, size).into_iter();
    let path = ranges.map(|range| range_root(source, range)).collect::<Result<_, _>>()?;
    Ok(Inclusion { index, size, path })
}

/// Proves that the tree of the first `old` leaves is a prefix of the tree of the first `new`.
///
/// # Errors
/// [`Error`] if `old` is more than `new`, the tree has fewer leaves or they cannot be read.
pub fn consistency<Source: HashSource>(
    source: &Source,
    old: u64,
    new: u64,
) -> Result<Consistency, Error<Source::Error>> {
    check_size(source, new)?;
    if old > new {
        return Err(Error::PrefixTooLarge { old, new });
    }
    let ranges = consistency_ranges(old, new).into_iter();
    let path = ranges.map(|range| range_root(source, range)).collect::<Result<_, _>>()?;
    Ok(Consistency { old, new, path })
}
