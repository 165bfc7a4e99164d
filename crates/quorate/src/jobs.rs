//! Jobs of a server: work that outlives the request that starts it, since clients time out after 60 seconds. A job is
//! started, polled and cancelled; dropping its future ends its members within two seconds. A reporter turns the events of
//! the work into the progress that waiters see.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy;
use quorate_kernel::observer::{Observer, RunEvent};
use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};
use quorate_protocol::Json;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind};

use crate::worker_thread::run_on_own_thread;

/// The most concurrent jobs. Each may ask several members.
const MAX_RUNNING: usize = 16;
/// The most ended jobs that are remembered; the oldest are forgotten.
const MAX_ENDED: usize = 256;

/// How long a cancellation waits for the work to be dropped, which happens at its next `await`.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// A job's failure in the form of its server, kept for later polls.
pub trait Failure: Clone + From<Error> + Send + Sync + 'static {}

impl<F: Clone + From<Error> + Send + Sync + 'static> Failure for F {}

/// A caller that waits for a job.
pub trait Waiter: Sync {
    /// Returns when the waiter has cancelled its request.
    fn cancelled(&self) -> impl Future<Output = ()> + Send;

    /// Reports progress to the waiter; returns false if it wants no further reports.
    fn report_progress(&self, progress: &Progress) -> impl Future<Output = bool> + Send;
}

/// A waiter that only wants the result.
pub struct Patient;

impl Waiter for Patient {
    async fn cancelled(&self) {
        std::future::pending().await
    }

    async fn report_progress(&self, _: &Progress) -> bool {
        false
    }
}

/// A job as its callers see it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobStatus {
    /// The job, for `job_poll` and `job_cancel`.
    pub job: String,
    /// Whether it has ended.
    pub done: bool,
    /// The result, once it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// The progress, until it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// The most concurrent computations outside of jobs. Further ones wait.
const MAX_COMPUTATIONS: usize = 16;

/// All jobs of a server, and its computations. Dropping it ends them.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::time::Duration;
///
/// use quorate::jobs::{Jobs, Patient, Residue};
///
/// #[derive(Debug, Clone)]
/// struct Problem(String);
///
/// impl From<quorate::Error> for Problem {
///     fn from(error: quorate::Error) -> Problem {
///         Problem(error.to_string())
///     }
/// }
///
/// let jobs = Jobs::<Problem>::default();
/// let work = |_| async { Ok(1.into()) };
/// let started = jobs.start(Duration::ZERO, &Patient, Residue::Nothing, work).await.unwrap();
/// let ended = jobs.poll(&started.job, Duration::from_secs(60), &Patient).await.unwrap();
/// assert_eq!(ended.result, Some(1.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Jobs<F> {
    /// By age, since ids are random.
    all: Mutex<BTreeMap<u64, Arc<Job<F>>>>,
    computations: Semaphore,
}

impl<F> Default for Jobs<F> {
    fn default() -> Self {
        Jobs { all: Mutex::default(), computations: Semaphore::new(MAX_COMPUTATIONS) }
    }
}

/// The effects of a job that remain after its cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residue {
    /// Runs in the ledger, which `quorate resume` can finish.
    Runs,
    /// Nothing that can be resumed.
    Nothing,
}

struct Job<F> {
    id: String,
    ending: Arc<Completion<F>>,
    state: watch::Receiver<JobState<F>>,
    task: AbortHandle,
}

impl<F> Job<F> {
    /// Whether its work still runs, even if the job was cancelled.
    fn is_working(&self) -> bool {
        Arc::strong_count(&self.ending) > 1
    }
}

impl<F: Failure> Jobs<F> {
    /// Starts work and waits up to `wait` for it. A caller that cancels the request never learns the job's id, so
    /// cancelling also ends the job.
    ///
    /// # Errors
    /// If too many jobs are running, or the job fails within `wait`.
    pub async fn start<W>(
        &self,
        wait: Duration,
        waiter: &impl Waiter,
        leaves: Residue,
        work: impl FnOnce(Arc<Reporter<F>>) -> W,
    ) -> Result<JobStatus, F>
    where
        W: Future<Output = Result<Json, F>> + Send + 'static,
    {
        let job = self.spawn(leaves, work)?;
        // Also ends the job if this future is dropped.
        let deserted = AbandonGuard(Some(job.task.clone()));
        let status = wait_for(&job, wait, waiter).await?;
        deserted.disarm();
        Ok(status)
    }

