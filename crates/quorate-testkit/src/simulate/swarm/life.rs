//! One life of a process: every step it takes through a port may take time, fail, be its last, or be where somebody
//! presses Ctrl-C.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::rng::Rng;

/// How a life ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LifeEnd {
    Never,
    /// The process is killed at this step.
    Crash(usize),
    /// It is interrupted at this step, and closes.
    Interrupt(usize),
}

/// A step that failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepFailed;

/// The failures that a simulation still has in store.
pub(super) struct Failures {
    pub(super) percent: u64,
    pub(super) left: AtomicUsize,
}

impl Failures {
    fn should_fail(&self, chance: &mut Rng) -> bool {
        let less = |left: usize| left.checked_sub(1);
        chance.percent(self.percent)
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// One life of a process.
pub(super) struct Life {
    /// Its number among all lives of the simulation.
    pub(super) number: usize,
    end: LifeEnd,
    steps: AtomicUsize,
    dead: watch::Sender<bool>,
    interrupted: watch::Sender<bool>,
    chance: Mutex<Rng>,
    failures: Arc<Failures>,
    slowest_ms: u64,
}

impl Life {
    pub(super) fn new(
        number: usize,
        end: LifeEnd,
        chance: Rng,
        failures: Arc<Failures>,
        slowest_ms: u64,
    ) -> Arc<Life> {
        Arc::new(Life {
            number,
            end,
            steps: AtomicUsize::new(0),
            dead: watch::Sender::new(false),
            interrupted: watch::Sender::new(false),
            chance: Mutex::new(chance),
            failures,
            slowest_ms,
        })
    }

    /// One that nothing happens to.
    pub(super) fn undisturbed(number: usize) -> Arc<Life> {
        let failures = Failures { percent: 0, left: AtomicUsize::new(0) };
        Life::new(number, LifeEnd::Never, Rng::new(0), Arc::new(failures), 0)
    }

    /// A step. Where the process dies in it, it never returns.
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
            let mut chance = self.chance.lock().unwrap_or_else(PoisonError::into_inner);
            let ms = if chance.percent(60) { chance.below(self.slowest_ms + 1) } else { 0 };
            (ms, self.failures.should_fail(&mut chance))
        };
        match ms {
            0 => tokio::task::yield_now().await,
            ms => tokio::time::sleep(Duration::from_millis(ms)).await,
        }
        if *self.dead.borrow() {
            // What was started in a task of its own is still polled; the dead do nothing any more.
            std::future::pending::<()>().await;
        }
        if fails { Err(StepFailed) } else { Ok(()) }
    }

    /// Returns when the process is dead.
    pub(super) async fn died(&self) {
        wait_for(&self.dead).await;
    }

    /// Returns when it is interrupted.
    pub(super) async fn interrupted(&self) {
        wait_for(&self.interrupted).await;
    }
}

/// Returns when it is so.
pub(super) async fn wait_for(flag: &watch::Sender<bool>) {
    // The sender is in hand, so that the channel stays open.
    let _ = flag.subscribe().wait_for(|set| *set).await;
}
