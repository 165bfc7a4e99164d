//! The `agent-cli` executor: any command that reads a prompt on stdin and prints its answer. This file owns the
//! public functions and the times of an attempt. In `agent_cli/`: `cli` is the executor, `config` reads its block, `presets`
//! knows CLIs by name, `output` interprets output, `judge` calls a vendor's CLI as a judge (feature `agent-cli`).
//! `environment` selects variables, `sandbox` restricts access, `call` limits and runs attempts, `oneshot` runs other
//! commands and asks for versions, and `command`, `running_process`, `process_tree` and `guard` start, watch and end
//! processes.

mod call;
#[cfg(feature = "agent-cli")]
mod cli;
pub(crate) mod command;
#[cfg(feature = "agent-cli")]
mod config;
mod environment;
pub mod guard;
#[cfg(feature = "agent-cli")]
mod judge;
pub(crate) mod oneshot;
#[cfg(feature = "agent-cli")]
mod output;
#[cfg(feature = "agent-cli")]
mod presets;
#[cfg(not(target_os = "linux"))]
mod process_group;
#[cfg(target_os = "linux")]
mod process_tree;
mod running_process;
pub mod sandbox;
pub(crate) mod side_effect;
#[cfg(feature = "mcp")]
pub(crate) mod sidecar;
#[cfg(feature = "agent-cli")]
mod tool_grants;

#[cfg(not(feature = "agent-cli"))]
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(not(feature = "agent-cli"))]
use quorate_kernel::ports::executor::{ConfigError, Executor, Settings};

pub use call::wait_for_members;
#[cfg(feature = "agent-cli")]
pub use cli::new;
pub use environment::{MEMBER_ID_VARIABLE, MEMBER_VARIABLE};
#[cfg(feature = "agent-cli")]
pub use presets::{BARE_PRESET, CliPreset, PRESETS};
#[cfg(not(target_os = "linux"))]
use process_group::ProcessTree;
#[cfg(target_os = "linux")]
use process_tree::ProcessTree;

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

/// Kills everything that members of this process started, and waits for it.
#[cfg(target_os = "linux")]
pub fn terminate_members() {
    let mark = environment::Scope::Process(environment::ProcessTag::current());
    process_tree::kill_until_gone(|| process_tree::find_in_scope(mark, None, 0));
}

/// Waits for processes of members that are being killed since their calls were dropped.
#[cfg(not(target_os = "linux"))]
pub fn terminate_members() {
    wait_for_members(std::time::Duration::from_secs(2));
}

/// Makes this process adopt the orphans of what it starts, so that a process that left its parent is still found as
/// a descendant and is reaped. The program calls it once, at its start; without it such processes are found by their
/// tag alone.
///
/// # Errors
/// On every system but Linux.
pub fn adopt_orphans() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
}

/// Keeps an ended child until it is waited for, whatever signal handling the parent of this process chose. The program
/// calls it once, at its start. A write beyond `ulimit -f` is an error from then on instead of a fatal signal.
pub fn restore_signals() {
    guard::restore_sigchld();
    guard::survive_file_size_limit();
}

/// Whether the parent of this process made it ignore SIGHUP.
pub fn ignores_hangups() -> bool {
    guard::ignores_hangups()
}

/// Declares that this process starts only members and their guard, so that every process that it adopts is a member's
/// and is killed, also one without a tag. Call it after [`adopt_orphans`] and before the first process.
pub fn claim_orphans() {
    guard::claim_orphans();
}

#[expect(clippy::disallowed_methods, reason = "processes are not driven by a test's clock")]
fn monotonic_now() -> Instant {
    Instant::now()
}
