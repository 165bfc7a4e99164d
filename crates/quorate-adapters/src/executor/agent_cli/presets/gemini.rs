//! The preset `gemini`: `gemini --output-format json`, prompt on stdin, one JSON envelope on stdout. The CLI has no
//! flag for a schema; the prompt asks for the shape.
//!
//! `--allowed-tools` permits a participant's tools without a prompt, and `--allowed-mcp-server-names` restricts the CLI's
//! own MCP servers to those of the same names. No flag of the CLI removes tools or adds a server.

use std::ffi::OsString;
use std::path::Path;

use quorate_kernel::files;
use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde_json::json;

use super::{
    ArgumentBuilder, ArgumentInputs, CliPreset, ModelAndUsage, ServerPassing, count, unchanged_schema,
};
use crate::executor::agent_cli::judge::{HOME, Judge, JudgeConfig, JudgeSetup, SYSTEM_PROMPT};
use crate::executor::agent_cli::presets::OutputFormat;

pub(super) const PRESET: CliPreset = CliPreset {
    name: "gemini",
    executor: "gemini-cli",
    command: "gemini",
    install: "`npm install -g @google/gemini-cli`",
    output: OutputFormat::GeminiJson,
    needs_model: false,
    uses_files: false,
    reserved_flags: "--output-format -o --model -m --prompt-interactive -i",
    implied_flags: "",
    tool_flags: "--allowed-tools --allowed-mcp-server-names",
    server_passing: ServerPassing::Unsupported,
    schema: unchanged_schema,
    no_attachments: None,
    judge: Some(&JUDGE),
    arguments,
};

fn arguments(ask: &ArgumentInputs<'_>) -> Vec<OsString> {
    let mut arguments = ArgumentBuilder::new(&["--output-format", "json"]);
    for tool in ask.tool_grants.allowed_tools.unwrap_or_default() {
        arguments = arguments.joined_flag("--allowed-tools", tool);
    }
    for (id, _) in &ask.tool_grants.servers {
        arguments = arguments.joined_flag("--allowed-mcp-server-names", id);
    }
    arguments.judge_config(ask.judge_config).model("--model", ask.model).extra_args(ask.extra_args).list
}

/// The attempt's usage, with or without a reply: tokens of all models together, and the model with the most output,
/// since a small one may route before it.
pub(in crate::executor::agent_cli) fn model_and_usage(values: &[Json]) -> ModelAndUsage {
    let models = values.iter().rev().find_map(|value| value.get("stats")?.get("models")?.as_object());
    let Some(models) = models else { return ModelAndUsage::default() };
    let tokens = |model: &Json, key: &str| model.get("tokens").and_then(|tokens| count(tokens, key));
    let written = |model: &Json| {
        ["candidates", "thoughts"].iter().filter_map(|key| tokens(model, key)).reduce(u64::saturating_add)
    };
    let sum =
        |count: &dyn Fn(&Json) -> Option<u64>| models.values().filter_map(count).reduce(u64::saturating_add);
    let usage = Usage {
        tokens_in: sum(&|model| tokens(model, "prompt")),
        tokens_cached: sum(&|model| tokens(model, "cached")),
        tokens_out: sum(&written),
        ..Usage::default()
    };
    let model = models.iter().max_by_key(|(_, model)| written(model)).map(|(name, _)| name.clone());
    (model, usage)
}

/// The CLI's directory below its home.
const FOLDER: &str = ".gemini";

const JUDGE: Judge = Judge {
    home_variable: "GEMINI_CLI_HOME",
    tested_version: "0.61.0",
    flag_listings: &[&["--help"]],
    required_flags: "--skip-trust --extensions --policy --output-format",
    forbidden_flags: "--yolo -y --approval-mode --policy --admin-policy --allowed-tools --allowed-mcp-server-names \
        --extensions -e --include-directories --resume -r --session-file --worktree -w --acp \
        --experimental-acp",
    forbidden_settings: "",
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
fn selected_login(path: &Path) -> Option<String> {
    let text = files::read_text(path, 1 << 20).ok()?;
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
    use std::path::Path;

    use super::{arguments, model_and_usage};
    use crate::executor::agent_cli::presets::envelope::{read, values};
    use crate::executor::agent_cli::presets::{ArgumentInputs, ReplyError, words};
    use crate::executor::agent_cli::tool_grants::{ToolGrants, fixture};
    use serde_json::json;

    #[test]
    fn the_envelope_is_asked_for() {
        let (schema, granted) = (json!({}), ToolGrants::default());
        let ask = ArgumentInputs::structured(Some("m"), &[], &schema, &granted);
        assert_eq!(words(&arguments(&ask)), ["--output-format", "json", "--model", "m"]);
    }

    #[test]
    fn tools_and_servers_are_named_one_by_one() {
        let servers = fixture::servers(&json!({"db": {"command": "db"}}));
        let conversation = fixture::conversation(Some(&["read_file", "run_shell_command(git)"]), &["db"]);
        let granted = ToolGrants::for_speaker(Some(&conversation), &servers, Path::new("/"));
        let nothing = json!({});
        let ask =
            ArgumentInputs { schema: None, ..ArgumentInputs::structured(None, &[], &nothing, &granted) };
        let expected = [
            "--output-format",
            "json",
            "--allowed-tools=read_file",
            "--allowed-tools=run_shell_command(git)",
            "--allowed-mcp-server-names=db",
        ];
        assert_eq!(words(&arguments(&ask)), expected);
    }

    #[test]
    fn the_response_is_the_answer() {
        let printed = r#"Loaded cached credentials.
            {"response": "{\"a\":1}", "stats": {"models": {
                "pro": {"tokens": {"prompt": 24939, "candidates": 20, "total": 25113, "cached": 21263, "thoughts": 154}},
                "flash": {"tokens": {"prompt": 61, "candidates": 4}}}}}"#;
        let reply = read(&values(printed)).unwrap();
        assert_eq!(reply.text, "{\"a\":1}");
        let (model, usage) = model_and_usage(&values(printed));
        assert_eq!(model.as_deref(), Some("pro"));
        assert_eq!((usage.tokens_in, usage.tokens_out), (Some(25000), Some(178)));
        assert_eq!(usage.tokens_cached, Some(21263));
    }

    #[test]
    fn an_error_is_no_answer() {
        let failed =
            r#"{"error": {"message": "no"}, "stats": {"models": {"pro": {"tokens": {"prompt": 7}}}}}"#;
        assert_eq!(model_and_usage(&values(failed)).1.tokens_in, Some(7));
        let error = json!({"response": "", "error": {"type": "ApiError", "message": "no", "code": 500}});
        let error = read(&[error]).unwrap_err();
        assert_eq!(error, ReplyError::Reported("no".into()));
        assert_eq!(read(&values("{}")).unwrap_err(), ReplyError::Malformed);
        assert_eq!(read(&values("plain words")).unwrap_err(), ReplyError::Malformed);
    }
}

#[cfg(test)]
mod judge_tests {
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
