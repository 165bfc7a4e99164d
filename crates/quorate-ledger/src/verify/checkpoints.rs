//! Checks checkpoints during the walk: their content, their signatures, and that the preceding checkpoint introduced
//! each new key. Also compares the checkpoints that are kept outside of the ledger: by a witness, in local copies, and
//! by an HTTP witness.

use std::collections::BTreeMap;

use quorate_kernel::record::{self, RolledBack};
use quorate_protocol::Json;
use serde_json::Map;

use super::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};
use super::key_changes::{KeyChanges, public_keys};
use super::signatures::{Job, Jobs};
use super::walk::Walk;
use super::{VerifyOptions, parse_checkpoint};
use crate::local_checkpoints::{CheckpointCopy, LocalCheckpoints};
use crate::merkle::{Hash, TreeHead};
use crate::note::{Checkpoint, Cosigner, Note, Verifier};
use crate::signing::PublicKey;
use crate::store::{CheckpointRecord, STREAM, Succession};
use crate::witness::Witness;

/// The checkpoints so far.
#[derive(Default)]
pub(super) struct Checkpoints {
    pub(super) count: u64,
    pub(super) unsigned: u64,
    pub(super) origin: Option<String>,
    /// The sizes of the last checkpoint and of the last signed one.
    pub(super) size: u64,
    pub(super) signed_size: u64,
    /// The last signed one: its number in the stream, and its position.
    last_signed: Option<(u64, u64)>,
    /// The signers of the last signed one.
    current: Vec<Verifier>,
    /// The number of the checkpoint that the walk starts after. Its own record is the first one of the walk.
    start: Option<u64>,
    /// All signers of checkpoints.
    pub(super) signers: Vec<Verifier>,
    /// Keys that the verifier trusts.
    trusted_keys: Vec<PublicKey>,
    /// Keys that followed without a voucher.
    pub(super) key_changes: KeyChanges,
    /// The expected rows of the table of checkpoints, by size: root and number.
    pub(super) rows: BTreeMap<u64, (Hash, u64)>,
    /// The time of the last signed one, in milliseconds since the Unix epoch.
    pub(super) signed_ms: Option<i64>,
}

impl Checkpoints {
    /// The state of the checkpoints before the start of the walk.
    pub(super) fn starting_after(sealed: &CheckpointRecord) -> Self {
        let current: Vec<Verifier> =
            sealed.keys.iter().filter_map(|key| Verifier::from_text(key).ok()).collect();
        Checkpoints {
            origin: Some(sealed.origin.clone()),
            size: sealed.tree.size,
            signed_size: if current.is_empty() { 0 } else { sealed.tree.size },
            start: Some(sealed.n),
            signers: current.clone(),
            current,
            ..Checkpoints::default()
        }
    }

    /// Adds the keys that the verifier trusts.
    pub(super) fn with_options(self, options: &VerifyOptions) -> Self {
        Checkpoints {
            trusted_keys: options.trusted_keys.clone(),
            key_changes: KeyChanges::new(options),
            ..self
        }
    }

    /// Checks the body of checkpoint `n`, with its time and position. Returns its size and root.
    pub(super) fn add(
        &mut self,
        (n, at_ms, place): (u64, i64, u64),
        data: &Map<String, Json>,
        jobs: &mut Jobs,
        findings: &mut Findings,
    ) -> Option<TreeHead> {
        self.count += 1;
        let mut say = |what: String| {
            findings.add(
                Divergence::new(DivergenceKind::Changed, LedgerPart::Checkpoint, what)
                    .at_record(STREAM, n)
                    .at_seq(place),
            );
        };
        let Some(sealed) = CheckpointRecord::from_data(n, data) else {
            say("it lacks origin, size, root or keys".to_owned());
            return None;
        };
        let TreeHead { size, root } = sealed.tree;
        if size + 1 != place {
            say(format!("it covers {size} records, but is at position {place}"));
        }
        self.rows.insert(size, (root, n));
        self.size = self.size.max(size);
        match &self.origin {
            Some(origin) if *origin != sealed.origin => {
                say(format!(
                    "it is of the ledger {}, but earlier checkpoints are of {origin}",
                    sealed.origin
                ));
            }
            Some(_) => {}
            None => self.origin = Some(sealed.origin.clone()),
        }
        match &sealed.note {
            None if sealed.succession != Succession::default() => {
                say("it is unsigned, but names keys that follow others".to_owned());
            }
            None if sealed.keys.is_empty() => self.unsigned += 1,
            None => say("it names keys, but has no signature".to_owned()),
            Some(note) => match self.check_signed(&sealed, note, place, jobs) {
                Ok(()) => self.signed_ms = Some(at_ms),
                Err(what) => say(what),
            },
        }
        Some(sealed.tree)
    }

