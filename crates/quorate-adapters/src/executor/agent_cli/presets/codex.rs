//! The preset `codex`: `codex exec --json … -`, prompt on stdin, events as JSON lines on stdout, the last message in a
//! file of its own. It runs in the read-only sandbox and keeps no session.
//!
//! The CLI has no list of allowed tools; the sandbox restricts it. The MCP servers of a participant are added to its own
//! as overrides of its configuration.

use std::ffi::OsString;

use quorate_kernel::ports::executor::{Reply, Usage};
use quorate_protocol::{Json, answers};
use serde_json::json;

use super::envelope::{self, text_of};
use super::{ArgumentBuilder, ArgumentInputs, CliPreset, ModelAndUsage, ServerPassing, count};
use crate::block::Target;
use crate::executor::agent_cli::judge::{HOME, Judge, JudgeConfig, JudgeSetup, SYSTEM_PROMPT};
use crate::executor::agent_cli::presets::{OutputFormat, ReplyError};
#[cfg(feature = "llm")]
use crate::executor::llm::schema::{self, Dialect};

pub(super) const PRESET: CliPreset = CliPreset {
    name: "codex",
    executor: "codex",
    command: "codex",
    install: "`npm install -g @openai/codex`",
    output: OutputFormat::CodexJsonl,
    needs_model: false,
    uses_files: true,
    reserved_flags: "--output-schema --output-last-message -o --color --model -m",
    implied_flags: "exec --json --skip-git-repo-check --ephemeral -",
    tool_flags: "",
    server_passing: ServerPassing::AsArguments,
    schema: wire_schema,
    no_attachments: None,
    judge: Some(&JUDGE),
    arguments,
};

fn arguments(ask: &ArgumentInputs<'_>) -> Vec<OsString> {
    let mut arguments =
        ArgumentBuilder::new(&["exec", "--json", "--skip-git-repo-check", "--ephemeral", "--color", "never"]);
    if !ask.extra_args.iter().any(|arg| chooses_sandbox(arg)) {
        arguments = arguments.flag("--sandbox", "read-only");
    }
    if let Some(files) = ask.files {
        if ask.schema.is_some() {
            arguments = arguments.flag("--output-schema", files.schema_path());
        }
        arguments = arguments.flag("--output-last-message", files.last_message_path());
    }
    for (id, target) in &ask.tool_grants.servers {
        arguments =
            server_overrides(id, target).iter().fold(arguments, |all, setting| all.flag("-c", setting));
    }
    let mut list =
        arguments.judge_config(ask.judge_config).model("--model", ask.model).extra_args(ask.extra_args).list;
    list.push("-".into());
    list
}

/// A server as overrides. They are TOML, which shares JSON's strings and lists.
fn server_overrides(id: &str, target: &Target) -> Vec<String> {
    // The CLI splits the path of an override at its dots, even within quotes.
    if !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        return Vec::new();
    }
    let settings = match target {
        Target::Url { url, token } => {
            vec![
                ("url", Some(json!(url))),
                ("bearer_token_env_var", token.as_ref().map(|token| json!(token))),
            ]
        }
        Target::Command { command, args, env, cwd } => vec![
            ("command", Some(json!(command))),
            ("args", Some(json!(args))),
            ("env_vars", (!env.is_empty()).then(|| json!(env))),
            ("cwd", cwd.as_ref().map(|cwd| json!(cwd))),
        ],
    };
    let set = |(key, value): (&str, Option<Json>)| Some(format!("mcp_servers.{id}.{key}={}", value?));
    settings.into_iter().filter_map(set).collect()
}

fn chooses_sandbox(arg: &str) -> bool {
    let flag = arg.split('=').next().unwrap_or(arg);
    matches!(flag, "--sandbox" | "-s" | "--dangerously-bypass-approvals-and-sandbox" | "--yolo")
}

