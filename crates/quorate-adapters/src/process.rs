//! What a program does once for the processes that its executors start.

use std::path::Path;
use std::time::Duration;

use crate::executor::agent_cli;
use crate::executor::agent_cli::once::Once;

/// Turns this process into the guard when it was started as one: the helper that ends members if the program is
/// killed. Does not return then.
pub fn run_guard_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|first| first == agent_cli::guard::ARGUMENT) {
        agent_cli::guard::run();
    }
}

/// Makes children that ended stay until they are waited for, although the parent of this process may have ignored the end of
/// children. To be called before anything is started.
pub fn restore_signals() {
    agent_cli::restore_signals();
}

/// Says that this program starts nothing but members and their guard, so that whatever it adopts is a member's. To be called
/// after [`adopt_orphans`], before anything is started.
pub fn claim_orphans() {
    agent_cli::claim_orphans();
}

/// Keeps other processes of the same user from looking into this one: its memory, its environment, which may hold a signing
/// key, and its descriptors. Where the system has no such thing nothing changes; root can look into everything.
pub fn close_to_others() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A kernel that refuses leaves it as it was, as elsewhere.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

pub use agent_cli::sandbox::{Kept, available as can_confine, keep as keep_from_members};

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

/// Runs a command of the user's own as members are run: it is given a text on stdin, and ended with all that it started
/// when its time is over or the future is dropped. A relative path with a `/` is relative to `dir`, where it runs. Gives
/// what it printed.
///
/// # Errors
/// When it does not succeed, for a person.
pub async fn ask(command: &[String], dir: &Path, text: String, timeout: Duration) -> Result<String, String> {
    let (program, arguments) = command.split_first().ok_or("no command is named")?;
    let once = Once::new(program, arguments.to_vec(), Vec::new(), dir).map_err(|refused| refused.message)?;
    once.ask(text.into(), timeout).await
}
