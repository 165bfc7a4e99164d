//! Jobs: work that outlives the call that starts it, since clients cut calls at 60 seconds. It is started, polled and
//! cancelled; dropping its future ends its members within two seconds.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy;
use quorate_protocol::Json;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::caller::Caller;
use super::failure::Failure;
use super::progress::{Progress, Reporter};
use quorate::service::worker_thread::run_on_own_thread;

/// How many jobs are at work at once. Each may ask several members.
const MAX_RUNNING: usize = 16;
/// How many jobs that have ended are remembered; the oldest are forgotten.
const MAX_ENDED: usize = 256;

/// How long a cancellation waits until the work is dropped. It is dropped when it next waits for something.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// How a job stands.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// How far it is.
    pub(super) progress: Progress,
    /// What came of it, once it has ended.
    outcome: Option<Result<Json, Failure>>,
}

/// What a caller gets to know of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Standing {
    /// The job, for `job_poll` and `job_cancel`.
    pub(super) job: String,
    /// Whether it has ended.
    pub(super) done: bool,
    /// What came of it, once it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Json>,
    /// How far it is, as long as it is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<Progress>,
}

/// All jobs of this process.
#[derive(Default)]
pub(super) struct Jobs {
    /// By age: ids are no order.
    all: Mutex<BTreeMap<u64, Arc<Job>>>,
}

/// What a job leaves where it is ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residue {
    /// Runs in the ledger, which can be gone on with.
    Runs,
    /// Nothing that could be.
    Nothing,
}

struct Job {
    id: String,
    ending: Arc<Completion>,
    state: watch::Receiver<State>,
    task: AbortHandle,
}

impl Job {
    fn running(&self) -> bool {
        self.state.borrow().outcome.is_none()
    }

    /// Whether its work is not dropped yet: what was cancelled may still compute.
    fn is_working(&self) -> bool {
        Arc::strong_count(&self.ending) > 1
    }
}

/// Why nobody waits any more.
enum WaitOutcome {
    Ended(Result<Json, Failure>),
    NotYet(Progress),
    /// The caller has taken its request back.
    Deserted,
}

impl Jobs {
    /// Starts work and waits for it for a while. Who takes the request back before it is answered never learns the
    /// job's id, so that the job ends with it.
    pub(super) async fn start<W>(
        &self,
        wait: Duration,
        caller: &Caller,
        leaves: Residue,
        work: impl FnOnce(Arc<Reporter>) -> W,
    ) -> Result<Standing, Failure>
    where
        W: Future<Output = Result<Json, Failure>> + Send + 'static,
    {
        let job = self.spawn(leaves, work)?;
        // Also where this future is dropped.
        let deserted = AbandonGuard(Some(job.task.clone()));
        let waited = wait_for(&job, wait, caller).await;
        if !matches!(waited, WaitOutcome::Deserted) {
            deserted.disarm();
        }
        job_status(&job, waited)
    }

    /// Waits for a job for a while.
    pub(super) async fn poll(&self, id: &str, wait: Duration, caller: &Caller) -> Result<Standing, Failure> {
        let job = self.find(id)?;
        let waited = wait_for(&job, wait, caller).await;
        job_status(&job, waited)
    }