    /// Checks the signature and the keys of a checkpoint.
    pub(super) fn check_signed(
        &mut self,
        sealed: &CheckpointRecord,
        note: &str,
        place: u64,
        jobs: &mut Jobs,
    ) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let keys = sealed.keys.iter().map(|key| Verifier::from_text(key));
        let keys = keys.collect::<Result<Vec<_>, _>>().map_err(|error| text(&error))?;
        let note = Note::parse(note.as_bytes()).map_err(|error| text(&error))?;
        let checkpoint = Checkpoint::parse(note.text()).map_err(|error| text(&error))?;
        let same = checkpoint.origin() == sealed.origin
            && *checkpoint.tree() == sealed.tree
            && checkpoint.extensions().is_empty();
        if !same {
            return Err("its note does not match its record".to_owned());
        }
        if note.signatures().len() != keys.len() {
            return Err("its note is not signed by the keys that its record names".to_owned());
        }
        let before = public_keys(&self.current).collect();
        let counting = match self.start == Some(sealed.n) {
            true => before,
            false => sealed.succession.keys_after(before)?,
        };
        // If the old key was lost, the verifier must know the new one.
        let counts = |key: &Verifier| counting.contains(key.key()) || self.trusted_keys.contains(key.key());
        if !self.current.is_empty() && !keys.iter().any(counts) {
            self.key_changes.add((sealed.n, place), public_keys(&keys).collect())?;
        }
        self.key_changes.add_statements((sealed.n, place), &sealed.succession);
        for key in &keys {
            if !self.signers.contains(key) {
                self.signers.push(key.clone());
            }
        }
        jobs.add(Job::Note { note, keys: keys.clone(), n: sealed.n, place });
        self.current = keys;
        self.signed_size = sealed.tree.size;
        self.last_signed = Some((sealed.n, place));
        Ok(())
    }

    /// The ledger's current keys: the signers of the last checkpoint, and those that the verifier trusts. Empty before
    /// the first signed checkpoint.
    pub(super) fn keys(&self) -> Vec<PublicKey> {
        if self.current.is_empty() {
            return Vec::new();
        }
        public_keys(&self.current).chain(self.trusted_keys.iter().copied()).collect()
    }

    /// Whether one of these keys signed the last signed checkpoint; `None` without one.
    pub(super) fn last_is_signed_by_any(&self, keys: &[PublicKey]) -> Option<bool> {
        let any = |verifier: &Verifier| keys.iter().any(|key| key == verifier.key());
        (!self.current.is_empty()).then(|| self.current.iter().any(any))
    }

    /// Whether this key signed a checkpoint. If so, continuity of keys extends its authority to later checkpoints, and
    /// the tree to earlier ones.
    pub(super) fn is_any_signed_by(&self, key: &PublicKey) -> bool {
        self.signers.iter().any(|signer| signer.key() == key)
    }

    /// Makes a divergence about the last signed checkpoint.
    pub(super) fn about_last(&self, kind: DivergenceKind, what: String) -> Divergence {
        let divergence = Divergence::new(kind, LedgerPart::Checkpoint, what);
        match self.last_signed {
            Some((n, place)) => divergence.at_record(STREAM, n).at_seq(place),
            None => divergence,
        }
    }
}

