//! Checks the local copies of the last checkpoint that the ledger's own key signed, and accepted rollbacks. The walk
//! compares the copies' roots with the tree.

use super::divergence::{Divergence, Kind, Part};
use super::walk::Walk;
use super::witness_check::{WitnessCheck, check_not_cut, check_note};
use crate::local_checkpoints::LocalCheckpoints;

/// Compares the copies with the walked records.
pub(super) fn check(walk: &mut Walk, kept: &LocalCheckpoints) -> WitnessCheck {
    let mut check = WitnessCheck::default();
    // The kept checkpoints of a former ledger do not apply to another ledger's records.
    let replaced =
        kept.replaced_origin.as_ref().filter(|replaced| walk.checkpoints.origin.as_ref() != Some(replaced));
    let is_another = replaced.is_some() && walk.checkpoints.origin.is_none();
    for copy in kept.copies.iter().filter(|_| !is_another) {
        let name = format!("the copy {}", copy.path.display());
        match &copy.note {
            Ok(note) => {
                let Some(size) = check_note(walk, note, Part::LocalCheckpoint, &name) else { continue };
                check.checkpoints += 1;
                check.size = check.size.max(size);
                check_not_cut(walk, size, Part::LocalCheckpoint, &name);
            }
            Err(why) => {
                check.fragments += 1;
                let what = format!("{name} is no checkpoint that the ledger's key signed: {why}");
                walk.findings.add(Divergence::new(Kind::Changed, Part::LocalCheckpoint, what));
            }
        }
    }
    if let Some(origin) = replaced {
        let what = format!("the ledger {origin} was kept here, and another one is in its place");
        walk.findings.add(Divergence::new(Kind::Changed, Part::LocalCheckpoint, what));
    }
    if walk.options.strict && kept.copies.is_empty() {
        let what = "no checkpoint of this ledger is kept on this machine, and --strict asks for one";
        walk.findings.add(Divergence::new(Kind::Removed, Part::LocalCheckpoint, what));
    }
    check
}
