//! Timeouts of the ledger's server: every wait is bounded, and shorter for an interrupted command.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// The longest silence of a server. The server itself gives up on a writer that waits for the lock before that.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest remaining wait after its command was interrupted.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The total time for retries while another process has the lock: rewriting a large ledger takes minutes.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(600);
/// The longest outage of a server that was available before, for example during a restart or a failover.
pub(super) const RESTART_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before the next try.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The timeouts of a process for the ledger.
#[derive(Debug, Default)]
pub(super) struct Timeouts {
    interrupted: watch::Sender<bool>,
}

impl Timeouts {
    /// Shortens all waits, including running ones.
    pub(super) fn interrupt(&self) {
        self.interrupted.send_replace(true);
    }

    /// Whether the command was interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        *self.interrupted.borrow()
    }

    /// Waits for a result, up to `limit`; `None` after a timeout.
    pub(super) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut interrupted = self.interrupted.subscribe();
        let late = async {
            let is_hurried = async { drop(interrupted.wait_for(|hurried| *hurried).await) };
            tokio::select! {
                () = sleep(limit) => {}
                () = is_hurried => sleep(INTERRUPTED_TIMEOUT.min(limit)).await,
            }
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = late => None,
        }
    }

    /// Pauses before a retry of an operation that another process has blocked since `began`; `false` after a timeout.
    pub(super) async fn pause_before_retry(&self, began: Instant) -> bool {
        if self.is_interrupted() || began.elapsed() >= LOCK_TIMEOUT {
            return false;
        }
        sleep(RETRY_PAUSE).await;
        true
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_in_time_and_sooner_once_the_command_was_interrupted() {
        let patience = std::sync::Arc::new(Timeouts::default());
        let began = Instant::now();
        assert_eq!(patience.within(RESPONSE_TIMEOUT, async { 7 }).await, Some(7));
        assert_eq!(patience.within(RESPONSE_TIMEOUT, std::future::pending::<()>()).await, None);
        assert_eq!(began.elapsed().as_secs(), RESPONSE_TIMEOUT.as_secs());
        let waiting = patience.clone();
        let waiting =
            tokio::spawn(async move { waiting.within(RESPONSE_TIMEOUT, std::future::pending::<()>()).await });
        sleep(Duration::from_secs(3)).await;
        assert!(patience.pause_before_retry(Instant::now()).await);
        let began = Instant::now();
        patience.interrupt();
        assert_eq!(waiting.await.expect("it ends"), None);
        assert!(began.elapsed() <= INTERRUPTED_TIMEOUT + RETRY_PAUSE, "{:?}", began.elapsed());
        assert!(!patience.pause_before_retry(Instant::now()).await);
    }
}