    /// Waits up to `wait` for the end of a job.
    ///
    /// # Errors
    /// If the job is unknown, or has failed.
    pub async fn poll(&self, id: &str, wait: Duration, waiter: &impl Waiter) -> Result<JobStatus, F> {
        wait_for(&*self.find(id)?, wait, waiter).await
    }

    /// Ends a job; returns false if it had already ended. The work is dropped at its next `await`, for which this waits at
    /// most 500 ms.
    ///
    /// # Errors
    /// If the job is unknown.
    #[crate::boxed]
    pub async fn cancel(&self, id: &str) -> Result<bool, F> {
        let job = self.find(id)?;
        if job.state.borrow().outcome.is_some() {
            return Ok(false);
        }
        job.task.abort();
        let mut state = job.state.clone();
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, state.wait_for(|state| state.outcome.is_some())).await;
        job.ending.complete(Err(ended_early(CANCELLED, job.ending.leaves).into()));
        let outcome = job.state.borrow().outcome.clone();
        Ok(!matches!(outcome, Some(Ok(_))))
    }

    /// The job that begins or continues a run, with its state; `None` if none does so now.
    pub fn find_by_run(&self, run: &str) -> Option<(String, watch::Receiver<JobState<F>>)> {
        let holds = |job: &&Arc<Job<F>>| {
            let state = job.state.borrow();
            let progress = &state.progress;
            let named = progress.run.as_deref() == Some(run) || progress.continues.as_deref() == Some(run);
            named && state.outcome.is_none()
        };
        let all = self.lock();
        all.values().rev().find(holds).map(|job| (job.id.clone(), job.state.clone()))
    }

    fn spawn<W>(&self, leaves: Residue, work: impl FnOnce(Arc<Reporter<F>>) -> W) -> Result<Arc<Job<F>>, F>
    where
        W: Future<Output = Result<Json, F>> + Send + 'static,
    {
        let mut all = self.lock();
        if all.values().filter(|job| job.is_working()).count() >= MAX_RUNNING {
            let body = Body::new(format!("cannot start a job: {MAX_RUNNING} jobs are already running"));
            let help = "wait until a job has ended, or cancel one";
            return Err(Error::new(ErrorKind::Busy, codes::JOBS_BUSY, body.help(help)).into());
        }
        while all.len() >= MAX_ENDED {
            let Some(oldest) = all.iter().find(|(_, job)| !job.is_working()).map(|(at, _)| *at) else {
                break;
            };
            all.remove(&oldest);
        }
        let (sender, state) = watch::channel(JobState::default());
        let ending = Arc::new(Completion { state: sender.clone(), leaves });
        let ends = CompletionGuard(ending.clone());
        let work = work(Arc::new(Reporter { state: sender }));
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

    fn find(&self, id: &str) -> Result<Arc<Job<F>>, F> {
        self.lock().values().find(|job| job.id == id).cloned().ok_or_else(|| {
            let body = Body::new(format!("no job has the id `{id}`"));
            let help = format!(
                "start the job again: the server forgets its jobs when it stops, and keeps the last {MAX_ENDED}"
            );
            Error::not_found(codes::JOB_UNKNOWN, body.help(help)).into()
        })
    }
}

