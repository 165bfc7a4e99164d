//! The Merkle tree (D2), compared with the definitions of RFC 9162 (`oracle`), with the vectors that Certificate
//! Transparency's implementations share, and with invalid proofs (`hostile`).

mod hostile;
mod oracle;
mod vectors;

use std::convert::Infallible;
use std::ops::Range;

use oracle::{Oracle, StridedHashes, leaf_of};
use quorate_kernel::entropy::hex;
use quorate_ledger::merkle::{
    Consistency, EMPTY, FetchedHashes, Frontier, Hash, HashRange, HashSource, Inclusion, LeafError,
    MAX_HASHES_PER_READ, Mismatch, MissingHash, Subtree, TreeHead, consistency, consistency_ranges,
    inclusion, inclusion_ranges, leaf, required_hashes, root,
};

use crate::merkle_tree::MerkleTree;

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
    let (kept, mut oracle) = (StridedHashes::new(sizes.end - 1, 1), Oracle::default());
    for size in sizes {
        let tree = oracle.head(size);
        assert_eq!(root(&kept, size), Ok(tree.root));
        for index in 0..size {
            let proof = inclusion(&kept, index, size).expect("within the tree");
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
    let (kept, mut oracle) = (StridedHashes::new(EVERY_CONSISTENCY, 1), Oracle::default());
    for new in 0..=EVERY_CONSISTENCY {
        let whole = oracle.head(new);
        for old in 0..=new {
            let proof = consistency(&kept, old, new).expect("within the tree");
            if old > 0 {
                assert_eq!(proof.path, oracle.subproof(old, 0..new), "{old} in {new}");
            }
            assert_eq!(proof.verify(&oracle.head(old), &whole), Ok(()), "{old} in {new}");
        }
    }
}

#[test]
fn whatever_is_kept_the_proofs_are_the_rfcs() {
    // D2
    const SIZE: u64 = 300;
    let mut oracle = Oracle::default();
    for stride in [1, 2, 3, 8, 64] {
        let kept = StridedHashes::new(SIZE, stride);
        for size in (1..=40).chain([63, 64, 65, 255, 256, 257, 299, SIZE]) {
            assert_eq!(root(&kept, size), Ok(oracle.root(0..size)));
            for index in (0..size).step_by(if size > 40 { 7 } else { 1 }) {
                let proof = inclusion(&kept, index, size).expect("within the tree");
                assert_eq!(
                    proof.path,
                    oracle.path(index, 0..size),
                    "{index} of {size}, each {stride}th level"
                );
                if index > 0 {
                    let proof = consistency(&kept, index, size).expect("within the tree");
                    assert_eq!(proof.path, oracle.subproof(index, 0..size), "{index} in {size}");
                }
            }
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
    assert_eq!(root(&nothing, 0), Ok(EMPTY));
    assert_eq!(inclusion(&nothing, 0, 0), Err(LeafError::OutOfRange { asked: 1, size: 0 }));
    assert!(consistency(&nothing, 0, 0).unwrap().path.is_empty());
    let one: MerkleTree = [leaf_of(0)].into_iter().collect();
    let (empty, head) = (Frontier::new().tree_head(), one.frontier().tree_head());
    let proof = inclusion(&one, 0, 1).unwrap();
    assert!(proof.path.is_empty(), "the leaf is the root");
    assert_eq!(proof.verify(&leaf_of(0), &head), Ok(()));
    assert_eq!(proof.verify(&leaf_of(1), &head), Err(Mismatch::Root));
    let growth = consistency(&one, 0, 1).unwrap();
    assert_eq!(growth.verify(&empty, &head), Ok(()));
    let pretended = TreeHead { size: 0, root: leaf_of(0) };
    assert_eq!(growth.verify(&pretended, &head), Err(Mismatch::PrefixRoot), "an empty tree has one root");
    let padded = Consistency { path: vec![EMPTY], ..growth };
    assert_eq!(padded.verify(&empty, &head), Err(Mismatch::Length { hashes: 1 }));
    let of_nothing = Inclusion { index: 0, size: 0, path: Vec::new() };
    assert_eq!(of_nothing.verify(&EMPTY, &empty), Err(Mismatch::Index { index: 0, size: 0 }));
}

#[test]
fn what_there_is_not_is_not_proven() {
    // D2
    let tree: MerkleTree = (0..5).map(leaf_of).collect();
    assert_eq!(inclusion(&tree, 5, 5), Err(LeafError::OutOfRange { asked: 6, size: 5 }));
    assert_eq!(inclusion(&tree, 0, 6), Err(LeafError::OutOfRange { asked: 6, size: 5 }));
    assert_eq!(inclusion(&tree, u64::MAX, 5), Err(LeafError::OutOfRange { asked: u64::MAX, size: 5 }));
    assert_eq!(consistency(&tree, 4, 3), Err(LeafError::PrefixTooLarge { old: 4, new: 3 }));
    assert_eq!(consistency(&tree, 4, 6), Err(LeafError::OutOfRange { asked: 6, size: 5 }));
    assert_eq!(root(&tree, u64::MAX), Err(LeafError::OutOfRange { asked: u64::MAX, size: 5 }));
    assert_eq!((inclusion_ranges(5, 5), consistency_ranges(9, 5)), (Vec::new(), Vec::new()));
}

/// A source that returns fewer hashes than it claims to have.
struct Truncated;

impl HashSource for Truncated {
    type Error = Infallible;

    fn size(&self) -> u64 {
        8
    }

    fn hashes(&self, _: u32, _: Range<u64>) -> Result<Vec<Hash>, Infallible> {
        Ok(vec![EMPTY])
    }
}

#[test]
fn a_source_that_falls_short_is_found() {
    // D2
    assert_eq!(inclusion(&Truncated, 0, 8), Err(LeafError::WrongCount { level: 0, asked: 2, given: 1 }));
}

#[test]
fn a_proof_from_a_large_tree_reads_little() {
    // D2
    const SIZE: u64 = 70_001;
    let kept = StridedHashes::new(SIZE, 8);
    let head = TreeHead { size: SIZE, root: root(&kept, SIZE).expect("within the tree") };
    for index in [0, 1, 255, 256, 40_000, 65_535, 65_536, 70_000] {
        kept.asked.set(0);
        let proof = inclusion(&kept, index, SIZE).expect("within the tree");
        assert_eq!(proof.verify(&leaf_of(index), &head), Ok(()));
        assert!(kept.asked.get() < 3 * MAX_HASHES_PER_READ, "leaf {index} takes {} hashes", kept.asked.get());
        let old = TreeHead { size: index, root: root(&kept, index).expect("within the tree") };
        kept.asked.set(0);
        let growth = consistency(&kept, index, SIZE).expect("within the tree");
        assert_eq!(growth.verify(&old, &head), Ok(()));
        assert!(
            kept.asked.get() < 3 * MAX_HASHES_PER_READ,
            "prefix {index} takes {} hashes",
            kept.asked.get()
        );
    }
}

#[test]
fn what_is_fetched_beforehand_is_what_a_proof_reads() {
    // D2
    const SIZE: u64 = 600;
    for stride in [1, 3, 8, 64] {
        let kept = StridedHashes::new(SIZE, stride);
        let keeps = |level: u32| level.is_multiple_of(stride);
        for index in (0..SIZE).step_by(37) {
            let mut fetched = FetchedHashes::new(SIZE, keeps);
            let wanted = [inclusion_ranges(index, SIZE), consistency_ranges(index, SIZE)];
            for HashRange { level, first, count } in
                wanted.into_iter().flat_map(|ranges| required_hashes(ranges, keeps))
            {
                for index in first..first + count {
                    let place = usize::try_from(index).expect("small");
                    fetched.insert(Subtree { level, index }, kept.levels[level as usize][place]);
                }
            }
            assert_eq!(inclusion(&fetched, index, SIZE).unwrap(), inclusion(&kept, index, SIZE).unwrap());
            assert_eq!(consistency(&fetched, index, SIZE).unwrap(), consistency(&kept, index, SIZE).unwrap());
        }
    }
    let nothing = FetchedHashes::new(2, |_| false);
    assert_eq!(inclusion(&nothing, 0, 2), Err(LeafError::Source(MissingHash { level: 0, index: 1 })));
    let all = required_hashes(std::iter::once(0..SIZE), |_| false);
    assert_eq!(all, [HashRange { level: 0, first: 0, count: SIZE }], "neighbours are read as one");
}
