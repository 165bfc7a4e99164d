//! The preset `codex`: `codex exec --json … -`, prompt on stdin, events as JSON lines on stdout, the last message in a
//! file of its own. It runs in the read-only sandbox and keeps no session.
//!
//! The CLI has no list of allowed tools; the sandbox restricts it. The MCP servers of a participant are added to its own
//! as overrides of its configuration.

use std::ffi::OsString;

use quorate_kernel::ports::executor::{Reply, Usage};
use quorate_protocol::{Json, answers};
use serde_json::{Map, json};

use super::envelope::{self, text_of};
use super::{ArgumentBuilder, ArgumentInputs, CliPreset, ModelAndUsage, ServerPassing, count};
use crate::executor::agent_cli::judge::{HOME, Judge, JudgeConfig, JudgeSetup, SYSTEM_PROMPT};
use crate::executor::agent_cli::presets::{OutputFormat, ReplyError};
use crate::executor::agent_cli::tool_grants::Server;

pub(super) const PRESET: CliPreset = CliPreset {
    name: "codex",
    executor: "codex",
    command: "codex",
    install: "`npm install -g @openai/codex`",
    output: OutputFormat::CodexJsonl,
    needs_model: false,
    uses_files: true,
    reserved_flags: &["--output-schema", "--output-last-message", "-o", "--color", "--model", "-m"],
    implied_flags: &["exec", "--json", "--skip-git-repo-check", "--ephemeral", "-"],
    tool_flags: &[],
    server_passing: ServerPassing::AsArguments,
    schema: to_strict,
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
    for server in &ask.tool_grants.servers {
        arguments = server_overrides(server).iter().fold(arguments, |all, setting| all.flag("-c", setting));
    }
    let mut list =
        arguments.judge_config(ask.judge_config).model("--model", ask.model).extra_args(ask.extra_args).list;
    list.push("-".into());
    list
}

/// A server as overrides. They are TOML, which shares JSON's strings and lists.
fn server_overrides(server: &Server<'_>) -> Vec<String> {
    // The CLI splits the path of an override at its dots, even within quotes.
    if !server.id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        return Vec::new();
    }
    let set = |key: &str, value: Json| format!("mcp_servers.{}.{key}={value}", server.id);
    if let Some((url, token)) = server.url() {
        let token = token.map(|token| set("bearer_token_env_var", json!(token)));
        return [set("url", json!(url))].into_iter().chain(token).collect();
    }
    let Some(local) = server.stdio() else { return Vec::new() };
    let mut list = vec![set("command", json!(local.command)), set("args", json!(local.args))];
    if !local.env.is_empty() {
        list.push(set("env_vars", json!(local.env)));
    }
    list.extend(local.cwd.map(|cwd| set("cwd", json!(cwd))));
    list
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

/// The schema in that form; `None` if the form would lose what the schema is for.
fn to_strict(form: answers::Schema, schema: &Json) -> Option<Json> {
    match form {
        // These contain objects with arbitrary keys, which a closed object would lose.
        answers::Schema::PlainText | answers::Schema::Turn | answers::Schema::Deltas => None,
        _ => close(&first_alternative(schema)),
    }
}

/// The schema with the first of its alternatives at the top merged into it.
fn first_alternative(schema: &Json) -> Json {
    let mut schema = schema.clone();
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.as_object_mut()?.remove(*key));
    let Some(first) = alternatives.as_ref().and_then(|all| all.get(0)) else { return schema };
    if let (Some(Json::Array(required)), Some(Json::Array(more))) =
        (schema.get_mut("required"), first.get("required"))
    {
        required.extend(more.iter().cloned());
    }
    for (name, keywords) in first.get("properties").and_then(Json::as_object).into_iter().flatten() {
        let property = schema.pointer_mut("/properties").and_then(|all| all.get_mut(name));
        if let (Some(Json::Object(property)), Json::Object(keywords)) = (property, keywords) {
            property.extend(keywords.clone());
        }
    }
    schema
}

fn close(schema: &Json) -> Option<Json> {
    let keywords = schema.as_object()?;
    let mut kinds = types(keywords);
    let mut strict: Map<String, Json> = Map::new();
    for key in ["description", "enum"] {
        if let Some(value) = keywords.get(key) {
            strict.insert(key.to_owned(), value.clone());
        }
    }
    if kinds.contains(&"object") {
        let properties = properties(keywords)?;
        strict.insert("required".to_owned(), properties.keys().cloned().collect());
        strict.insert("properties".to_owned(), Json::Object(properties));
        strict.insert("additionalProperties".to_owned(), Json::Bool(false));
    }
    if kinds.contains(&"array") {
        // A list, or a string in its place: the list.
        kinds.retain(|kind| *kind != "string");
        let items = keywords.get("items").map_or_else(|| Some(json!({"type": "string"})), close)?;
        strict.insert("items".to_owned(), items);
    }
    let kind = match kinds[..] {
        [] if strict.contains_key("enum") => return Some(Json::Object(strict)),
        [] => return None,
        [kind] => json!(kind),
        _ => json!(kinds),
    };
    strict.insert("type".to_owned(), kind);
    Some(Json::Object(strict))
}

