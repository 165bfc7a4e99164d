//! Timeouts of the ledger's server: every wait is bounded, and shorter for an interrupted command.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How long a server may say nothing. It gives a writer up that waits for the lock before that.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a wait still takes once its command was interrupted.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long to try again while another process has the lock: rewriting a large ledger takes minutes.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a server may be away that was there before, as one that is restarted or whose copy takes over.
pub(super) const RESTART_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before the next try.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// How patient a process is with the ledger.
#[derive(Debug)]
pub(super) struct Timeouts {
    interrupted: watch::Sender<bool>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { interrupted: watch::Sender::new(false) }
    }
}

impl Timeouts {
    /// From now on no wait takes long, one that has begun included.
    pub(super) fn interrupt(&self) {
        self.interrupted.send_replace(true);
    }

    /// Whether the command was interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        *self.interrupted.borrow()
    }

    /// Waits for something, and no longer than `limit`; `None` where that was not enough.
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

    /// Pauses before something is tried again that another process was in the way of since `began`; `false` where that
    /// has been going on for too long.
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
