//! Hooks: started in the order of what happens; the conversation never waits for them (K2). At most [`MOST`] run at once and
//! [`WAITING`] wait: a hook that is slower than the conversation cannot use up processes, descriptors or memory. Calls
//! beyond that are dropped, and each is reported.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::clock::{Clock, rfc3339};
use crate::conversation::Turn;
use crate::ports::telemetry::{DEADLINE, HookError, Lifecycle};
use crate::ports::telemetry::{Event, EventKind, Telemetry};

/// How many hooks run at once. A command takes a process and some ten descriptors, and members need theirs.
const MAX_RUNNING: usize = 8;
/// How many hooks wait for their turn.
const MAX_WAITING: usize = 256;

/// The hooks of a swarm, and those that are under way.
pub(super) struct Hooks {
    lifecycles: Vec<Arc<dyn Lifecycle>>,
    telemetry: Arc<dyn Telemetry>,
    clock: Arc<dyn Clock>,
    /// Its permits are given in the order in which they were asked for.
    permits: Arc<Semaphore>,
    running: JoinSet<()>,
}

impl Hooks {
    pub(super) fn new(
        lifecycles: Vec<Arc<dyn Lifecycle>>,
        telemetry: Arc<dyn Telemetry>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Hooks {
            lifecycles,
            telemetry,
            clock,
            permits: Arc::new(Semaphore::new(MAX_RUNNING)),
            running: JoinSet::new(),
        }
    }

    pub(super) fn turn_end(&mut self, cycle: u64, turn: &Turn) {
        for lifecycle in self.lifecycles.clone() {
            let (kind, turn) = (lifecycle.kind(), turn.clone());
            self.start(cycle, "onTurnEnd", kind, async move { lifecycle.on_turn_end(&turn).await });
        }
    }

    pub(super) fn mention(&mut self, cycle: u64, target: &str, by: &Turn) {
        for lifecycle in self.lifecycles.clone() {
            let (kind, target, by) = (lifecycle.kind(), target.to_owned(), by.clone());
            self.start(cycle, "onMention", kind, async move { lifecycle.on_mention(&target, &by).await });
        }
    }

    pub(super) fn idle(&mut self, cycle: u64) {
        for lifecycle in self.lifecycles.clone() {
            let kind = lifecycle.kind();
            self.start(cycle, "onIdle", kind, async move { lifecycle.on_idle().await });
        }
    }

