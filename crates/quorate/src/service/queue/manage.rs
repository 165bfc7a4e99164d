//! Management of the queue: its status, retries of dead tasks, cancellation, pauses, limits of tenants and quotas, waiting
//! for tasks, and the queue as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::store::tasks::{
    PoolQuota, TaskCount, TaskFilter, TaskRow, TaskState, Tenant, TenantChange,
};
use quorate_manifest::timestamp;
use quorate_protocol::Name;
use serde_json::{Value, json};

use super::enqueue::QueuedSubject;
use super::worker::{TaskEnd, TaskName};
use super::{EndedTask, TaskWaiter, ensure_queue, pause_poll};
use crate::service::error::{ExitClass, ServiceError};
use crate::service::report;
use crate::service::session::LedgerSession;
use crate::service::sweep::{SweepObserver, Sweep, SweptOutcome};

/// How many tasks are in the queue, and what is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    /// The number of tasks, by tenant and state.
    pub counts: Vec<TaskCount>,
    /// Whether the whole queue is paused.
    pub is_paused: bool,
    /// The paused tenants.
    pub paused: Vec<String>,
}

/// The status of the queue.
///
/// # Errors
/// If the ledger has no queue, or does not answer.
#[crate::boxed]
pub async fn status(session: &LedgerSession) -> Result<QueueStatus, ServiceError> {
    ensure_queue(session)?;
    let counts = session.store.count_tasks().await?;
    let paused = session.store.paused_tenants().await?;
    Ok(QueueStatus {
        counts,
        is_paused: paused.contains(&None),
        paused: paused.into_iter().flatten().collect(),
    })
}

/// The tasks that match a filter, oldest first.
///
/// # Errors
/// As [`status`].
#[crate::boxed]
pub async fn list(
    session: &LedgerSession,
    filter: &TaskFilter,
    limit: u32,
) -> Result<Vec<TaskRow>, ServiceError> {
    ensure_queue(session)?;
    Ok(session.store.tasks(filter, limit).await?)
}

/// Retries the dead tasks of `runs`, or all dead tasks that match the filter if `runs` is empty. Returns their number.
///
/// # Errors
/// As [`status`]; and if the task of a run is not dead.
#[crate::boxed]
pub async fn retry(
    session: &LedgerSession,
    runs: &[String],
    filter: &TaskFilter,
) -> Result<u64, ServiceError> {
    ensure_queue(session)?;
    session.ensure_writable()?;
    if runs.is_empty() {
        return Ok(session.store.retry_tasks(filter, None).await?);
    }
    let mut retried = 0;
    for prefix in runs {
        let run = find(session, prefix).await?;
        match session.store.retry_tasks(&TaskFilter::default(), Some(&run)).await? {
            0 => return Err(in_other_state(session, &run, "retry", "only a dead task can be retried").await?),
            count => retried += count,
        }
    }
    Ok(retried)
}

/// Removes tasks from the queue.
///
/// # Errors
/// As [`status`]; and if a worker executes one of the tasks, or it has ended.
#[crate::boxed]
pub async fn cancel(session: &LedgerSession, runs: &[String]) -> Result<u64, ServiceError> {
    ensure_queue(session)?;
    session.ensure_writable()?;
    let mut cancelled = 0;
    for prefix in runs {
        let run = find(session, prefix).await?;
        if !session.store.cancel_task(&run).await? {
            let why = "only a ready or dead task can be cancelled";
            return Err(in_other_state(session, &run, "cancel", why).await?);
        }
        cancelled += 1;
    }
    Ok(cancelled)
}

/// Stops workers from claiming tasks of a tenant, or of all tenants; with `paused` false, lets them continue.
///
/// # Errors
/// As [`status`].
#[crate::boxed]
pub async fn pause(session: &LedgerSession, tenant: Option<&str>, paused: bool) -> Result<(), ServiceError> {
    ensure_queue(session)?;
    session.ensure_writable()?;
    tenant.map_or(Ok(()), |tenant| super::check_name("tenant", tenant))?;
    Ok(session.store.pause_queue(tenant, paused).await?)
}

