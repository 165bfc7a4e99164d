//! Verifies signatures, which are most of the work, on all cores.

use std::num::NonZeroUsize;
use std::time::Duration;

use tokio::time::Instant;

use super::divergence::{Divergence, Findings, Kind, Part};
use crate::checkpoint::STREAM;
use crate::merkle::Hash;
use crate::note::{Note, Verifier};
use crate::signing::{Context, PublicKey, Signature};

/// How many wait until they are verified together.
const BATCH: usize = 4096;
/// How few are verified by one core alone: starting threads costs more.
const MAX_ON_ONE_CORE: usize = 16;

/// A signature to verify.
pub(super) enum Job {
    Record {
        key: Box<PublicKey>,
        leaf: Hash,
        signature: Signature,
        run: Box<str>,
        n: u64,
        place: u64,
    },
    /// Over a checkpoint, by all of these keys.
    Note {
        note: Note,
        keys: Vec<Verifier>,
        n: u64,
        place: u64,
    },
}

/// Signatures that wait, how many of them are of records, and how long verifying took.
#[derive(Default)]
pub(super) struct Jobs {
    pending: Vec<Job>,
    pub(super) records: u64,
    pub(super) duration: Duration,
}

impl Jobs {
    pub(super) fn add(&mut self, job: Job) {
        if matches!(job, Job::Record { .. }) {
            self.records += 1;
        }
        self.pending.push(job);
    }

    /// Verifies the pending signatures if there are many.
    pub(super) fn run_if_full(&mut self, findings: &mut Findings) {
        if self.pending.len() >= BATCH {
            self.run(findings);
        }
    }

    pub(super) fn run(&mut self, findings: &mut Findings) {
        let began = Instant::now();
        let jobs = std::mem::take(&mut self.pending);
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share =
            if jobs.len() <= MAX_ON_ONE_CORE { jobs.len() } else { jobs.len().div_ceil(cores) }.max(1);
        let failures: Vec<Divergence> = std::thread::scope(|scope| {
            let mut shares = jobs.chunks(share);
            let first = shares.next().unwrap_or_default();
            let others: Vec<_> = shares.map(|jobs| (jobs, scope.spawn(move || verify(jobs)))).collect();
            let mut failures = verify(first);
            for (jobs, other) in others {
                failures.extend(other.join().unwrap_or_else(|_| jobs.iter().map(Job::wrong).collect()));
            }
            failures
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
        match self {
            Job::Record { key, leaf, signature, .. } => key.verify(Context::RECORD, leaf, signature).is_ok(),
            Job::Note { note, keys, .. } => note.verify(keys).is_ok_and(|by| by.len() == keys.len()),
        }
    }

    fn wrong(&self) -> Divergence {
        match self {
            Job::Record { key, run, n, place, .. } => {
                let what = format!("it is not the signature of the key {} over this record", key.id());
                Divergence::new(Kind::Changed, Part::Signature, what).at_record(run, *n).at_seq(*place)
            }
            Job::Note { n, place, .. } => {
                let what = "its signature is not that of the keys that it names";
                Divergence::new(Kind::Changed, Part::Checkpoint, what).at_record(STREAM, *n).at_seq(*place)
            }
        }
    }
}