impl<F> Jobs<F> {
    /// Runs a computation of a request that needs no job, on a thread of its own.
    pub async fn compute<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let _permit = self.computations.acquire().await;
        run_on_own_thread(Box::pin(work)).await
    }

    /// Ends all jobs, with their members.
    pub fn abort_all(&self) {
        self.lock().values().for_each(|job| job.task.abort());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Job<F>>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Drop for Jobs<F> {
    fn drop(&mut self) {
        self.abort_all();
    }
}

async fn wait_for<F: Failure>(job: &Job<F>, wait: Duration, waiter: &impl Waiter) -> Result<JobStatus, F> {
    let status = |result: Option<Json>, progress| JobStatus {
        job: job.id.clone(),
        done: result.is_some(),
        result,
        progress,
    };
    let mut state = job.state.clone();
    let error = Instant::now() + wait;
    let (mut reported, mut notify) = (0.0, true);
    loop {
        let now = state.borrow_and_update().clone();
        if let Some(outcome) = now.outcome {
            return Ok(status(Some(outcome?), None));
        }
        if notify && now.progress.steps().0 > reported {
            reported = now.progress.steps().0;
            notify = waiter.report_progress(&now.progress).await;
            continue;
        }
        tokio::select! {
            biased;
            // The sender lives until the job ends.
            changed = state.changed() => if changed.is_err() { return Ok(status(None, Some(now.progress))) },
            () = waiter.cancelled() => {
                return Err(ended_early("the request was cancelled", job.ending.leaves).into());
            }
            () = tokio::time::sleep_until(error) => return Ok(status(None, Some(now.progress))),
        }
    }
}

fn ended_early(reason: &str, leaves: Residue) -> Error {
    let body = Body::new(format!("the job ended without a result: {reason}"));
    let help = match leaves {
        Residue::Runs => "run `quorate runs` to find its run, and `quorate resume RUN` to continue it",
        Residue::Nothing => "start it again",
    };
    Error::configuration(codes::JOB_ENDED, body.help(help))
}

/// The reason in the failure of a cancelled job.
const CANCELLED: &str = "the job was cancelled";

/// Reports a job's end to its waiters.
struct Completion<F> {
    state: watch::Sender<JobState<F>>,
    leaves: Residue,
}

impl<F> Completion<F> {
    fn complete(&self, outcome: Result<Json, F>) {
        self.state.send_modify(|state| {
            state.outcome.get_or_insert(outcome);
        });
    }
}

/// Reports a job's end when it is dropped, however the work ended. The work owns it.
struct CompletionGuard<F: Failure>(Arc<Completion<F>>);

impl<F: Failure> Drop for CompletionGuard<F> {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() { "a bug in Quorate" } else { CANCELLED };
        self.0.complete(Err(ended_early(reason, self.0.leaves).into()));
    }
}

/// Ends a job when it is dropped, unless it was disarmed.
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

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Progress {
    /// The run, once it is recorded: `quorate resume` can go on with it from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// How many members were asked; of a sweep, how many reviews were begun.
    pub asked: u32,
    /// How many of them are done.
    pub ended: u32,
    /// How many there will be, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<u32>,
    /// The last thing that happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The run that the job continues.
    #[serde(skip)]
    #[schemars(skip)]
    pub continues: Option<String>,
    /// Who is answering: member, step, and the bytes so far.
    #[serde(skip)]
    #[schemars(skip)]
    pub writing: Vec<(String, String, u64)>,
    /// The limits of answers: member, step, and milliseconds.
    #[serde(skip)]
    #[schemars(skip)]
    pub limits: Vec<(String, String, u64)>,
}

/// Replaces the number of a member's step.
fn set(all: &mut Vec<(String, String, u64)>, member: &str, step: &str, number: u128) {
    all.retain(|(known, at, _)| (&**known, &**at) != (member, step));
    all.push((member.to_owned(), step.to_owned(), number.try_into().unwrap_or(u64::MAX)));
}

impl Progress {
    /// A number that grows with every step, and what it will be in the end where that is known.
    pub fn steps(&self) -> (f64, Option<f64>) {
        let steps = |asked: u32, ended: u32| f64::from(asked) + f64::from(ended);
        (steps(self.asked, self.ended), self.planned.map(|planned| steps(planned, planned)))
    }
}

/// The state of a job, as [`Jobs::find_by_run`] shows it while it changes.
#[derive(Debug, Clone)]
pub struct JobState<F> {
    /// The last progress; it stays when the job ends.
    pub progress: Progress,
    /// The result, once the job has ended.
    pub outcome: Option<Result<Json, F>>,
}

