//! Process-wide settings of a program whose executors start processes.

use std::path::Path;
use std::time::Duration;

use quorate_kernel::ports::executor::{ConfigError, SideEffect};
use quorate_protocol::Json;

use crate::block;
use crate::executor::agent_cli;
use crate::executor::agent_cli::command::Program;

pub use agent_cli::{
    ends_descendants, ignores_hangups, restore_signals, terminate_members, wait_for_members,
};

/// Denies other processes of the same user access to this one's memory, descriptors, and environment, which may hold a
/// signing key. Has no effect on systems without such a setting, nor against root.
pub fn deny_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // If the kernel refuses, the process stays accessible, as on other systems.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

pub use agent_cli::sandbox::{LedgerFiles, can_confine, protect_from_members};

/// The side effect of [`run_command`] with these words, for a user who decides whether to trust the file that names them.
pub fn command_side_effect(command: &[String], dir: &Path) -> SideEffect {
    let (program, arguments) =
        command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    agent_cli::side_effect::of_command(program, arguments, &[], dir, dir)
}

/// The side effect of connecting to an MCP server: its command is started, or texts and a token are sent to its address.
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
            &text("cwd").map_or_else(|| dir.to_owned(), |cwd| dir.join(cwd)),
        ),
    };
    side_effect.what.push_str(&format!(" (MCP server `{id}`)"));
    side_effect
}

/// Checks the table of an MCP server.
///
/// # Errors
/// When it has an unknown key, a value of the wrong type, an invalid address, or not exactly one of `url` and `command`.
pub fn check_server(table: &serde_json::Map<String, Json>) -> Result<(), ConfigError> {
    block::read_server_table(table).map(drop)
}

/// Runs a command of the user's own as members are run: it gets a text on stdin, and is ended with its descendants at the
/// timeout, or when the future is dropped. A relative path with a `/` is relative to `dir`, its working directory.
/// Returns its output.
///
/// # Errors
/// When it does not succeed; the text is meant for a person.
pub async fn run_command(
    command: &[String],
    dir: &Path,
    text: String,
    timeout: Duration,
) -> Result<String, String> {
    let (program, arguments) = command.split_first().ok_or("no command is named")?;
    let program = Program::new(program, arguments.to_vec(), Vec::new(), None, dir);
    program.map_err(|error| error.message)?.run(&text, timeout).await
}
