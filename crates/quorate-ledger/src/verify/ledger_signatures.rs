//! The ledger's own stream (D11): the ledger's key signs each of its records on writing, a checkpoint by its note and the
//! others like records of a run. A record that an older version left unsigned looks like one that lost its signature, so
//! both are reported until a person has it signed.

use super::divergence::{Divergence, Findings, Kind, Part};
use super::jobs::{Job, Jobs};
use super::read::StoredRecord;
use crate::checkpoint::STREAM;
use crate::merkle::Hash;
use crate::note::Verifier;
use crate::signing::{KeyId, PublicKey, Signature};

/// The state of the stream's signatures.
#[derive(Default)]
pub(super) struct LedgerSignatures {
    /// The first signed record that is not a checkpoint.
    signed_from: Option<u64>,
    /// Those before it that are not: number and place.
    unsigned: Vec<(u64, u64)>,
    /// Signatures before the first checkpoint that says which key is the ledger's.
    pending: Vec<PendingSignature>,
}

struct PendingSignature {
    id: KeyId,
    signature: Signature,
    leaf: Hash,
    n: u64,
    seq: u64,
}

impl LedgerSignatures {
    /// Takes record `n`, which is no checkpoint. `keys` are those that may sign here; none before the first signed
    /// checkpoint.
    pub(super) fn add_record(
        &mut self,
        stored: &StoredRecord,
        (n, place, leaf): (u64, u64, Hash),
        keys: &[PublicKey],
        jobs: &mut Jobs,
        findings: &mut Findings,
    ) {
        let mut say = |kind, what: String| {
            findings.add(Divergence::new(kind, Part::Signature, what).at_record(STREAM, n).at_seq(place));
        };
        if stored.signatures.is_empty() {
            match self.signed_from {
                Some(first) => {
                    say(Kind::Removed, format!("{STREAM}/{first} is signed, and this later record is not"));
                }
                None => self.unsigned.push((n, place)),
            }
            return;
        }
        self.signed_from.get_or_insert(n);
        for (key, signature) in &stored.signatures {
            let read = KeyId::from_text(key).map_err(|error| error.to_string());
            let read = read
                .and_then(|id| Ok((id, Signature::from_text(signature).map_err(|error| error.to_string())?)));
            match read {
                Err(what) => say(Kind::Changed, format!("`{key}` signed it: {what}")),
                Ok((id, signature)) => {
                    let pending = PendingSignature { id, signature, leaf, n, seq: place };
                    match keys.is_empty() {
                        true => self.pending.push(pending),
                        false => {
                            pending.enqueue(keys, jobs).unwrap_or_else(|what| say(Kind::Changed, what));
                        }
                    }
                }
            }
        }
    }

    /// The first signed checkpoint says which keys are the ledger's.
    pub(super) fn enqueue_pending(&mut self, keys: &[PublicKey], jobs: &mut Jobs, findings: &mut Findings) {
        for waiting in std::mem::take(&mut self.pending) {
            let (n, place) = (waiting.n, waiting.seq);
            if let Err(what) = waiting.enqueue(keys, jobs) {
                let divergence = Divergence::new(Kind::Changed, Part::Signature, what);
                findings.add(divergence.at_record(STREAM, n).at_seq(place));
            }
        }
    }

    /// After the last record. `signed_size` is how many records the last signed checkpoint is over; `known` are the
    /// ledger's keys as the verifier knows them. Returns the number of records without a signature of their own or under a
    /// checkpoint, where no key is known that should have.
    pub(super) fn finish(
        &mut self,
        signed_size: u64,
        known: &[PublicKey],
        jobs: &mut Jobs,
        findings: &mut Findings,
    ) -> u64 {
        if signed_size == 0 && known.is_empty() {
            return (self.unsigned.len() + self.pending.len()) as u64;
        }
        self.enqueue_pending(known, jobs, findings);
        for (n, place) in std::mem::take(&mut self.unsigned) {
            let (kind, what) = match place > signed_size {
                true => (Kind::Inserted, "it is not signed, and no signed checkpoint is over it"),
                false => (
                    Kind::Removed,
                    "it is not signed, and the ledger has a key; of an older version's record, look at it and sign it \
                     with `quorate ledger checkpoint --accept-unsigned`",
                ),
            };
            let divergence = Divergence::new(kind, Part::Signature, what);
            findings.add(divergence.at_record(STREAM, n).at_seq(place));
        }
        0
    }
}

impl PendingSignature {
    fn enqueue(self, keys: &[PublicKey], jobs: &mut Jobs) -> Result<(), String> {
        let PendingSignature { id, signature, leaf, n, seq: place } = self;
        let key = keys.iter().find(|key| key.id() == id);
        let key = key.ok_or_else(|| format!("the key {id} signed it, which is not the ledger's"))?;
        jobs.add(Job::Record { key: Box::new(*key), leaf, signature, run: STREAM.into(), n, place });
        Ok(())
    }
}

/// The keys of verifiers.
pub(super) fn public_keys(verifiers: &[Verifier]) -> impl Iterator<Item = PublicKey> + '_ {
    verifiers.iter().map(|verifier| *verifier.key())
}
