//! The Merkle tree during the walk: the tree of the records and the tree of the stored leaves, compared with the roots
//! that checkpoints and witnesses name. A root decides which of the two was sealed.

use std::collections::HashSet;

use super::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};
use crate::merkle::{EMPTY, Frontier, Hash, TreeHead};

/// The most differing positions that are kept until a root decides.
const MAX_DIFFERENCES: usize = 10_000;

/// The growing trees.
pub(super) struct TreeCheck {
    /// The tree of the records. A stored leaf takes the place of a missing record.
    ours: Frontier,
    /// The tree of the stored leaves, from the first position where they differ from the records.
    stored: Option<Frontier>,
    /// The positions where the two differ, since the last root.
    differences: Vec<Difference>,
    /// Those before it, where the stored leaves are the sealed ones.
    sealed: Vec<Difference>,
    /// The size at the last correct root.
    last_good_size: u64,
    /// Whether roots can still be compared: every position had a record or a stored leaf, and no root was wrong for both
    /// trees.
    comparable: bool,
    /// Whether every position had a record or a stored leaf.
    complete: bool,
    /// Whether record and stored leaf differed anywhere.
    differed: bool,
}

/// A position where record and stored leaf differ.
struct Difference {
    seq: u64,
    run: String,
    n: u64,
    ours: Hash,
    stored: Hash,
}

impl Default for TreeCheck {
    fn default() -> Self {
        TreeCheck::new(Frontier::new())
    }
}

impl TreeCheck {
    /// Starts with a tree.
    pub(super) fn new(begin: Frontier) -> Self {
        TreeCheck {
            last_good_size: begin.size(),
            ours: begin,
            stored: None,
            differences: Vec::new(),
            sealed: Vec::new(),
            comparable: true,
            complete: true,
            differed: false,
        }
    }

    /// The number of positions so far.
    pub(super) fn size(&self) -> u64 {
        self.ours.size()
    }

    /// Whether [`TreeCheck`] reports a record with this leaf at the next position, because another one was sealed there.
    pub(super) fn differs(&self, leaf: &Hash, stored: Option<&Hash>) -> bool {
        self.comparable
            && self.differences.len() < MAX_DIFFERENCES
            && stored.is_some_and(|stored| stored != leaf)
    }

    /// Adds the record at the next position, with its stored leaf.
    pub(super) fn push(&mut self, run: &str, n: u64, leaf: Hash, stored: Option<Hash>) {
        if let Some(stored) = stored.filter(|stored| self.differs(&leaf, Some(stored))) {
            self.stored.get_or_insert_with(|| self.ours.clone());
            let seq = self.size() + 1;
            self.differences.push(Difference { seq, run: run.to_owned(), n, ours: leaf, stored });
            self.differed = true;
        }
        self.grow(leaf, stored);
    }

    /// Passes a position without a readable record. The stored leaf takes its place.
    pub(super) fn push_missing(&mut self, stored: Option<Hash>) {
        self.complete &= stored.is_some();
        self.comparable &= stored.is_some();
        self.grow(stored.unwrap_or(EMPTY), stored);
    }

    fn grow(&mut self, leaf: Hash, stored: Option<Hash>) {
        match (&mut self.stored, stored) {
            (Some(tree), Some(stored)) => tree.push(stored),
            (tree, _) => *tree = None,
        }
        self.ours.push(leaf);
    }

    /// Compares the trees with a trusted root over all positions so far.
    pub(super) fn check_root(&mut self, root: &Hash, part: LedgerPart, who: &str, findings: &mut Findings) {
        if !self.comparable {
            return;
        }
        let size = self.size();
        if self.ours.root() == *root {
            for difference in std::mem::take(&mut self.differences) {
                let what = "the stored hash of this record differs from the sealed one";
                findings.add(Divergence::changed(LedgerPart::Tree, what).at(
                    &difference.run,
                    difference.n,
                    difference.seq,
                ));
            }
            (self.stored, self.last_good_size) = (None, size);
        } else if self.stored.as_ref().is_some_and(|stored| stored.root() == *root) {
            self.sealed.append(&mut self.differences);
            self.last_good_size = size;
        } else {
            self.comparable = false;
            let divergence = Divergence::changed(part, format!("the records differ from those under {who}"));
            // The stored leaves were rewritten or damaged as well.
            findings.add(match self.differences.drain(..).next() {
                Some(first) => divergence.at(&first.run, first.n, first.seq),
                None => divergence.at_seq(self.last_good_size + 1).up_to_seq(size),
            });
        }
    }

    /// The current size and root; `None` if unknown.
    pub(super) fn tree_head(&self) -> Option<TreeHead> {
        self.complete.then(|| self.ours.tree_head())
    }

    /// Whether the records are those of the stored leaves.
    pub(super) fn is_stored(&self) -> bool {
        self.comparable && !self.differed
    }

    /// Ends the walk and reports the records that differ.
    pub(super) fn finish(&mut self, findings: &mut Findings) {
        report_records(&std::mem::take(&mut self.sealed), "its head differs from the sealed one", findings);
        let what = "its head and its stored hash differ, and no checkpoint shows which is correct";
        report_records(&std::mem::take(&mut self.differences), what, findings);
    }
}