impl<F> Default for JobState<F> {
    fn default() -> Self {
        JobState { progress: Progress::default(), outcome: None }
    }
}

/// Updates a job's state from the events of its run, sweep or conversation.
pub struct Reporter<F> {
    state: watch::Sender<JobState<F>>,
}

impl<F> Reporter<F> {
    pub(super) fn update(&self, change: impl FnOnce(&mut Progress)) {
        self.state.send_modify(|state| change(&mut state.progress));
    }

    /// Sets the run that the job continues. A new run is known from its events.
    pub fn continues(&self, run: &str) {
        self.update(|progress| progress.continues = Some(run.to_owned()));
    }

    fn written(&self, invocation: &str, member: &str, bytes: usize) {
        // An invocation's id is its step and its member.
        let step = invocation.split('/').next().unwrap_or(invocation);
        self.update(|progress| set(&mut progress.writing, member, step, bytes as u128));
    }

    fn asked(&self, member: &str, step: &str) {
        self.update(|progress| {
            progress.asked += 1;
            progress.last = Some(format!("{member} is asked ({step})"));
        });
    }

    pub(super) fn ended(&self, last: String) {
        self.update(|progress| {
            progress.ended += 1;
            progress.last = Some(last);
        });
    }
}

impl<F: Send + Sync + 'static> Observer for Reporter<F> {
    fn observe(&self, event: RunEvent) {
        match event {
            RunEvent::Opened { run } => self.update(|progress| progress.run = Some(run.to_string())),
            RunEvent::Asked { member, step, timeout, .. } => {
                self.update(|progress| set(&mut progress.limits, &member, &step, timeout.as_millis()));
                self.asked(&member, &step);
            }
            RunEvent::Writing { invocation, member, bytes } => self.written(&invocation, &member, bytes),
            RunEvent::Retried { invocation, why, .. } => {
                self.update(|progress| progress.last = Some(format!("{invocation} is asked again: {why}")));
            }
            RunEvent::Waiting { .. } | RunEvent::Noted { .. } => {
                self.update(|progress| progress.last = event.wait_line())
            }
            RunEvent::Answered { invocation, status, .. } => self.ended(format!("{invocation}: {status}")),
            _ => {}
        }
    }
}

