//! One process's life: each step through a port may take time, fail, crash the process, or be interrupted by a user.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use quorate_testkit::scripted::Rng;

/// What disturbs a life, by the indices of its steps.
#[derive(Debug, Clone, Default)]
pub(super) struct LifePlan {
    /// The process crashes at this step.
    pub(super) crash: Option<usize>,
    /// The crash is a power failure: the ledger loses what was not synced.
    pub(super) loses_power: bool,
    /// The process is interrupted at this step, and closes.
    pub(super) interrupt: Option<usize>,
    /// The cycle is dropped at this step, and the process continues with another one.
    pub(super) drop: Option<usize>,
    /// These steps fail, in addition to those that fail at random.
    pub(super) failing: Range<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StepFailed;

/// The remaining failures of a simulation.
pub(super) struct Failures {
    pub(super) percent: u64,
    pub(super) left: AtomicUsize,
}

impl Failures {
    fn should_fail(&self, rng: &mut Rng) -> bool {
        let less = |remaining: usize| remaining.checked_sub(1);
        rng.percent(self.percent)
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

pub(super) struct Life {
    /// Index among all lives of the simulation.
    pub(super) number: usize,
    plan: LifePlan,
    steps: Mutex<Vec<&'static str>>,
    dead: watch::Sender<bool>,
    interrupted: watch::Sender<bool>,
    dropped: watch::Sender<bool>,
    rng: Mutex<Rng>,
    failures: Arc<Failures>,
    slowest_ms: u64,
}

impl Life {
    pub(super) fn new(
        number: usize,
        plan: LifePlan,
        rng: Rng,
        failures: Arc<Failures>,
        slowest_ms: u64,
    ) -> Arc<Life> {
        Arc::new(Life {
            number,
            plan,
            steps: Mutex::default(),
            dead: watch::Sender::new(false),
            interrupted: watch::Sender::new(false),
            dropped: watch::Sender::new(false),
            rng: Mutex::new(rng),
            failures,
            slowest_ms,
        })
    }

    /// A life without failures.
    pub(super) fn undisturbed(number: usize) -> Arc<Life> {
        let failures = Failures { percent: 0, left: AtomicUsize::new(0) };
        Life::new(number, LifePlan::default(), Rng::new(0), Arc::new(failures), 0)
    }

    /// The steps so far, in order.
    pub(super) fn steps(&self) -> Vec<&'static str> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A step that does not fail: the process may crash or be interrupted in it.
    pub(super) async fn pause(&self, what: &'static str) {
        let _ = self.step(what).await;
    }

    /// A step; it never returns if the process crashes in it.
    pub(super) async fn step(&self, what: &'static str) -> Result<(), StepFailed> {
        let step = {
            let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
            steps.push(what);
            steps.len() - 1
        };
        if self.plan.crash == Some(step) {
            self.dead.send_replace(true);
        }
        if self.plan.interrupt == Some(step) {
            self.interrupted.send_replace(true);
        }
        if self.plan.drop == Some(step) {
            self.dropped.send_replace(true);
        }
        let (ms, fails) = {
            let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
            let ms = if rng.percent(60) { rng.below(self.slowest_ms + 1) } else { 0 };
            (ms, self.plan.failing.contains(&step) || self.failures.should_fail(&mut rng))
        };
        match ms {
            0 => tokio::task::yield_now().await,
            ms => tokio::time::sleep(Duration::from_millis(ms)).await,
        }
        if *self.dead.borrow() {
            // Spawned tasks are still polled after a crash, but must do nothing.
            std::future::pending::<()>().await;
        }
        if fails { Err(StepFailed) } else { Ok(()) }
    }

    /// Returns when the process has crashed.
    pub(super) async fn died(&self) {
        wait_for(&self.dead).await;
    }

    /// Returns when the process is interrupted.
    pub(super) async fn interrupted(&self) {
        wait_for(&self.interrupted).await;
    }

    /// Returns once, when a cycle must be dropped.
    pub(super) async fn cycle_dropped(&self) {
        wait_for(&self.dropped).await;
        self.dropped.send_replace(false);
    }
}

/// Returns when the flag is set.
pub(super) async fn wait_for(flag: &watch::Sender<bool>) {
    // The caller holds the sender, so the channel stays open.
    let _ = flag.subscribe().wait_for(|set| *set).await;
}
