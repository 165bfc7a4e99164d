//! Management of the queue: its status, retries of dead tasks, cancellation, pauses, limits of tenants and quotas.

use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::store::tasks::{PoolQuota, Tenant, TenantChange};
use quorate_ledger::store::tasks::{TaskCount, TaskFilter, TaskRow, TaskState};
use quorate_protocol::Name;

use super::{ensure_queue, wait};
use crate::service::error::{ExitClass, ServiceError};
use crate::service::session::LedgerSession;

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
        wait::pause().await;
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
