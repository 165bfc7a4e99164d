//! The ledger's keys: signatures in the ledger's own stream, and keys that follow without a voucher because the old
//! ones were lost. Such a key counts if a person accepted it: the ledger's own stream records who did and why, and this
//! machine stores the key outside of the ledger. The ledger's record alone proves nothing, because the very key that it
//! is about signed it.

use schemars::JsonSchema;
use serde::Serialize;

use super::VerifyOptions;
use super::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};
use super::signatures::{Job, Jobs};
use crate::checkpoint::as_record;
use crate::merkle::Hash;
use crate::note::Verifier;
use crate::signing::{KeyId, PublicKey, Signature};
use crate::store::{STREAM, Succession};

/// A person's acceptance of a key of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct AcceptedKey {
    /// The accepting checkpoint in the ledger's stream.
    #[serde(rename = "record", serialize_with = "as_record")]
    #[schemars(with = "String")]
    pub n: u64,
    /// The public key, as text.
    pub key: String,
    pub by: String,
    pub reason: String,
}

/// The result for keys that follow without a voucher.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChangeReport {
    /// Accepted keys, oldest first.
    pub accepted: Vec<AcceptedKey>,
    /// The keys in [`VerifyOptions::candidate_keys`] that a person must still accept.
    pub pending: Vec<PublicKey>,
    /// All keys that signed a checkpoint.
    pub signers: Vec<PublicKey>,
    /// Whether one of the ledger's own keys was refused.
    pub own_refused: bool,
}

/// The keys that follow without a voucher, during the walk.
#[derive(Default)]
pub(super) struct KeyChanges {
    /// The checkpoints that introduced such a key: number, position and key.
    changes: Vec<(u64, u64, PublicKey)>,
    /// Recorded acceptances, with the position of each.
    statements: Vec<(u64, AcceptedKey)>,
    own_refused: bool,
}

/// Whether a key is accepted on this machine.
fn is_accepted_here(options: &VerifyOptions, key: &PublicKey) -> bool {
    options.local_checkpoints.as_ref().is_some_and(|kept| kept.accepted_keys.contains(key))
}

impl KeyChanges {
    /// Adds the keys of a checkpoint, by number and position, that do not follow from those before it.
    ///
    /// # Errors
    /// The reason why they do not count.
    pub(super) fn add(
        &mut self,
        options: &VerifyOptions,
        (n, place): (u64, u64),
        keys: Vec<PublicKey>,
    ) -> Result<(), String> {
        let counts =
            |key: &&PublicKey| is_accepted_here(options, key) || options.candidate_keys.contains(key);
        match keys.iter().find(counts) {
            Some(key) => {
                self.changes.push((n, place, *key));
                Ok(())
            }
            None => {
                self.own_refused |= keys.iter().any(|key| options.ledger_keys.contains(key));
                let ids = keys.iter().map(|key| key.id().to_string()).collect::<Vec<_>>().join(", ");
                Err(format!(
                    "none of its keys ({ids}) signed the checkpoint before it, has a voucher by a key that did, or was accepted on this machine"
                ))
            }
        }
    }

    /// Adds the acceptances in a signed checkpoint.
    pub(super) fn add_statements(&mut self, (n, place): (u64, u64), says: &Succession) {
        for accepted in says.accepted.iter().cloned() {
            let quorate_kernel::record::AcceptedKey { key, by, reason } = accepted;
            self.statements.push((place, AcceptedKey { n, key, by, reason }));
        }
    }

    /// Ends the check after the last record. `signed_size` is the size of the last signed checkpoint; `signers` are the
    /// keys of all checkpoints.
    pub(super) fn finish(
        &mut self,
        options: &VerifyOptions,
        signed_size: u64,
        signers: Vec<PublicKey>,
        findings: &mut Findings,
    ) -> KeyChangeReport {
        // Until a signed checkpoint covers an acceptance, any user who can write to the ledger can change it.
        let (covered, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.statements).into_iter().partition(|(place, _)| *place <= signed_size);
        for (place, statement) in open {
            let text = statement.key.as_str();
            if options.candidate_keys.iter().any(|key| key.to_string() == text) {
                continue;
            }
            let what =
                "it records that a person accepted a key, but no signed checkpoint covers it".to_owned();
            findings.add(Divergence::inserted(LedgerPart::Checkpoint, what).at(STREAM, statement.n, place));
        }
        let accepted: Vec<AcceptedKey> = covered.into_iter().map(|(_, statement)| statement).collect();
        let mut pending: Vec<PublicKey> = Vec::new();
        for (n, place, key) in std::mem::take(&mut self.changes) {
            let text = key.to_string();
            let stated = accepted.iter().any(|accepted| accepted.key == text);
            if stated && is_accepted_here(options, &key) {
                continue;
            }
            if options.candidate_keys.contains(&key) {
                if !pending.contains(&key) {
                    pending.push(key);
                }
                continue;
            }
            let what = format!(
                "the key {} was accepted on this machine, but the ledger does not record by whom",
                key.id()
            );
            findings.add(Divergence::removed(LedgerPart::Checkpoint, what).at(STREAM, n, place));
        }
        KeyChangeReport { accepted, pending, signers, own_refused: self.own_refused }
    }
}

