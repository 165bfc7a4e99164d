//! The preset `claude`: `claude --print --output-format json --json-schema …`, prompt on stdin, one JSON envelope on
//! stdout.
//!
//! Where the manifest says which tools a participant has, `--tools` leaves it no other built-in ones, `--allowedTools`
//! lets it use those without asking, and `--strict-mcp-config` with `--mcp-config` gives it the named MCP servers and no
//! others.

mod judge;

use std::ffi::OsString;

use quorate_kernel::ports::executor::{Reply, Usage};
use quorate_protocol::{Json, answers};

use super::{Arguments, Ask, Preset, TakesServers, count};
use crate::executor::agent_cli::output::{NoReply, Output};

/// The longest schema that is passed as an argument; the system's own limit is 128 KiB for one.
const LONGEST_SCHEMA: usize = 64 << 10;

pub(super) const PRESET: Preset = Preset {
    name: "claude",
    command: "claude",
    output: Output::ClaudeJson,
    needs_model: false,
    wants_files: false,
    own_flags: &["--output-format", "--input-format", "--json-schema", "--model"],
    implied: &["--print", "-p"],
    tool_flags: &[
        "--tools",
        "--allowedTools",
        "--allowed-tools",
        "--mcp-config",
        "--strict-mcp-config",
        "--dangerously-skip-permissions",
    ],
    servers: TakesServers::InFile,
    schema: accepted,
    no_attachments: Some(judge::NO_ATTACHMENTS),
    judge: Some(&judge::JUDGE),
    arguments,
};

fn arguments(ask: &Ask<'_>) -> Vec<OsString> {
    let mut arguments = Arguments::of(&["--print", "--output-format", "json"]);
    if let Some(schema) = ask.schema {
        arguments = arguments.flag("--json-schema", schema.to_string());
    }
    tools(arguments, ask).judged(ask.furniture).model("--model", ask.model).extra(ask.extra).list
}

fn tools(mut arguments: Arguments, ask: &Ask<'_>) -> Arguments {
    let granted = ask.granted;
    if !granted.restricts() {
        return arguments;
    }
    if let Some(allowed) = granted.allowed {
        let mut built_in: Vec<&str> = Vec::new();
        for tool in allowed.iter().filter(|tool| !tool.starts_with(SERVERS_TOOL)) {
            // A rule such as `Bash(git:*)` is about a tool.
            let name = tool.split('(').next().unwrap_or(tool).trim();
            if !built_in.contains(&name) {
                built_in.push(name);
            }
        }
        arguments = arguments.joined("--tools", &built_in.join(","));
    }
    let mut rules: Vec<String> = granted.allowed.unwrap_or_default().to_vec();
    for server in &granted.servers {
        let all = format!("{SERVERS_TOOL}{}", server.id.replace(|c: char| !word(c), "_"));
        // Whoever names single tools of a server does not mean all of them.
        if !rules.iter().any(|rule| *rule == all || rule.starts_with(&format!("{all}__"))) {
            rules.push(all);
        }
    }
    if !rules.is_empty() {
        arguments = arguments.joined("--allowedTools", &rules.join(","));
    }
    arguments.list.push("--strict-mcp-config".into());
    match ask.files.filter(|_| !granted.servers.is_empty()) {
        Some(files) => arguments.joined("--mcp-config", &files.servers().to_string_lossy()),
        None => arguments,
    }
}

/// What the names of tools of MCP servers begin with.
const SERVERS_TOOL: &str = "mcp__";

fn word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// The schema as the CLI accepts it: it becomes the input of a tool, where alternatives at the top are refused, and
/// its validator knows no newer dialects by name. What is left out here is checked by us on the answer.
fn accepted(_: answers::Schema, schema: &Json) -> Option<Json> {
    let mut schema = schema.clone();
    if let Some(keywords) = schema.as_object_mut() {
        for keyword in ["$schema", "$id", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"] {
            keywords.remove(keyword);
        }
    }
    Some(schema).filter(|schema| schema.to_string().len() <= LONGEST_SCHEMA)
}

/// The reply in an envelope.
pub(in crate::executor::agent_cli) fn read(stdout: &str) -> Result<Reply, NoReply> {
    let printed: Json = serde_json::from_str(stdout.trim()).map_err(|_| NoReply::Malformed)?;
    // With --verbose it is the list of all messages; the result comes last.
    let envelope = match &printed {
        Json::Array(messages) => messages.last().unwrap_or(&printed),
        _ => &printed,
    };
    // An object with none of these is no envelope: something else than the CLI printed it.
    if !["type", "subtype", "is_error", "result", "structured_output"]
        .iter()
        .any(|key| envelope.get(key).is_some())
    {
        return Err(NoReply::Malformed);
    }
    let result = envelope.get("result").and_then(Json::as_str);
    if envelope.get("is_error").and_then(Json::as_bool) == Some(true) {
        return Err(NoReply::Reported(result.unwrap_or(subtype(envelope)).to_owned()));
    }
    let text = match (envelope.get("structured_output").filter(|output| !output.is_null()), result) {
        (Some(output), _) => output.to_string(),
        (None, Some(result)) => result.to_owned(),
        (None, None) => return Err(NoReply::Reported(subtype(envelope).to_owned())),
    };
    Ok(Reply { text, model: model(envelope), usage: usage(envelope), posted: None })
}

