//! The Merkle tree during the walk: records' leaves against the stored ones, and both against the roots that checkpoints
//! and witnesses name. The roots decide which of the two was sealed.

use std::collections::BTreeMap;

use super::divergence::{Divergence, Findings, Kind, Part};
use crate::merkle::{EMPTY, Frontier, Hash, Subtree, TreeHead};
use crate::store::tiles::{HASHES_PER_ROW, stores_level};

/// The rows of the stored tree above its leaves, by level and index.
pub(super) type TileRows = BTreeMap<(u32, u64), Vec<u8>>;

/// The tree as it grows.
pub(super) struct TreeCheck {
    /// Of the existing records.
    ours: Frontier,
    /// Of the stored leaves, from where they first differ from the records'.
    stored: Option<Frontier>,
    /// The last size with a correct root.
    last_good_size: u64,
    /// A root was wrong, for the records and for the stored leaves: so are all later ones.
    diverged: bool,
    /// A place without record and without stored leaf was passed: no root can be computed any more.
    incomplete: bool,
    rows: TileRows,
    /// Where the stored leaves first differ from the records' and no root has said yet which are right.
    unconfirmed: Option<Difference>,
    /// Where records differ from what was sealed.
    confirmed: Option<Difference>,
    /// The record after the last correct root.
    first_after_good: Option<(String, u64)>,
}

/// A place where record and stored leaf differ, and where else the two are seen.
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

    /// What differs. Where no root has said that the stored leaves are the sealed ones, that they stand elsewhere does.
    fn into_divergence(self, confirmed: bool) -> Divergence {
        let (kind, what) = match (self.ours_is_stored_later, self.stored_is_ours_later) {
            (true, true) => (Kind::Reordered, "another record was sealed at this place, and this one later"),
            (true, false) => (Kind::Removed, "a sealed record before this one is missing"),
            (false, true) => {
                (Kind::Inserted, "it was not sealed: the record sealed at its place comes later")
            }
            (false, false) if confirmed => (Kind::Changed, "its head is not the one that was sealed"),
            (false, false) => (
                Kind::Changed,
                "its head and its stored hash differ, and no checkpoint says which one is right",
            ),
        };
        let divergence = Divergence::new(kind, Part::Record, what).at_seq(self.seq);
        match kind {
            // It is undecidable which one was sealed.
            Kind::Removed => {
                let what = format!("{what}: it stood before {}/{}", self.run, self.n);
                Divergence { what, ..divergence }
            }
            _ => divergence.at_record(&self.run, self.n),
        }
    }
}

impl TreeCheck {
    /// A tree with this start; the stored rows above the leaves are compared during the walk.
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

    /// How many places there are so far.
    pub(super) fn size(&self) -> u64 {
        self.ours.size()
    }

    /// Takes the record at the next place, and the leaf that is stored for it.
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
            let what = format!("the stored hash {index} of level {level} does not follow from the records");
            findings.add(Divergence::new(Kind::Changed, Part::Tree, what).at_seq(self.ours.size()));
        }
    }

    /// Compares the tree with a trusted root.
    pub(super) fn check_root(&mut self, root: &Hash, part: Part, who: &str, findings: &mut Findings) {
        let size = self.size();
        if self.incomplete || self.diverged {
            return;
        }
        if self.ours.root() == *root {
            if let Some(watch) = self.unconfirmed.take() {
                let what = "the stored hash of this record is not the one that was sealed";
                let divergence = Divergence::new(Kind::Changed, Part::Tree, what);
                findings.add(divergence.at_record(&watch.run, watch.n).at_seq(watch.seq));
            }
            self.stored = None;
            self.mark_good(size);
        } else if self.stored.as_ref().is_some_and(|stored| stored.root() == *root) {
            // Places before the first one that differs are the same in both.
            if let Some(watch) = self.unconfirmed.take() {
                self.confirmed.get_or_insert(watch);
            }
            self.mark_good(size);
        } else {
            self.diverged = true;
            let what = format!("the records are not those that {who} is over");
            let mut divergence = Divergence::new(Kind::Changed, part, what);
            divergence = match (self.unconfirmed.take(), &self.first_after_good) {
                // The stored leaves were rewritten or damaged from there on: later records may be intact.
                (Some(watch), _) => divergence.at_record(&watch.run, watch.n).at_seq(watch.seq),
                (None, Some((run, n))) => {
                    divergence.at_record(run, *n).at_seq(self.last_good_size + 1).up_to_seq(size)
                }
                (None, None) => divergence.at_seq(size),
            };
            findings.add(divergence);
        }
    }

    fn mark_good(&mut self, size: u64) {
        (self.last_good_size, self.first_after_good) = (size, None);
    }

    /// The current size and root; `None` where they are unknown.
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
mod tests;
