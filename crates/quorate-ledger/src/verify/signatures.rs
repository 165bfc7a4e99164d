//! The signatures of records (D3): all records of a run are signed or none, by keys that its keyring has.

use std::sync::Arc;

use quorate_protocol::Json;
use serde_json::Map;

use super::Options;
use super::divergence::{Divergence, Findings, Kind, Part};
use super::jobs::{Job, Jobs};
use super::runs::StreamState;
use crate::merkle::Hash;
use crate::signing::Signature;
use crate::signing::run::{AllowedSigner, check_signer};

/// The record that signatures are over.
pub(super) struct Record<'a> {
    pub(super) run: &'a str,
    pub(super) n: u64,
    pub(super) at_ms: i64,
    pub(super) leaf: Hash,
    pub(super) seq: u64,
    /// The time of the last signed checkpoint before it.
    pub(super) sealed_ms: Option<i64>,
}

/// Compares the signatures of a record with its run's requirement, and queues them for verification.
pub(super) fn check(
    state: &mut StreamState,
    record: &Record<'_>,
    signatures: &[(String, String)],
    options: &Options,
    jobs: &mut Jobs,
    findings: &mut Findings,
) {
    let Record { run, n, seq: place, .. } = *record;
    let mut say = |kind, what: String| {
        findings.add(Divergence::new(kind, Part::Signature, what).at_record(run, n).at_seq(place));
    };
    let audit = state.keyring.clone();
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
        match check_signer(audit, key, record.at_ms, record.sealed_ms, options.external_keys()) {
            Err(what) => say(Kind::Changed, what),
            Ok(AllowedSigner { key, is_unlisted: is_outsider, backdated }) => {
                match Signature::from_text(signature) {
                    Err(error) => say(Kind::Changed, error.to_string()),
                    Ok(signature) => {
                        if is_outsider {
                            // Whether the run may bring its own keys is known after the whole walk.
                            state.unlisted_signer.get_or_insert((key.id(), n, place));
                        }
                        if let (Some(what), None) = (backdated, &state.backdated) {
                            state.backdated = Some((what, n, place));
                        }
                        let (leaf, run) = (record.leaf, run.into());
                        jobs.add(Job::Record { key: Box::new(key), leaf, signature, run, n, place });
                    }
                }
            }
        }
    }
}

/// Adds the keys of a `keyring` record to those that may sign for its run, from this record on.
pub(super) fn extend_run_keys(
    state: &mut StreamState,
    (run, n, place): (&str, u64, u64),
    data: Option<&Map<String, Json>>,
    options: &Options,
    findings: &mut Findings,
) {
    let mut say = |kind, what: String| {
        findings.add(Divergence::new(kind, Part::Signature, what).at_record(run, n).at_seq(place));
    };
    match (state.keyring.as_mut().filter(|_| state.signed), data) {
        (None, _) => say(Kind::Inserted, "it adds keys to a run that has no keyring".into()),
        (Some(_), None) => say(Kind::Removed, "the keys that it adds are missing".into()),
        (Some(audit), Some(data)) => {
            if let Err(what) = Arc::make_mut(audit).extend(data, options.external_keys()) {
                say(Kind::Changed, what);
            }
        }
    }
}
