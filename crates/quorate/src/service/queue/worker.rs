//! A worker: claims tasks for its free slots, holds their runs, and gives back what it cannot end.

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

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// How many tasks it holds at once.
    pub slots: usize,
    /// Which tasks it takes.
    pub classes: Vec<String>,
    /// How long its tasks may go on after it was told to stop.
    pub grace: Duration,
    /// Whether it ends when there is nothing left to claim and it has ended all that it had.
    pub until_empty: bool,
}

/// What a worker says of its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEvent {
    Ended(TaskName, TaskEnd),
    /// The ledger did not answer; the worker waits and goes on.
    Unavailable(String),
}

/// A task, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskName {
    pub run: Name,
    pub tenant: String,
    pub subject: String,
    pub attempt: u64,
}

/// What a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerSummary {
    pub done: u64,
    /// Tasks that are tried again.
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

/// Works until `stop`, or until the queue is empty. Then it claims nothing more, waits for what it has within its grace,
/// and gives the rest back, which is no attempt of theirs.
///
/// # Errors
/// If the ledger has no queue, or the keyring is refused. A server that does not answer is waited for.
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
    // It ends with this call.
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
        // What ended in the same moment is claimed for at once.
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
        // One thread each, so that runs use all cores without blocking others.
        running.spawn(async move {
            let run = task.run.clone();
            let mine = session.clone();
            // It is dropped after it was given back: then nothing of it is written any more.
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
            // Its lease ends, and it is taken over.
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
        // Without a listener it works on.
        let _ = self.events.send(event);
    }

    /// Whether there are tasks that this worker will be able to claim.
    async fn is_waiting(&self, options: &WorkerOptions) -> bool {
        self.session.store.has_open_tasks(&options.classes).await.unwrap_or(true)
    }
}

async fn is_abandoned(abandoned: &mut watch::Receiver<bool>) {
    // A worker that is gone abandons all.
    let _ = abandoned.wait_for(|abandoned| *abandoned).await;
}

/// Gives back a task that is dropped, so that another worker continues it at once.
async fn release(session: &LedgerSession, run: &Name) -> Result<TaskEnd, ServiceError> {
    let given = session.store.give_back(run, &GiveBack::Uncounted).await?;
    Ok(if given { TaskEnd::Released } else { TaskEnd::Lost })
}
