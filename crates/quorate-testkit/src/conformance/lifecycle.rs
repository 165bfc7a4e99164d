//! Requirements on every lifecycle (see the port's documentation): a hook's failure is an error with a message, in time.

use std::time::Duration;

use quorate_kernel::ports::lifecycle::{DEADLINE, HookError, Lifecycle};

use super::dispatcher::turn;

/// How long past its deadline a hook may take to end.
const GRACE: Duration = Duration::from_secs(4);

/// Calls every hook, one after the other, and asserts that each ends in time.
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

/// Asserts that a working lifecycle accepts every event, repeatedly.
///
/// # Panics
/// When it does not.
pub async fn accepts_every_event(lifecycle: &dyn Lifecycle) {
    assert!(!lifecycle.kind().is_empty());
    for _ in 0..2 {
        for (at, result) in call_all(lifecycle).await.into_iter().enumerate() {
            assert_eq!(result, Ok(()), "hook {at}");
        }
    }
}

/// Asserts that a lifecycle whose hooks all fail reports each failure with a message.
///
/// # Panics
/// When it does not.
pub async fn reports_failure(lifecycle: &dyn Lifecycle) {
    for _ in 0..2 {
        for (at, result) in call_all(lifecycle).await.into_iter().enumerate() {
            let message = result.expect_err("it fails");
            assert!(!message.trim().is_empty(), "hook {at} has words");
        }
    }
}
