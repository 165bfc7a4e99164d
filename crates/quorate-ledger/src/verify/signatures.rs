//! The signatures of records (D3): all records of a run are signed or none, by keys in its keyring. Signatures are
//! verified in batches on all cores, because they are most of the work.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::Json;
use serde_json::Map;
use tokio::time::Instant;

use super::VerifyOptions;
use super::divergence::{Divergence, DivergenceKind, Findings, LedgerPart};
use super::runs::StreamState;
use crate::merkle::Hash;
use crate::signing::run::{AllowedSigner, check_signer};
use crate::signing::{PublicKey, Signature, SigningContext};

/// The record that signatures cover.
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
    options: &VerifyOptions,
    jobs: &mut Jobs,
    findings: &mut Findings,
) {
    let Record { run, n, seq: place, .. } = *record;
    let mut say = |kind, what: String| {
        findings.add(Divergence::new(kind, LedgerPart::Signature, what).at(run, n, place));
    };
    let audit = state.keyring.clone();
    let audit = audit.as_deref();
    let signer = audit.and_then(|audit| audit.signer.as_deref());
    if signatures.is_empty() {
        if n == 0 && audit.is_some_and(|audit| audit.required) {
            say(
                DivergenceKind::Removed,
                "this run requires signatures, but its first record is unsigned".into(),
            );
        } else if n == 0
            && let Some(signer) = signer
        {
            say(
                DivergenceKind::Removed,
                format!("the key {signer} signed this run, but its first record is unsigned"),
            );
        } else if state.signed {
            say(DivergenceKind::Removed, "the run's records are signed, but this one is not".into());
        }
        return;
    }
    if !state.signed {
        say(DivergenceKind::Inserted, "the run began without signatures, but this record has one".into());
    }
    if n == 0
        && let Some(signer) = signer
        && !signatures.iter().any(|(key, _)| key == signer)
    {
        say(DivergenceKind::Changed, format!("the key {signer} must sign it, but another key did"));
    }
    for (key, signature) in signatures {
        match check_signer(audit, key, record.at_ms, record.sealed_ms, &options.outside) {
            Err(what) => say(DivergenceKind::Changed, what),
            Ok(AllowedSigner { key, is_unlisted: is_outsider, backdated }) => {
                match Signature::from_text(signature) {
                    Err(error) => say(DivergenceKind::Changed, error.to_string()),
                    Ok(signature) => {
                        if is_outsider {
                            // Whether the run may introduce its own keys is decided after the whole walk.
                            state.unlisted_signer.get_or_insert((key.id(), n, place));
                        }
                        if let (Some(what), None) = (backdated, &state.backdated) {
                            state.backdated = Some((what, n, place));
                        }
                        let (leaf, run) = (record.leaf, run.into());
                        jobs.add(Job { key, leaf, signature, run, n, place });
                    }
                }
            }
        }
    }
}

/// Adds the keys in a `keyring` record to those that may sign for its run, from this record on.
pub(super) fn extend_run_keys(
    state: &mut StreamState,
    (run, n, place): (&str, u64, u64),
    data: Option<&Map<String, Json>>,
    options: &VerifyOptions,
    findings: &mut Findings,
) {
    let mut say = |kind, what: String| {
        findings.add(Divergence::new(kind, LedgerPart::Signature, what).at(run, n, place));
    };
    match (state.keyring.as_mut().filter(|_| state.signed), data) {
        (None, _) => say(DivergenceKind::Inserted, "it adds keys to a run that has no keyring".into()),
        (Some(_), None) => say(DivergenceKind::Removed, "the keys that it adds are missing".into()),
        (Some(audit), Some(data)) => {
            if let Err(what) = Arc::make_mut(audit).extend(data, &options.outside) {
                say(DivergenceKind::Changed, what);
            }
        }
    }
}

/// The number of pending signatures that starts a verification.
const BATCH: usize = 4096;
/// The least number of signatures that a thread verifies, because starting one costs as much.
const MIN_SHARE: usize = 16;

/// A signature to verify, over a record.
pub(super) struct Job {
    pub(super) key: PublicKey,
    pub(super) leaf: Hash,
    pub(super) signature: Signature,
    pub(super) run: Box<str>,
    pub(super) n: u64,
    pub(super) place: u64,
}

/// Pending signatures, the number of all, and the duration of verifying.
#[derive(Default)]
pub(super) struct Jobs {
    pending: Vec<Job>,
    pub(super) records: u64,
    pub(super) duration: Duration,
}

impl Jobs {
    pub(super) fn add(&mut self, job: Job) {
        self.records += 1;
        self.pending.push(job);
    }

    /// Verifies the pending signatures if there are enough.
    pub(super) fn run_if_full(&mut self, findings: &mut Findings) {
        if self.pending.len() >= BATCH {
            self.run(findings);
        }
    }

    pub(super) fn run(&mut self, findings: &mut Findings) {
        let began = Instant::now();
        let jobs = std::mem::take(&mut self.pending);
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share = jobs.len().div_ceil(cores).max(MIN_SHARE);
        let failures: Vec<Divergence> = std::thread::scope(|scope| {
            let shares = jobs.chunks(share).map(|jobs| (jobs, scope.spawn(move || verify(jobs))));
            // All threads start before the first one is waited for.
            let shares: Vec<_> = shares.collect();
            let failures = shares.into_iter().flat_map(|(jobs, share)| {
                share.join().unwrap_or_else(|_| jobs.iter().map(Job::wrong).collect())
            });
            failures.collect()
        });
        failures.into_iter().for_each(|finding| findings.add(finding));
        self.duration += began.elapsed();
    }
}

fn verify(jobs: &[Job]) -> Vec<Divergence> {
    jobs.iter().filter(|job| !job.holds()).map(Job::wrong).collect()
}

impl Job {
    fn holds(&self) -> bool {
        self.key.verify(SigningContext::RECORD, &self.leaf, &self.signature).is_ok()
    }

    fn wrong(&self) -> Divergence {
        let what = format!("the key {} did not make this signature over the record", self.key.id());
        Divergence::changed(LedgerPart::Signature, what).at(&self.run, self.n, self.place)
    }
}
