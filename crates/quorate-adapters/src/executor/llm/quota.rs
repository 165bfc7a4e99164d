//! How fast the processes of several machines together ask a pool. The program that runs them keeps count.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;

/// Counts the calls of a pool over all processes that share it.
#[async_trait]
pub trait Quota: Send + Sync {
    /// Asks for one call through a pool. Gives after what time to ask again; nothing where the call may be made.
    async fn ask(&self, pool: &str) -> Option<Duration>;

    /// The service has limited a call through a pool, and asks to wait.
    fn limited(&self, pool: &str, wait: Duration);
}

/// Who counts for this process.
static QUOTA: OnceLock<Arc<dyn Quota>> = OnceLock::new();

/// Has the calls of this process counted from now on. The first call counts.
pub fn share_quota(quota: Arc<dyn Quota>) {
    let _ = QUOTA.set(quota);
}

pub(super) fn shared() -> Option<&'static Arc<dyn Quota>> {
    QUOTA.get()
}
