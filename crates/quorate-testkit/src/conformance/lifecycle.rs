//! What every lifecycle must do (see the port's text): a hook's trouble is an error with words, in time.

use std::time::Duration;

use quorate_kernel::ports::lifecycle::{DEADLINE, HookError, Lifecycle};

use super::dispatcher::turn;

/// How long past its deadline a hook may take to be gone.
const GRACE: Duration = Duration::from_secs(4);

/// Calls every hook, one after the other; each ends in time.
///
/// # Panics
/// When one does not.
pub async fn call_all(lifecycle: &dyn Lifecycle) -> [Result<(), HookError>; 3] {
    let turn = turn(1, "someone", "said\nin \"two\" lines");
    let limit = DEADLINE + GRACE;
    let late = "a hook ends by its deadline";
    [
        tokio::time::timeout(limit, lifecycle.on_turn_end(&turn)).await.expect(late),
        tokio::time::timeout(limit, lifecycle.on_mention("reviewer", &turn)).await.expect(late),
        tokio::time::timeout(limit, lifecycle.on_idle()).await.expect(late),
    ]
}

/// A lifecycle that works takes every event, more than once.
///
/// # Panics
/// When it does not.
pub async fn accepts_every_event(lifecycle: &dyn Lifecycle) {
    assert!(!lifecycle.kind().is_empty());
    for _ in 0..2 {
        for (at, called) in call_all(lifecycle).await.into_iter().enumerate() {
            assert_eq!(called, Ok(()), "hook {at}");
        }
    }
}

/// A lifecycle whose hooks all fail says so, each time, with words.
///
/// # Panics
/// When it does not.
pub async fn reports_failure(lifecycle: &dyn Lifecycle) {
    for _ in 0..2 {
        for (at, called) in call_all(lifecycle).await.into_iter().enumerate() {
            let message = called.expect_err("it fails");
            assert!(!message.trim().is_empty(), "hook {at} has words");
        }
    }
}
