//! One process's life: each step through a port may take time, fail, crash the process, or be interrupted by a user.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::rng::Rng;

/// How a life ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LifeEnd {
    Never,
    /// The process crashes at this step.
    Crash(usize),
    /// The process is interrupted at this step, and closes.
    Interrupt(usize),
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
    end: LifeEnd,
    steps: AtomicUsize,
    dead: watch::Sender<bool>,
    interrupted: watch::Sender<bool>,
    rng: Mutex<Rng>,
    failures: Arc<Failures>,
    slowest_ms: u64,
}

impl Life {
    pub(super) fn new(
        number: usize,
        end: LifeEnd,
        rng: Rng,
        failures: Arc<Failures>,
        slowest_ms: u64,
    ) -> Arc<Life> {
        Arc::new(Life {
            number,
            end,
            steps: AtomicUsize::new(0),
            dead: watch::Sender::new(false),
            interrupted: watch::Sender::new(false),
            rng: Mutex::new(rng),
            failures,
            slowest_ms,
        })
    }

    /// A life without failures.
    pub(super) fn undisturbed(number: usize) -> Arc<Life> {
        let failures = Failures { percent: 0, left: AtomicUsize::new(0) };
        Life::new(number, LifeEnd::Never, Rng::new(0), Arc::new(failures), 0)
    }

    /// A step; it never returns if the process crashes in it.
    pub(super) async fn step(&self) -> Result<(), StepFailed> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        match self.end {
            LifeEnd::Crash(last) if step == last => {
                self.dead.send_replace(true);
            }
            LifeEnd::Interrupt(at) if step == at => {
                self.interrupted.send_replace(true);
            }
            _ => {}
        }
        let (ms, fails) = {
            let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
            let ms = if rng.percent(60) { rng.below(self.slowest_ms + 1) } else { 0 };
            (ms, self.failures.should_fail(&mut rng))
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
}

/// Returns when the flag is set.
pub(super) async fn wait_for(flag: &watch::Sender<bool>) {
    // The caller holds the sender, so the channel stays open.
    let _ = flag.subscribe().wait_for(|set| *set).await;
}
