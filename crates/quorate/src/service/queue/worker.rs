//! A worker: claims tasks for its free slots, executes their runs, and gives back the tasks that it cannot finish.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::Name;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::execute::{Bundles, TaskEnd, execute};
use super::quota::StoreQuota;
use super::{ensure_queue, wait};
use crate::service::error::ServiceError;
use crate::service::metrics::queue as metrics;
use crate::service::session::LedgerSession;
use crate::service::worker_thread::run_on_own_thread;
use quorate_adapters::executor::llm::share_quota;
use quorate_ledger::store::tasks::{ClaimedTask, GiveBack};

#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// How many tasks the worker executes at once.
    pub slots: usize,
    /// The classes of the tasks that the worker claims.
    pub classes: Vec<String>,
    /// How long tasks may continue after the worker was told to stop.
    pub grace: Duration,
    /// Whether the worker ends when the queue has no more tasks for it.
    pub until_empty: bool,
}

/// A worker's report to the front end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEvent {
    Ended(TaskName, TaskEnd),
    /// The ledger did not answer. The worker tries again.
    Unavailable(String),
}

/// The task of a [`WorkerEvent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskName {
    pub run: Name,
    pub tenant: String,
    pub subject: String,
    pub attempt: u64,
}

/// The number of attempts of a worker, by end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerSummary {
    pub done: u64,
    /// Tasks that the queue retries.
    pub later: u64,
    pub dead: u64,
    /// Tasks that another worker took over.
    pub lost: u64,
    pub released: u64,
}

impl WorkerSummary {
    fn add(&mut self, end: &TaskEnd) {
        let count = match end {
            TaskEnd::Done { .. } => &mut self.done,
            TaskEnd::Later { .. } => &mut self.later,
            TaskEnd::Dead { .. } => &mut self.dead,
            TaskEnd::Lost => &mut self.lost,
            TaskEnd::Released => &mut self.released,
        };
        *count += 1;
    }
}

type Ended = (TaskName, Result<TaskEnd, ServiceError>);

/// Works until `stop`, or until the queue is empty. Then the worker stops claiming, waits for its tasks for the grace
/// period, and gives the rest back without counting the attempt.
///
/// # Errors
/// If the ledger has no queue, or the keyring is refused. If the server does not answer, the worker tries again.
#[crate::boxed]
pub async fn work(
    session: &Arc<LedgerSession>,
    options: &WorkerOptions,
    events: UnboundedSender<WorkerEvent>,
    mut stop: watch::Receiver<bool>,
) -> Result<WorkerSummary, ServiceError> {
    ensure_queue(session)?;
    session.ensure_writable()?;
    // A keyring that cannot be read would make every task dead.
    session.keys().trusted_keys()?;
    share_quota(Arc::new(StoreQuota::new(&session.store)));
    let worker = Worker { session: session.clone(), bundles: Arc::default(), events };
    // Ends when this call returns.
    let mut counting = JoinSet::new();
    if session.environment.is_metered {
        counting.spawn(metrics::count(session.store.clone()));
    }
    let mut summary = WorkerSummary::default();
    let mut running: JoinSet<Ended> = JoinSet::new();
    let (abandon, abandoned) = watch::channel(false);
    let mut new_tasks = session.environment.commit_events.reader(wait::poll_interval());
    while !*stop.borrow() {
        let free = options.slots.saturating_sub(running.len());
        let claimed = match free {
            0 => Ok(Vec::new()),
            free => session.store.claim_tasks(&options.classes, free as u64).await,
        };
        let claimed = claimed.unwrap_or_else(|error| {
            worker.say(WorkerEvent::Unavailable(ServiceError::from(error).first_message()));
            Vec::new()
        });
        let is_empty = free > 0 && claimed.is_empty();
        for task in claimed {
            worker.start(&mut running, task, abandoned.clone());
        }
        if options.until_empty && is_empty && running.is_empty() && !worker.is_waiting(options).await {
            break;
        }
        tokio::select! {
            Some(ended) = running.join_next() => worker.ended(ended, &mut summary),
            () = new_tasks.wait_for_tasks() => {}
            _ = stop.changed() => break,
        }
        // Collects every ended task, so that all free slots are filled at once.
        while let Some(ended) = running.try_join_next() {
            worker.ended(ended, &mut summary);
        }
    }
    let until = Instant::now() + options.grace;
    while let Ok(Some(ended)) = timeout_at(until, running.join_next()).await {
        worker.ended(ended, &mut summary);
    }
    let _ = abandon.send(true);
    while let Some(ended) = running.join_next().await {
        worker.ended(ended, &mut summary);
    }
    Ok(summary)
}

struct Worker {
    session: Arc<LedgerSession>,
    bundles: Arc<Bundles>,
    events: UnboundedSender<WorkerEvent>,
}

impl Worker {
    fn start(&self, running: &mut JoinSet<Ended>, task: ClaimedTask, mut abandoned: watch::Receiver<bool>) {
        let name = TaskName {
            run: task.run.clone(),
            tenant: task.tenant.clone(),
            subject: task.subject.clone(),
            attempt: task.attempt,
        };
        let (session, bundles) = (self.session.clone(), self.bundles.clone());
        let events = session.environment.commit_events.clone();
        events.set_tenant(&name.run, Some(&name.tenant));
        metrics::claimed(&name.tenant, name.attempt);
        // One thread for each task, so that runs use all cores without blocking each other.
        running.spawn(async move {
            let run = task.run.clone();
            let mine = session.clone();
            // Dropped only after the task was given back; by then the lease refuses further appends.
            let mut work = pin!(run_on_own_thread(async move { execute(&mine, &bundles, task).await }));
            let end = tokio::select! {
                end = &mut work => end,
                () = is_abandoned(&mut abandoned) => release(&session, &run).await,
            };
            events.set_tenant(&name.run, None);
            (name, end)
        });
    }

    fn ended(&self, ended: Result<Ended, tokio::task::JoinError>, summary: &mut WorkerSummary) {
        match ended {
            Ok((name, Ok(end))) => {
                summary.add(&end);
                metrics::ended(&name.tenant, end.word());
                self.say(WorkerEvent::Ended(name, end));
            }
            // The lease expires, and another worker takes the task over.
            Ok((name, Err(error))) => {
                self.say(WorkerEvent::Unavailable(error.first_message()));
                summary.add(&TaskEnd::Lost);
                metrics::ended(&name.tenant, TaskEnd::Lost.word());
                self.say(WorkerEvent::Ended(name, TaskEnd::Lost));
            }
            Err(gone) => {
                if let Ok(panic) = gone.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }

    fn say(&self, event: WorkerEvent) {
        // The worker continues without a listener.
        let _ = self.events.send(event);
    }

    /// Whether there are tasks that this worker will be able to claim.
    async fn is_waiting(&self, options: &WorkerOptions) -> bool {
        self.session.store.has_open_tasks(&options.classes).await.unwrap_or(true)
    }
}

async fn is_abandoned(abandoned: &mut watch::Receiver<bool>) {
    // An error means that the worker was dropped, which abandons every task.
    let _ = abandoned.wait_for(|abandoned| *abandoned).await;
}

/// Gives back a task that is dropped, so that another worker continues it at once.
async fn release(session: &LedgerSession, run: &Name) -> Result<TaskEnd, ServiceError> {
    let given = session.store.give_back(run, &GiveBack::Uncounted).await?;
    Ok(if given { TaskEnd::Released } else { TaskEnd::Lost })
}
