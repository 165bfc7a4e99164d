//! `gemini` as a judge. A policy denies every tool, and the CLI does not offer denied tools. A private directory in place
//! of the user's keeps memory files, MCP servers, hooks, extensions and chats out; the login is linked into it. Its path
//! is relative to the working directory, since the CLI tells the model the path: an absolute one would differ in each
//! call and defeat the prefix cache.
//!
//! The CLI attaches `@path` from its working directory, which is empty. It looks for `.env` upwards from there: the
//! private directory holds one (the user's own if it exists), so that the CLI finds no other.

use std::path::Path;

use quorate_protocol::Json;
use serde_json::json;

use crate::executor::agent_cli::judge::{Judge, JudgeSetup, SYSTEM_PROMPT};
use crate::executor::agent_cli::presets::ArgumentBuilder;
use crate::executor::agent_cli::private_dir::{HOME, JudgeConfig};

/// The CLI's directory below its home.
const FOLDER: &str = ".gemini";

pub(super) const JUDGE: Judge = Judge {
    home_variable: "GEMINI_CLI_HOME",
    tested_versions: &["0.61.0"],
    flag_listings: &[&["--help"]],
    required_flags: &["--skip-trust", "--extensions", "--policy", "--output-format"],
    forbidden_flags: &[
        "--yolo",
        "-y",
        "--approval-mode",
        "--policy",
        "--admin-policy",
        "--allowed-tools",
        "--allowed-mcp-server-names",
        "--extensions",
        "-e",
        "--include-directories",
        "--resume",
        "-r",
        "--session-file",
        "--worktree",
        "-w",
        "--acp",
        "--experimental-acp",
    ],
    forbidden_settings: &[],
    // With a directory to work in, the CLI would attach `@path` from it and read its memory files.
    tools: Some(&["google_web_search", "web_fetch"]),
    preflight: None,
    configure: furnish,
};

fn furnish(session: &JudgeSetup<'_>) -> Result<JudgeConfig, String> {
    let users = session.user_dir("GEMINI_CLI_HOME", "").map(|home| home.join(FOLDER));
    let arguments = ArgumentBuilder::new(&["--skip-trust", "-e", "none", "--policy", "../policy.toml"]);
    let mut links = Vec::new();
    let mut files = vec![
        (format!("{HOME}/{FOLDER}/settings.json"), settings(users.as_deref()).to_string()),
        ("policy.toml".to_owned(), policy(session.tools)),
        ("system.md".to_owned(), SYSTEM_PROMPT.to_owned()),
    ];
    if let Some(users) = &users {
        for login in ["oauth_creds.json", "google_accounts.json", "gemini-credentials.json"] {
            links.push((format!("{HOME}/{FOLDER}/{login}"), users.join(login)));
        }
    }
    match users.map(|users| users.join(".env")).filter(|file| file.is_file()) {
        Some(dotenv) => links.push((".env".to_owned(), dotenv)),
        None => files.push((".env".to_owned(), String::new())),
    }
    let variables =
        [("GEMINI_CLI_HOME", format!("../{HOME}")), ("GEMINI_SYSTEM_MD", "../system.md".to_owned())];
    Ok(JudgeConfig {
        arguments: arguments.list,
        variables: variables.map(|(name, value)| (name.into(), value.into())).into(),
        files,
        links,
    })
}

/// Settings in place of the user's: the login, and nothing that runs commands or keeps memory. Without boundary markers
/// the CLI looks for no memory file above its working directory.
fn settings(users: Option<&Path>) -> Json {
    let mut settings = json!({
        "general": {"enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false},
        "context": {
            "memoryBoundaryMarkers": [],
            "includeDirectoryTree": false,
            "discoveryMaxDirs": 0
        },
        "hooksConfig": {"enabled": false},
        "skills": {"enabled": false},
        "experimental": {"enableAgents": false}
    });
    if let Some(selected) = users.and_then(|users| selected_login(&users.join("settings.json"))) {
        settings["security"] = json!({"auth": {"selectedType": selected}});
    }
    settings
}

/// The login method of the user's settings.
#[expect(clippy::disallowed_methods, reason = "the user's own settings are looked up")]
fn selected_login(path: &Path) -> Option<String> {
    const LONGEST: u64 = 1 << 20;
    let size = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let text = (size <= LONGEST).then(|| std::fs::read_to_string(path)).and_then(Result::ok)?;
    let settings: Json = serde_json::from_str(&text).ok()?;
    settings.pointer("/security/auth/selectedType").and_then(Json::as_str).map(str::to_owned)
}

/// Denies every tool but the given ones.
fn policy(tools: &[String]) -> String {
    let rule = |tool: &str, decision: &str, priority: u32| {
        format!("[[rule]]\ntoolName = {}\ndecision = \"{decision}\"\npriority = {priority}\n", json!(tool))
    };
    let allowed = tools.iter().map(|tool| rule(tool, "allow", 999));
    [rule("*", "deny", 998)].into_iter().chain(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::{policy, settings};
    use serde_json::json;

    #[test]
    fn a_policy_denies_everything_but_what_is_named() {
        let none = "[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 998\n";
        assert_eq!(policy(&[]), none);
        let allow_rule = "[[rule]]\ntoolName = \"web_fetch\"\ndecision = \"allow\"\npriority = 999\n";
        assert_eq!(policy(&["web_fetch".into()]), format!("{none}{allow_rule}"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "settings are written to be read")]
    fn of_the_users_settings_the_login_is_kept_and_nothing_else() {
        let users = tempfile::tempdir().unwrap();
        assert_eq!(settings(Some(users.path())).get("security"), None);
        let user_settings =
            json!({"security": {"auth": {"selectedType": "oauth-personal"}}, "mcpServers": {"x": {}}});
        std::fs::write(users.path().join("settings.json"), user_settings.to_string()).unwrap();
        let settings = settings(Some(users.path()));
        assert_eq!(settings["security"]["auth"]["selectedType"], "oauth-personal");
        assert_eq!((settings.get("mcpServers"), &settings["hooksConfig"]["enabled"]), (None, &json!(false)));
    }
}
