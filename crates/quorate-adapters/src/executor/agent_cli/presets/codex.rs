//! The preset `codex`: `codex exec --json … -`, prompt on stdin, events as JSON lines on stdout, the last message in a
//! file of its own. It runs in the read-only sandbox and keeps no session.
//!
//! The CLI has no list of allowed tools; the sandbox restricts it. The MCP servers of a participant are added to its own
//! as overrides of its configuration.

mod judge;
mod strict_schema;

use std::ffi::OsString;

use quorate_kernel::ports::executor::{Reply, Usage};
use quorate_protocol::Json;
use serde_json::json;

use super::{ArgumentBuilder, ArgumentInputs, ModelAndUsage, Preset, ServerPassing, count};
use crate::executor::agent_cli::output_format::{OutputFormat, ReplyError};
use crate::executor::agent_cli::tool_grants::Server;

pub(super) const PRESET: Preset = Preset {
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
    schema: strict_schema::to_strict,
    no_attachments: None,
    judge: Some(&judge::JUDGE),
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

/// The reply in the events, or in the file of the last message.
pub(in crate::executor::agent_cli) fn read(
    stdout: &str,
    last_message: Option<String>,
) -> Result<Reply, ReplyError> {
    let mut message = None;
    let mut error = None;
    for event in events(stdout) {
        match event.get("type").and_then(Json::as_str) {
            Some("item.completed") => message = agent_message(&event).or(message),
            Some("turn.completed") => error = None,
            Some("turn.failed") => {
                error = event.pointer("/error/message").and_then(Json::as_str).map(str::to_owned)
            }
            Some("error") => error = event.get("message").and_then(Json::as_str).map(str::to_owned),
            _ => {}
        }
    }
    if let Some(error) = error {
        return Err(ReplyError::Reported(error));
    }
    let text = last_message.or(message).ok_or(ReplyError::Malformed)?;
    Ok(Reply { text, ..Reply::default() })
}

/// The attempt's usage, with or without a reply. The events do not name the model.
pub(in crate::executor::agent_cli) fn model_and_usage(stdout: &str) -> ModelAndUsage {
    let mut usage = Usage::default();
    for event in events(stdout) {
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

fn events(stdout: &str) -> impl Iterator<Item = Json> {
    stdout.lines().filter_map(|line| serde_json::from_str(line.trim()).ok())
}

fn agent_message(event: &Json) -> Option<String> {
    let item = event.get("item")?;
    if item.get("type")?.as_str()? != "agent_message" {
        return None;
    }
    item.get("text")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ReplyError, arguments, model_and_usage, read};
    use crate::executor::agent_cli::attempt_files::AttemptFiles;
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
        let reply = read(EVENTS, Some("{\"a\":2}".into())).unwrap();
        assert_eq!(reply.text, "{\"a\":2}");
        let usage = model_and_usage(EVENTS).1;
        assert_eq!((usage.tokens_in, usage.tokens_out), (Some(24763), Some(122)));
        assert_eq!(usage.tokens_cached, Some(24448));
        assert_eq!(read(EVENTS, None).unwrap().text, "{\"a\":1}");
    }

    #[test]
    fn an_error_is_no_answer() {
        let failed = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}"#;
        assert_eq!(
            read(failed, None).unwrap_err(),
            ReplyError::Reported("You've hit your usage limit.".into())
        );
        assert_eq!(model_and_usage(&format!("{EVENTS}{failed}")).1.tokens_out, Some(122));
        assert_eq!(read("Not inside a trusted directory", None).unwrap_err(), ReplyError::Malformed);
    }
}
