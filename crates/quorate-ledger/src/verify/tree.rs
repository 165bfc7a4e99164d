//! The Merkle tree during the walk: compares the records' leaves with the stored ones, and both with the roots that
//! checkpoints and witnesses name. The roots decide which of the two was sealed.

use std::collections::BTreeMap;

use super::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};
use crate::merkle::{EMPTY, Frontier, Hash, Subtree, TreeHead};
use crate::store::tiles::{HASHES_PER_ROW, stores_level};

/// The rows of the stored tree above its leaves, by level and index.
pub(super) type TileRows = BTreeMap<(u32, u64), Vec<u8>>;

/// The growing trees.
pub(super) struct TreeCheck {
    /// The tree of the existing records.
    ours: Frontier,
    /// The tree of the stored leaves, from the first position where they differ from the records'.
    stored: Option<Frontier>,
    /// The last size with a correct root.
    last_good_size: u64,
    /// A root was wrong for the records and for the stored leaves, so all later ones are wrong as well.
    diverged: bool,
    /// A position without a record and without a stored leaf was passed, so no more roots can be computed.
    incomplete: bool,
    rows: TileRows,
    /// The first position where stored leaf and record differ, before a root has shown which is correct.
    unconfirmed: Option<Difference>,
    /// A range in which records differ from what was sealed.
    confirmed: Option<Difference>,
    /// The record after the last correct root.
    first_after_good: Option<(String, u64)>,
}

/// A position where record and stored leaf differ, and where else each of the two occurs.
struct Difference {
    seq: u64,
    run: String,
    n: u64,
    ours: Hash,
    stored: Hash,
    ours_is_stored_later: bool,
    stored_is_ours_later: bool,
}

impl Difference {
    fn observe(&mut self, ours: Option<&Hash>, stored: Option<&Hash>) {
        self.stored_is_ours_later |= ours == Some(&self.stored);
        self.ours_is_stored_later |= stored == Some(&self.ours);
    }

    /// The difference. If no root has shown that the stored leaves are the sealed ones, the other occurrence decides.
    fn into_divergence(self, confirmed: bool) -> Divergence {
        let (kind, what) = match (self.ours_is_stored_later, self.stored_is_ours_later) {
            (true, true) => (
                DivergenceKind::Reordered,
                "another record was sealed at this position, and this one at a later one",
            ),
            (true, false) => (DivergenceKind::Removed, "a sealed record before this one is missing"),
            (false, true) => (
                DivergenceKind::Inserted,
                "it was not sealed: the record sealed at its position follows later",
            ),
            (false, false) if confirmed => (DivergenceKind::Changed, "its head differs from the sealed one"),
            (false, false) => (
                DivergenceKind::Changed,
                "its head and its stored hash differ, and no checkpoint shows which is correct",
            ),
        };
        let divergence = Divergence::new(kind, LedgerPart::Record, what).at_seq(self.seq);
        match kind {
            // Nothing shows which one was sealed.
            DivergenceKind::Removed => {
                let what = format!("{what}: it was before {}/{}", self.run, self.n);
                Divergence { what, ..divergence }
            }
            _ => divergence.at_record(&self.run, self.n),
        }
    }
}

impl TreeCheck {
    /// Starts with a tree. The stored rows above the leaves are compared during the walk.
    pub(super) fn new(begin: Frontier, rows: TileRows) -> Self {
        TreeCheck {
            last_good_size: begin.size(),
            ours: begin,
            stored: None,
            diverged: false,
            incomplete: false,
            rows,
            unconfirmed: None,
            confirmed: None,
            first_after_good: None,
        }
    }

    /// The number of positions so far.
    pub(super) fn size(&self) -> u64 {
        self.ours.size()
    }

    /// Adds the record at the next position, with its stored leaf.
    pub(super) fn push(
        &mut self,
        run: &str,
        n: u64,
        leaf: Hash,
        stored: Option<Hash>,
        findings: &mut Findings,
    ) {
        let seq = self.size() + 1;
        if self.first_after_good.is_none() {
            self.first_after_good = Some((run.to_owned(), n));
        }
        for watch in [&mut self.unconfirmed, &mut self.confirmed].into_iter().flatten() {
            watch.observe(Some(&leaf), stored.as_ref());
        }
        match (&mut self.stored, stored) {
            (Some(tree), Some(stored)) => tree.push(stored),
            (Some(_), None) => self.stored = None,
            (None, Some(stored)) if stored != leaf && !self.diverged && !self.incomplete => {
                let mut tree = self.ours.clone();
                tree.push(stored);
                self.stored = Some(tree);
                self.unconfirmed = Some(Difference {
                    seq,
                    run: run.to_owned(),
                    n,
                    ours: leaf,
                    stored,
                    ours_is_stored_later: false,
                    stored_is_ours_later: false,
                });
            }
            _ => {}
        }
        self.grow(leaf, findings);
    }

