//! The budget of a run: calls are reserved before they are made (X8).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The caps of a run. `None` is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    /// Calls, re-prompts and retries included.
    pub calls: Option<u32>,
    /// Time that the run is worked on.
    pub wall: Option<Duration>,
}

/// Counts the calls of one run, over all its sessions.
#[derive(Debug)]
pub struct CallBudget {
    cap: Option<u32>,
    reserved: AtomicU32,
}

impl CallBudget {
    /// With what earlier sessions spent.
    pub fn new(cap: Option<u32>, spent: u32) -> Self {
        CallBudget { cap, reserved: AtomicU32::new(spent) }
    }

    /// Whether this number of calls is left.
    pub fn has_left(&self, calls: usize) -> bool {
        let reserved = usize::try_from(self.reserved.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        self.cap.is_none_or(|cap| usize::try_from(cap).is_ok_and(|cap| cap.saturating_sub(reserved) >= calls))
    }

    /// Takes one call, if there is one left. What is taken is never given back: a call that was under way when the
    /// process died may have been paid for.
    #[must_use]
    pub fn reserve(&self) -> bool {
        let take = |taken: u32| match self.cap {
            Some(cap) if taken >= cap => None,
            _ => taken.checked_add(1),
        };
        self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_cap_is_ever_taken() {
        // X8
        let calls = CallBudget::new(Some(3), 1);
        assert_eq!((calls.reserve(), calls.reserve(), calls.reserve()), (true, true, false));
        let three = CallBudget::new(Some(3), 1);
        assert!(three.has_left(2) && !three.has_left(3) && CallBudget::new(None, 7).has_left(1_000));
        assert!((0..100).all(|_| CallBudget::new(None, 7).reserve()));
    }
}
