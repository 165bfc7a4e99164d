//! A clock for tests: it moves on by one millisecond at each look.

use std::sync::atomic::{AtomicI64, Ordering};

use quorate_kernel::clock::Clock;

/// Starts at a fixed time and moves on by one millisecond at each look.
#[derive(Debug)]
pub struct Ticking(AtomicI64);

impl Default for Ticking {
    fn default() -> Self {
        Ticking(AtomicI64::new(1_800_000_000_000))
    }
}

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}
