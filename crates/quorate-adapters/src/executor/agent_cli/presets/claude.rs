//! The preset `claude`: `claude --print --output-format json --json-schema …`, prompt on stdin, one JSON envelope on
//! stdout.
//!
//! If the manifest restricts a participant's tools, `--tools` limits the built-in ones, `--allowedTools` permits them
//! without a prompt, and `--strict-mcp-config` with `--mcp-config` passes exactly the named MCP servers.

use std::ffi::OsString;

use quorate_kernel::ports::executor::Usage;
use quorate_manifest::money::Money;
use quorate_protocol::{Json, answers};

use super::{ArgumentBuilder, ArgumentInputs, CliPreset, ModelAndUsage, ServerPassing, count, envelope};
use crate::executor::agent_cli::judge::{Judge, JudgeConfig, JudgeSetup, SYSTEM_PROMPT};
use crate::executor::agent_cli::presets::OutputFormat;

/// The longest schema that is passed as an argument; the system's own limit is 128 KiB for one.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

pub(super) const PRESET: CliPreset = CliPreset {
    name: "claude",
    executor: "claude",
    command: "claude",
    install: "`npm install -g @anthropic-ai/claude-code`",
    output: OutputFormat::ClaudeJson,
    needs_model: false,
    uses_files: false,
    reserved_flags: "--output-format --input-format --json-schema --model",
    implied_flags: "--print -p",
    tool_flags: "--tools --allowedTools --allowed-tools --mcp-config --strict-mcp-config \
        --dangerously-skip-permissions",
    server_passing: ServerPassing::InFile,
    schema: accepted_schema,
    no_attachments: Some(NO_ATTACHMENTS),
    judge: Some(&JUDGE),
    arguments,
};

fn arguments(ask: &ArgumentInputs<'_>) -> Vec<OsString> {
    let mut arguments = ArgumentBuilder::new(&["--print", "--output-format", "json"]);
    if let Some(schema) = ask.schema {
        arguments = arguments.flag("--json-schema", schema.to_string());
    }
    tools(arguments, ask)
        .judge_config(ask.judge_config)
        .model("--model", ask.model)
        .extra_args(ask.extra_args)
        .list
}

fn tools(mut arguments: ArgumentBuilder, ask: &ArgumentInputs<'_>) -> ArgumentBuilder {
    let granted = ask.tool_grants;
    if !granted.restricts() {
        return arguments;
    }
    if let Some(allowed) = granted.allowed_tools {
        let built_in = allowed.iter().filter(|tool| !tool.starts_with(MCP_TOOL_PREFIX));
        arguments = arguments.joined_flag("--tools", &tool_names(built_in));
    }
    let mut rules: Vec<String> = granted.allowed_tools.unwrap_or_default().to_vec();
    for (id, _) in &granted.servers {
        let all = format!("{MCP_TOOL_PREFIX}{}", id.replace(|c: char| !is_name_char(c), "_"));
        // Rules for single tools of a server must not allow all of them.
        if !rules.iter().any(|rule| *rule == all || rule.starts_with(&format!("{all}__"))) {
            rules.push(all);
        }
    }
    if !rules.is_empty() {
        arguments = arguments.joined_flag("--allowedTools", &rules.join(","));
    }
    arguments.list.push("--strict-mcp-config".into());
    match ask.files.filter(|_| !granted.servers.is_empty()) {
        Some(files) => arguments.joined_flag("--mcp-config", &files.servers_path().to_string_lossy()),
        None => arguments,
    }
}

/// The tools that rules are about, each once: `Bash(git:*)` is about `Bash`.
fn tool_names<'a>(rules: impl IntoIterator<Item = &'a String>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for rule in rules {
        let name = rule.split('(').next().unwrap_or(rule).trim();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(",")
}

/// The prefix of tools of MCP servers.
const MCP_TOOL_PREFIX: &str = "mcp__";

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// The schema in a form that the CLI accepts: it becomes the input of a tool, where alternatives at the top are refused,
/// and its validator knows no newer dialects by name. The attempt checks the answer against the full schema.
fn accepted_schema(_: answers::Schema, schema: &Json) -> Option<Json> {
    let mut schema = schema.clone();
    if let Some(keywords) = schema.as_object_mut() {
        for keyword in ["$schema", "$id", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"] {
            keywords.remove(keyword);
        }
    }
    Some(schema).filter(|schema| schema.to_string().len() <= MAX_SCHEMA_BYTES)
}

/// The attempt's usage and the model that answered, with or without a reply.
pub(in crate::executor::agent_cli) fn model_and_usage(values: &[Json]) -> ModelAndUsage {
    let envelope =
        values.iter().rev().find(|value| envelope::is_envelope(value) || value.get("usage").is_some());
    envelope.map_or_else(ModelAndUsage::default, |envelope| (model(envelope), usage(envelope)))
}

