//! The reference for the tree: RFC 9162's definitions.

use std::collections::HashMap;
use std::ops::Range;

use quorate_ledger::merkle::{
    Consistency, EMPTY, Hash, Inclusion, TreeHead, consistency_ranges, inclusion_ranges, leaf, node,
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

    /// The proof made of the roots of the listed ranges.
    pub(crate) fn inclusion(&mut self, index: u64, size: u64) -> Inclusion {
        let path = inclusion_ranges(index, size).into_iter().map(|leaves| self.root(leaves)).collect();
        Inclusion { index, size, path }
    }

    /// The proof made of the roots of the listed ranges.
    pub(crate) fn consistency(&mut self, old: u64, new: u64) -> Consistency {
        let path = consistency_ranges(old, new).into_iter().map(|leaves| self.root(leaves)).collect();
        Consistency { old, new, path }
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
