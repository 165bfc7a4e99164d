//! What a program does once for the processes that its executors start.

use std::time::Duration;

use crate::executor::agent_cli;

/// Turns this process into the guard when it was started as one: the helper that ends members if the program is
/// killed. Does not return then.
pub fn run_guard_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|first| first == agent_cli::guard::ARGUMENT) {
        agent_cli::guard::run();
    }
}

/// Says that [`run_guard_if_asked`] stands at the beginning of `main`, so that a guard can be started.
pub fn enable_guard() {
    agent_cli::guard::enable();
}

/// Lets this process adopt what its members leave behind, so that it is found and ended. Where the system has no
/// such thing, process groups alone are ended, and `doctor` says so.
pub fn adopt_orphans() -> bool {
    agent_cli::adopt_orphans().is_ok()
}

/// Waits, at most for `limit`, until nothing runs any more that members had started.
pub fn settle(limit: Duration) {
    agent_cli::settle(limit);
}
