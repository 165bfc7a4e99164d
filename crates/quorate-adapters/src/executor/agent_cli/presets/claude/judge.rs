//! `claude` as a judge. `--safe-mode` and `--setting-sources=` each keep hooks, skills, plugins and memory files out;
//! `--strict-mcp-config` keeps MCP servers out, and `--tools=` removes the built-in tools. A variable keeps `@path` in
//! the prompt from attaching files; releases with `--safe-mode` support it. The CLI's own instructions name the working
//! directory, which differs in each call: [`SYSTEM_PROMPT`] in their place lets calls share a cached prefix.

use crate::executor::agent_cli::judge::{Judge, JudgeSetup, SYSTEM_PROMPT};
use crate::executor::agent_cli::presets::ArgumentBuilder;
use crate::executor::agent_cli::private_dir::JudgeConfig;

/// The variable that keeps `@path` from attaching files.
pub(super) const NO_ATTACHMENTS: &str = "CLAUDE_CODE_DISABLE_ATTACHMENTS";

pub(super) const JUDGE: Judge = Judge {
    home_variable: "CLAUDE_CONFIG_DIR",
    tested_versions: &["2.1.197"],
    flag_listings: &[&["--help"]],
    required_flags: &[
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
    forbidden_flags: &[
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
    forbidden_settings: &[],
    tools: None,
    preflight: None,
    configure: furnish,
};

fn furnish(session: &JudgeSetup<'_>) -> Result<JudgeConfig, String> {
    // A rule such as `Bash(git:*)` is about a tool.
    let mut names: Vec<&str> = Vec::new();
    for tool in session.tools {
        let name = tool.split('(').next().unwrap_or(tool).trim();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut arguments = ArgumentBuilder::new(&[]).joined_flag("--tools", &names.join(","));
    if !session.tools.is_empty() {
        arguments = arguments
            .joined_flag("--allowedTools", &session.tools.join(","))
            .joined_flag("--add-dir", &session.dir.to_string_lossy());
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
    if !["--system-prompt", "--system-prompt-file"].iter().any(|flag| session.sets_flag(flag)) {
        arguments = arguments.flag("--system-prompt", SYSTEM_PROMPT);
    }
    let variables = [NO_ATTACHMENTS, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"];
    Ok(JudgeConfig {
        arguments: arguments.list,
        variables: variables.map(|name| (name.into(), "1".into())).into(),
        ..JudgeConfig::default()
    })
}
