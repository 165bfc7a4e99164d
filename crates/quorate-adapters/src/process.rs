//! What a program does once for the processes that its executors start.

use std::path::Path;
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, SideEffect};
use quorate_protocol::Json;

use crate::executor::agent_cli;
use crate::executor::agent_cli::oneshot::OneshotCommand;
use crate::server_table;

/// Turns this process into the guard when it was started as one: the helper that ends members if the program is
/// killed. Does not return then.
pub fn run_guard_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|first| first == agent_cli::guard::ARGUMENT) {
        agent_cli::guard::run();
    }
}

/// Makes children that ended stay until they are waited for, although the parent of this process may have ignored the end of
/// children, and has writes beyond `ulimit -f` fail instead of ending this process. To be called before anything is started.
pub fn restore_signals() {
    agent_cli::restore_signals();
}

/// Whether the parent of this process had it ignore the end of its terminal (SIGHUP), as `nohup` does.
#[cfg(unix)]
pub fn ignores_hangups() -> bool {
    agent_cli::ignores_hangups()
}

/// Says that this program starts nothing but members and their guard, so that whatever it adopts is a member's. To be called
/// after [`adopt_orphans`], before anything is started.
pub fn claim_orphans() {
    agent_cli::claim_orphans();
}

/// Keeps other processes of the same user from looking into this one: its memory, its environment, which may hold a signing
/// key, and its descriptors. Where the system has no such thing nothing changes; root can look into everything.
pub fn deny_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A kernel that refuses leaves it as it was, as elsewhere.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

pub use agent_cli::sandbox::{LedgerFiles, available as can_confine, protect as protect_from_members};

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
pub fn wait_for_members(limit: Duration) {
    agent_cli::wait_for_members(limit);
}

/// What [`run_command`] with the same words does, for a person who decides whether to trust the file that they stand in.
pub fn command_side_effect(command: &[String], dir: &Path) -> SideEffect {
    let (program, arguments) =
        command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    agent_cli::side_effect::of_command(program, arguments, &[], dir)
}

/// What connecting to an MCP server means: its command is started, or texts and a token are sent to its address.
pub fn server_side_effect(id: &str, table: &serde_json::Map<String, Json>, dir: &Path) -> SideEffect {
    let text = |key: &str| table.get(key).and_then(Json::as_str);
    let texts = |key: &str| -> Vec<String> {
        let items = table.get(key).and_then(Json::as_array).into_iter().flatten();
        items.filter_map(Json::as_str).map(str::to_owned).collect()
    };
    let mut side_effect = match (text("url"), text("command")) {
        (Some(url), _) => SideEffect::new(match text("token") {
            Some(token) => format!("send texts and the value of {token} to {url}"),
            None => format!("send texts to {url}"),
        }),
        (None, command) => agent_cli::side_effect::of_command(
            command.unwrap_or_default(),
            &texts("args"),
            &texts("env"),
            dir,
        ),
    };
    side_effect.what.push_str(&format!(" (MCP server `{id}`)"));
    side_effect
}

/// Whether the table of an MCP server can be read, whether or not anybody uses it.
///
/// # Errors
/// When it has an unknown key, a value of the wrong type, no address of a server, or not exactly one of `url` and `command`.
pub fn check_server(table: &serde_json::Map<String, Json>) -> Result<(), ConfigError> {
    server_table::read(table).map(drop)
}

/// Ends at once everything that members had started, without the two seconds that they have otherwise. Takes a second at
/// most, where the system does not let go of a process. The program calls it before it exits in a hurry.
pub fn terminate_members() {
    agent_cli::terminate_members();
}

/// Runs a command of the user's own as members are run: it is given a text on stdin, and ended with all that it started
/// when its time is over or the future is dropped. A relative path with a `/` is relative to `dir`, where it runs. Gives
/// what it printed.
///
/// # Errors
/// When it does not succeed, for a person.
pub async fn run_command(
    command: &[String],
    dir: &Path,
    text: String,
    timeout: Duration,
) -> Result<String, String> {
    let (program, arguments) = command.split_first().ok_or("no command is named")?;
    let once = OneshotCommand::new(program, arguments.to_vec(), Vec::new(), dir)
        .map_err(|refused| refused.message)?;
    once.run_for_output(text.into(), timeout).await
}