/// Reports records that differ from their stored leaves. Where one was moved, put in or taken out, positions between differ
/// as well, so that only the first of these is reported.
fn report_records(differences: &[Difference], changed: &str, findings: &mut Findings) {
    let ours: HashSet<&Hash> = differences.iter().map(|difference| &difference.ours).collect();
    let stored: HashSet<&Hash> = differences.iter().map(|difference| &difference.stored).collect();
    let last = differences.last().map_or(0, |difference| difference.seq);
    let mut has_moved = false;
    for Difference { seq, run, n, ours: record, stored: leaf } in differences {
        let about = |kind, what: &str| Divergence::new(kind, LedgerPart::Record, what).at_seq(*seq);
        let divergence = match (stored.contains(record), ours.contains(leaf)) {
            (false, false) => {
                findings.add(about(DivergenceKind::Changed, changed).at_record(run, *n));
                continue;
            }
            (true, true) => {
                let what = "another record was sealed at this position, and this one at another";
                about(DivergenceKind::Reordered, what).at_record(run, *n)
            }
            (false, true) => {
                let what = "it was not sealed: the record sealed at its position follows later";
                about(DivergenceKind::Inserted, what).at_record(run, *n)
            }
            // The missing record is unknown.
            (true, false) => {
                let what = format!("a sealed record is missing: it was before {run}/{n}");
                about(DivergenceKind::Removed, &what)
            }
        };
        if !std::mem::replace(&mut has_moved, true) {
            findings.add(divergence.up_to_seq(last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TreeCheck;
    use crate::merkle::{Frontier, Hash};
    use crate::verify::divergence::{DivergenceKind, Findings, LedgerPart};

    /// A step of the walk: a record with its stored leaf, a position without a record, or a root over the sealed
    /// records.
    #[derive(Clone, Copy)]
    enum Step<'a> {
        Record(u8, Option<u8>),
        Gap(Option<u8>),
        Root(&'a [u8]),
    }
    use Step::{Gap, Record, Root};

    fn root(of: &[u8]) -> Hash {
        let mut tree = Frontier::new();
        of.iter().for_each(|of| tree.push([*of; 32]));
        tree.root()
    }

    /// Kind, part, record, first and last position of each divergence, and whether the root is known.
    type Found = (DivergenceKind, LedgerPart, Option<u64>, Option<u64>, Option<u64>);

    fn walk(steps: &[Step<'_>]) -> (bool, Vec<Found>) {
        let mut findings = Findings::default();
        let mut tree = TreeCheck::default();
        for step in steps {
            match *step {
                Record(of, stored) => tree.push("r", of.into(), [of; 32], stored.map(|of| [of; 32])),
                Gap(stored) => tree.push_missing(stored.map(|of| [of; 32])),
                Root(of) => tree.check_root(&root(of), LedgerPart::Record, "the checkpoint", &mut findings),
            }
        }
        tree.finish(&mut findings);
        let found = findings.into_parts().0;
        let found = found.iter().map(|found| (found.kind, found.part, found.n, found.seq, found.last_seq));
        (tree.tree_head().is_some(), found.collect())
    }

    fn kept(of: u8) -> Step<'static> {
        Record(of, Some(of))
    }

    #[test]
    fn the_root_decides_between_record_and_stored_leaf() {
        use DivergenceKind::{Changed, Inserted, Removed, Reordered};
        use LedgerPart::{Record as OfRecord, Tree};
        let cases: &[(&str, &[Step<'_>], &[Found])] = &[
            ("nothing differs", &[kept(1), kept(2), Root(&[1, 2])], &[]),
            (
                "the stored leaf was changed",
                &[kept(1), Record(2, Some(9)), Root(&[1, 2]), kept(3), Root(&[1, 2, 3])],
                &[(Changed, Tree, Some(2), Some(2), None)],
            ),
            (
                "two records were changed",
                &[kept(1), Record(2, Some(9)), Root(&[1, 9]), Record(3, Some(8)), Root(&[1, 9, 8])],
                &[(Changed, OfRecord, Some(2), Some(2), None), (Changed, OfRecord, Some(3), Some(3), None)],
            ),
            (
                "no root says which",
                &[kept(1), Record(2, Some(9)), kept(3)],
                &[(Changed, OfRecord, Some(2), Some(2), None)],
            ),
            (
                "two records were swapped",
                &[kept(1), Record(3, Some(2)), Record(2, Some(3)), Root(&[1, 2, 3])],
                &[(Reordered, OfRecord, Some(3), Some(2), Some(3))],
            ),
            (
                "one was taken out",
                &[kept(1), Record(3, Some(2)), Record(4, Some(3)), Root(&[1, 2, 3])],
                &[(Removed, OfRecord, None, Some(2), Some(3))],
            ),
            (
                "one was put in",
                &[kept(1), Record(9, Some(2)), Record(2, Some(3)), Root(&[1, 2, 3])],
                &[(Inserted, OfRecord, Some(9), Some(2), Some(3))],
            ),
            (
                "neither is what was sealed",
                &[kept(1), Root(&[1]), kept(2), kept(3), Root(&[1, 2, 9]), kept(4), Root(&[1, 2, 9, 4])],
                &[(Changed, OfRecord, None, Some(2), Some(3))],
            ),
            (
                "nor are the stored leaves, which differ",
                &[kept(1), kept(2), Record(3, Some(8)), Root(&[1, 2, 9])],
                &[(Changed, OfRecord, Some(3), Some(3), None)],
            ),
            (
                "a stored leaf stands for a missing record",
                &[kept(1), Gap(Some(2)), kept(3), Root(&[1, 2, 3])],
                &[],
            ),
            (
                "and the records after it are compared",
                &[kept(1), Gap(Some(2)), Record(3, Some(9)), Root(&[1, 2, 9])],
                &[(Changed, OfRecord, Some(3), Some(3), None)],
            ),
            ("without a stored leaf no root is compared", &[kept(1), Gap(None), kept(3), Root(&[7])], &[]),
        ];
        for (name, steps, wanted) in cases {
            let (known, found) = walk(steps);
            assert_eq!(found, *wanted, "{name}");
            assert_eq!(known, !steps.iter().any(|step| matches!(step, Gap(None))), "{name}");
        }
    }
}