/// Pauses the queue and waits until workers have finished their tasks. Calls `progress` with the number of tasks left.
///
/// # Errors
/// As [`status`]; and if the wait takes longer than `patience`.
#[crate::boxed(?Send)]
pub async fn drain(
    session: &LedgerSession,
    tenant: Option<&str>,
    patience: Option<Duration>,
    progress: &dyn Fn(u64),
) -> Result<(), ServiceError> {
    pause(session, tenant, true).await?;
    let until = patience.map(|patience| tokio::time::Instant::now() + patience);
    loop {
        let counts = session.store.count_tasks().await?;
        let is_meant = |count: &&TaskCount| {
            count.state == TaskState::Leased && tenant.is_none_or(|tenant| tenant == count.tenant)
        };
        let leased: u64 = counts.iter().filter(is_meant).map(|count| count.tasks).sum();
        progress(leased);
        if leased == 0 {
            return Ok(());
        }
        if until.is_some_and(|until| tokio::time::Instant::now() >= until) {
            let body = Body::new(format!("workers still execute {leased} tasks"));
            let help =
                "repeat the command to wait longer, or run `quorate queue pause --off`: the queue is paused";
            return Err(ServiceError::new(ExitClass::Refused, codes::QUEUE_BUSY, body.help(help)));
        }
        pause_poll().await;
    }
}

/// Changes a tenant's share and limits, and returns them.
///
/// # Errors
/// As [`status`], and if the name is invalid.
#[crate::boxed]
pub async fn tenant(
    session: &LedgerSession,
    name: &str,
    change: &TenantChange,
) -> Result<Tenant, ServiceError> {
    ensure_queue(session)?;
    super::check_name("tenant", name)?;
    Ok(session.store.change_tenant(name, change).await?)
}

/// Changes the quota of a pool, if given, and returns the quotas of all pools.
///
/// # Errors
/// As [`status`].
#[crate::boxed]
pub async fn quotas(
    session: &LedgerSession,
    change: Option<(&str, Option<(u64, u64)>)>,
) -> Result<Vec<PoolQuota>, ServiceError> {
    ensure_queue(session)?;
    if let Some((pool, limit)) = change {
        session.ensure_writable()?;
        session.store.set_quota(pool, limit).await?;
    }
    Ok(session.store.quotas().await?)
}

async fn find(session: &LedgerSession, prefix: &str) -> Result<Name, ServiceError> {
    let found = session.store.find_tasks(prefix).await?;
    match found.as_slice() {
        [run] => Ok(run.clone()),
        [] => {
            let body = Body::new(format!("the queue has no task `{prefix}`"));
            Err(ServiceError::not_found(
                codes::RUN_UNKNOWN,
                body.help("run `quorate queue list` to see the tasks"),
            ))
        }
        [_, ..] => {
            let body = Body::new(format!("several tasks have an id that starts with `{prefix}`"));
            let help = "give more characters";
            Err(ServiceError::new(ExitClass::NotFound, codes::RUN_AMBIGUOUS, body.help(help)))
        }
    }
}

async fn in_other_state(
    session: &LedgerSession,
    run: &Name,
    what: &str,
    why: &str,
) -> Result<ServiceError, ServiceError> {
    let states = session.store.task_states(std::slice::from_ref(run)).await?;
    let state = states.get(run).map_or("gone", |(state, _)| state.as_str());
    let body = Body::new(format!("cannot {what} the task {run}: it is {state}, and {why}"));
    let help = "run `quorate queue list` to see the state of each task";
    Ok(ServiceError::configuration(codes::QUEUE_BUSY, body.help(help)))
}