    /// Passes a position without a record. The stored leaf replaces it, so that later records can still be checked.
    pub(super) fn push_missing(&mut self, stored: Option<Hash>, findings: &mut Findings) {
        for watch in [&mut self.unconfirmed, &mut self.confirmed].into_iter().flatten() {
            watch.observe(None, stored.as_ref());
        }
        self.incomplete |= stored.is_none();
        match (&mut self.stored, stored) {
            (Some(tree), Some(stored)) => tree.push(stored),
            (tree, _) => *tree = None,
        }
        self.grow(stored.unwrap_or(EMPTY), findings);
    }

    fn grow(&mut self, leaf: Hash, findings: &mut Findings) {
        let sound = self.stored.is_none() && !self.incomplete && !self.diverged;
        let rows = &self.rows;
        let mut differs = None;
        self.ours.push_with(leaf, |Subtree { level, index }, hash| {
            if stores_level(level) && sound && !rows.is_empty() {
                let start = usize::try_from(index % HASHES_PER_ROW).unwrap_or(0) * 32;
                let stored =
                    rows.get(&(level, index / HASHES_PER_ROW)).and_then(|row| row.get(start..start + 32));
                if stored.is_some_and(|stored| stored != hash) {
                    differs = Some((level, index));
                }
            }
        });
        if let Some((level, index)) = differs {
            let what = format!("the stored hash {index} of level {level} does not match the records");
            findings.add(Divergence::changed(LedgerPart::Tree, what).at_seq(self.ours.size()));
        }
    }

    /// Compares the tree with a trusted root.
    pub(super) fn check_root(&mut self, root: &Hash, part: LedgerPart, who: &str, findings: &mut Findings) {
        let size = self.size();
        if self.incomplete || self.diverged {
            return;
        }
        if self.ours.root() == *root {
            if let Some(watch) = self.unconfirmed.take() {
                let what = "the stored hash of this record differs from the sealed one";
                findings.add(Divergence::changed(LedgerPart::Tree, what).at(&watch.run, watch.n, watch.seq));
            }
            self.stored = None;
            self.mark_good(size);
        } else if self.stored.as_ref().is_some_and(|stored| stored.root() == *root) {
            // Before the first difference, positions are equal in both trees.
            if let Some(watch) = self.unconfirmed.take() {
                self.confirmed.get_or_insert(watch);
            }
            self.mark_good(size);
        } else {
            self.diverged = true;
            let what = format!("the records differ from those under {who}");
            let mut divergence = Divergence::changed(part, what);
            divergence = match (self.unconfirmed.take(), &self.first_after_good) {
                // The stored leaves were rewritten or damaged from there on. Later records may be intact.
                (Some(watch), _) => divergence.at(&watch.run, watch.n, watch.seq),
                (None, Some((run, n))) => divergence.at(run, *n, self.last_good_size + 1).up_to_seq(size),
                (None, None) => divergence.at_seq(size),
            };
            findings.add(divergence);
        }
    }

    fn mark_good(&mut self, size: u64) {
        (self.last_good_size, self.first_after_good) = (size, None);
    }

    /// The current size and root; `None` if unknown.
    pub(super) fn tree_head(&self) -> Option<TreeHead> {
        (!self.incomplete).then(|| self.ours.tree_head())
    }