/// The model with the most output; small helper models are listed next to it.
fn model(envelope: &Json) -> Option<String> {
    let models = envelope.get("modelUsage")?.as_object()?;
    models.iter().max_by_key(|(_, usage)| count(usage, "outputTokens")).map(|(name, _)| name.clone())
}

/// Tokens of all models if each is listed, else of the main one. Cache reads and writes count as input.
fn usage(envelope: &Json) -> Usage {
    let tokens_of = |usage: &Json, [input, written, cached, output]: [&str; 4]| {
        let read = [input, written, cached].into_iter().filter_map(|key| count(usage, key));
        Usage {
            tokens_in: read.reduce(u64::saturating_add),
            tokens_cached: count(usage, cached),
            tokens_out: count(usage, output),
            ..Usage::default()
        }
    };
    const LISTED: [&str; 4] =
        ["inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens"];
    const MAIN: [&str; 4] =
        ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
    let models = envelope.get("modelUsage").and_then(Json::as_object);
    let mut listed = models.into_iter().flat_map(serde_json::Map::values).peekable();
    let mut usage = Usage::default();
    if listed.peek().is_some_and(|model| count(model, LISTED[0]).is_some()) {
        listed.for_each(|model| usage.add(tokens_of(model, LISTED)));
    } else if let Some(main) = envelope.get("usage") {
        usage = tokens_of(main, MAIN);
    }
    let cost = envelope.get("total_cost_usd").and_then(Json::as_f64).filter(|usd| *usd >= 0.0);
    // The cast saturates at 18 billion dollars.
    Usage { money: cost.map(|usd| Money::from_nanos((usd * 1e9).round() as u64)), ..usage }
}

/// The variable that keeps `@path` from attaching files.
const NO_ATTACHMENTS: &str = "CLAUDE_CODE_DISABLE_ATTACHMENTS";

const JUDGE: Judge = Judge {
    home_variable: "CLAUDE_CONFIG_DIR",
    tested_version: "2.1.197",
    flag_listings: &[&["--help"]],
    required_flags: "--tools --allowedTools --strict-mcp-config --setting-sources --no-session-persistence \
        --disable-slash-commands --safe-mode --name --system-prompt --json-schema",
    forbidden_flags: "--tools --allowedTools --allowed-tools --mcp-config --setting-sources --permission-mode \
        --dangerously-skip-permissions --allow-dangerously-skip-permissions --add-dir --agent --agents \
        --plugin-dir --plugin-url --file --ide --chrome --bg --background --worktree -w --tmux \
        --remote-control --continue -c --resume -r --from-pr",
    forbidden_settings: "",
    tools: None,
    preflight: None,
    configure: furnish,
};