/// The properties, all of them required. An optional property stays only if it may be null, or if null can mean that it
/// is absent; an object that cannot be closed is dropped.
fn properties(keywords: &Map<String, Json>) -> Option<Map<String, Json>> {
    let required = |name: &str| {
        let names = keywords.get("required").and_then(Json::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let all = keywords.get("properties")?.as_object()?;
    let mut required_properties = Map::new();
    for (name, schema) in all {
        let may_be_null = schema.as_object().is_some_and(|keywords| types(keywords).contains(&"null"));
        match close(schema) {
            Some(property) if required(name) || may_be_null => {
                required_properties.insert(name.clone(), property)
            }
            None if required(name) => return None,
            _ => None,
        };
    }
    Some(required_properties)
}

fn types(keywords: &Map<String, Json>) -> Vec<&str> {
    match keywords.get("type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
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

#[cfg(test)]
mod strict_schema_tests {
    use super::to_strict;
    use quorate_protocol::{Json, answers};
    use serde_json::json;

    /// Whether the service accepts a schema.
    fn taken(schema: &Json) -> bool {
        const KNOWN: &[&str] =
            &["type", "description", "enum", "properties", "required", "additionalProperties", "items"];
        let Some(keywords) = schema.as_object() else { return false };
        let Some(properties) = keywords.get("properties").and_then(Json::as_object) else {
            let has = |kind: &str| keywords.get("type").is_some_and(|kinds| kinds.to_string().contains(kind));
            return !has("object")
                && keywords.keys().all(|key| KNOWN.contains(&key.as_str()))
                && (!has("array") || keywords.get("items").is_some_and(taken));
        };
        let required: Vec<&str> =
            keywords["required"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
        keywords.keys().all(|key| KNOWN.contains(&key.as_str()))
            && keywords["additionalProperties"] == false
            && properties.keys().all(|name| required.contains(&name.as_str()))
            && properties.values().all(taken)
    }

    #[test]
    fn every_form_of_a_judge_is_taken() {
        use answers::Schema::{
            Adjudication, Advice, Ballot, FirstAnswer, Judgement, Message, SecondAnswer, Selection,
        };
        for form in [FirstAnswer, SecondAnswer, Adjudication, Advice, Ballot, Message, Selection, Judgement] {
            let schema = to_strict(form, &form.json_schema()).unwrap_or_else(|| panic!("{form:?} has none"));
            assert!(taken(&schema), "{form:?}: {schema}");
            for name in form.json_schema()["required"].as_array().unwrap() {
                assert!(schema["properties"].get(name.as_str().unwrap()).is_some(), "{form:?} needs {name}");
            }
        }
        for form in [answers::Schema::PlainText, answers::Schema::Turn, answers::Schema::Deltas] {
            assert_eq!(to_strict(form, &form.json_schema()), None);
        }
    }

    #[test]
    fn an_answer_that_fits_it_fits_the_form() {
        let form = answers::Schema::Adjudication;
        let schema = to_strict(form, &form.json_schema()).unwrap();
        assert_eq!(schema["properties"]["verdict"]["type"], "string");
        let answer = json!({"verdict": "HOLD", "final_verdict": null, "reasoning": "r", "revision_brief": null,
                            "dissent_summary": null});
        for name in schema["properties"].as_object().unwrap().keys() {
            assert!(answer.get(name).is_some(), "{name}");
        }
        assert!(form.accepts(&answer));
        let form = answers::Schema::SecondAnswer;
        let schema = to_strict(form, &form.json_schema()).unwrap();
        assert_eq!(schema["properties"]["findings"]["items"]["required"].as_array().unwrap().len(), 4);
        assert_eq!(schema["properties"]["concessions"]["type"], json!(["array", "null"]));
        assert!(schema["properties"].get("scores").is_none(), "an object of any keys cannot be closed");
        let empty: serde_json::Map<_, _> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(|name| {
                (
                    name.clone(),
                    if ["would_block", "irreducible"].contains(&&**name) { json!(false) } else { Json::Null },
                )
            })
            .collect();
        assert!(form.accepts(&Json::Object(empty)));
    }
}