/// A record of the ledger's own stream that is not a checkpoint. Its signatures are checked after the walk, because
/// the first signed checkpoint, which introduces the ledger's key, may follow it.
pub(super) struct LedgerRecord {
    pub(super) n: u64,
    pub(super) seq: u64,
    pub(super) leaf: Hash,
    pub(super) signatures: Vec<(String, String)>,
    /// The keys that may sign it.
    pub(super) keys: Vec<PublicKey>,
}

/// Checks the signatures of the ledger's own stream. `signed_size` is the size of the last signed checkpoint; `known` are
/// the ledger's keys according to the verifier. Returns the number of records without a signature or a signed checkpoint
/// over them, as long as no key is known that should have signed them.
pub(super) fn check_ledger_signatures(
    records: Vec<LedgerRecord>,
    signed_size: u64,
    known: &[PublicKey],
    jobs: &mut Jobs,
    findings: &mut Findings,
) -> u64 {
    let has_no_key = signed_size == 0 && known.is_empty();
    let (mut unsigned, mut signed_from) = (0, None);
    for LedgerRecord { n, seq, leaf, signatures, keys } in records {
        let mut say = |kind, what: String| {
            findings.add(Divergence::new(kind, LedgerPart::Signature, what).at(STREAM, n, seq));
        };
        if signatures.is_empty() {
            let (kind, what) = match signed_from {
                Some(first) => (
                    DivergenceKind::Removed,
                    format!("{STREAM}/{first} is signed, but this later record is not"),
                ),
                None if has_no_key => {
                    unsigned += 1;
                    continue;
                }
                None if seq > signed_size => (
                    DivergenceKind::Inserted,
                    "it is unsigned, and no signed checkpoint covers it".to_owned(),
                ),
                None => (DivergenceKind::Removed, UNSIGNED.to_owned()),
            };
            say(kind, what);
            continue;
        }
        signed_from.get_or_insert(n);
        let keys = if keys.is_empty() { known } else { &keys };
        for (key, signature) in &signatures {
            let read = KeyId::from_text(key).map_err(|error| error.to_string());
            let read = read
                .and_then(|id| Ok((id, Signature::from_text(signature).map_err(|error| error.to_string())?)));
            match read {
                Err(what) => say(DivergenceKind::Changed, format!("`{key}` signed it: {what}")),
                Ok(_) if has_no_key => unsigned += 1,
                Ok((id, signature)) => match keys.iter().find(|key| key.id() == id) {
                    Some(key) => {
                        jobs.add(Job { key: *key, leaf, signature, run: STREAM.into(), n, place: seq });
                    }
                    None => {
                        let what = format!("it is signed by the key {id}, which is not the ledger's");
                        say(DivergenceKind::Changed, what);
                    }
                },
            }
        }
    }
    unsigned
}

/// The divergence of an unsigned record that a signed checkpoint covers.
const UNSIGNED: &str = "it is unsigned, although the ledger has a key; if an older version wrote it, check it and sign it \
                        with `quorate ledger checkpoint --accept-unsigned`";

/// The keys of verifiers.
pub(super) fn public_keys(verifiers: &[Verifier]) -> impl Iterator<Item = PublicKey> + '_ {
    verifiers.iter().map(|verifier| *verifier.key())
}

#[cfg(test)]
mod tests {
    use quorate_kernel::record;

    use super::*;
    use crate::local_checkpoints::LocalCheckpoints;
    use crate::signing::SecretKey;
    use crate::verify::divergence::Divergence;

    fn key(seed: u8) -> PublicKey {
        SecretKey::from_seed(&[seed; 32]).public()
    }

    /// Key changes of a verifier with these keys accepted on this machine, as candidates, and as its own.
    struct Changes(KeyChanges, VerifyOptions);

    fn changes(accepted: &[u8], candidates: &[u8], own: &[u8]) -> Changes {
        let keys = |seeds: &[u8]| seeds.iter().map(|seed| key(*seed)).collect::<Vec<_>>();
        let kept =
            LocalCheckpoints { copies: Vec::new(), replaced_origin: None, accepted_keys: keys(accepted) };
        let options = VerifyOptions {
            local_checkpoints: Some(kept),
            candidate_keys: keys(candidates),
            ledger_keys: keys(own),
            ..VerifyOptions::default()
        };
        Changes(KeyChanges::default(), options)
    }

