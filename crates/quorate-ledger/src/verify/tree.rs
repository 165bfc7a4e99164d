//! The Merkle tree while records are walked: their leaves against the stored ones, and both against the roots that
//! checkpoints and witnesses name. The roots decide which of the two is the one that was sealed.

use std::collections::BTreeMap;

use super::finding::{Divergence, Findings, Kind, Part};
use crate::merkle::{EMPTY, Frontier, Hash, Subtree, TreeHead};
use crate::store::tiles::{WIDTH, keeps};

/// The rows of the stored tree above its leaves, by level and index.
pub(super) type Rows = BTreeMap<(u32, u64), Vec<u8>>;

/// The tree as it grows.
pub(super) struct Growth {
    /// Of the records that are there.
    ours: Frontier,
    /// Of the stored leaves, from where they first differ from the records'.
    stored: Option<Frontier>,
    /// The last size whose root held.
    good: u64,
    /// A root did not hold, for the records as for the stored leaves: later ones cannot either.
    bad: bool,
    /// A place without record and without stored leaf was passed: no root can be computed any more.
    lost: bool,
    rows: Rows,
    /// Where the stored leaves first differ from the records' and no root has said yet which are right.
    open: Option<Watch>,
    /// Where records differ from what was sealed.
    confirmed: Option<Watch>,
    /// The record that stands after the last root that held.
    first_after_good: Option<(String, u64)>,
}

/// A place where record and stored leaf differ, and where else the two are seen.
struct Watch {
    place: u64,
    run: String,
    n: u64,
    ours: Hash,
    stored: Hash,
    ours_is_stored_later: bool,
    stored_is_ours_later: bool,
}

impl Watch {
    fn see(&mut self, ours: Option<&Hash>, stored: Option<&Hash>) {
        self.stored_is_ours_later |= ours == Some(&self.stored);
        self.ours_is_stored_later |= stored == Some(&self.ours);
    }

    /// What differs. Where no root has said that the stored leaves are the sealed ones, that they stand elsewhere does.
    fn divergence(self, confirmed: bool) -> Divergence {
        let (kind, what) = match (self.ours_is_stored_later, self.stored_is_ours_later) {
            (true, true) => (Kind::Reordered, "another record was sealed at this place, and this one later"),
            (true, false) => {
                (Kind::Removed, "a record was sealed before this one that is not there any more")
            }
            (false, true) => (Kind::Inserted, "it was not sealed: what was sealed at its place stands later"),
            (false, false) if confirmed => (Kind::Changed, "its head is not the one that was sealed"),
            (false, false) => (
                Kind::Changed,
                "its head and its stored hash differ, and no checkpoint says which one is right",
            ),
        };
        let divergence = Divergence::of(kind, Part::Record, what).place(self.place);
        match kind {
            // Which one it was, nobody knows any more.
            Kind::Removed => {
                let what = format!("{what}: it stood before {}/{}", self.run, self.n);
                Divergence { what, ..divergence }
            }
            _ => divergence.at(&self.run, self.n),
        }
    }
}

impl Growth {
    /// A tree that begins so; the stored rows above the leaves are held against what comes.
    pub(super) fn new(begin: Frontier, rows: Rows) -> Self {
        Growth {
            good: begin.size(),
            ours: begin,
            stored: None,
            bad: false,
            lost: false,
            rows,
            open: None,
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
        let place = self.size() + 1;
        if self.first_after_good.is_none() {
            self.first_after_good = Some((run.to_owned(), n));
        }
        for watch in [&mut self.open, &mut self.confirmed].into_iter().flatten() {
            watch.see(Some(&leaf), stored.as_ref());
        }
        match (&mut self.stored, stored) {
            (Some(tree), Some(stored)) => tree.push(stored),
            (Some(_), None) => self.stored = None,
            (None, Some(stored)) if stored != leaf && !self.bad && !self.lost => {
                let mut tree = self.ours.clone();
                tree.push(stored);
                self.stored = Some(tree);
                self.open = Some(Watch {
                    place,
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

    /// Passes a place without a record. The stored leaf stands in for it, so that what follows can be held still.
    pub(super) fn skip(&mut self, stored: Option<Hash>, findings: &mut Findings) {
        for watch in [&mut self.open, &mut self.confirmed].into_iter().flatten() {
            watch.see(None, stored.as_ref());
        }
        self.lost |= stored.is_none();
        match (&mut self.stored, stored) {
            (Some(tree), Some(stored)) => tree.push(stored),
            (tree, _) => *tree = None,
        }
        self.grow(stored.unwrap_or(EMPTY), findings);
    }

    fn grow(&mut self, leaf: Hash, findings: &mut Findings) {
        let sound = self.stored.is_none() && !self.lost && !self.bad;
        let rows = &self.rows;
        let mut differs = None;
        self.ours.push_closing(leaf, |Subtree { level, index }, hash| {
            if level > 0 && keeps(level) && sound && !rows.is_empty() {
                let start = usize::try_from(index % WIDTH).unwrap_or(0) * 32;
                let stored = rows.get(&(level, index / WIDTH)).and_then(|row| row.get(start..start + 32));
                if stored.is_some_and(|stored| stored != hash) {
                    differs = Some((level, index));
                }
            }
        });
        if let Some((level, index)) = differs {
            let what = format!("the stored hash {index} of level {level} does not follow from the records");
            findings.add(Divergence::of(Kind::Changed, Part::Tree, what).place(self.ours.size()));
        }
    }

    /// Holds the tree as it stands against a root that somebody vouches for.
    pub(super) fn settle(&mut self, root: &Hash, part: Part, who: &str, findings: &mut Findings) {
        let size = self.size();
        if self.lost || self.bad {
            return;
        }
        if self.ours.root() == *root {
            if let Some(watch) = self.open.take() {
                let what = "the stored hash of this record is not the one that was sealed";
                let divergence = Divergence::of(Kind::Changed, Part::Tree, what);
                findings.add(divergence.at(&watch.run, watch.n).place(watch.place));
            }
            self.stored = None;
            self.held(size);
        } else if self.stored.as_ref().is_some_and(|stored| stored.root() == *root) {
            // Places before the first one that differs are the same in both.
            if let Some(watch) = self.open.take() {
                self.confirmed.get_or_insert(watch);
            }
            self.held(size);
        } else {
            self.bad = true;
            let what = format!("the records are not those that {who} is over");
            let mut divergence = Divergence::of(Kind::Changed, part, what);
            divergence = match (self.open.take(), &self.first_after_good) {
                // The stored leaves were written anew from there on, or spoilt: what follows may be as it was.
                (Some(watch), _) => divergence.at(&watch.run, watch.n).place(watch.place),
                (None, Some((run, n))) => divergence.at(run, *n).place(self.good + 1).until(size),
                (None, None) => divergence.place(size),
            };
            findings.add(divergence);
        }
    }

    fn held(&mut self, size: u64) {
        (self.good, self.first_after_good) = (size, None);
    }

    /// Size and root as they stand; `None` where they cannot be told.
    pub(super) fn head(&self) -> Option<TreeHead> {
        (!self.lost).then(|| self.ours.tree_head())
    }

    /// Ends the walk: what differs is said.
    pub(super) fn end(mut self, findings: &mut Findings) {
        for (watch, confirmed) in [(self.confirmed.take(), true), (self.open.take(), false)] {
            if let Some(watch) = watch {
                findings.add(watch.divergence(confirmed));
            }
        }
    }
}