/// Compares the copies with the walked records.
pub(super) fn check_local_checkpoints(walk: &mut Walk, kept: &LocalCheckpoints) -> WitnessCheck {
    let mut check = WitnessCheck::default();
    // The saved checkpoints of a former ledger do not apply to another ledger's records.
    let replaced =
        kept.replaced_origin.as_ref().filter(|replaced| walk.checkpoints.origin.as_ref() != Some(replaced));
    let is_another = replaced.is_some() && walk.checkpoints.origin.is_none();
    for copy in kept.copies.iter().filter(|_| !is_another) {
        let name = format!("the copy {}", copy.path.display());
        match &copy.note {
            Ok(note) => {
                let Some(size) = check_note(walk, note, LedgerPart::LocalCheckpoint, &name) else { continue };
                check.checkpoints += 1;
                check.size = check.size.max(size);
                check_not_cut(walk, size, LedgerPart::LocalCheckpoint, &name);
            }
            Err(why) => {
                check.fragments += 1;
                let what = format!("{name} is not a checkpoint that the ledger's key signed: {why}");
                walk.findings.add(Divergence::new(
                    DivergenceKind::Changed,
                    LedgerPart::LocalCheckpoint,
                    what,
                ));
            }
        }
    }
    if let Some(origin) = replaced {
        let what = format!("another ledger has replaced {origin}, whose checkpoint is saved here");
        walk.findings.add(Divergence::new(DivergenceKind::Changed, LedgerPart::LocalCheckpoint, what));
    }
    if walk.options.strict && kept.copies.is_empty() {
        let what = "this machine has no saved checkpoint of this ledger, which --strict requires";
        walk.findings.add(Divergence::new(DivergenceKind::Removed, LedgerPart::LocalCheckpoint, what));
    }
    check
}

/// The result for a witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WitnessCheck {
    /// The number of checkpoints of this ledger that it has.
    pub checkpoints: u64,
    /// The size of the largest one.
    pub size: u64,
    /// The number of parts that are not signed notes, such as an incomplete one.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosignature {
    pub name: String,
    /// The number of records that it covers.
    pub size: u64,
    /// The time of the signature, in seconds since the Unix epoch, by the witness's clock.
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
        let parsed = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
        let (_, at_s) = cosigner.find_signature(&parsed).map_err(|error| error.to_string())?;
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
            walk.findings.add(Divergence::new(DivergenceKind::Changed, LedgerPart::Witness, what));
            None
        }
    }
}

/// Checks a note's signers and origin against the walked records. Returns its size if it is of this ledger.
pub(super) fn check_note(walk: &mut Walk, note: &str, part: LedgerPart, name: &str) -> Option<u64> {
    let mut say = |what: &str| {
        walk.findings.add(Divergence::new(DivergenceKind::Changed, part, format!("{name} {what}")));
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
        say("is not signed by any known key");
    }
    Some(checkpoint.tree().size)
}

/// Reports that the ledger has fewer records than the witness has seen.
pub(super) fn check_not_cut(walk: &mut Walk, size: u64, part: LedgerPart, name: &str) {
    let last_seq = walk.seq();
    if size > last_seq {
        let mut what = format!("{name} has seen {size} records, but there are only {last_seq}");
        if walk.options.is_on_server {
            what.push_str(
                "; a copy of the server that took over (failover), or a backup, may have lacked the rest",
            );
        }
        walk.findings
            .add(Divergence::new(DivergenceKind::Cut, part, what).at_seq(last_seq + 1).up_to_seq(size));
    }
}

/// A rollback that a person accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    /// The number of its record in the ledger's stream.
    pub n: u64,
    pub by: String,
    pub reason: String,
}

impl Rollback {
    /// Parses the body of a rollback's record.
    pub(super) fn from_data(n: u64, data: &Map<String, Json>) -> Self {
        let RolledBack { by, reason, .. } = record::read(data).unwrap_or_default();
        Rollback { n, by, reason }
    }
}
