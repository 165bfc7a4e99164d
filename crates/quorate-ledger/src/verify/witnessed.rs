//! The checkpoints that a witness keeps: who signed them, which ledger they are of, and whether it still has so many
//! records. Their roots are held against the tree on the way.

use super::checkpoint_of;
use super::finding::{Divergence, Kind, Part};
use super::walk::Walk;
use crate::note::{Note, Verifier};
use crate::witness::Witness;

/// What came of a witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Witnessed {
    /// How many checkpoints of this ledger it keeps.
    pub checkpoints: u64,
    /// How many records the largest of them is over.
    pub size: u64,
    /// How many pieces of it are no signed note, such as one that was not written to its end.
    pub torn: u64,
}

/// Holds a witness against what was walked over.
pub(super) fn check(walk: &mut Walk, witness: &Witness, name: &str) -> Witnessed {
    let mut witnessed = Witnessed { torn: witness.torn.len() as u64, ..Witnessed::default() };
    let mut cut = None;
    for (note, at) in witness.notes.iter().zip(1_u64..) {
        let mut say = |kind, what: &str| {
            let what = format!("checkpoint {at} of {name} {what}");
            walk.findings.add(Divergence::of(kind, Part::Witness, what));
        };
        let Some(checkpoint) = checkpoint_of(note) else {
            say(Kind::Changed, "cannot be read");
            continue;
        };
        let size = checkpoint.tree().size;
        if walk.seals.origin.as_deref().is_some_and(|origin| origin != checkpoint.origin()) {
            say(Kind::Changed, &format!("is of another ledger, {}", checkpoint.origin()));
            continue;
        }
        witnessed.checkpoints += 1;
        witnessed.size = witnessed.size.max(size);
        let own = walk.options.own.iter().chain(&walk.options.given);
        let own = own.filter_map(|key| Verifier::new(checkpoint.origin(), *key).ok());
        let known: Vec<Verifier> = walk.seals.signers.iter().cloned().chain(own).collect();
        let verified = Note::parse(note.as_bytes()).is_ok_and(|note| note.verify(&known).is_ok());
        if !verified {
            say(Kind::Changed, "is signed by no key that is known here");
        }
        if size > walk.place() {
            cut = cut.max(Some(size));
        }
    }
    if let Some(size) = cut {
        let there = walk.place();
        let what = format!("{name} has seen {size} records, and there are {there}");
        walk.findings.add(Divergence::of(Kind::Cut, Part::Witness, what).place(there + 1).until(size));
    }
    witnessed
}
