//! The signatures of records (D3): all records of a run are signed or none, by keys that its keyring has.

use quorate_kernel::clock::rfc3339;

use super::Options;
use super::finding::{Divergence, Findings, Kind, Part};
use super::jobs::{Job, Jobs};
use super::runs::State;
use super::walk::Walk;
use crate::merkle::Hash;
use crate::signing::{KeyId, PublicKey, Signature, Uncounted};

/// The record that signatures are over.
pub(super) struct Record<'a> {
    pub(super) run: &'a str,
    pub(super) n: u64,
    pub(super) at_ms: i64,
    pub(super) leaf: Hash,
    pub(super) place: u64,
}

/// Holds the signatures of a record against what its run asks for, and has them verified.
pub(super) fn check(
    state: &mut State,
    record: &Record<'_>,
    signatures: &[(String, String)],
    options: &Options,
    jobs: &mut Jobs,
    findings: &mut Findings,
) {
    let Record { run, n, place, .. } = *record;
    let mut say = |kind, what: String| {
        findings.add(Divergence::of(kind, Part::Signature, what).at(run, n).place(place));
    };
    let audit = state.audit.clone();
    let audit = audit.as_deref();
    let signer = audit.and_then(|audit| audit.signer.as_deref());
    if signatures.is_empty() {
        if n == 0 && audit.is_some_and(|audit| audit.required) {
            say(Kind::Removed, "signatures are required in this run, and its first record has none".into());
        } else if n == 0
            && let Some(signer) = signer
        {
            say(
                Kind::Removed,
                format!("the key {signer} signed this run, and its first record has no signature"),
            );
        } else if state.signed {
            say(Kind::Removed, "the run's records are signed, and this one is not".into());
        }
        return;
    }
    if !state.signed {
        say(Kind::Inserted, "the run began without signatures, and this record has one".into());
    }
    if n == 0
        && let Some(signer) = signer
        && !signatures.iter().any(|(key, _)| key == signer)
    {
        say(Kind::Changed, format!("the key {signer} is to have signed it, and another did"));
    }
    for (key, signature) in signatures {
        match known(state, key, record, options) {
            Err(what) => say(Kind::Changed, what),
            Ok(key) => match Signature::from_text(signature) {
                Err(error) => say(Kind::Changed, error.to_string()),
                Ok(signature) => {
                    let (leaf, run) = (record.leaf, run.into());
                    jobs.add(Job::Record { key: Box::new(key), leaf, signature, run, n, place });
                }
            },
        }
    }
}

/// The key of a signature, where it may sign for the run at that time.
fn known(state: &mut State, key: &str, record: &Record<'_>, options: &Options) -> Result<PublicKey, String> {
    let id = KeyId::from_text(key).map_err(|error| format!("`{key}` signed it: {error}"))?;
    let audit = state.audit.as_deref();
    let of_run = audit.and_then(|audit| audit.keys.get(&id)).copied();
    if audit.is_some() && of_run.is_none() {
        return Err(format!("the key {id} signed it, which is not in the run's keyring"));
    }
    // What the workspace says of a key's times holds for every run.
    match (options.keyring.as_ref().map(|keyring| keyring.may_sign(id, record.at_ms)), of_run) {
        (Some(Ok(key)), _) => Ok(key.public),
        (Some(Err(Uncounted::Unknown { .. })) | None, Some(key)) => {
            // Whether the run may bring its own keys is known when the whole ledger is.
            state.outsider.get_or_insert((id, record.n, record.place));
            Ok(key)
        }
        (Some(Err(Uncounted::Unknown { .. })) | None, None) => {
            let known = options.signers.iter().find(|key| key.id() == id).copied();
            known.ok_or_else(|| format!("the key {id} signed it, and no keyring here has it"))
        }
        (Some(Err(Uncounted::Revoked { id, revoked_at_ms })), _) => {
            Err(format!("the key {id} is revoked from {} on", rfc3339(revoked_at_ms)))
        }
        (Some(Err(error)), _) => Err(error.to_string()),
    }
}

/// Runs that only their own first record vouches for: governance has bound other keys than the workspace's, or they come
/// from elsewhere. What is neither was signed by a stranger, where the workspace has a keyring.
pub(super) fn outsiders(walk: &mut Walk) -> u64 {
    let mut vouched = 0;
    for (run, state) in &walk.runs {
        let Some((id, n, place)) = state.outsider else { continue };
        let governed = state.audit.as_ref().is_some_and(|audit| audit.governed);
        if walk.options.keyring.is_none() || governed || walk.said.imported.contains(&**run) {
            vouched += 1;
            continue;
        }
        let what = format!("the key {id} signed it, which is not in the workspace's keyring");
        walk.findings.add(Divergence::of(Kind::Changed, Part::Signature, what).at(run, n).place(place));
    }
    vouched
}