    /// Ends a job; false where it had ended by itself. Where the work computes something it is dropped after that, and
    /// nobody waits for it.
    pub(super) async fn cancel(&self, id: &str) -> Result<bool, Failure> {
        let job = self.find(id)?;
        if !job.running() {
            return Ok(false);
        }
        job.task.abort();
        let mut state = job.state.clone();
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, state.wait_for(|state| state.outcome.is_some())).await;
        job.ending.complete(Err(ended_early(CANCELLED, job.ending.leaves)));
        let outcome = job.state.borrow().outcome.clone();
        Ok(!matches!(outcome, Some(Ok(_))))
    }

    /// Ends all jobs.
    pub(super) fn abort_all(&self) {
        self.lock().values().for_each(|job| job.task.abort());
    }

    fn spawn<W>(&self, leaves: Residue, work: impl FnOnce(Arc<Reporter>) -> W) -> Result<Arc<Job>, Failure>
    where
        W: Future<Output = Result<Json, Failure>> + Send + 'static,
    {
        let mut all = self.lock();
        if all.values().filter(|job| job.is_working()).count() >= MAX_RUNNING {
            let body = Body::new(format!("{MAX_RUNNING} jobs are at work already"));
            let help = "wait until one has ended (`job_poll`), or cancel one (`job_cancel`)";
            return Err(Failure::new(codes::JOBS_BUSY, body.help(help)));
        }
        while all.len() >= MAX_ENDED {
            let Some(oldest) = all.iter().find(|(_, job)| !job.is_working()).map(|(at, _)| *at) else {
                break;
            };
            all.remove(&oldest);
        }
        let (sender, state) = watch::channel(State::default());
        let ending = Arc::new(Completion { state: sender.clone(), leaves });
        let ends = CompletionGuard(ending.clone());
        let work = work(Arc::new(Reporter::new(sender)));
        let task = tokio::spawn(run_on_own_thread(async move {
            let outcome = work.await;
            ends.0.complete(outcome);
        }));
        let id = format!("j{}", &entropy::run_id()[1..]);
        let job = Arc::new(Job { id, ending, state, task: task.abort_handle() });
        let at = all.keys().next_back().map_or(0, |last| last + 1);
        all.insert(at, job.clone());
        Ok(job)
    }

    fn find(&self, id: &str) -> Result<Arc<Job>, Failure> {
        self.lock().values().find(|job| job.id == id).cloned().ok_or_else(|| {
            let body = Body::new(format!("there is no job `{id}`"));
            let help = format!(
                "jobs are forgotten when the server ends, and once {MAX_ENDED} younger ones are kept"
            );
            Failure::new(codes::JOB_UNKNOWN, body.help(help))
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Job>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.abort_all();
    }
}

async fn wait_for(job: &Job, wait: Duration, caller: &Caller) -> WaitOutcome {
    let mut state = job.state.clone();
    let error = Instant::now() + wait;
    let (mut told, mut listens) = (0.0, true);
    loop {
        let now = state.borrow_and_update().clone();
        if let Some(outcome) = now.outcome {
            return WaitOutcome::Ended(outcome);
        }
        if listens && now.progress.steps().0 > told {
            told = now.progress.steps().0;
            listens = caller.report_progress(&now.progress).await;
            continue;
        }
        tokio::select! {
            biased;
            // The sender lives as long as the job has not ended.
            changed = state.changed() => if changed.is_err() { return WaitOutcome::NotYet(now.progress) },
            () = caller.cancelled() => return WaitOutcome::Deserted,
            () = tokio::time::sleep_until(error) => return WaitOutcome::NotYet(now.progress),
        }
    }
}

fn job_status(job: &Job, waited: WaitOutcome) -> Result<Standing, Failure> {
    let standing = |result: Option<Json>, progress| Standing {
        job: job.id.clone(),
        done: result.is_some(),
        result,
        progress,
    };
    match waited {
        WaitOutcome::Ended(outcome) => Ok(standing(Some(outcome?), None)),
        WaitOutcome::NotYet(progress) => Ok(standing(None, Some(progress))),
        WaitOutcome::Deserted => Err(ended_early("the request was taken back", job.ending.leaves)),
    }
}

fn ended_early(why: &str, leaves: Residue) -> Failure {
    let body = Body::new(format!("the job ended without a result: {why}"));
    let help = match leaves {
        Residue::Runs => {
            "a run that was recorded can be gone on with: `quorate runs` lists it, `quorate resume` goes on"
        }
        Residue::Nothing => "start it again",
    };
    Failure::new(codes::JOB_ENDED, body.help(help))
}

/// Why a job has no result that was ended early.
const CANCELLED: &str = "it was cancelled";

/// Tells whoever waits of a job's end.
struct Completion {
    state: watch::Sender<State>,
    leaves: Residue,
}

impl Completion {
    fn complete(&self, outcome: Result<Json, Failure>) {
        self.state.send_modify(|state| {
            state.outcome.get_or_insert(outcome);
        });
    }
}

/// Sees to it that whoever waits learns of a job's end, however it ends. The work has it.
struct CompletionGuard(Arc<Completion>);

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        let why = if std::thread::panicking() { "a bug of Quorate stopped it" } else { CANCELLED };
        self.0.complete(Err(ended_early(why, self.0.leaves)));
    }
}

/// Ends a job that nobody will hear of, unless it is told otherwise.
struct AbandonGuard(Option<AbortHandle>);

