//! Waits until tasks have ended.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_kernel::entropy;
use quorate_ledger::store::tasks::TaskState;
use quorate_protocol::Name;

use super::lines;
use crate::service::error::ServiceError;
use crate::service::load_report;
use crate::service::session::LedgerSession;
use crate::service::sweep::{Outcome, SweepObserver, SweepReport};

/// The poll interval in milliseconds, before a random change of up to a quarter.
const POLL_MS: u64 = 1_000;

/// About a second, at random, so that processes that start together do not poll together.
pub(super) fn poll_interval() -> Duration {
    let [random] = entropy::bytes::<1>();
    Duration::from_millis(POLL_MS * 3 / 4 + POLL_MS / 2 * u64::from(random) / 255)
}

/// Waits about a second.
pub(super) async fn pause() {
    tokio::time::sleep(poll_interval()).await;
}

/// The tasks that a caller waits for.
pub struct Waiting {
    open: Vec<Name>,
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTask {
    pub run: Name,
    pub state: TaskState,
    /// The error of a dead task.
    pub error: Option<String>,
}

impl Waiting {
    pub fn for_runs(runs: impl IntoIterator<Item = Name>) -> Waiting {
        let mut open: Vec<Name> = runs.into_iter().collect();
        open.sort();
        open.dedup();
        Waiting { open }
    }

    /// Waits until some of the tasks have ended, and returns these. Returns an empty list once all have ended.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn next(&mut self, session: &LedgerSession) -> Result<Vec<EndedTask>, ServiceError> {
        while !self.open.is_empty() {
            let mut states = session.store.task_states(&self.open).await?;
            let mut ended = Vec::new();
            self.open.retain(|run| match states.remove(run) {
                Some((state, _)) if !state.is_final() => true,
                found => {
                    let (state, error) = found.unwrap_or((TaskState::Cancelled, None));
                    ended.push(EndedTask { run: run.clone(), state, error });
                    false
                }
            });
            if !ended.is_empty() {
                return Ok(ended);
            }
            pause().await;
        }
        Ok(Vec::new())
    }
}

/// Waits until all tasks of a sweep have ended, and sets the outcomes of its files.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub async fn for_sweep(
    session: &LedgerSession,
    report: &mut SweepReport,
    observer: &dyn SweepObserver,
) -> Result<(), ServiceError> {
    let mut files: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (at, file) in report.files.iter().enumerate() {
        if let Outcome::Queued { run, .. } = &file.outcome {
            files.entry(run.as_str().into()).or_default().push(at);
        }
    }
    observer.planned(files.len());
    let mut waiting = Waiting::for_runs(files.keys().cloned());
    loop {
        let ended = waiting.next(session).await?;
        if ended.is_empty() {
            return lines::write(session).await;
        }
        for task in ended {
            let outcome = outcome_of(session, &task).await?;
            for at in files.get(&task.run).into_iter().flatten() {
                report.files[*at].outcome = outcome.clone();
                observer.ended(&report.files[*at]);
            }
        }
    }
}

async fn outcome_of(session: &LedgerSession, task: &EndedTask) -> Result<Outcome, ServiceError> {
    let run = &task.run;
    Ok(match task.state {
        TaskState::Done => {
            let read = load_report::load(session, run).await?;
            match read.verdict {
                Some(verdict) => Outcome::Judged { run: run.to_string(), verdict, fix: read.first_fix() },
                None => Outcome::Failed { why: format!("run {run} has no verdict") },
            }
        }
        TaskState::Cancelled => Outcome::Failed { why: "the task was cancelled".to_owned() },
        _ => {
            let why = task.error.clone().unwrap_or_else(|| format!("the task of run {run} is dead"));
            Outcome::Failed { why }
        }
    })
}
