//! A ticker: a thread that calls a function periodically until it is dropped.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::lock;

/// The first call comes late, so that short work shows no progress at all.
const FIRST_DELAY: Duration = Duration::from_millis(150);
/// The pace of a spinner.
const INTERVAL: Duration = Duration::from_millis(100);

/// Dropping it ends the thread.
pub(super) struct Ticker {
    stopped: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread. If that fails, the command runs without progress.
    pub(super) fn start(mut beat: impl FnMut() + Send + 'static) -> Ticker {
        let stopped = Arc::new((Mutex::new(false), Condvar::new()));
        let state = stopped.clone();
        let body = move || {
            let mut wait = FIRST_DELAY;
            loop {
                let (error, wake) = &*state;
                let waited = wake.wait_timeout_while(lock(error), wait, |error| !*error);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                beat();
                wait = INTERVAL;
            }
        };
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(body).ok();
        Ticker { stopped, thread }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        *lock(&self.stopped.0) = true;
        self.stopped.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A function that panicked shows nothing any more.
            let _ = thread.join();
        }
    }
}
