//! Keys of the ledger that no key before them vouches for, since these were lost. Such a key counts where a person accepted
//! it: the ledger's own stream says who and why, and this machine keeps the key outside of the ledger. What the ledger says
//! alone proves nothing, since it is signed by the very key that it is about.

use super::Options;
use super::divergence::{Divergence, Findings, Kind, Part};
use crate::signing::PublicKey;
use crate::store::{STREAM, Succession};

/// A person's word for a key of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedKey {
    /// The number of its checkpoint in the ledger's stream.
    pub n: u64,
    /// The public key, as text.
    pub key: String,
    pub by: String,
    pub reason: String,
}

/// The result for keys that no key before them vouches for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChangeReport {
    /// What persons accepted, the first one first.
    pub accepted: Vec<AcceptedKey>,
    /// The keys that a person still has to accept, of those that [`Options::candidate_keys`] has.
    pub pending: Vec<PublicKey>,
    /// All keys that signed a checkpoint.
    pub signers: Vec<PublicKey>,
    /// Whether one that was refused is one of the ledger's own keys.
    pub own_refused: bool,
}

/// The state of such keys.
#[derive(Default)]
pub(super) struct KeyChanges {
    /// The keys that are accepted on this machine.
    accepted_here: Vec<PublicKey>,
    candidates: Vec<PublicKey>,
    own: Vec<PublicKey>,
    /// The checkpoints where such a key followed: number, place, and the key.
    changes: Vec<(u64, u64, PublicKey)>,
    /// What persons say, and at which place.
    statements: Vec<(u64, AcceptedKey)>,
    own_refused: bool,
}

impl KeyChanges {
    pub(super) fn new(options: &Options) -> Self {
        let kept = options.local_checkpoints.as_ref();
        KeyChanges {
            accepted_here: kept.map(|kept| kept.accepted_keys.clone()).unwrap_or_default(),
            candidates: options.candidate_keys.clone(),
            own: options.ledger_keys.clone(),
            ..KeyChanges::default()
        }
    }

    /// Takes the keys of a checkpoint, by number and place, that do not follow from those before it.
    ///
    /// # Errors
    /// Why they do not count, in words.
    pub(super) fn add(&mut self, (n, place): (u64, u64), keys: Vec<PublicKey>) -> Result<(), String> {
        let counts = |key: &&PublicKey| self.accepted_here.contains(key) || self.candidates.contains(key);
        match keys.iter().find(counts) {
            Some(key) => {
                self.changes.push((n, place, *key));
                Ok(())
            }
            None => {
                self.own_refused |= keys.iter().any(|key| self.own.contains(key));
                let ids = keys.iter().map(|key| key.id().to_string()).collect::<Vec<_>>().join(", ");
                Err(format!(
                    "none of its keys ({ids}) signed the checkpoint before it, none is vouched for by a key that did, and \
                     none was accepted on this machine"
                ))
            }
        }
    }

    /// Takes what a signed checkpoint says of persons.
    pub(super) fn add_statements(&mut self, (n, place): (u64, u64), says: &Succession) {
        for accepted in says.accepted.iter().cloned() {
            let quorate_kernel::record::AcceptedKey { key, by, reason } = accepted;
            self.statements.push((place, AcceptedKey { n, key, by, reason }));
        }
    }

    /// After the last record. `signed_size` is how many records the last signed checkpoint is over; `signers` are the keys of
    /// all checkpoints.
    pub(super) fn finish(
        &mut self,
        signed_size: u64,
        signers: Vec<PublicKey>,
        findings: &mut Findings,
    ) -> KeyChangeReport {
        // Until a signed checkpoint is over it, a person who can write the ledger can change what a statement says.
        let (covered, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.statements).into_iter().partition(|(place, _)| *place <= signed_size);
        for (place, statement) in open {
            let text = statement.key.as_str();
            if self.candidates.iter().any(|key| key.to_string() == text) {
                continue;
            }
            let what = "it says that a person accepted a key, and no signed checkpoint is over it".to_owned();
            let divergence = Divergence::new(Kind::Inserted, Part::Checkpoint, what);
            findings.add(divergence.at_record(STREAM, statement.n).at_seq(place));
        }
        let accepted: Vec<AcceptedKey> = covered.into_iter().map(|(_, statement)| statement).collect();
        let mut pending: Vec<PublicKey> = Vec::new();
        for (n, place, key) in std::mem::take(&mut self.changes) {
            let text = key.to_string();
            let stated = accepted.iter().any(|accepted| accepted.key == text);
            if stated && self.accepted_here.contains(&key) {
                continue;
            }
            if self.candidates.contains(&key) {
                if !pending.contains(&key) {
                    pending.push(key);
                }
                continue;
            }
            let what = format!(
                "the key {} was accepted on this machine, and the ledger does not say by whom",
                key.id()
            );
            let divergence = Divergence::new(Kind::Removed, Part::Checkpoint, what);
            findings.add(divergence.at_record(STREAM, n).at_seq(place));
        }
        KeyChangeReport { accepted, pending, signers, own_refused: self.own_refused }
    }
}

#[cfg(test)]
mod tests;
