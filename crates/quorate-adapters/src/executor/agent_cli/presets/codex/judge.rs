//! `codex` as a judge. The tools that the CLI offers follow from its features and from its catalog of models, which takes
//! precedence: so the CLI is asked for its built-in catalog, and given it back without tools. A private directory in place
//! of `~/.codex` keeps the user's memory file, skills, MCP servers, hooks and history out; the login is linked into it.
//! `--strict-config` makes a release fail that does not know one of the settings.

use quorate_protocol::Json;
use serde_json::json;

use crate::executor::agent_cli::judge::{Judge, JudgeSetup, SYSTEM_PROMPT};
use crate::executor::agent_cli::presets::ArgumentBuilder;
use crate::executor::agent_cli::private_dir::{HOME, JudgeConfig};

const SHELL: &str = "shell";
const WEB_SEARCH: &str = "web_search";
const VIEW_IMAGE: &str = "view_image";

/// The features that offer tools or run something, with the Quorate tool that a feature belongs to.
const FEATURES: &[(&str, Option<&str>)] = &[
    ("shell_tool", Some(SHELL)),
    ("unified_exec", Some(SHELL)),
    ("view_image", Some(VIEW_IMAGE)),
    ("image_generation", None),
    ("sleep_tool", None),
    ("goals", None),
    ("apps", None),
    ("plugins", None),
    ("hooks", None),
];

/// Switches off instructions and abilities that the CLI has by default.
const SETTINGS: &[&str] = &[
    "agents.enabled=false",
    "tools.experimental_request_user_input.enabled=false",
    "skills.include_instructions=false",
    "skills.bundled.enabled=false",
    "project_doc_max_bytes=0",
    "include_environment_context=false",
    "include_permissions_instructions=false",
    "include_apps_instructions=false",
    "include_collaboration_mode_instructions=false",
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
];

pub(super) const JUDGE: Judge = Judge {
    home_variable: "CODEX_HOME",
    tested_versions: &["0.169.0"],
    flag_listings: &[&["exec", "--help"], &["features", "list"]],
    required_flags: &[
        "--ignore-user-config",
        "--ignore-rules",
        "--strict-config",
        "--ephemeral",
        "--disable",
        "--output-schema",
        "shell_tool",
        "unified_exec",
        "view_image",
        "image_generation",
        "sleep_tool",
        "goals",
        "apps",
        "plugins",
        "hooks",
    ],
    forbidden_flags: &[
        "--enable",
        "--yolo",
        "--dangerously-bypass-approvals-and-sandbox",
        "--dangerously-bypass-hook-trust",
        "--approve-for-me",
        "--full-auto",
        "--trust",
        "--profile",
        "-p",
        "--cd",
        "-C",
        "--add-dir",
        "--image",
        "-i",
        "--search",
        "--worktree",
    ],
    forbidden_settings: &[
        "mcp_servers",
        "features",
        "tools",
        "agents",
        "apps",
        "hooks",
        "notify",
        "plugins",
        "skills",
        "projects",
        "sandbox",
        "web_search",
        "model_catalog_json",
        "project_doc",
        "include_",
        "developer_instructions",
        "permissions",
        "default_permissions",
    ],
    tools: Some(&[SHELL, VIEW_IMAGE, WEB_SEARCH]),
    preflight: Some(&["debug", "models", "--bundled"]),
    configure: furnish,
};

fn furnish(session: &JudgeSetup<'_>) -> Result<JudgeConfig, String> {
    let catalog = without_tools(session.preflight_output.unwrap_or_default())?;
    let path = |name: &str| json!(session.private_dir.join(name)).to_string();
    // The CLI refuses a flag that occurs twice.
    let flags = ["--ignore-user-config", "--ignore-rules", "--strict-config"];
    let flags: Vec<&str> = flags.into_iter().filter(|flag| !session.sets_flag(flag)).collect();
    let mut arguments = ArgumentBuilder::new(&flags);
    for (feature, tool) in FEATURES {
        if tool.is_none_or(|tool| !session.has_tool(tool)) {
            arguments = arguments.flag("--disable", feature);
        }
    }
    let web = if session.has_tool(WEB_SEARCH) { "web_search=\"live\"" } else { "web_search=\"disabled\"" };
    let catalog_file = format!("model_catalog_json={}", path("models.json"));
    let settings = SETTINGS.iter().copied().chain([web, &*catalog_file]);
    arguments = settings.fold(arguments, |all, setting| all.flag("-c", setting));
    if !session.extra_args.iter().any(|arg| arg.contains("model_instructions_file")) {
        arguments = arguments.flag("-c", format!("model_instructions_file={}", path("instructions.md")));
    }
    if !session.tools.is_empty() {
        arguments = arguments.flag("--cd", session.dir);
    }
    let login = session.user_dir("CODEX_HOME", ".codex").map(|users| users.join("auth.json"));
    Ok(JudgeConfig {
        arguments: arguments.list,
        variables: vec![("CODEX_HOME".into(), session.private_dir.join(HOME).into())],
        files: vec![
            ("models.json".to_owned(), catalog),
            ("instructions.md".to_owned(), SYSTEM_PROMPT.to_owned()),
        ],
        links: login.map(|login| (format!("{HOME}/auth.json"), login)).into_iter().collect(),
    })
}

/// The catalog without the models' own tools.
fn without_tools(printed: &str) -> Result<String, String> {
    let unreadable = || "`codex debug models --bundled` did not print its catalog of models".to_owned();
    let mut catalog: Json = serde_json::from_str(printed.trim()).map_err(|_| unreadable())?;
    let models = catalog.get_mut("models").and_then(Json::as_array_mut).ok_or_else(unreadable)?;
    for model in models {
        let model = model.as_object_mut().ok_or_else(unreadable)?;
        for (key, value) in [
            ("apply_patch_tool_type", Json::Null),
            ("multi_agent_version", Json::Null),
            ("tool_mode", json!("direct")),
            ("experimental_supported_tools", json!([])),
        ] {
            model.insert(key.to_owned(), value);
        }
    }
    Ok(catalog.to_string())
}

#[cfg(test)]
mod tests {
    use super::without_tools;
    use quorate_protocol::Json;
    use serde_json::json;

    #[test]
    fn every_model_of_the_catalog_loses_its_tools_and_nothing_else() {
        let printed = json!({"models": [
            {"slug": "m", "tool_mode": "code_mode_only", "apply_patch_tool_type": "freeform", "priority": 1,
             "multi_agent_version": "v2", "experimental_supported_tools": ["clock"]},
            {"slug": "n"}
        ]});
        let without: Json = serde_json::from_str(&without_tools(&printed.to_string()).unwrap()).unwrap();
        for (at, slug) in ["m", "n"].into_iter().enumerate() {
            let model = &without["models"][at];
            assert_eq!((&model["slug"], &model["tool_mode"]), (&json!(slug), &json!("direct")));
            assert_eq!(model["experimental_supported_tools"], json!([]));
            assert!(model["apply_patch_tool_type"].is_null() && model["multi_agent_version"].is_null());
        }
        assert_eq!(without["models"][0]["priority"], 1);
        for printed in ["", "{}", "an answer", "{\"models\": [1]}"] {
            assert!(without_tools(printed).is_err(), "{printed}");
        }
    }
}