/// The reply in the events, or in the file of the last message. Without the file, the events have to be whole from the
/// message to the end of the turn.
pub(in crate::executor::agent_cli) fn read(
    values: &[Json],
    last_message: Option<String>,
) -> Result<Reply, ReplyError> {
    let (mut message, mut error, mut has_ended) = (None, None, false);
    for event in values {
        match text_of(event, "type") {
            Some("item.completed") => message = agent_message(event).or(message),
            Some("turn.started") => has_ended = false,
            // It went on after an `error`, such as a lost connection.
            Some("turn.completed") => (error, has_ended) = (None, true),
            Some("turn.failed") => {
                return Err(ReplyError::Reported(envelope::error(event).unwrap_or_default()));
            }
            Some("error") => error = envelope::error(event),
            None if event.is_null() => message = None,
            None if envelope::is_envelope(event) => error = envelope::error(event).or(error),
            _ => {}
        }
    }
    if let Some(error) = error {
        return Err(ReplyError::Reported(error));
    }
    let text = last_message.or(message.filter(|_| has_ended)).ok_or(ReplyError::Malformed)?;
    Ok(Reply { text, ..Reply::default() })
}

/// The attempt's usage, with or without a reply. The events do not name the model.
pub(in crate::executor::agent_cli) fn model_and_usage(values: &[Json]) -> ModelAndUsage {
    let mut usage = Usage::default();
    for event in values {
        if let Some(counts) = event.get("usage") {
            usage = Usage {
                tokens_in: count(counts, "input_tokens"),
                tokens_cached: count(counts, "cached_input_tokens"),
                tokens_out: count(counts, "output_tokens"),
                ..Usage::default()
            };
        }
    }
    (None, usage)
}

/// The text of a message of the model. Earlier versions named the keys and the kind of an item differently.
fn agent_message(event: &Json) -> Option<String> {
    let item = event.get("item")?;
    let kind = text_of(item, "type").or_else(|| text_of(item, "item_type"))?;
    let is_message = matches!(kind, "agent_message" | "assistant_message");
    is_message.then(|| envelope::text(item.get("text")?)).flatten()
}

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

