//! Clocks for tests: one moves on by one millisecond at each look, one leaps.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use quorate_kernel::clock::Clock;

use crate::rng::Rng;

/// Starts at a fixed time and moves on by one millisecond at each look.
#[derive(Debug)]
pub struct TickingClock(AtomicI64);

impl Default for TickingClock {
    fn default() -> Self {
        TickingClock(AtomicI64::new(1_800_000_000_000))
    }
}

impl Clock for TickingClock {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A clock that is set: it ticks, and now and then leaps forward or back by minutes or days, as its seed says.
#[derive(Debug)]
pub struct JumpingClock(Mutex<(i64, Rng)>);

impl JumpingClock {
    /// Starts at a time of its seed's own.
    pub fn new(seed: u64) -> Self {
        let mut chance = Rng::from_seed_and_name(seed, "clock");
        let start_ms = 1_800_000_000_000 + jump_ms(&mut chance);
        JumpingClock(Mutex::new((start_ms, chance)))
    }
}

impl Clock for JumpingClock {
    fn now_ms(&self) -> i64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (now_ms, chance) = &mut *state;
        *now_ms += if chance.percent(5) { jump_ms(chance) } else { 1 };
        *now_ms
    }
}

/// Up to two hours or up to twelve days, either way.
fn jump_ms(chance: &mut Rng) -> i64 {
    let most = [7_200_000, 1_036_800_000][usize::from(chance.percent(30))];
    let leap = i64::try_from(chance.below(most)).unwrap_or(0);
    if chance.percent(50) { leap } else { -leap }
}
