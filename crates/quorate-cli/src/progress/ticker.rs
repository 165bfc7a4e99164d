//! A heartbeat: one thread that calls a function again and again until it is dropped.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::lock;

/// The first beat comes late, so that what is over at once is not shown at all.
const FIRST_DELAY: Duration = Duration::from_millis(150);
/// Then a spinner turns.
const INTERVAL: Duration = Duration::from_millis(100);

/// The heartbeat. Its thread is gone when it is dropped.
pub(super) struct Ticker {
    stopped: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts it. Where no thread can be had nothing beats: progress is not worth an error.
    pub(super) fn start(mut beat: impl FnMut() + Send + 'static) -> Ticker {
        let stopped = Arc::new((Mutex::new(false), Condvar::new()));
        let own = stopped.clone();
        let body = move || {
            let mut wait = FIRST_DELAY;
            loop {
                let (error, wake) = &*own;
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
            // A beat that panicked has nothing left to show.
            let _ = thread.join();
        }
    }
}
