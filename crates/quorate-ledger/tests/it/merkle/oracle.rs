//! The reference for the tree: RFC 9162's definitions, and sources that store different levels.

use std::cell::Cell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;

use quorate_ledger::merkle::{
    EMPTY, Frontier, Hash, HashSource, MAX_HASHES_PER_READ, Subtree, TreeHead, leaf, node,
};

pub(crate) fn leaf_of(index: u64) -> Hash {
    leaf(&index.to_be_bytes())
}

/// RFC 9162, section 2.1, with its recursion. Roots of ranges are cached, because computing them again would take
/// hours.
#[derive(Default)]
pub(crate) struct Oracle {
    roots: HashMap<Range<u64>, Hash>,
}

impl Oracle {
    pub(crate) fn root(&mut self, of: Range<u64>) -> Hash {
        match of.end - of.start {
            0 => return EMPTY,
            1 => return leaf_of(of.start),
            _ => {}
        }
        if let Some(known) = self.roots.get(&of) {
            return *known;
        }
        let k = of.start + largest_power_below(of.end - of.start);
        let hash = node(&self.root(of.start..k), &self.root(k..of.end));
        self.roots.insert(of, hash);
        hash
    }

    /// PATH(m, D[n]), with `m` counted from the start of the tree.
    pub(crate) fn path(&mut self, m: u64, of: Range<u64>) -> Vec<Hash> {
        if of.end - of.start == 1 {
            return Vec::new();
        }
        let k = of.start + largest_power_below(of.end - of.start);
        let (mut path, sibling) = if m < k {
            (self.path(m, of.start..k), k..of.end)
        } else {
            (self.path(m, k..of.end), of.start..k)
        };
        path.push(self.root(sibling));
        path
    }

    /// SUBPROOF(m, D[n], b), with `m` counted from the start of the tree and `b` where the range starts there too.
    pub(crate) fn subproof(&mut self, m: u64, of: Range<u64>) -> Vec<Hash> {
        if m == of.end {
            return if of.start == 0 { Vec::new() } else { vec![self.root(of)] };
        }
        let k = of.start + largest_power_below(of.end - of.start);
        let (mut proof, other) = if m <= k {
            (self.subproof(m, of.start..k), k..of.end)
        } else {
            (self.subproof(m, k..of.end), of.start..k)
        };
        proof.push(self.root(other));
        proof
    }

    pub(crate) fn head(&mut self, size: u64) -> TreeHead {
        TreeHead { size, root: self.root(0..size) }
    }
}

fn largest_power_below(n: u64) -> u64 {
    let mut k = 1;
    while 2 * k < n {
        k *= 2;
    }
    k
}

/// A source that stores every n-th level, and counts its reads.
pub(crate) struct StridedHashes {
    stride: u32,
    pub(crate) levels: Vec<Vec<Hash>>,
    pub(crate) asked: Cell<u64>,
}

impl StridedHashes {
    pub(crate) fn new(size: u64, stride: u32) -> Self {
        let (mut frontier, mut levels) = (Frontier::new(), vec![Vec::new(); 64]);
        for index in 0..size {
            frontier.push_with(leaf_of(index), |Subtree { level, index }, hash| {
                let level: &mut Vec<Hash> = &mut levels[level as usize];
                assert_eq!(index, level.len() as u64, "subtrees are completed in their order");
                level.push(*hash);
            });
        }
        StridedHashes { stride, levels, asked: Cell::new(0) }
    }
}

impl HashSource for StridedHashes {
    type Error = Infallible;

    fn size(&self) -> u64 {
        self.levels[0].len() as u64
    }

    fn stores_level(&self, level: u32) -> bool {
        level.is_multiple_of(self.stride)
    }

    fn hashes(&self, level: u32, indices: Range<u64>) -> Result<Vec<Hash>, Infallible> {
        let count = indices.end - indices.start;
        assert!(self.stores_level(level) && count <= MAX_HASHES_PER_READ, "the contract of the source");
        self.asked.set(self.asked.get() + count);
        let place = |at| usize::try_from(at).expect("small");
        Ok(self.levels[level as usize][place(indices.start)..place(indices.end)].to_vec())
    }
}