impl AbandonGuard {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_ends_soon_is_given_at_once_and_what_does_not_is_polled() {
        let (jobs, caller) = (Jobs::default(), Caller::nobody());
        let quick = jobs
            .start(Duration::from_secs(60), &caller, Residue::Runs, |_| async { Ok(json!(1)) })
            .await
            .unwrap();
        assert_eq!((quick.done, quick.result), (true, Some(json!(1))));
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let slow = jobs.start(Duration::ZERO, &caller, Residue::Runs, |_| async move {
            gone.await.unwrap();
            Ok(json!(2))
        });
        let slow = slow.await.unwrap();
        assert!(!slow.done && slow.result.is_none() && slow.progress.is_some());
        go.send(()).unwrap();
        let polled = jobs.poll(&slow.job, Duration::from_secs(60), &caller).await.unwrap();
        assert_eq!(polled.result, Some(json!(2)));
        assert!(!jobs.cancel(&slow.job).await.unwrap());
    }

    #[tokio::test]
    async fn a_job_that_is_cancelled_is_dropped_and_stays_known() {
        let (jobs, caller) = (Jobs::default(), Caller::nobody());
        let (held, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
        let job = jobs.start(Duration::ZERO, &caller, Residue::Runs, |_| async move {
            let _held = held;
            std::future::pending().await
        });
        let job = job.await.unwrap().job;
        assert!(jobs.cancel(&job).await.unwrap());
        assert_eq!(dropped.recv().await, None);
        assert!(!jobs.cancel(&job).await.unwrap());
        assert!(jobs.poll(&job, Duration::from_secs(60), &caller).await.is_err());
        assert!(jobs.poll("j1", Duration::ZERO, &caller).await.is_err());
    }

    #[tokio::test]
    async fn a_job_that_computes_keeps_nobody_and_is_cancelled_at_once() {
        // One thread for everything.
        let (jobs, caller) = (Jobs::default(), Caller::nobody());
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let job = jobs.start(Duration::ZERO, &caller, Residue::Runs, |_| async move {
            let _ = begin.send(());
            let _ = gone.recv();
            Ok(json!(1))
        });
        let job = job.await.unwrap().job;
        begun.await.expect("it computes before it is cancelled");
        assert!(
            tokio::time::timeout(CANCEL_TIMEOUT * 4, jobs.cancel(&job))
                .await
                .expect("it is bounded")
                .unwrap()
        );
        let why = format!("{:?}", jobs.poll(&job, Duration::from_secs(60), &caller).await.unwrap_err());
        assert!(why.contains(CANCELLED), "{why}");
        // It computes still, and counts as one of those that do.
        assert!(jobs.lock().values().all(|job| job.is_working()));
        go.send(()).unwrap();
        while jobs.lock().values().any(|job| job.is_working()) {
            tokio::task::yield_now().await;
        }
        // What it came to in the end makes no difference.
        assert!(jobs.poll(&job, Duration::ZERO, &caller).await.is_err());
    }

    #[tokio::test]
    async fn only_who_leaves_runs_is_told_of_runs() {
        for (leaves, told) in [(Residue::Runs, true), (Residue::Nothing, false)] {
            let (jobs, caller) = (Jobs::default(), Caller::nobody());
            let job =
                jobs.start(Duration::ZERO, &caller, leaves, |_| std::future::pending()).await.unwrap().job;
            assert!(jobs.cancel(&job).await.unwrap());
            let why = format!("{:?}", jobs.poll(&job, Duration::ZERO, &caller).await.unwrap_err());
            assert_eq!(why.contains("quorate resume"), told, "{why}");
        }
    }

    #[tokio::test]
    async fn who_takes_the_request_back_takes_the_job_back() {
        let (jobs, caller) = (Jobs::default(), Caller::nobody());
        let (held, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
        let start = jobs.start(Duration::from_secs(60), &caller, Residue::Runs, |_| async move {
            let _held = held;
            std::future::pending().await
        });
        assert!(tokio::time::timeout(Duration::from_millis(20), start).await.is_err());
        assert_eq!(dropped.recv().await, None);
    }

    #[tokio::test]
    async fn there_is_an_end_to_how_many_work_at_once() {
        let (jobs, caller) = (Jobs::default(), Caller::nobody());
        for _ in 0..MAX_RUNNING {
            jobs.start(Duration::ZERO, &caller, Residue::Runs, |_| std::future::pending()).await.unwrap();
        }
        assert!(
            jobs.start(Duration::ZERO, &caller, Residue::Runs, |_| std::future::pending()).await.is_err()
        );
        jobs.abort_all();
        let all: Vec<String> = jobs.lock().values().map(|job| job.id.clone()).collect();
        for id in all {
            assert!(jobs.poll(&id, Duration::from_secs(60), &caller).await.is_err());
        }
        assert!(jobs.start(Duration::ZERO, &caller, Residue::Runs, |_| std::future::pending()).await.is_ok());
    }
}
