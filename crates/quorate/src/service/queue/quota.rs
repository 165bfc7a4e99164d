//! A quota that all workers share for a pool of calls. A worker takes permits for the next second from the database, and a
//! wait that the model service asks of one worker holds for all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use quorate_adapters::executor::llm::Quota;
use quorate_ledger::Store;
use quorate_ledger::store::tasks::Permits;
use tokio::time::Instant;

use crate::service::metrics::queue::waits_for_quota;

/// How long permits are valid, and how long a pool without a limit is not asked again.
const AHEAD: Duration = Duration::from_secs(1);
/// How long to wait if the database does not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// The most permits of one request.
const MOST: u64 = 256;

/// Takes permits from the queue's database.
pub struct StoreQuota {
    /// Weak, because the quota lives as long as the process and the ledger does not.
    store: Weak<Store>,
    pools: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Pool>>>>,
}

#[derive(Debug, Default)]
struct Pool {
    permits: u64,
    is_unlimited: bool,
    until: Option<Instant>,
    /// The number of calls since the last request for permits.
    asked: u64,
}

impl Pool {
    async fn ask(&mut self, store: &Store, pool: &str) -> Option<Duration> {
        self.asked += 1;
        // Permits expire after a second, so unused ones do not add up.
        if self.until.is_some_and(|until| until > Instant::now()) && (self.is_unlimited || self.permits > 0) {
            self.permits = self.permits.saturating_sub(1);
            return None;
        }
        let wanted = std::mem::take(&mut self.asked).clamp(1, MOST);
        let taken = store.take_permits(pool, wanted).await.unwrap_or(Permits::Wait(PAUSE));
        let until = Some(Instant::now() + AHEAD);
        match taken {
            Permits::Unlimited => *self = Pool { is_unlimited: true, until, ..Pool::default() },
            Permits::Some(permits) => {
                *self = Pool { permits: permits.saturating_sub(1), until, ..Pool::default() };
            }
            Permits::Wait(wait) => {
                *self = Pool { asked: wanted, ..Pool::default() };
                return Some(wait.max(Duration::from_millis(1)));
            }
        }
        None
    }
}

impl StoreQuota {
    pub fn new(store: &Arc<Store>) -> StoreQuota {
        StoreQuota { store: Arc::downgrade(store), pools: Mutex::default() }
    }
}

#[async_trait]
impl Quota for StoreQuota {
    async fn ask(&self, pool: &str) -> Option<Duration> {
        let state = {
            let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
            pools.entry(pool.to_owned()).or_default().clone()
        };
        let Some(store) = self.store.upgrade() else { return Some(PAUSE) };
        let (name, pool) = (pool.to_owned(), pool.to_owned());
        // In its own task: a run that is about to append does not poll its calls, and a call that is not polled must not
        // hold the connection.
        let asked = tokio::spawn(async move { state.lock().await.ask(&store, &pool).await });
        let wait = asked.await.unwrap_or(Some(PAUSE));
        if let Some(wait) = wait {
            waits_for_quota(&name, wait);
        }
        wait
    }

    fn limited(&self, pool: &str, wait: Duration) {
        let pool = pool.to_owned();
        let (Some(store), Ok(runtime)) = (self.store.upgrade(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            if let Err(error) = store.block_pool(&pool, wait).await {
                tracing::debug!(%error, "cannot share a limit of the model service with other workers");
            }
        });
    }
}
