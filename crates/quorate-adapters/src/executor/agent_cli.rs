//! The `agent-cli` executor: any command that reads a prompt on stdin and prints its answer. This file owns the
//! public functions and the times of an attempt. In `agent_cli/`: `cli` is the executor, `config` reads its block, `presets`
//! knows CLIs by name, `output` interprets output, `judge` calls a vendor's CLI as a judge (feature `agent-cli`).
//! `environment` selects variables, `sandbox` restricts access, `call` limits attempts and owns their files, `oneshot` runs
//! other commands and asks for versions, and `command`, `guard` and `running_process` start, contain, watch and end
//! processes.

#[cfg(feature = "agent-cli")]
mod call;
#[cfg(feature = "agent-cli")]
mod cli;
pub(crate) mod command;
#[cfg(feature = "agent-cli")]
mod config;
mod environment;
mod guard;
#[cfg(feature = "agent-cli")]
mod judge;
pub(crate) mod oneshot;
#[cfg(feature = "agent-cli")]
mod output;
#[cfg(feature = "agent-cli")]
mod presets;
pub(crate) mod running_process;
pub mod sandbox;
pub(crate) mod side_effect;
#[cfg(feature = "agent-cli")]
mod tool_grants;

#[cfg(not(feature = "agent-cli"))]
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(not(feature = "agent-cli"))]
use quorate_kernel::ports::executor::{ConfigError, Executor, Settings};

#[cfg(feature = "agent-cli")]
pub use cli::new;
pub use environment::{MEMBER_ID_VARIABLE, MEMBER_VARIABLE};
pub use guard::{ends_descendants, ignores_hangups};
#[cfg(feature = "agent-cli")]
pub use presets::{BARE_PRESET, CliPreset, PRESETS};
pub use running_process::wait_for_members;

use crate::optional_kinds;

/// The kind that `quorate.toml` names.
pub const KIND: &str = optional_kinds::AGENT_CLI;

/// Between SIGTERM and SIGKILL.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Refuses to build the executor, which this program leaves out.
///
/// # Errors
/// Always.
#[cfg(not(feature = "agent-cli"))]
pub fn new(_: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    Err(optional_kinds::missing_executor(KIND))
}

/// Kills all processes of members, without the usual two seconds. Takes a second at most if a process cannot be killed.
/// The program calls it before it exits in a hurry.
pub fn terminate_members() {
    running_process::kill_all();
    wait_for_members(guard::KILL_TIMEOUT);
}

/// Keeps ended children until they are waited for, even if the parent of this process ignores SIGCHLD, and makes writes
/// beyond `ulimit -f` fail instead of ending this process. Call it before the first process is started.
pub fn restore_signals() {
    guard::restore_sigchld();
    guard::survive_file_size_limit();
}

#[expect(clippy::disallowed_methods, reason = "processes are not driven by a test's clock")]
fn monotonic_now() -> Instant {
    Instant::now()
}
