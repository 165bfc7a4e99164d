//! What is said where records, stored leaves and roots differ: the roots decide which of the two was sealed.

use super::{TileRows, TreeCheck};
use crate::merkle::{Frontier, Hash, TreeHead};
use crate::verify::divergence::{Divergence, Findings, Kind, Part};

fn leaf(of: u8) -> Hash {
    [of; 32]
}

/// What is walked over: a record and what is stored for it, a place without a record, or a root over what was sealed.
#[derive(Clone, Copy)]
enum Step<'a> {
    Record(u8, Option<u8>),
    Gap(Option<u8>),
    Root(&'a [u8]),
}
use Step::{Gap, Record, Root};

fn root(of: &[u8]) -> TreeHead {
    let mut tree = Frontier::new();
    of.iter().for_each(|of| tree.push(leaf(*of)));
    tree.tree_head()
}

fn walk(steps: &[Step<'_>]) -> (Option<TreeHead>, Vec<Divergence>) {
    let mut findings = Findings::default();
    let mut tree = TreeCheck::new(Frontier::new(), TileRows::new());
    for step in steps {
        match *step {
            Record(of, stored) => tree.push("r", of.into(), leaf(of), stored.map(leaf), &mut findings),
            Gap(stored) => tree.push_missing(stored.map(leaf), &mut findings),
            Root(of) => tree.check_root(&root(of).root, Part::Record, "the checkpoint", &mut findings),
        }
    }
    let head = tree.tree_head();
    tree.finish(&mut findings);
    (head, findings.into_parts().0)
}

/// Kind, part, record, first place and last place.
type Found = (Kind, Part, Option<u64>, Option<u64>, Option<u64>);

fn found(steps: &[Step<'_>]) -> Vec<Found> {
    let found = walk(steps).1;
    found.iter().map(|found| (found.kind, found.part, found.n, found.seq, found.last_seq)).collect()
}

fn kept(of: u8) -> Step<'static> {
    Record(of, Some(of))
}

#[test]
fn the_root_decides_between_record_and_stored_leaf() {
    use Kind::{Changed, Inserted, Removed, Reordered};
    let changed = |n: u64| vec![(Changed, Part::Record, Some(n), Some(n), None)];
    let cases: Vec<(&str, Vec<Step<'_>>, Vec<Found>)> = vec![
        ("nothing differs", vec![kept(1), kept(2), Root(&[1, 2])], vec![]),
        (
            "the stored leaf was changed",
            vec![kept(1), Record(2, Some(9)), Root(&[1, 2]), kept(3), Root(&[1, 2, 3])],
            vec![(Changed, Part::Tree, Some(2), Some(2), None)],
        ),
        (
            "the record was changed",
            vec![kept(1), Record(2, Some(9)), Root(&[1, 9]), kept(3), Root(&[1, 9, 3])],
            changed(2),
        ),
        ("no root says which", vec![kept(1), Record(2, Some(9)), kept(3)], changed(2)),
        (
            "two records were swapped",
            vec![kept(1), Record(3, Some(2)), Record(2, Some(3)), Root(&[1, 2, 3])],
            vec![(Reordered, Part::Record, Some(3), Some(2), None)],
        ),
        (
            "one was taken out",
            vec![kept(1), Record(3, Some(2)), Record(4, Some(3)), Root(&[1, 2, 3])],
            vec![(Removed, Part::Record, None, Some(2), None)],
        ),
        (
            "one was put in",
            vec![kept(1), Record(9, Some(2)), Record(2, Some(3)), Root(&[1, 2, 3])],
            vec![(Inserted, Part::Record, Some(9), Some(2), None)],
        ),
        (
            "neither is what was sealed",
            vec![kept(1), Root(&[1]), kept(2), kept(3), Root(&[1, 2, 9]), kept(4), Root(&[1, 2, 9, 4])],
            vec![(Changed, Part::Record, Some(2), Some(2), Some(3))],
        ),
        (
            "nor are the stored leaves, which differ",
            vec![kept(1), kept(2), Record(3, Some(8)), Root(&[1, 2, 9])],
            vec![(Changed, Part::Record, Some(3), Some(3), None)],
        ),
        (
            "stored leaves end before the root over them",
            vec![kept(1), Record(2, Some(9)), Record(3, None), Root(&[1, 9, 3])],
            vec![(Changed, Part::Record, Some(2), Some(2), None)],
        ),
        (
            "they end, and a root is over fewer records than there are",
            vec![kept(1), Record(2, Some(9)), Record(3, None), Root(&[1, 9]), kept(4), Root(&[7])],
            vec![(Changed, Part::Record, Some(2), Some(2), None)],
        ),
    ];
    for (name, steps, wanted) in cases {
        assert_eq!(found(&steps), wanted, "{name}");
    }
}

#[test]
fn what_is_wrong_is_said_in_words() {
    let what = |steps: &[Step<'_>]| walk(steps).1.remove(0).what;
    let sealed = what(&[Record(2, Some(9)), Root(&[9])]);
    assert!(sealed.contains("not the one that was sealed"), "{sealed}");
    let unsealed = what(&[Record(2, Some(9))]);
    assert!(unsealed.contains("no checkpoint says which one is right"), "{unsealed}");
    let removed = what(&[Record(3, Some(2)), Record(4, Some(3)), Root(&[2, 3])]);
    assert!(removed.contains("it stood before r/3"), "which one it was is unknown: {removed}");
}

#[test]
fn a_stored_leaf_stands_for_a_missing_record() {
    // The records after it are still compared with the root.
    let intact = [kept(1), Gap(Some(2)), kept(3), Root(&[1, 2, 3])];
    assert_eq!((walk(&intact).0, found(&intact)), (Some(root(&[1, 2, 3])), vec![]));
    let changed = [kept(1), Gap(Some(2)), Record(3, Some(9)), Root(&[1, 2, 9])];
    assert_eq!(found(&changed), [(Kind::Changed, Part::Record, Some(3), Some(3), None)]);
    let swapped = [Record(9, Some(1)), Gap(Some(9)), Record(1, Some(3)), Root(&[1, 9, 3])];
    assert_eq!(found(&swapped), [(Kind::Reordered, Part::Record, Some(9), Some(1), None)]);
    // Without it there is no root that could be right.
    let unknown = [kept(1), Gap(None), kept(3), Root(&[1, 2, 3]), Gap(Some(4))];
    assert_eq!((walk(&unknown).0, found(&unknown)), (None, vec![]));
    let unknown = [kept(1), Gap(None), Record(3, Some(9)), Root(&[1, 2, 9])];
    assert_eq!((walk(&unknown).0, found(&unknown)), (None, vec![]));
    let unknown = [Record(1, Some(9)), Gap(None), kept(3), Root(&[9, 2, 3])];
    assert_eq!(found(&unknown), [(Kind::Changed, Part::Record, Some(1), Some(1), None)]);
}

#[test]
fn stored_hashes_above_the_leaves_are_compared_where_the_leaves_are_sound() {
    let rows = |hash: Hash| TileRows::from([((8, 0), hash.to_vec())]);
    let sealed = root(&[1; 256]).root;
    let walk = |rows: TileRows, first: Step<'_>| {
        let mut findings = Findings::default();
        let mut tree = TreeCheck::new(Frontier::new(), rows);
        for at in 0..256 {
            match (at, first) {
                (0, Gap(stored)) => tree.push_missing(stored.map(leaf), &mut findings),
                (0, Record(of, stored)) => tree.push("r", 0, leaf(of), stored.map(leaf), &mut findings),
                _ => tree.push("r", at, leaf(1), Some(leaf(1)), &mut findings),
            }
            if let (3, Root(of)) = (at, first) {
                tree.check_root(&root(of).root, Part::Record, "the checkpoint", &mut findings);
            }
        }
        let found = findings.into_parts().0;
        found.iter().filter(|found| found.part == Part::Tree).map(|found| found.seq).collect::<Vec<_>>()
    };
    assert_eq!(walk(rows(sealed), kept(1)), []);
    assert_eq!(walk(rows([7; 32]), kept(1)), [Some(256)]);
    assert_eq!(walk(TileRows::new(), kept(1)), []);
    // What they are over is not what was sealed, which is said already.
    for first in [Record(1, Some(9)), Gap(None), Root(&[9])] {
        assert_eq!(walk(rows([7; 32]), first), []);
    }
}
