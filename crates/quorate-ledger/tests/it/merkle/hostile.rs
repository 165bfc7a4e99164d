//! Altered proofs and random proofs: all are refused, and none stops the program.

use proptest::prelude::*;
use quorate_ledger::merkle::{
    Consistency, EMPTY, Hash, Inclusion, TreeHead, consistency_ranges, inclusion_ranges,
};

use crate::merkle::oracle::{Oracle, leaf_of};

const ANOTHER_ROOT: &str = "the proof leads to another root";

/// A path with one change, in each possible way.
fn spoilt(path: &[Hash]) -> Vec<Vec<Hash>> {
    let mut all = Vec::new();
    for at in 0..path.len() {
        for bit in (0..256).step_by(37) {
            let mut other = path.to_vec();
            other[at][bit / 8] ^= 1 << (bit % 8);
            all.push(other);
        }
        let mut shorter = path.to_vec();
        shorter.remove(at);
        all.push(shorter);
        let mut longer = path.to_vec();
        longer.insert(at, path[at]);
        all.push(longer);
        if at > 0 {
            let mut swapped = path.to_vec();
            swapped.swap(at - 1, at);
            all.push(swapped);
        }
    }
    all.push([path, &[EMPTY]].concat());
    all.push([path, &[EMPTY; 70]].concat());
    all
}

fn flipped(hash: &Hash) -> impl Iterator<Item = Hash> {
    let hash = *hash;
    (0..256).step_by(11).map(move |bit: usize| {
        let mut other = hash;
        other[bit / 8] ^= 1 << (bit % 8);
        other
    })
}

const SIZES: [u64; 12] = [1, 2, 3, 4, 5, 7, 8, 11, 16, 21, 32, 33];

#[test]
fn no_changed_inclusion_proof_holds() {
    // D2
    let mut oracle = Oracle::default();
    for size in SIZES {
        let tree = oracle.head(size);
        for index in 0..size {
            let proof = oracle.inclusion(index, size);
            let leaf = leaf_of(index);
            for path in spoilt(&proof.path) {
                let other = Inclusion { path, ..proof.clone() };
                assert!(other.verify(&leaf, &tree).is_err(), "{index} of {size}");
            }
            for other in flipped(&leaf) {
                assert_eq!(proof.verify(&other, &tree), Err(ANOTHER_ROOT.to_owned()));
            }
            for root in flipped(&tree.root) {
                assert_eq!(proof.verify(&leaf, &TreeHead { root, ..tree }), Err(ANOTHER_ROOT.to_owned()));
            }
            for elsewhere in (0..40).filter(|other| *other != index).chain([u64::MAX]) {
                let other = Inclusion { index: elsewhere, ..proof.clone() };
                assert!(other.verify(&leaf, &tree).is_err(), "{index} of {size} as {elsewhere}");
            }
            for larger in (0..40).filter(|other| *other != size) {
                let other = Inclusion { size: larger, ..proof.clone() };
                let what = other.verify(&leaf, &tree).unwrap_err();
                assert!(what.starts_with(&format!("the proof is for a tree of {larger} leaves")), "{what}");
                assert!(other.verify(&leaf, &oracle.head(larger)).is_err(), "{index} of {size} in {larger}");
            }
        }
    }
}

#[test]
fn no_changed_consistency_proof_holds() {
    // D2
    let mut oracle = Oracle::default();
    for size in SIZES {
        let whole = oracle.head(size);
        for prefix in 1..size {
            let proof = oracle.consistency(prefix, size);
            let part = oracle.head(prefix);
            for path in spoilt(&proof.path) {
                let other = Consistency { path, ..proof.clone() };
                assert!(other.verify(&part, &whole).is_err(), "{prefix} in {size}");
            }
            for root in flipped(&part.root) {
                assert!(proof.verify(&TreeHead { root, ..part }, &whole).is_err());
            }
            for root in flipped(&whole.root) {
                assert_eq!(proof.verify(&part, &TreeHead { root, ..whole }), Err(ANOTHER_ROOT.to_owned()));
            }
            for other in (1..40).filter(|other| *other != prefix && *other != size) {
                let (old, new) = (
                    Consistency { old: other, ..proof.clone() },
                    Consistency { new: other, ..proof.clone() },
                );
                let there = oracle.head(other);
                assert!(old.verify(&part, &whole).is_err() && old.verify(&there, &whole).is_err());
                assert!(new.verify(&part, &whole).is_err() && new.verify(&part, &there).is_err());
            }
        }
        let same = oracle.consistency(size, size);
        for root in flipped(&whole.root) {
            assert_eq!(same.verify(&whole, &TreeHead { root, ..whole }), Err(ANOTHER_ROOT.to_owned()));
        }
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..20u64,
        any::<u64>(),
        (0..64u32, 0..3u64).prop_map(|(bit, off)| (1u64 << bit).wrapping_add(off).wrapping_sub(1))
    ]
}

proptest! {
    // D2: any input is answered, and random hashes prove nothing.
    #[test]
    fn hostile_proofs_are_refused(
        index in number(),
        size in number(),
        path in proptest::collection::vec(any::<Hash>(), 1..80),
        (leaf, root) in any::<(Hash, Hash)>(),
    ) {
        let tree = TreeHead { size, root };
        let proof = Inclusion { index, size, path: path.clone() };
        prop_assert!(proof.verify(&leaf, &tree).is_err());
        let older = TreeHead { size: index, root: leaf };
        let proof = Consistency { old: index, new: size, path };
        prop_assert!(proof.verify(&older, &tree).is_err());
    }

    // D2: the ranges of a proof are the whole tree except for the proven part, for all numbers.
    #[test]
    fn the_ranges_of_any_proof_can_be_listed(index in number(), size in number()) {
        let ranges = inclusion_ranges(index, size);
        prop_assert!(ranges.len() <= 64);
        let covered: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        prop_assert_eq!(covered, if index < size { size - 1 } else { 0 });
        prop_assert!(consistency_ranges(index, size).len() <= 65);
    }
}