/// Waits until all tasks of a sweep have ended, and sets the outcomes of its files.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub async fn wait_for_sweep(
    session: &LedgerSession,
    report: &mut Sweep,
    observer: &dyn SweepObserver,
) -> Result<(), ServiceError> {
    let mut files: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (at, file) in report.files.iter().enumerate() {
        if let SweptOutcome::Queued { run, .. } = &file.outcome {
            files.entry(run.as_str().into()).or_default().push(at);
        }
    }
    observer.planned(files.len());
    let mut waiting = TaskWaiter::for_runs(files.keys().cloned());
    loop {
        let ended = waiting.next(session).await?;
        if ended.is_empty() {
            return super::lines::write_log_lines(session).await;
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

async fn outcome_of(session: &LedgerSession, task: &EndedTask) -> Result<SweptOutcome, ServiceError> {
    let run = &task.run;
    Ok(match task.state {
        TaskState::Done => {
            let read = report::load(session, run).await?;
            match read.verdict {
                Some(verdict) => {
                    SweptOutcome::Judged { run: run.to_string(), verdict, fix: read.first_fix() }
                }
                None => SweptOutcome::Failed { why: format!("run {run} has no verdict") },
            }
        }
        TaskState::Cancelled => SweptOutcome::Failed { why: "the task was cancelled".to_owned() },
        _ => {
            let why = task.error.clone().unwrap_or_else(|| format!("the task of run {run} is dead"));
            SweptOutcome::Failed { why }
        }
    })
}

/// `{"paused", "paused_tenants", "tasks": [{tenant, state, tasks, oldest_ms}]}`.
pub fn status_json(status: &QueueStatus) -> Value {
    let counts = status.counts.iter().map(|count| {
        json!({
            "tenant": count.tenant, "state": count.state.as_str(), "tasks": count.tasks, "oldest_ms": count.oldest_ms,
        })
    });
    json!({"paused": status.is_paused, "paused_tenants": status.paused, "tasks": counts.collect::<Value>()})
}

/// `{"tasks": [{run, tenant, batch, class, priority, subject, state, attempts, queued, error}]}`.
pub fn list_json(tasks: &[TaskRow]) -> Value {
    let task = |task: &TaskRow| {
        json!({
            "run": &*task.run, "tenant": task.tenant, "batch": task.batch, "class": task.class,
            "priority": task.priority, "subject": task.subject, "state": task.state.as_str(),
            "attempts": task.attempts, "queued": timestamp::format(task.queued_ms), "error": task.error,
        })
    };
    json!({"tasks": tasks.iter().map(task).collect::<Value>()})
}

/// `{"queued": [{path, run, state, new, outcome, error}]}`.
pub fn convenings_json(queued: &[QueuedSubject]) -> Value {
    let subject = |subject: &QueuedSubject| {
        json!({
            "path": subject.path, "run": &*subject.run, "state": subject.state.as_str(), "new": subject.is_new,
            "outcome": subject.outcome, "error": subject.error,
        })
    };
    json!({"queued": queued.iter().map(subject).collect::<Value>()})
}

/// `{name, weight, max_running, max_waiting}`.
pub fn tenant_json(tenant: &Tenant) -> Value {
    json!({
        "name": tenant.name, "weight": tenant.weight, "max_running": tenant.max_running,
        "max_waiting": tenant.max_waiting,
    })
}

/// `{"pools": [{pool, calls_per_hour, burst, blocked_ms}]}`.
pub fn quotas_json(quotas: &[PoolQuota]) -> Value {
    let quota = |quota: &PoolQuota| {
        json!({
            "pool": quota.pool, "calls_per_hour": quota.calls_per_hour,
            "burst": quota.burst, "blocked_ms": quota.blocked_ms,
        })
    };
    json!({"pools": quotas.iter().map(quota).collect::<Value>()})
}

/// The end of an attempt: `{run, tenant, subject, attempt, end, outcome, why, wait_ms}`.
pub fn task_end_json(task: &TaskName, end: &TaskEnd) -> Value {
    let (outcome, why, wait_ms) = match end {
        TaskEnd::Done { word } => (Some(word), None, None),
        TaskEnd::Later { wait_ms, why } => (None, Some(why), Some(*wait_ms)),
        TaskEnd::Dead { why } => (None, Some(why), None),
        TaskEnd::Lost | TaskEnd::Released => (None, None, None),
    };
    json!({
        "run": &*task.run, "tenant": task.tenant, "subject": task.subject, "attempt": task.attempt, "end": end.word(),
        "outcome": outcome, "why": why, "wait_ms": wait_ms,
    })
}
