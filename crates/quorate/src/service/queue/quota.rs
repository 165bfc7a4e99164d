//! One quota of a pool over all workers: permits are taken from the database, a second ahead, and a wait that the service
//! asks one worker for holds for all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use quorate_adapters::executor::llm::Quota;
use quorate_ledger::Store;
use quorate_ledger::store::tasks::limits::Permits;
use tokio::time::Instant;

use crate::service::metrics::queue::waits_for_quota;

/// How long permits, and the answer that there is no limit, are used.
const AHEAD: Duration = Duration::from_secs(1);
/// How long to wait where the database does not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// The most permits that are taken at once.
const MOST: u64 = 256;

/// Takes permits from the queue's database.
pub struct StoreQuota {
    /// It lasts as long as the process, which the ledger does not.
    store: Weak<Store>,
    pools: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Pool>>>>,
}

#[derive(Debug, Default)]
struct Pool {
    permits: u64,
    is_unlimited: bool,
    until: Option<Instant>,
    /// How many calls were asked for since permits were taken last.
    asked: u64,
}

impl Pool {
    async fn ask(&mut self, store: &Store, pool: &str) -> Option<Duration> {
        self.asked += 1;
        // What was not used within its second is not saved up here.
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
        // A task of its own: a run that is about to append does not poll its calls, and one of them must not have the
        // connection then.
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
                tracing::debug!(%error, "a limit of the service was not shared");
            }
        });
    }
}
