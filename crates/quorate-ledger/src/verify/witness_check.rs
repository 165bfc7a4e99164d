//! Checks a witness's checkpoints: their signatures, their ledger, and whether it still has as many records. The walk
//! compares their roots with the tree.

use super::divergence::{Divergence, Kind, Part};
use super::parse_checkpoint;
use super::walk::Walk;
use crate::local_checkpoints::CheckpointCopy;
use crate::note::{Cosigner, Note, Verifier};
use crate::witness::Witness;

/// The result for a witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WitnessCheck {
    /// How many checkpoints of this ledger it keeps.
    pub checkpoints: u64,
    /// How many records the largest of them is over.
    pub size: u64,
    /// How many parts of it are not signed notes, such as an incomplete one.
    pub fragments: u64,
}

/// Compares a witness with the walked records.
pub(super) fn check(walk: &mut Walk, witness: &Witness, name: &str) -> WitnessCheck {
    let mut witnessed = WitnessCheck { fragments: witness.fragments.len() as u64, ..WitnessCheck::default() };
    for (note, at) in witness.notes.iter().zip(1_u64..) {
        let Some(size) = check_note(walk, note, Part::Witness, &format!("checkpoint {at} of {name}")) else {
            continue;
        };
        witnessed.checkpoints += 1;
        witnessed.size = witnessed.size.max(size);
    }
    check_not_cut(walk, witnessed.size, Part::Witness, name);
    witnessed
}

/// What a witness that is asked over HTTP signed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosignature {
    pub name: String,
    /// Over how many records.
    pub size: u64,
    /// When, in seconds since the Unix epoch, by the witness's clock.
    pub at_s: u64,
}

/// Compares the witness's last signed checkpoint with the walk; `None` if it is not a checkpoint.
pub(super) fn check_cosignature(
    walk: &mut Walk,
    cosigner: &Cosigner,
    copy: &CheckpointCopy,
) -> Option<Cosignature> {
    let name = format!("the checkpoint of the witness {}", cosigner.name());
    let read = || -> Result<(String, u64), String> {
        let note = copy.note.clone()?;
        let parsed = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
        let (_, at_s) = cosigner.find_signature(&parsed).map_err(|error| error.to_string())?;
        Ok((note, at_s))
    };
    match read() {
        Ok((note, at_s)) => {
            let size = check_note(walk, &note, Part::Witness, &name)?;
            check_not_cut(walk, size, Part::Witness, &format!("the witness {}", cosigner.name()));
            Some(Cosignature { name: cosigner.name().to_owned(), size, at_s })
        }
        Err(why) => {
            let what = format!("{name} ({}) is not a valid checkpoint: {why}", copy.path.display());
            walk.findings.add(Divergence::new(Kind::Changed, Part::Witness, what));
            None
        }
    }
}

/// Checks a note's signers and origin against the walked records; returns its size if it is of this ledger.
pub(super) fn check_note(walk: &mut Walk, note: &str, part: Part, name: &str) -> Option<u64> {
    let mut say = |what: &str| {
        walk.findings.add(Divergence::new(Kind::Changed, part, format!("{name} {what}")));
    };
    let Some(checkpoint) = parse_checkpoint(note) else {
        say("cannot be read");
        return None;
    };
    if walk.checkpoints.origin.as_deref().is_some_and(|origin| origin != checkpoint.origin()) {
        say(&format!("is of another ledger, {}", checkpoint.origin()));
        return None;
    }
    let known_keys = walk.options.ledger_keys.iter().chain(&walk.options.trusted_keys);
    let known_keys = known_keys.filter_map(|key| Verifier::new(checkpoint.origin(), *key).ok());
    let known: Vec<Verifier> = walk.checkpoints.signers.iter().cloned().chain(known_keys).collect();
    if !Note::parse(note.as_bytes()).is_ok_and(|note| note.verify(&known).is_ok()) {
        say("is signed by no key that is known here");
    }
    Some(checkpoint.tree().size)
}

/// Reports that the ledger has fewer records than the witness has seen.
pub(super) fn check_not_cut(walk: &mut Walk, size: u64, part: Part, name: &str) {
    let last_seq = walk.seq();
    if size > last_seq {
        let mut what = format!("{name} has seen {size} records, and there are {last_seq}");
        if walk.options.is_on_server {
            what.push_str(
                "; a copy of the server that took over (failover), or a backup, may have lacked the rest",
            );
        }
        walk.findings.add(Divergence::new(Kind::Cut, part, what).at_seq(last_seq + 1).up_to_seq(size));
    }
}
