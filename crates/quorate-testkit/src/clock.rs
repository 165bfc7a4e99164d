//! Clocks for tests: one advances by a millisecond at each reading, the other also jumps.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use quorate_kernel::clock::Clock;

use crate::rng::Rng;

/// Starts at a fixed time and advances by one millisecond at each reading.
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

/// A clock that ticks, and sometimes jumps forward or back by minutes or days, determined by its seed.
#[derive(Debug)]
pub struct JumpingClock(Mutex<(i64, Rng)>);

impl JumpingClock {
    /// Starts at a time determined by its seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::from_seed_and_name(seed, "clock");
        let start_ms = 1_800_000_000_000 + jump_ms(&mut rng);
        JumpingClock(Mutex::new((start_ms, rng)))
    }
}

impl Clock for JumpingClock {
    fn now_ms(&self) -> i64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (now_ms, rng) = &mut *state;
        *now_ms += if rng.percent(5) { jump_ms(rng) } else { 1 };
        *now_ms
    }
}

/// Up to two hours, or up to twelve days, in either direction.
fn jump_ms(rng: &mut Rng) -> i64 {
    let most = [7_200_000, 1_036_800_000][usize::from(rng.percent(30))];
    let leap = i64::try_from(rng.below(most)).unwrap_or(0);
    if rng.percent(50) { leap } else { -leap }
}
