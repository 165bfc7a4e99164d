//! Metrics of the queue and of a worker.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use quorate_ledger::store::Store;
use quorate_ledger::store::tasks::TaskState;

use crate::service::environment::Environment;
use crate::service::workspace::{self, PathOverrides};

const TASKS: &str = "quorate_tasks";
const OLDEST: &str = "quorate_oldest_task_seconds";
const CLAIMS: &str = "quorate_claims_total";
const TAKEOVERS: &str = "quorate_takeovers_total";
const ENDS: &str = "quorate_task_ends_total";
const QUOTA_WAIT: &str = "quorate_quota_wait_seconds";

/// How often the queue is counted.
const INTERVAL: Duration = Duration::from_secs(5);

pub(in crate::cluster) fn describe() {
    describe_gauge!(
        TASKS,
        "Tasks in the queue, by tenant and state: ready, leased, dead. All workers and servers of a queue report the same values."
    );
    describe_gauge!(OLDEST, "How long the oldest ready task has been waiting, by tenant.");
    describe_counter!(CLAIMS, "Tasks that this worker has claimed, by tenant.");
    describe_counter!(TAKEOVERS, "Claims of a task that another worker had claimed before, by tenant.");
    describe_counter!(
        ENDS,
        "Ended attempts of this worker, by tenant and end: done, later, dead, lost, released."
    );
    describe_histogram!(
        QUOTA_WAIT,
        "How long a call was told to wait for the shared quota of its pool, by pool."
    );
}

pub(super) fn claimed(tenant: &str, attempt: u64) {
    counter!(CLAIMS, "tenant" => tenant.to_owned()).increment(1);
    if attempt > 1 {
        counter!(TAKEOVERS, "tenant" => tenant.to_owned()).increment(1);
    }
}

pub(super) fn ended(tenant: &str, end: &'static str) {
    counter!(ENDS, "tenant" => tenant.to_owned(), "end" => end).increment(1);
}

pub(super) fn waits_for_quota(pool: &str, wait: Duration) {
    histogram!(QUOTA_WAIT, "pool" => pool.to_owned()).record(wait);
}

/// Counts the queue of a workspace's ledger every five seconds until the future is dropped. A ledger in a file has no queue.
pub(in crate::cluster) async fn count_of_workspace(
    environment: &Environment,
    places: &PathOverrides,
) -> Infallible {
    if !environment.is_metered {
        return pending().await;
    }
    loop {
        let loaded = workspace::load(environment, places, &environment.directory);
        let Some(ledger) = loaded.ok().map(|loaded| loaded.ledger).filter(|ledger| ledger.file().is_none())
        else {
            return pending().await;
        };
        // Retries while the server does not answer.
        if let Ok(opened) = Box::pin(Store::open_at(&ledger)).await {
            return count(Arc::new(opened.store)).await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Counts the queue's tasks every five seconds until the future is dropped.
pub(super) async fn count(store: Arc<Store>) -> Infallible {
    let mut known = BTreeSet::new();
    loop {
        // The gauges keep the last values while the server does not answer.
        if let Ok(counts) = store.count_tasks().await {
            let states =
                [(TaskState::Ready, "ready"), (TaskState::Leased, "leased"), (TaskState::Dead, "dead")];
            known.extend(counts.iter().map(|count| count.tenant.clone()));
            for tenant in &known {
                let of = |state: TaskState| {
                    counts.iter().find(|count| count.tenant == *tenant && count.state == state)
                };
                for (state, word) in states {
                    let tasks = of(state).map_or(0, |count| count.tasks);
                    gauge!(TASKS, "tenant" => tenant.clone(), "state" => word).set(number(tasks));
                }
                let oldest_ms = of(TaskState::Ready).map_or(0, |count| count.oldest_ms);
                gauge!(OLDEST, "tenant" => tenant.clone()).set(number(oldest_ms) / 1000.0);
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "tasks and milliseconds are below 2^53, so the conversion is exact"
)]
fn number(count: u64) -> f64 {
    count as f64
}