const JUDGE: Judge = Judge {
    home_variable: "CODEX_HOME",
    tested_version: "0.169.0",
    flag_listings: &[&["exec", "--help"], &["features", "list"]],
    required_flags: "--ignore-user-config --ignore-rules --strict-config --ephemeral --disable --output-schema \
        shell_tool unified_exec view_image image_generation sleep_tool goals apps plugins hooks",
    forbidden_flags: "--enable --yolo --dangerously-bypass-approvals-and-sandbox --dangerously-bypass-hook-trust \
        --approve-for-me --full-auto --trust --profile -p --cd -C --add-dir --image -i --search \
        --worktree",
    forbidden_settings: "mcp_servers features tools agents apps hooks notify plugins skills projects sandbox web_search \
        model_catalog_json project_doc include_ developer_instructions permissions default_permissions",
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

/// The schema in the form that the service takes, as over HTTP.
#[cfg(feature = "llm")]
fn wire_schema(form: answers::Schema, _: &Json) -> Option<Json> {
    Some(schema::form(form, Dialect::OpenAi)?.schema.clone())
}

/// A build without the services has no forms for them: the prompt asks for the shape.
#[cfg(not(feature = "llm"))]
fn wire_schema(_: answers::Schema, _: &Json) -> Option<Json> {
    None
}

/// An answer in the form of the service, translated to that of the prompt.
pub(in crate::executor::agent_cli) fn restore(form: answers::Schema, text: String) -> String {
    #[cfg(feature = "llm")]
    if let Some(form) = schema::form(form, Dialect::OpenAi) {
        return form.restore(&text);
    }
    #[cfg(not(feature = "llm"))]
    let _ = form;
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ReplyError, arguments, model_and_usage, read};
    use crate::executor::agent_cli::call::AttemptFiles;
    use crate::executor::agent_cli::presets::envelope::values;
    use crate::executor::agent_cli::presets::{ArgumentInputs, words};
    use crate::executor::agent_cli::tool_grants::{ToolGrants, fixture};
    use serde_json::json;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the schema is read back")]
    fn the_prompt_is_read_from_stdin_in_a_read_only_sandbox() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                            "additionalProperties": false});
        let files = AttemptFiles::new(Some(&schema), None).unwrap();
        let granted = ToolGrants::default();
        let extra = ["-c".to_owned(), "model_reasoning_effort=\"high\"".to_owned()];
        let ask = ArgumentInputs {
            files: Some(&files),
            ..ArgumentInputs::structured(Some("m"), &extra, &schema, &granted)
        };
        let list = arguments(&ask);
        let list = words(&list);
        assert_eq!(
            &list[..6],
            ["exec", "--json", "--skip-git-repo-check", "--ephemeral", "--color", "never"]
        );
        assert_eq!(&list[6..8], ["--sandbox", "read-only"]);
        assert_eq!(list[8], "--output-schema");
        assert_eq!(std::fs::read_to_string(list[9]).unwrap(), schema.to_string());
        assert_eq!(list[10], "--output-last-message");
        assert_eq!(&list[12..], ["--model", "m", "-c", "model_reasoning_effort=\"high\"", "-"]);
    }

    #[test]
    fn another_sandbox_can_be_chosen() {
        let extra = ["--sandbox=workspace-write".to_owned()];
        let (schema, granted) = (json!({}), ToolGrants::default());
        let ask = ArgumentInputs::structured(None, &extra, &schema, &granted);
        assert!(!words(&arguments(&ask)).contains(&"read-only"));
    }

    #[test]
    fn text_is_asked_for_without_a_schema() {
        let (files, granted) = (AttemptFiles::new(None, None).unwrap(), ToolGrants::default());
        let nothing = json!({});
        let ask = ArgumentInputs {
            schema: None,
            files: Some(&files),
            ..ArgumentInputs::structured(None, &[], &nothing, &granted)
        };
        let list = arguments(&ask);
        assert!(!words(&list).contains(&"--output-schema"));
        assert!(words(&list).contains(&"--output-last-message"));
        assert!(!files.schema_path().exists());
    }

    #[test]
    fn servers_are_overrides_of_the_configuration() {
        let servers = fixture::servers(&json!({
            "far": {"url": "https://x/mcp", "token": "FAR"},
            "near": {"command": "n", "args": ["a b"], "env": ["K"], "cwd": "/w"},
            "no.bare.key": {"command": "n"}
        }));
        let conversation = fixture::conversation(Some(&["Read"]), &["far", "near", "no.bare.key"]);
        let granted = ToolGrants::for_speaker(Some(&conversation), &servers, Path::new("/"));
        let nothing = json!({});
        let ask =
            ArgumentInputs { schema: None, ..ArgumentInputs::structured(None, &[], &nothing, &granted) };
        let list = arguments(&ask);
        let set: Vec<&str> = words(&list).windows(2).filter(|two| two[0] == "-c").map(|two| two[1]).collect();
        let expected = [
            "mcp_servers.far.url=\"https://x/mcp\"",
            "mcp_servers.far.bearer_token_env_var=\"FAR\"",
            "mcp_servers.near.command=\"n\"",
            "mcp_servers.near.args=[\"a b\"]",
            "mcp_servers.near.env_vars=[\"K\"]",
            "mcp_servers.near.cwd=\"/w\"",
        ];
        assert_eq!(set, expected);
    }

    const EVENTS: &str = r#"{"type":"thread.started","thread_id":"0199"}
{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"hm"}}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"{\"a\":1}"}}
{"type":"turn.completed","usage":{"input_tokens":24763,"cached_input_tokens":24448,"output_tokens":122}}
"#;

    #[test]
    fn the_last_message_is_the_answer() {
        let reply = read(&values(EVENTS), Some("{\"a\":2}".into())).unwrap();
        assert_eq!(reply.text, "{\"a\":2}");
        let usage = model_and_usage(&values(EVENTS)).1;
        assert_eq!((usage.tokens_in, usage.tokens_out), (Some(24763), Some(122)));
        assert_eq!(usage.tokens_cached, Some(24448));
        assert_eq!(read(&values(EVENTS), None).unwrap().text, "{\"a\":1}");
    }

    #[test]
    fn an_error_is_no_answer() {
        let failed = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}"#;
        assert_eq!(
            read(&values(failed), None).unwrap_err(),
            ReplyError::Reported("You've hit your usage limit.".into())
        );
        assert_eq!(model_and_usage(&values(&format!("{EVENTS}{failed}"))).1.tokens_out, Some(122));
        assert_eq!(read(&[], None).unwrap_err(), ReplyError::Malformed);
    }
}

#[cfg(test)]
mod judge_tests {
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
