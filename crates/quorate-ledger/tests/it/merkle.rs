//! The Merkle tree (D2), compared with the definitions of RFC 9162 (`oracle`), with the vectors that Certificate
//! Transparency's implementations share, and with invalid proofs (`hostile`).

mod hostile;
mod oracle;
mod vectors;

use std::ops::Range;

use oracle::{Oracle, leaf_of};
use quorate_kernel::entropy::hex;
use quorate_ledger::merkle::{
    Consistency, EMPTY, Frontier, Inclusion, TreeHead, consistency_ranges, inclusion_ranges, leaf,
};

use crate::merkle_tree::{MerkleTree, consistency, inclusion, root};

#[test]
fn a_records_leaf_is_the_trees_leaf() {
    // D2: the hash that chains records is also the leaf hash of the tree.
    let head = r#"{"at":"1970-01-01T00:00:00.000Z"}"#;
    assert_eq!(quorate_ledger::record::leaf(head), hex(&leaf(head.as_bytes())));
}

const EVERY_INCLUSION: u64 = 513;
const EVERY_CONSISTENCY: u64 = 257;

/// Every inclusion proof of every size in a range.
fn every_inclusion(sizes: Range<u64>) {
    let mut oracle = Oracle::default();
    for size in sizes {
        let tree = oracle.head(size);
        for index in 0..size {
            let proof = oracle.inclusion(index, size);
            if size <= 70 || index % 7 == 0 {
                assert_eq!(proof.path, oracle.path(index, 0..size), "{index} of {size}");
            }
            assert_eq!(proof.verify(&leaf_of(index), &tree), Ok(()), "{index} of {size}");
        }
    }
}

// D2: split in two tests that run in parallel; there are 131,000 proofs.
#[test]
fn every_inclusion_proof_of_smaller_trees_holds() {
    every_inclusion(0..EVERY_INCLUSION * 7 / 10);
}

#[test]
fn every_inclusion_proof_of_larger_trees_holds() {
    every_inclusion(EVERY_INCLUSION * 7 / 10..EVERY_INCLUSION + 1);
}

#[test]
fn every_consistency_proof_is_the_rfcs_and_holds() {
    // D2
    let mut oracle = Oracle::default();
    for new in 0..=EVERY_CONSISTENCY {
        let whole = oracle.head(new);
        for old in 0..=new {
            let proof = oracle.consistency(old, new);
            if old > 0 {
                assert_eq!(proof.path, oracle.subproof(old, 0..new), "{old} in {new}");
            }
            assert_eq!(proof.verify(&oracle.head(old), &whole), Ok(()), "{old} in {new}");
        }
    }
}

#[test]
fn the_frontier_tells_every_root() {
    // D2
    let (mut frontier, mut oracle) = (Frontier::new(), Oracle::default());
    for size in 0..=EVERY_INCLUSION {
        assert_eq!(frontier.tree_head(), oracle.head(size));
        frontier.push(leaf_of(size));
    }
}

#[test]
fn a_tree_without_leaves_and_a_tree_of_one() {
    // D2
    let nothing = MerkleTree::new();
    assert_eq!(root(&nothing, 0), EMPTY);
    assert!(consistency(&nothing, 0, 0).path.is_empty());
    let one: MerkleTree = [leaf_of(0)].into_iter().collect();
    let (empty, head) = (Frontier::new().tree_head(), one.frontier().tree_head());
    let proof = inclusion(&one, 0, 1);
    assert!(proof.path.is_empty(), "the leaf is the root");
    assert_eq!(proof.verify(&leaf_of(0), &head), Ok(()));
    let refused = |checked: Result<(), String>| checked.unwrap_err();
    assert_eq!(refused(proof.verify(&leaf_of(1), &head)), "the proof leads to another root");
    let growth = consistency(&one, 0, 1);
    assert_eq!(growth.verify(&empty, &head), Ok(()));
    let pretended = TreeHead { size: 0, root: leaf_of(0) };
    let what = "the proof leads to another root for the older tree";
    assert_eq!(refused(growth.verify(&pretended, &head)), what, "an empty tree has one root");
    let padded = Consistency { path: vec![EMPTY], ..growth };
    let what = "the proof has 1 hashes, which does not match its sizes";
    assert_eq!(refused(padded.verify(&empty, &head)), what);
    let of_nothing = Inclusion { index: 0, size: 0, path: Vec::new() };
    assert_eq!(refused(of_nothing.verify(&EMPTY, &empty)), "a tree of 0 leaves has no leaf 0");
    let shrunk = Consistency { old: 1, new: 0, path: Vec::new() };
    assert_eq!(refused(shrunk.verify(&head, &empty)), "a tree of 0 leaves has no prefix of 1");
    assert_eq!((inclusion_ranges(5, 5), consistency_ranges(9, 5)), (Vec::new(), Vec::new()));
}
