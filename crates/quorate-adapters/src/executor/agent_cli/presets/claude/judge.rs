//! `claude` as a judge. `--safe-mode` and `--setting-sources=` each keep hooks, skills, plugins and memory files out;
//! `--strict-mcp-config` keeps MCP servers out, `--tools=` takes the built-in tools away. A variable is what keeps
//! `@path` in the prompt from attaching files; releases that know `--safe-mode` know it. The CLI's own instructions name
//! the working directory, which is another one in each call: [`SYSTEM`] in their place lets calls share a cached prefix.

use crate::executor::agent_cli::judge::{Desk, Judge, SYSTEM};
use crate::executor::agent_cli::presets::Arguments;
use crate::executor::agent_cli::private_dir::Furniture;

/// The variable that keeps `@path` from attaching files.
pub(super) const NO_ATTACHMENTS: &str = "CLAUDE_CODE_DISABLE_ATTACHMENTS";

pub(super) const JUDGE: Judge = Judge {
    home: "CLAUDE_CONFIG_DIR",
    tried: &["2.1.197"],
    lists: &[&["--help"]],
    needs: &[
        "--tools",
        "--allowedTools",
        "--strict-mcp-config",
        "--setting-sources",
        "--no-session-persistence",
        "--disable-slash-commands",
        "--safe-mode",
        "--name",
        "--system-prompt",
        "--json-schema",
    ],
    opens: &[
        "--tools",
        "--allowedTools",
        "--allowed-tools",
        "--mcp-config",
        "--setting-sources",
        "--permission-mode",
        "--dangerously-skip-permissions",
        "--allow-dangerously-skip-permissions",
        "--add-dir",
        "--agent",
        "--agents",
        "--plugin-dir",
        "--plugin-url",
        "--file",
        "--ide",
        "--chrome",
        "--bg",
        "--background",
        "--worktree",
        "-w",
        "--tmux",
        "--remote-control",
        "--continue",
        "-c",
        "--resume",
        "-r",
        "--from-pr",
    ],
    settings: &[],
    tools: None,
    before: None,
    furnish,
};

fn furnish(desk: &Desk<'_>) -> Result<Furniture, String> {
    // A rule such as `Bash(git:*)` is about a tool.
    let mut names: Vec<&str> = Vec::new();
    for tool in desk.tools {
        let name = tool.split('(').next().unwrap_or(tool).trim();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut arguments = Arguments::of(&[]).joined("--tools", &names.join(","));
    if !desk.tools.is_empty() {
        arguments = arguments
            .joined("--allowedTools", &desk.tools.join(","))
            .joined("--add-dir", &desk.dir.to_string_lossy());
    }
    for flag in [
        "--strict-mcp-config",
        "--setting-sources=",
        "--no-session-persistence",
        "--disable-slash-commands",
        "--safe-mode",
        "--name=quorate",
    ] {
        arguments.list.push(flag.into());
    }
    if !["--system-prompt", "--system-prompt-file"].iter().any(|flag| desk.sets(flag)) {
        arguments = arguments.flag("--system-prompt", SYSTEM);
    }
    let variables = [NO_ATTACHMENTS, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"];
    Ok(Furniture {
        arguments: arguments.list,
        variables: variables.map(|name| (name.into(), "1".into())).into(),
        ..Furniture::default()
    })
}