    /// Ends the walk and reports the differences.
    pub(super) fn finish(mut self, findings: &mut Findings) {
        for (watch, confirmed) in [(self.confirmed.take(), true), (self.unconfirmed.take(), false)] {
            if let Some(watch) = watch {
                findings.add(watch.into_divergence(confirmed));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TileRows, TreeCheck};
    use crate::merkle::{Frontier, Hash, TreeHead};
    use crate::verify::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};

    fn leaf(of: u8) -> Hash {
        [of; 32]
    }

    /// A step of the walk: a record with its stored leaf, a position without a record, or a root over the sealed
    /// records.
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
                Root(of) => {
                    tree.check_root(&root(of).root, LedgerPart::Record, "the checkpoint", &mut findings)
                }
            }
        }
        let head = tree.tree_head();
        tree.finish(&mut findings);
        (head, findings.into_parts().0)
    }

    /// Kind, part, record, first and last position of a divergence.
    type Found = (DivergenceKind, LedgerPart, Option<u64>, Option<u64>, Option<u64>);

    fn found(steps: &[Step<'_>]) -> Vec<Found> {
        let found = walk(steps).1;
        found.iter().map(|found| (found.kind, found.part, found.n, found.seq, found.last_seq)).collect()
    }

    fn kept(of: u8) -> Step<'static> {
        Record(of, Some(of))
    }

    #[test]
    fn the_root_decides_between_record_and_stored_leaf() {
        use DivergenceKind::{Changed, Inserted, Removed, Reordered};
        let changed = |n: u64| vec![(Changed, LedgerPart::Record, Some(n), Some(n), None)];
        let cases: Vec<(&str, Vec<Step<'_>>, Vec<Found>)> = vec![
            ("nothing differs", vec![kept(1), kept(2), Root(&[1, 2])], vec![]),
            (
                "the stored leaf was changed",
                vec![kept(1), Record(2, Some(9)), Root(&[1, 2]), kept(3), Root(&[1, 2, 3])],
                vec![(Changed, LedgerPart::Tree, Some(2), Some(2), None)],
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
                vec![(Reordered, LedgerPart::Record, Some(3), Some(2), None)],
            ),
            (
                "one was taken out",
                vec![kept(1), Record(3, Some(2)), Record(4, Some(3)), Root(&[1, 2, 3])],
                vec![(Removed, LedgerPart::Record, None, Some(2), None)],
            ),
            (
                "one was put in",
                vec![kept(1), Record(9, Some(2)), Record(2, Some(3)), Root(&[1, 2, 3])],
                vec![(Inserted, LedgerPart::Record, Some(9), Some(2), None)],
            ),
            (
                "neither is what was sealed",
                vec![kept(1), Root(&[1]), kept(2), kept(3), Root(&[1, 2, 9]), kept(4), Root(&[1, 2, 9, 4])],
                vec![(Changed, LedgerPart::Record, Some(2), Some(2), Some(3))],
            ),
            (
                "nor are the stored leaves, which differ",
                vec![kept(1), kept(2), Record(3, Some(8)), Root(&[1, 2, 9])],
                vec![(Changed, LedgerPart::Record, Some(3), Some(3), None)],
            ),
            (
                "stored leaves end before the root over them",
                vec![kept(1), Record(2, Some(9)), Record(3, None), Root(&[1, 9, 3])],
                vec![(Changed, LedgerPart::Record, Some(2), Some(2), None)],
            ),
            (
                "they end, and a root is over fewer records than there are",
                vec![kept(1), Record(2, Some(9)), Record(3, None), Root(&[1, 9]), kept(4), Root(&[7])],
                vec![(Changed, LedgerPart::Record, Some(2), Some(2), None)],
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
        assert!(sealed.contains("differs from the sealed one"), "{sealed}");
        let unsealed = what(&[Record(2, Some(9))]);
        assert!(unsealed.contains("no checkpoint shows which is correct"), "{unsealed}");
        let removed = what(&[Record(3, Some(2)), Record(4, Some(3)), Root(&[2, 3])]);
        assert!(removed.contains("it was before r/3"), "which one it was is unknown: {removed}");
    }

    #[test]
    fn a_stored_leaf_stands_for_a_missing_record() {
        // The records after it are still compared with the root.
        let intact = [kept(1), Gap(Some(2)), kept(3), Root(&[1, 2, 3])];
        assert_eq!((walk(&intact).0, found(&intact)), (Some(root(&[1, 2, 3])), vec![]));
        let changed = [kept(1), Gap(Some(2)), Record(3, Some(9)), Root(&[1, 2, 9])];
        assert_eq!(found(&changed), [(DivergenceKind::Changed, LedgerPart::Record, Some(3), Some(3), None)]);
        let swapped = [Record(9, Some(1)), Gap(Some(9)), Record(1, Some(3)), Root(&[1, 9, 3])];
        assert_eq!(
            found(&swapped),
            [(DivergenceKind::Reordered, LedgerPart::Record, Some(9), Some(1), None)]
        );
        // Without it, no root can be correct.
        let unknown = [kept(1), Gap(None), kept(3), Root(&[1, 2, 3]), Gap(Some(4))];
        assert_eq!((walk(&unknown).0, found(&unknown)), (None, vec![]));
        let unknown = [kept(1), Gap(None), Record(3, Some(9)), Root(&[1, 2, 9])];
        assert_eq!((walk(&unknown).0, found(&unknown)), (None, vec![]));
        let unknown = [Record(1, Some(9)), Gap(None), kept(3), Root(&[9, 2, 3])];
        assert_eq!(found(&unknown), [(DivergenceKind::Changed, LedgerPart::Record, Some(1), Some(1), None)]);
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
                    tree.check_root(&root(of).root, LedgerPart::Record, "the checkpoint", &mut findings);
                }
            }
            let found = findings.into_parts().0;
            found
                .iter()
                .filter(|found| found.part == LedgerPart::Tree)
                .map(|found| found.seq)
                .collect::<Vec<_>>()
        };
        assert_eq!(walk(rows(sealed), kept(1)), []);
        assert_eq!(walk(rows([7; 32]), kept(1)), [Some(256)]);
        assert_eq!(walk(TileRows::new(), kept(1)), []);
        // Covered records that differ from the sealed ones are already reported.
        for first in [Record(1, Some(9)), Gap(None), Root(&[9])] {
            assert_eq!(walk(rows([7; 32]), first), []);
        }
    }
}