fn furnish(session: &JudgeSetup<'_>) -> Result<JudgeConfig, String> {
    let mut arguments = ArgumentBuilder::new(&[]).joined_flag("--tools", &tool_names(session.tools));
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Usage, accepted_schema, arguments, envelope, model_and_usage};
    use crate::executor::agent_cli::call::AttemptFiles;
    use crate::executor::agent_cli::presets::envelope::values;
    use crate::executor::agent_cli::presets::{ArgumentInputs, ReplyError, words};
    use crate::executor::agent_cli::tool_grants::{ToolGrants, fixture};
    use quorate_kernel::ports::executor::Reply;
    use quorate_manifest::money::Money;
    use quorate_protocol::answers;
    use serde_json::json;

    fn read(stdout: &str) -> Result<Reply, ReplyError> {
        envelope::read(&values(stdout))
    }

    #[test]
    fn the_schema_goes_along_as_the_cli_accepts_it() {
        let schema = json!({"$schema": "x", "type": "object", "anyOf": [{"required": ["a"]}]});
        let schema = accepted_schema(answers::Schema::Advice, &schema).unwrap();
        let extra = ["--verbose".to_owned()];
        let granted = ToolGrants::default();
        let ask = ArgumentInputs::structured(Some("opus"), &extra, &schema, &granted);
        let expected = [
            "--print",
            "--output-format",
            "json",
            "--json-schema",
            "{\"type\":\"object\"}",
            "--model",
            "opus",
            "--verbose",
        ];
        assert_eq!(words(&arguments(&ask)), expected);
        let ask = ArgumentInputs { schema: None, ..ask };
        assert_eq!(
            words(&arguments(&ask)),
            ["--print", "--output-format", "json", "--model", "opus", "--verbose"]
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the servers are read back")]
    fn a_participant_has_the_tools_that_the_manifest_names_and_no_others() {
        let servers =
            fixture::servers(&json!({"git.hub": {"url": "https://x/mcp"}, "db": {"command": "db"}}));
        let nothing = json!({});
        let arguments_for = |allowed, ids: &[&str]| {
            let conversation = fixture::conversation(allowed, ids);
            let granted = ToolGrants::for_speaker(Some(&conversation), &servers, Path::new("/"));
            let files = AttemptFiles::new(None, Some(&granted.mcp_config())).unwrap();
            let ask = ArgumentInputs {
                schema: None,
                files: Some(&files),
                ..ArgumentInputs::structured(None, &[], &nothing, &granted)
            };
            let read = std::fs::read_to_string(files.servers_path()).unwrap();
            let path = files.servers_path().to_string_lossy().into_owned();
            let list = arguments(&ask);
            let list = words(&list).into_iter().skip(3).map(|word| word.replace(&path, "FILE"));
            (list.collect::<Vec<_>>(), read)
        };
        let (list, read) =
            arguments_for(Some(&["Read", "Bash(git:*)", "Bash(ls)", "mcp__db__query"]), &["git.hub", "db"]);
        let expected = [
            "--tools=Read,Bash",
            "--allowedTools=Read,Bash(git:*),Bash(ls),mcp__db__query,mcp__git_hub",
            "--strict-mcp-config",
            "--mcp-config=FILE",
        ];
        assert_eq!(list, expected);
        assert!(read.contains("https://x/mcp"), "{read}");
        assert_eq!(arguments_for(Some(&[]), &[]).0, ["--tools=", "--strict-mcp-config"]);
        assert_eq!(arguments_for(None, &[]).0, [""; 0]);
    }

    #[test]
    fn the_structured_output_is_the_answer() {
        let printed = r#"{"type":"result","subtype":"success","is_error":false,"result":"",
                "usage":{"input_tokens":4,"cache_creation_input_tokens":9369,"cache_read_input_tokens":22296,
                         "output_tokens":121},
                "modelUsage":{"small":{"outputTokens":3},"large":{"outputTokens":118}},
                "structured_output":{"score":3}}"#;
        let reply = read(printed).unwrap();
        assert_eq!(reply.text, r#"{"score":3}"#);
        let (model, usage) = model_and_usage(&values(printed));
        assert_eq!(model.as_deref(), Some("large"));
        assert_eq!((usage.tokens_in, usage.tokens_cached), (Some(31669), Some(22296)));
        assert_eq!((usage.tokens_out, usage.money), (Some(121), None));
    }

    #[test]
    fn a_failed_attempt_has_its_price_too() {
        let printed = r#"{"type":"result","is_error":true,"result":"API Error: 529","total_cost_usd":0.01303725,
            "usage":{"input_tokens":1,"output_tokens":2},
            "modelUsage":{"small":{"inputTokens":10,"outputTokens":3,"cacheReadInputTokens":4},
                          "large":{"inputTokens":20,"outputTokens":5,"cacheCreationInputTokens":6}}}"#;
        assert!(read(printed).is_err());
        let (model, usage) = model_and_usage(&values(printed));
        assert_eq!(model.as_deref(), Some("large"));
        let Usage { tokens_in, tokens_cached, tokens_out, money, .. } = usage;
        assert_eq!((tokens_in, tokens_cached, tokens_out), (Some(40), Some(4), Some(8)));
        assert_eq!(money, Some(Money::from_nanos(13_037_250)));
        assert_eq!(model_and_usage(&values("no JSON")), (None, Usage::default()));
        assert_eq!(model_and_usage(&[json!({"total_cost_usd": -1})]).1.money, None);
    }

    #[test]
    fn without_structured_output_the_result_is_the_answer() {
        let reply =
            read(r#"[{"type":"system"},{"type":"result","is_error":false,"result":"{\"a\":1}"}]"#).unwrap();
        assert_eq!(reply.text, r#"{"a":1}"#);
    }

    #[test]
    fn an_error_is_no_answer() {
        let error =
            read(r#"{"type":"result","is_error":true,"result":"Credit balance is too low"}"#).unwrap_err();
        assert_eq!(error, ReplyError::Reported("Credit balance is too low".into()));
        let error = read(r#"{"type":"result","subtype":"error_max_turns","is_error":false}"#).unwrap_err();
        assert_eq!(error, ReplyError::Reported("error_max_turns".into()));
        let early = r#"{"type":"result","subtype":"error_max_turns","is_error":false,"result":"{\"a\":1}"}"#;
        assert!(matches!(read(early), Err(ReplyError::Reported(_))));
        assert_eq!(read("not JSON").unwrap_err(), ReplyError::Malformed);
        assert_eq!(read("[]").unwrap_err(), ReplyError::Malformed);
        assert_eq!(
            read(r#"{"type":"result"}"#).unwrap_err(),
            ReplyError::Reported("the result is missing".into())
        );
    }
}
