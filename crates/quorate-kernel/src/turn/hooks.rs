//! Hooks: started in the order of what happens, waited for by nobody (SEMANTICS K2).

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinSet;

use crate::clock::{Clock, rfc3339};
use crate::conversation::Turn;
use crate::ports::lifecycle::{DEADLINE, Failed, Lifecycle};
use crate::ports::telemetry::{Event, Telemetry, What};

/// The hooks of a swarm, and those that are under way.
pub(super) struct Hooks {
    lifecycles: Vec<Arc<dyn Lifecycle>>,
    telemetry: Arc<dyn Telemetry>,
    clock: Arc<dyn Clock>,
    under_way: JoinSet<()>,
}

impl Hooks {
    pub(super) fn new(
        lifecycles: Vec<Arc<dyn Lifecycle>>,
        telemetry: Arc<dyn Telemetry>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Hooks { lifecycles, telemetry, clock, under_way: JoinSet::new() }
    }

    pub(super) fn turn_end(&mut self, cycle: u64, turn: &Turn) {
        for one in self.lifecycles.clone() {
            let turn = turn.clone();
            self.start(cycle, "onTurnEnd", async move { one.on_turn_end(&turn).await });
        }
    }

    pub(super) fn mention(&mut self, cycle: u64, target: &str, by: &Turn) {
        for one in self.lifecycles.clone() {
            let (target, by) = (target.to_owned(), by.clone());
            self.start(cycle, "onMention", async move { one.on_mention(&target, &by).await });
        }
    }

    pub(super) fn idle(&mut self, cycle: u64) {
        for one in self.lifecycles.clone() {
            self.start(cycle, "onIdle", async move { one.on_idle().await });
        }
    }

    /// Waits for those under way; what is left then is dropped.
    pub(super) async fn settle(&mut self, limit: Duration) {
        let all = async { while self.under_way.join_next().await.is_some() {} };
        // Each has its own deadline; whoever is in more of a hurry goes without.
        let _ = tokio::time::timeout(limit, all).await;
        self.under_way.abort_all();
    }

    fn start(
        &mut self,
        cycle: u64,
        hook: &'static str,
        runs: impl Future<Output = Result<(), Failed>> + Send + 'static,
    ) {
        while self.under_way.try_join_next().is_some() {}
        let (telemetry, clock) = (self.telemetry.clone(), self.clock.clone());
        self.under_way.spawn(async move {
            let error = match tokio::time::timeout(DEADLINE, AssertUnwindSafe(runs).catch_unwind()).await {
                Ok(Ok(Ok(()))) => return,
                Ok(Ok(Err(error))) => error,
                Ok(Err(_)) => "it panicked".to_owned(),
                Err(_) => format!("it did not end within {} s", DEADLINE.as_secs()),
            };
            let what = What::HookFailed { hook, error };
            telemetry.emit(&Event { cycle, at: rfc3339(clock.now_ms()), what });
        });
    }
}
