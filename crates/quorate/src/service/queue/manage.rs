//! What people do with the queue: look at it, have dead tasks tried again, take tasks out, and stop workers from claiming.

use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::store::tasks::limits::{PoolQuota, Tenant, TenantChange};
use quorate_ledger::store::tasks::{TaskCount, TaskFilter, TaskRow, TaskState};
use quorate_protocol::Name;

use super::{ensure_queue, wait};
use crate::service::error::{ExitClass, ServiceError};
use crate::service::session::LedgerSession;

/// How many tasks are in the queue, and what is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    /// By tenant and state.
    pub counts: Vec<TaskCount>,
    /// Whether nothing at all is claimed.
    pub is_paused: bool,
    /// The tenants of whom nothing is claimed.
    pub paused: Vec<String>,
}

/// How the queue is.
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

/// Tasks, the oldest first.
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

/// Has dead tasks tried again: those of these runs, or without any all that pass the filter. Says how many.
///
/// # Errors
/// As [`status`]; and if a run is not that of a dead task.
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
            0 => return Err(in_other_state(session, &run, "is not dead, so it cannot be tried again").await?),
            count => retried += count,
        }
    }
    Ok(retried)
}

/// Takes tasks out of the queue that no worker has.
///
/// # Errors
/// As [`status`]; and if a worker has one of them, or it has ended.
#[crate::boxed]
pub async fn cancel(session: &LedgerSession, runs: &[String]) -> Result<u64, ServiceError> {
    ensure_queue(session)?;
    session.ensure_writable()?;
    let mut cancelled = 0;
    for prefix in runs {
        let run = find(session, prefix).await?;
        if !session.store.cancel_task(&run).await? {
            return Err(in_other_state(session, &run, "cannot be taken out of the queue").await?);
        }
        cancelled += 1;
    }
    Ok(cancelled)
}

/// Stops workers from claiming tasks of a tenant, or of all, or lets them go on.
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

/// Pauses, and waits until workers have ended what they had; `progress` is told how much that still is.
///
/// # Errors
/// As [`status`]; and if it takes longer than `patience`.
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
            let body = Body::new(format!("workers still have {leased} tasks"));
            let help = "the queue is paused: repeat the command to wait on, or `quorate queue pause --off`";
            return Err(ServiceError::new(ExitClass::Refused, codes::QUEUE_BUSY, body.help(help)));
        }
        wait::pause().await;
    }
}

/// A tenant's share and limits, after a change.
///
/// # Errors
/// As [`status`], and if the name is none.
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

/// The quotas of all pools, after a change of one.
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
                body.help("`quorate queue list` lists what it has"),
            ))
        }
        [_, ..] => {
            let body = Body::new(format!("`{prefix}` begins the ids of several tasks"));
            let help = "give more characters";
            Err(ServiceError::new(ExitClass::NotFound, codes::RUN_AMBIGUOUS, body.help(help)))
        }
    }
}

async fn in_other_state(
    session: &LedgerSession,
    run: &Name,
    what: &str,
) -> Result<ServiceError, ServiceError> {
    let states = session.store.task_states(std::slice::from_ref(run)).await?;
    let state = states.get(run).map_or("gone", |(state, _)| state.as_str());
    let body = Body::new(format!("the task {run} is {state}: it {what}"));
    let help = "`quorate queue list` shows where each task is";
    Ok(ServiceError::configuration(codes::QUEUE_BUSY, body.help(help)))
}
