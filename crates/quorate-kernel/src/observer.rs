//! Observers: whoever wants to see a run while it goes on. They can change nothing.

use std::time::Duration;

/// Watches one run. All methods have a default that does nothing.
pub trait Observer: Send + Sync {
    /// The run is recorded and can be resumed from now on.
    fn opened(&self, run: &str) {
        let _ = run;
    }

    /// A member is asked.
    fn asked(&self, id: &str, member: &str, step: &str) {
        let _ = (id, member, step);
    }

    /// An attempt gave nothing and another follows.
    fn retried(&self, id: &str, why: &str) {
        let _ = (id, why);
    }

    /// An invocation ended, with its status word.
    fn ended(&self, id: &str, status: &str, took: Duration) {
        let _ = (id, status, took);
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NoopObserver;

impl Observer for NoopObserver {}
