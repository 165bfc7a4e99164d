//! Whether this process still drives a run that another one could take over.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;

/// Says whether this process drives a run.
#[async_trait]
pub trait Drives: Send + Sync {
    /// Returns true as soon as it is certain, and false once it is not so any more or the time is over.
    async fn drives(&self, until: Instant) -> bool;
}

/// What an executor asks before it sends anything: a process that was stopped for a while, or cut off from the ledger, may
/// have lost its run to another one, which asks the same. Without a fence no other process can.
#[derive(Clone, Default)]
pub struct Fence(Option<Arc<dyn Drives>>);

impl Fence {
    /// One that asks.
    pub fn of(drives: Arc<dyn Drives>) -> Fence {
        Fence(Some(drives))
    }

    /// Whether this process drives the run, at the latest at this time.
    pub async fn holds(&self, until: Instant) -> bool {
        match &self.0 {
            Some(drives) => drives.drives(until).await,
            None => true,
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Fence" } else { "no fence" })
    }
}