    impl Changes {
        fn add(&mut self, at: (u64, u64), keys: Vec<PublicKey>) -> Result<(), String> {
            self.0.add(&self.1, at, keys)
        }

        fn add_statements(&mut self, at: (u64, u64), says: &Succession) {
            self.0.add_statements(at, says);
        }
    }

    fn says(seed: u8) -> Succession {
        let accepted =
            record::AcceptedKey { key: key(seed).to_string(), by: "ada".into(), reason: "lost".into() };
        Succession { accepted: vec![accepted], ..Succession::default() }
    }

    fn finish(mut changes: Changes, signed_size: u64) -> (KeyChangeReport, Vec<Divergence>) {
        let mut findings = Findings::default();
        let report = changes.0.finish(&changes.1, signed_size, vec![key(1)], &mut findings);
        (report, findings.into_parts().0)
    }

    #[test]
    fn a_key_counts_where_ledger_and_machine_both_say_so() {
        // D11
        let mut both = changes(&[2], &[], &[]);
        both.add((4, 20), vec![key(2)]).unwrap();
        both.add_statements((4, 20), &says(2));
        let (report, found) = finish(both, 20);
        let accepted = AcceptedKey { n: 4, key: key(2).to_string(), by: "ada".into(), reason: "lost".into() };
        assert_eq!(
            report,
            KeyChangeReport {
                accepted: vec![accepted],
                pending: vec![],
                signers: vec![key(1)],
                own_refused: false,
            }
        );
        assert_eq!(found, []);
        // The machine alone: the ledger does not record who accepted the key, or records that for another key.
        for of in [None, Some(3)] {
            let mut alone = changes(&[2], &[], &[]);
            alone.add((4, 20), vec![key(2)]).unwrap();
            if let Some(of) = of {
                alone.add_statements((4, 20), &says(of));
            }
            let found = finish(alone, 20).1;
            let named: Vec<_> = found.iter().map(|found| (found.kind, found.n, found.seq)).collect();
            assert_eq!(named, [(DivergenceKind::Removed, Some(4), Some(20))]);
        }
        // The ledger alone proves nothing.
        let refused = changes(&[], &[], &[]).add((4, 20), vec![key(2)]).unwrap_err();
        assert!(refused.contains(&key(2).id().to_string()), "{refused}");
    }

    #[test]
    fn a_statement_counts_under_a_signed_checkpoint() {
        let stated = |signed_size| {
            let mut changes = changes(&[2], &[], &[]);
            changes.add_statements((4, 20), &says(2));
            finish(changes, signed_size)
        };
        for covered in [20, 21] {
            let (report, found) = stated(covered);
            assert_eq!((report.accepted.len(), found), (1, vec![]));
        }
        let (report, found) = stated(19);
        let named: Vec<_> = found.iter().map(|found| (found.kind, found.n, found.seq)).collect();
        assert_eq!((report.accepted, named), (vec![], vec![(DivergenceKind::Inserted, Some(4), Some(20))]));
        // An acceptance of a candidate key is not reported yet; that of another key is.
        let mut pending = changes(&[], &[2], &[]);
        pending.add_statements((4, 20), &says(2));
        pending.add_statements((5, 22), &says(3));
        let named: Vec<_> = finish(pending, 0).1.iter().map(|found| found.n).collect();
        assert_eq!(named, [Some(5)]);
    }

    #[test]
    fn keys_that_a_person_still_has_to_accept_are_named_once() {
        let mut pending = changes(&[], &[2, 3], &[]);
        for (n, of) in [(4, 2), (5, 3), (6, 2)] {
            pending.add((n, 20 + n), vec![key(9), key(of)]).unwrap();
        }
        let (report, found) = finish(pending, 99);
        assert_eq!((report.pending, found), (vec![key(2), key(3)], vec![]));
        // A key that is accepted here, but not recorded in the ledger, must still be accepted.
        let mut known = changes(&[2], &[2], &[]);
        known.add((4, 20), vec![key(2)]).unwrap();
        assert_eq!(finish(known, 99).0.pending, [key(2)]);
    }

    #[test]
    fn a_refused_key_of_this_machine_is_reported_as_such() {
        let mut refused = changes(&[], &[], &[7]);
        refused.add((4, 20), vec![key(2)]).unwrap_err();
        assert!(!refused.0.own_refused);
        refused.add((5, 22), vec![key(2), key(7)]).unwrap_err();
        refused.add((6, 24), vec![key(2)]).unwrap_err();
        assert!(finish(refused, 99).0.own_refused);
    }
}