fn subtype(envelope: &Json) -> &str {
    envelope.get("subtype").and_then(Json::as_str).unwrap_or("there is no result")
}

/// The model that wrote most: small helper models are listed beside it.
fn model(envelope: &Json) -> Option<String> {
    let models = envelope.get("modelUsage")?.as_object()?;
    models.iter().max_by_key(|(_, usage)| count(usage, "outputTokens")).map(|(name, _)| name.clone())
}

/// What was read from and written to the cache was read too.
fn usage(envelope: &Json) -> Usage {
    let Some(usage) = envelope.get("usage") else { return Usage::default() };
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let tokens_in = read.iter().filter_map(|key| count(usage, key)).reduce(u64::saturating_add);
    Usage { tokens_in, tokens_out: count(usage, "output_tokens") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{NoReply, accepted, arguments, read};
    use crate::executor::agent_cli::files::AnswerFiles;
    use crate::executor::agent_cli::granted::{Granted, fixture};
    use crate::executor::agent_cli::presets::{Ask, words};
    use quorate_protocol::answers;
    use serde_json::json;

    #[test]
    fn the_schema_goes_along_as_the_cli_accepts_it() {
        let schema = json!({"$schema": "x", "type": "object", "anyOf": [{"required": ["a"]}]});
        let schema = accepted(answers::Schema::Advice, &schema).unwrap();
        let extra = ["--verbose".to_owned()];
        let granted = Granted::default();
        let ask = Ask::structured(Some("opus"), &extra, &schema, &granted);
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
        let ask = Ask { schema: None, ..ask };
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
        let given = |allowed, ids: &[&str]| {
            let speaking = fixture::speaking(allowed, ids);
            let granted = Granted::of(Some(&speaking), &servers, Path::new("/"));
            let files = AnswerFiles::new(None, Some(&granted.config())).unwrap();
            let ask =
                Ask { schema: None, files: Some(&files), ..Ask::structured(None, &[], &nothing, &granted) };
            let read = std::fs::read_to_string(files.servers()).unwrap();
            let path = files.servers().to_string_lossy().into_owned();
            let list = arguments(&ask);
            let list = words(&list).into_iter().skip(3).map(|word| word.replace(&path, "FILE"));
            (list.collect::<Vec<_>>(), read)
        };
        let (list, read) =
            given(Some(&["Read", "Bash(git:*)", "Bash(ls)", "mcp__db__query"]), &["git.hub", "db"]);
        let expected = [
            "--tools=Read,Bash",
            "--allowedTools=Read,Bash(git:*),Bash(ls),mcp__db__query,mcp__git_hub",
            "--strict-mcp-config",
            "--mcp-config=FILE",
        ];
        assert_eq!(list, expected);
        assert!(read.contains("https://x/mcp"), "{read}");
        assert_eq!(given(Some(&[]), &[]).0, ["--tools=", "--strict-mcp-config"]);
        assert_eq!(given(None, &[]).0, [""; 0]);
    }

    #[test]
    fn the_structured_output_is_the_answer() {
        let reply = read(
            r#"{"type":"result","subtype":"success","is_error":false,"result":"",
                "usage":{"input_tokens":4,"cache_creation_input_tokens":9369,"cache_read_input_tokens":22296,
                         "output_tokens":121},
                "modelUsage":{"small":{"outputTokens":3},"large":{"outputTokens":118}},
                "structured_output":{"score":3}}"#,
        )
        .unwrap();
        assert_eq!(reply.text, r#"{"score":3}"#);
        assert_eq!(reply.model.as_deref(), Some("large"));
        assert_eq!((reply.usage.tokens_in, reply.usage.tokens_out), (Some(31669), Some(121)));
    }

    #[test]
    fn without_structured_output_the_result_is_the_answer() {
        let reply =
            read(r#"[{"type":"system"},{"type":"result","is_error":false,"result":"{\"a\":1}"}]"#).unwrap();
        assert_eq!(reply.text, r#"{"a":1}"#);
        assert_eq!(reply.usage.tokens_in, None);
    }

    #[test]
    fn an_error_is_no_answer() {
        let error =
            read(r#"{"type":"result","is_error":true,"result":"Credit balance is too low"}"#).unwrap_err();
        assert_eq!(error, NoReply::Reported("Credit balance is too low".into()));
        let error = read(r#"{"type":"result","subtype":"error_max_turns","is_error":false}"#).unwrap_err();
        assert_eq!(error, NoReply::Reported("error_max_turns".into()));
        assert_eq!(read("not JSON").unwrap_err(), NoReply::Malformed);
        assert_eq!(read("[]").unwrap_err(), NoReply::Malformed);
        assert_eq!(read(r#"{"type":"result"}"#).unwrap_err(), NoReply::Reported("there is no result".into()));
    }
}