    /// Waits for running hooks until a deadline, then drops and reports the remaining ones.
    pub(super) async fn settle(&mut self, limit: Duration) {
        let all = async { while self.running.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(limit, all).await;
        self.running.shutdown().await;
    }

    fn start(
        &mut self,
        cycle: u64,
        hook: &'static str,
        kind: &'static str,
        runs: impl Future<Output = Result<(), HookError>> + Send + 'static,
    ) {
        while self.running.try_join_next().is_some() {}
        let (telemetry, clock) = (self.telemetry.clone(), self.clock.clone());
        let mut ending = FailureReporter { telemetry, clock, cycle, hook, failed: None };
        if self.running.len() >= MAX_RUNNING + MAX_WAITING {
            ending.failed = Some(format!(
                "the `{kind}` lifecycle was not called: {MAX_RUNNING} hooks run and {MAX_WAITING} wait already"
            ));
            return;
        }
        ending.failed = Some(format!("the `{kind}` lifecycle had not ended when the run did"));
        let permits = self.permits.clone();
        self.running.spawn(async move {
            let Ok(_permit) = permits.acquire().await else { return };
            let ended = tokio::time::timeout(DEADLINE, AssertUnwindSafe(runs).catch_unwind()).await;
            ending.report(match ended {
                Ok(Ok(Ok(()))) => None,
                Ok(Ok(Err(error))) => Some(error),
                Ok(Err(_)) => Some(format!("the `{kind}` lifecycle panicked")),
                Err(_) => Some(format!("the `{kind}` lifecycle did not end within {} s", DEADLINE.as_secs())),
            });
        });
    }
}

/// Reports a hook that failed, also where its task is dropped.
struct FailureReporter {
    telemetry: Arc<dyn Telemetry>,
    clock: Arc<dyn Clock>,
    cycle: u64,
    hook: &'static str,
    failed: Option<HookError>,
}

impl FailureReporter {
    fn report(mut self, failed: Option<HookError>) {
        self.failed = failed;
    }
}

impl Drop for FailureReporter {
    fn drop(&mut self) {
        if let Some(error) = self.failed.take() {
            let what = EventKind::HookFailed { hook: self.hook, error };
            self.telemetry.emit(&Event { cycle: self.cycle, at: rfc3339(self.clock.now_ms()), kind: what });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;

    /// A lifecycle whose idle hook ends when it is let go, and telemetry that counts what failed.
    #[derive(Default)]
    struct Slow {
        running: AtomicUsize,
        most: AtomicUsize,
        called: AtomicUsize,
        go: Option<Arc<Semaphore>>,
    }

    #[async_trait]
    impl Lifecycle for Slow {
        fn kind(&self) -> &'static str {
            "slow"
        }

        async fn on_idle(&self) -> Result<(), HookError> {
            self.called.fetch_add(1, Ordering::SeqCst);
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            match &self.go {
                Some(go) => go.acquire().await.unwrap().forget(),
                None => std::future::pending().await,
            }
            self.running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    }

    #[derive(Default)]
    struct RecordedFailures(Mutex<Vec<String>>);

    impl Telemetry for RecordedFailures {
        fn emit(&self, event: &Event) {
            let EventKind::HookFailed { error, .. } = &event.kind else { return };
            self.0.lock().unwrap().push(error.clone());
        }
    }

    struct Now;

    impl Clock for Now {
        fn now_ms(&self) -> i64 {
            0
        }
    }

    fn hooks(slow: &Arc<Slow>) -> (Hooks, Arc<RecordedFailures>) {
        let failures = Arc::new(RecordedFailures::default());
        (Hooks::new(vec![slow.clone()], failures.clone(), Arc::new(Now)), failures)
    }

    #[tokio::test]
    async fn a_flood_of_hooks_runs_a_few_at_once_and_what_is_dropped_says_so() {
        // The conversation never waits for hooks, and they cannot use up what members need (K2).
        let slow = Arc::new(Slow::default());
        let (mut hooks, failures) = hooks(&slow);
        for cycle in 0..1_000 {
            hooks.idle(cycle);
            tokio::task::yield_now().await;
        }
        let dropped = failures.0.lock().unwrap().clone();
        assert_eq!(dropped.len(), 1_000 - MAX_RUNNING - MAX_WAITING);
        assert!(
            dropped.iter().all(|why| why.contains("`slow` lifecycle was not called: 8 hooks run")),
            "{dropped:?}"
        );
        hooks.settle(Duration::from_millis(10)).await;
        assert_eq!(slow.most.load(Ordering::SeqCst), MAX_RUNNING);
        let failures = failures.0.lock().unwrap();
        assert_eq!(failures.len(), 1_000, "each is reported");
        assert!(
            failures[dropped.len()..].iter().all(|why| why.contains("had not ended when the run did")),
            "{failures:?}"
        );
    }

    #[tokio::test]
    async fn what_waits_runs_once_there_is_room() {
        let go = Arc::new(Semaphore::new(0));
        let slow = Arc::new(Slow { go: Some(go.clone()), ..Slow::default() });
        let (mut hooks, failures) = hooks(&slow);
        (0..100).for_each(|cycle| hooks.idle(cycle));
        go.add_permits(100);
        hooks.settle(Duration::from_secs(60)).await;
        assert_eq!((slow.called.load(Ordering::SeqCst), failures.0.lock().unwrap().len()), (100, 0));
    }
}