impl<F: Send + Sync + 'static> Telemetry for Reporter<F> {
    fn emit(&self, event: &Event) {
        match &event.kind {
            EventKind::ParticipantStarted { participant, .. } => self.asked(participant, "turn"),
            EventKind::ParticipantWaiting { line, .. } => {
                self.update(|progress| progress.last = Some(line.clone()));
            }
            EventKind::ParticipantFinished { participant, .. } => {
                Reporter::ended(self, format!("{participant}: answered"));
            }
            EventKind::ParticipantFailed { participant, status, .. } => {
                Reporter::ended(self, format!("{participant}: {status}"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A failure in the form of a server.
    #[derive(Debug, Clone)]
    struct Kept(#[expect(dead_code, reason = "tests read what `Debug` prints")] String);

    impl From<Error> for Kept {
        fn from(error: Error) -> Kept {
            Kept(format!("{:?}", error.report()))
        }
    }

    fn jobs() -> Jobs<Kept> {
        Jobs::default()
    }

    #[tokio::test]
    async fn start_returns_a_quick_result_and_a_slow_job_is_polled() {
        let jobs = jobs();
        let quick = jobs
            .start(Duration::from_secs(60), &Patient, Residue::Runs, |_| async { Ok(json!(1)) })
            .await
            .unwrap();
        assert_eq!((quick.done, quick.result), (true, Some(json!(1))));
        let (go, released) = tokio::sync::oneshot::channel::<()>();
        let slow = jobs.start(Duration::ZERO, &Patient, Residue::Runs, |_| async move {
            released.await.unwrap();
            Ok(json!(2))
        });
        let slow = slow.await.unwrap();
        assert!(!slow.done && slow.result.is_none() && slow.progress.is_some());
        go.send(()).unwrap();
        let polled = jobs.poll(&slow.job, Duration::from_secs(60), &Patient).await.unwrap();
        assert_eq!(polled.result, Some(json!(2)));
        assert!(!jobs.cancel(&slow.job).await.unwrap());
    }

    #[tokio::test]
    async fn a_job_that_is_cancelled_is_dropped_and_stays_known() {
        let jobs = jobs();
        let (alive, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
        let job = jobs.start(Duration::ZERO, &Patient, Residue::Runs, |_| async move {
            let _alive = alive;
            std::future::pending().await
        });
        let job = job.await.unwrap().job;
        assert!(jobs.cancel(&job).await.unwrap());
        assert_eq!(dropped.recv().await, None);
        assert!(!jobs.cancel(&job).await.unwrap());
        assert!(jobs.poll(&job, Duration::from_secs(60), &Patient).await.is_err());
        assert!(jobs.poll("j1", Duration::ZERO, &Patient).await.is_err());
    }

    #[tokio::test]
    async fn a_computing_job_does_not_block_others_and_is_cancelled_at_once() {
        // One thread, so that the work blocks the runtime.
        let jobs = jobs();
        let (go, released) = std::sync::mpsc::channel::<()>();
        let (begin, started) = tokio::sync::oneshot::channel();
        let job = jobs.start(Duration::ZERO, &Patient, Residue::Runs, |_| async move {
            let _ = begin.send(());
            let _ = released.recv();
            Ok(json!(1))
        });
        let job = job.await.unwrap().job;
        started.await.expect("it computes before it is cancelled");
        assert!(
            tokio::time::timeout(CANCEL_TIMEOUT * 4, jobs.cancel(&job))
                .await
                .expect("it is bounded")
                .unwrap()
        );
        let failure = format!("{:?}", jobs.poll(&job, Duration::from_secs(60), &Patient).await.unwrap_err());
        assert!(failure.contains(CANCELLED), "{failure}");
        // It still computes, and counts as running.
        assert!(jobs.lock().values().all(|job| job.is_working()));
        go.send(()).unwrap();
        while jobs.lock().values().any(|job| job.is_working()) {
            tokio::task::yield_now().await;
        }
        // Its late result is ignored.
        assert!(jobs.poll(&job, Duration::ZERO, &Patient).await.is_err());
    }

    #[tokio::test]
    async fn only_a_job_with_runs_has_help_about_resuming() {
        for (leaves, mentions_resume) in [(Residue::Runs, true), (Residue::Nothing, false)] {
            let jobs = jobs();
            let job =
                jobs.start(Duration::ZERO, &Patient, leaves, |_| std::future::pending()).await.unwrap().job;
            assert!(jobs.cancel(&job).await.unwrap());
            let failure = format!("{:?}", jobs.poll(&job, Duration::ZERO, &Patient).await.unwrap_err());
            assert_eq!(failure.contains("quorate resume"), mentions_resume, "{failure}");
        }
    }

    #[tokio::test]
    async fn cancelling_the_request_cancels_the_job() {
        let jobs = jobs();
        let (alive, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
        let start = jobs.start(Duration::from_secs(60), &Patient, Residue::Runs, |_| async move {
            let _alive = alive;
            std::future::pending().await
        });
        assert!(tokio::time::timeout(Duration::from_millis(20), start).await.is_err());
        assert_eq!(dropped.recv().await, None);
    }

    #[tokio::test]
    async fn the_number_of_running_jobs_is_limited() {
        let jobs = jobs();
        for _ in 0..MAX_RUNNING {
            jobs.start(Duration::ZERO, &Patient, Residue::Runs, |_| std::future::pending()).await.unwrap();
        }
        assert!(
            jobs.start(Duration::ZERO, &Patient, Residue::Runs, |_| std::future::pending()).await.is_err()
        );
        jobs.abort_all();
        let all: Vec<String> = jobs.lock().values().map(|job| job.id.clone()).collect();
        for id in all {
            assert!(jobs.poll(&id, Duration::from_secs(60), &Patient).await.is_err());
        }
        assert!(
            jobs.start(Duration::ZERO, &Patient, Residue::Runs, |_| std::future::pending()).await.is_ok()
        );
    }
}
