//! The queue as JSON.

use quorate_ledger::store::tasks::TaskRow;
use quorate_ledger::store::tasks::{PoolQuota, Tenant};
use quorate_manifest::timestamp;
use serde_json::{Value, json};

use super::convene::QueuedSubject;
use super::execute::TaskEnd;
use super::manage::QueueStatus;
use super::worker::TaskName;

/// `{"paused", "paused_tenants", "tasks": [{tenant, state, tasks, oldest_ms}]}`.
pub fn status(status: &QueueStatus) -> Value {
    let counts = status.counts.iter().map(|count| {
        json!({
            "tenant": count.tenant, "state": count.state.as_str(), "tasks": count.tasks, "oldest_ms": count.oldest_ms,
        })
    });
    json!({"paused": status.is_paused, "paused_tenants": status.paused, "tasks": counts.collect::<Value>()})
}

/// `{"tasks": [{run, tenant, batch, class, priority, subject, state, attempts, queued, error}]}`.
pub fn list(tasks: &[TaskRow]) -> Value {
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
pub fn convenings(queued: &[QueuedSubject]) -> Value {
    let subject = |subject: &QueuedSubject| {
        json!({
            "path": subject.path, "run": &*subject.run, "state": subject.state.as_str(), "new": subject.is_new,
            "outcome": subject.outcome, "error": subject.error,
        })
    };
    json!({"queued": queued.iter().map(subject).collect::<Value>()})
}

/// `{name, weight, max_running, max_waiting}`.
pub fn tenant(tenant: &Tenant) -> Value {
    json!({
        "name": tenant.name, "weight": tenant.weight, "max_running": tenant.max_running,
        "max_waiting": tenant.max_waiting,
    })
}

/// `{"pools": [{pool, calls_per_hour, burst, blocked_ms}]}`.
pub fn quotas(quotas: &[PoolQuota]) -> Value {
    let quota = |quota: &PoolQuota| {
        json!({
            "pool": quota.pool, "calls_per_hour": quota.limit.map(|(rate, _)| rate),
            "burst": quota.limit.map(|(_, burst)| burst), "blocked_ms": quota.blocked_ms,
        })
    };
    json!({"pools": quotas.iter().map(quota).collect::<Value>()})
}

/// The end of an attempt: `{run, tenant, subject, attempt, end, outcome, why, wait_ms}`.
pub fn task_end(task: &TaskName, end: &TaskEnd) -> Value {
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
