//! Compares the walked records with the checkpoints that are kept outside of the ledger: by a witness, in local copies,
//! and by an HTTP witness.

use schemars::JsonSchema;
use serde::Serialize;

use super::divergence::{Divergence, LedgerPart};
use super::walk::Walk;
use crate::local_checkpoints::{CheckpointCopy, LocalCheckpoints};
use crate::note::{Checkpoint, Cosigner, Note, Verifier};
use crate::witness::Witness;

/// Compares the copies with the walked records.
pub(super) fn check_local_checkpoints(walk: &mut Walk, kept: &LocalCheckpoints) -> KeptCheckpoints {
    let mut check = KeptCheckpoints::default();
    // The saved checkpoints of a former ledger do not apply to another ledger's records.
    let replaced =
        kept.replaced_origin.as_ref().filter(|replaced| walk.checkpoints.origin.as_ref() != Some(replaced));
    let is_another = replaced.is_some() && walk.checkpoints.origin.is_none();
    for copy in kept.copies.iter().filter(|_| !is_another) {
        let name = format!("the copy {}", copy.path.display());
        match &copy.note {
            Ok(note) => {
                let Some(size) = check_note(walk, note, LedgerPart::LocalCheckpoint, &name) else { continue };
                check.copies += 1;
                check.size = check.size.max(size);
                check_not_cut(walk, size, LedgerPart::LocalCheckpoint, &name);
            }
            Err(why) => {
                check.unreadable += 1;
                let what = format!("{name} is not a checkpoint that the ledger's key signed: {why}");
                walk.findings.add(Divergence::changed(LedgerPart::LocalCheckpoint, what));
            }
        }
    }
    if let Some(origin) = replaced {
        let what = format!("another ledger has replaced {origin}, whose checkpoint is saved here");
        walk.findings.add(Divergence::changed(LedgerPart::LocalCheckpoint, what));
    }
    if walk.options.strict && kept.copies.is_empty() {
        let what = "this machine has no saved checkpoint of this ledger, which --strict requires";
        walk.findings.add(Divergence::removed(LedgerPart::LocalCheckpoint, what));
    }
    check
}

/// The result for the local copies of the last signed checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct KeptCheckpoints {
    /// The number of copies.
    pub copies: u64,
    /// The number of records that the largest one covers.
    pub size: u64,
    /// The number of copies that are not checkpoints that the ledger's key signed.
    pub unreadable: u64,
}

/// The result for a witness.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct WitnessCheck {
    /// Its file as shown to the user.
    pub file: Option<String>,
    /// The number of checkpoints of this ledger that it has.
    pub checkpoints: u64,
    /// The size of the largest one.
    pub size: u64,
    /// The number of parts that are not signed notes, such as an incomplete one.
    #[serde(rename = "torn")]
    pub fragments: u64,
}

/// Compares a witness with the walked records.
pub(super) fn check_witness(walk: &mut Walk, witness: &Witness, name: &str) -> WitnessCheck {
    let mut witnessed = WitnessCheck { fragments: witness.fragments.len() as u64, ..WitnessCheck::default() };
    for (note, at) in witness.notes.iter().zip(1_u64..) {
        let Some(size) = check_note(walk, note, LedgerPart::Witness, &format!("checkpoint {at} of {name}"))
        else {
            continue;
        };
        witnessed.checkpoints += 1;
        witnessed.size = witnessed.size.max(size);
    }
    check_not_cut(walk, witnessed.size, LedgerPart::Witness, name);
    witnessed
}

/// The result for the last checkpoint that an HTTP witness signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Cosignature {
    /// The witness.
    #[serde(rename = "witness")]
    pub name: String,
    /// The number of records that it covers.
    pub size: u64,
    /// The time of the signature, in seconds since the Unix epoch, by the witness's clock.
    #[serde(rename = "at")]
    pub at_s: u64,
}

/// Compares the witness's last signed checkpoint with the walk; `None` if the copy is not a checkpoint.
pub(super) fn check_cosignature(
    walk: &mut Walk,
    cosigner: &Cosigner,
    copy: &CheckpointCopy,
) -> Option<Cosignature> {
    let name = format!("the checkpoint of the witness {}", cosigner.name());
    let read = || -> Result<(String, u64), String> {
        let note = copy.note.clone()?;
        let (_, at_s) = cosigner.find_signature(&Note::parse(note.as_bytes())?)?;
        Ok((note, at_s))
    };
    match read() {
        Ok((note, at_s)) => {
            let size = check_note(walk, &note, LedgerPart::Witness, &name)?;
            check_not_cut(walk, size, LedgerPart::Witness, &format!("the witness {}", cosigner.name()));
            Some(Cosignature { name: cosigner.name().to_owned(), size, at_s })
        }
        Err(why) => {
            let what = format!("{name} ({}) is not a valid checkpoint: {why}", copy.path.display());
            walk.findings.add(Divergence::changed(LedgerPart::Witness, what));
            None
        }
    }
}

/// Checks a note's signers and origin against the walked records. Returns its size if it is of this ledger.
fn check_note(walk: &mut Walk, note: &str, part: LedgerPart, name: &str) -> Option<u64> {
    let mut say = |what: &str| {
        walk.findings.add(Divergence::changed(part, format!("{name} {what}")));
    };
    let Ok(checkpoint) = Checkpoint::from_note(note) else {
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
        say("is not signed by any known key");
    }
    Some(checkpoint.tree().size)
}

/// Reports that the ledger has fewer records than the witness has seen.
fn check_not_cut(walk: &mut Walk, size: u64, part: LedgerPart, name: &str) {
    let last_seq = walk.seq();
    if size > last_seq {
        let mut what = format!("{name} has seen {size} records, but there are only {last_seq}");
        if walk.options.is_on_server {
            what.push_str(
                "; a copy of the server that took over (failover), or a backup, may have lacked the rest",
            );
        }
        walk.findings.add(Divergence::cut(part, what).at_seq(last_seq + 1).up_to_seq(size));
    }
}
