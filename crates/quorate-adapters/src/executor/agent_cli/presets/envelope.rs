//! Reads what vendor CLIs print: the JSON values on stdout, whatever stands beside them, and the fields that their
//! envelopes share. A preset's file adds the fields of its own.
//!
//! Warnings, banners, colours, byte order marks and notices may stand before, between and after the values. An envelope
//! that reports an error is never an answer, and neither are two envelopes with different answers.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use quorate_kernel::ports::executor::Reply;
use quorate_protocol::Json;

use super::ReplyError;
use crate::executor::agent_cli::oneshot::without_escapes;

/// The most tools that are named as refused.
const MAX_TOOLS: usize = 32;
/// The longest name of a tool, in characters.
const MAX_TOOL_NAME: usize = 100;
/// The longest reason of an error, in characters.
const MAX_REASON: usize = 400;

/// The JSON values of an output in their order, the items of lists one by one. [`Json::Null`] stands for a value that is cut
/// off or broken.
pub(in crate::executor::agent_cli) fn values(stdout: &str) -> Vec<Json> {
    let (text, mut found, mut at) = (without_decoration(stdout), Vec::new(), 0);
    while at < text.len() {
        let end = text[at..].find('\n').map_or(text.len(), |offset| at + offset + 1);
        let start = end - text[at..end].trim_start().len();
        at = match first_value(&text[start..]) {
            Some(Ok((value, length))) => {
                flatten(value, &mut found);
                start + length
            }
            Some(Err(())) => {
                found.push(Json::Null);
                end
            }
            None => values_within(&text, start..end, &mut found),
        };
    }
    found
}

/// The value that a text begins with, and its length; an error if it is broken, and `None` if the text is not JSON.
fn first_value(text: &str) -> Option<Result<(Json, usize), ()>> {
    let within = text.strip_prefix(['{', '['])?.trim_start();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    match stream.next()? {
        Ok(value) => Some(Ok((value, stream.byte_offset()))),
        Err(error) => {
            let looks_like_json =
                within.starts_with('"') || (text.starts_with('[') && within.starts_with('{'));
            (looks_like_json || error.is_eof()).then_some(Err(()))
        }
    }
}

/// Adds the objects that begin behind words on a line, and returns where to read on.
fn values_within(text: &str, line: Range<usize>, found: &mut Vec<Json>) -> usize {
    let mut at = line.start;
    while let Some(start) = text.get(at..line.end).and_then(|rest| rest.find('{')).map(|offset| at + offset) {
        at = match first_value(&text[start..]) {
            Some(Ok((value, length))) => {
                found.push(value);
                start + length
            }
            _ => start + 1,
        };
    }
    at.max(line.end)
}

fn flatten(value: Json, into: &mut Vec<Json>) {
    match value {
        Json::Array(items) => items.into_iter().for_each(|item| flatten(item, into)),
        value => into.push(value),
    }
}

/// A text without terminal escapes, and without byte order marks at the beginning of lines.
fn without_decoration(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\u{feff}']) {
        return Cow::Borrowed(text);
    }
    let lines = text.lines().map(without_escapes);
    Cow::Owned(lines.map(|line| line.trim_start_matches('\u{feff}').to_owned() + "\n").collect())
}

/// An answer of a CLI without an envelope, without escapes and the notices of the package manager around it.
pub(in crate::executor::agent_cli) fn without_notices(stdout: &str) -> String {
    const NOTICES: [&str; 4] = ["npm notice", "npm warn", "(node:", "(use `node"];
    let is_notice = |line: &str| {
        let line = line.trim().to_ascii_lowercase();
        NOTICES.iter().any(|notice| line.starts_with(notice))
    };
    let text = without_decoration(stdout);
    text.split_inclusive('\n').filter(|line| !is_notice(line)).collect()
}

/// The reply in an output of envelopes.
pub(in crate::executor::agent_cli) fn read(values: &[Json]) -> Result<Reply, ReplyError> {
    let envelopes: Vec<&Json> = values.iter().filter(|value| is_envelope(value)).collect();
    if let Some(error) = envelopes.iter().find_map(|envelope| error(envelope)) {
        return Err(ReplyError::Reported(error));
    }
    if envelopes.is_empty() || values.contains(&Json::Null) {
        return Err(ReplyError::Malformed);
    }
    let texts: BTreeSet<Option<String>> = envelopes.iter().map(|envelope| answer(envelope)).collect();
    let mut texts = texts.into_iter();
    match (texts.next().flatten(), texts.next()) {
        (Some(text), None) => Ok(Reply { text, ..Reply::default() }),
        (None, None) => {
            let subtype = text_of(envelopes[0], "subtype").unwrap_or("the result is missing");
            Err(ReplyError::Reported(subtype.to_owned()))
        }
        _ => Err(ReplyError::Ambiguous),
    }
}

/// Whether a value is the result of a call, and not a message on the way or something else.
pub(super) fn is_envelope(value: &Json) -> bool {
    const KEYS: [&str; 7] =
        ["subtype", "is_error", "result", "structured_output", "response", "error", "errors"];
    match text_of(value, "type") {
        Some("result") => true,
        Some("error") => text_of(value, "severity") != Some("warning"),
        Some(_) => false,
        None => KEYS.iter().any(|key| value.get(key).is_some()),
    }
}

/// The answer of an envelope: a text, or the JSON of an object or a list.
fn answer(envelope: &Json) -> Option<String> {
    let answers = ["structured_output", "result", "response"].into_iter().filter_map(|key| envelope.get(key));
    answers.filter_map(text).next()
}

/// A value as the text of an answer.
pub(super) fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Object(_) | Json::Array(_) => Some(value.to_string()),
        Json::Null | Json::Bool(_) | Json::Number(_) => None,
    }
}

/// What an envelope reports as its error; `None` if it reports none.
pub(super) fn error(envelope: &Json) -> Option<String> {
    let says = |key: &str, words: &[&str]| {
        text_of(envelope, key)
            .filter(|word| words.iter().any(|start| word.to_ascii_lowercase().starts_with(start)))
    };
    // A session that ended early, such as `error_max_turns`, may carry the text of its last turn.
    let subtype = says("subtype", &["error"]);
    let is_flagged = match envelope.get("is_error") {
        None | Some(Json::Null | Json::Bool(false)) => false,
        Some(flag) => flag.as_str() != Some("false"),
    };
    let mut reasons: Vec<String> =
        ["error", "errors"].iter().flat_map(|key| reasons(envelope.get(key))).collect();
    let is_error = is_flagged
        || subtype.is_some()
        || !reasons.is_empty()
        || text_of(envelope, "type") == Some("error")
        || says("status", &["error", "fail", "cancel"]).is_some();
    if !is_error {
        return None;
    }
    let message = ["result", "message"].iter().find_map(|key| text_of(envelope, key));
    reasons.insert(0, message.unwrap_or_default().to_owned());
    reasons.insert(0, subtype.unwrap_or_default().to_owned());
    let mut known = BTreeSet::new();
    reasons.retain(|reason| !reason.trim().is_empty() && known.insert(reason.clone()));
    let reason = match reasons.is_empty() {
        true => "it gives no reason".to_owned(),
        false => reasons.join(": "),
    };
    Some(match reason.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason,
    })
}

/// The texts of `error` or `errors`: a text, an object with a message, or a list of both.
fn reasons(value: Option<&Json>) -> Vec<String> {
    match value {
        None | Some(Json::Null | Json::Bool(false)) => Vec::new(),
        Some(Json::String(text)) if text.trim().is_empty() => Vec::new(),
        Some(Json::Array(items)) => items.iter().flat_map(|item| reasons(Some(item))).collect(),
        Some(Json::Object(fields)) => {
            let inner = ["message", "error", "detail"].iter().find_map(|key| fields.get(*key));
            match reasons(inner) {
                texts if texts.is_empty() => vec![Json::Object(fields.clone()).to_string()],
                texts => texts,
            }
        }
        Some(value) => vec![text(value).unwrap_or_else(|| value.to_string())],
    }
}

pub(super) fn text_of<'v>(value: &'v Json, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Json::as_str)
}

/// The tools that a CLI refused its model, without duplicates.
pub(in crate::executor::agent_cli) fn refused_tools(values: &[Json]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for value in values {
        let list = value.get("permission_denials").and_then(Json::as_array).into_iter().flatten();
        let listed = list.filter_map(|denial| {
            denial
                .as_str()
                .or_else(|| ["tool_name", "tool", "name"].iter().find_map(|key| text_of(denial, key)))
        });
        // An item of `codex exec --json`.
        let item = value.get("item").filter(|item| text_of(item, "status") == Some("declined"));
        let declined = item.and_then(|item| text_of(item, "tool").or_else(|| text_of(item, "type")));
        // The statistics of `gemini --output-format json`.
        let by_name = value.pointer("/stats/tools/byName").and_then(Json::as_object).into_iter().flatten();
        let rejected = by_name.filter(|(_, tool)| {
            tool.pointer("/decisions/reject").and_then(Json::as_u64).is_some_and(|count| count > 0)
        });
        let all = listed.chain(declined).chain(rejected.map(|(name, _)| &**name));
        for name in
            all.map(|name| name.chars().filter(|c| !c.is_control()).take(MAX_TOOL_NAME).collect::<String>())
        {
            if names.len() < MAX_TOOLS && !name.trim().is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{ReplyError, read, refused_tools, values, without_notices};
    use crate::executor::agent_cli::presets::codex;
    use serde_json::json;

    const CLAUDE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"{\"a\":1}"}"#;
    const GEMINI: &str = "{\n \"response\": \"{\\\"a\\\":1}\",\n \"stats\": {}\n}";
    const CODEX: &str = concat!(
        r#"{"type":"thread.started","thread_id":"t"}"#,
        "\n",
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"{\"a\":1}"}}"#,
        "\n",
        r#"{"type":"turn.completed","usage":{"output_tokens":2}}"#,
    );
    const ANSWER: &str = "{\"a\":1}";

    /// What each preset reads in an output that `with` makes of its envelope.
    fn read_all(with: impl Fn(&str) -> String) -> [Result<String, ReplyError>; 3] {
        [read(&values(&with(CLAUDE))), read(&values(&with(GEMINI))), codex::read(&values(&with(CODEX)), None)]
            .map(|read| read.map(|reply| reply.text))
    }

    #[test]
    fn stray_lines_around_an_envelope_are_ignored() {
        for stray in [
            "Warning: no stdin data received in 3s, proceeding without it.",
            "npm notice\nnpm notice New major version of npm available! 10.9.0 -> 11.0.0\nnpm notice",
            "(node:71) [DEP0040] DeprecationWarning: The `punycode` module is deprecated.",
            "(Use `node --trace-deprecation ...` to show where the warning was created)",
            "[dotenv@17.2.1] injecting env (0) from .env",
            "[INFO] Loaded cached credentials.",
            "\u{1b}[33mwarning\u{1b}[0m: {not JSON}",
            "{ code: 'ENOENT', path: '/x' }",
            "{\"level\":\"warn\",\"msg\":\"slow\"}",
            "Update available: {\"current\":\"1\",\"latest\":\"2\"}",
            "\u{feff}",
            "",
            "---",
            "╭─── Welcome {to} the CLI ───╮",
        ] {
            for text in [
                read_all(|envelope| format!("{stray}\n{envelope}\n")),
                read_all(|envelope| format!("{envelope}\n{stray}\n")),
                read_all(|envelope| format!("Data collection is disabled. {envelope}\n{stray}\n")),
                read_all(|envelope| format!("{stray}\r\n\u{feff}{envelope}\r\n{stray}\r\n")),
                read_all(|envelope| format!("\u{1b}[?25l\u{1b}[2K{envelope}\u{1b}[?25h\n{stray}")),
            ] {
                assert_eq!(text, [(); 3].map(|()| Ok(ANSWER.to_owned())), "{stray:?}");
            }
        }
        let same_line = read(&values(&format!("Warning: old version {CLAUDE} done"))).unwrap();
        assert_eq!(same_line.text, ANSWER);
    }

    #[test]
    fn an_answer_has_any_json_form() {
        for (result, expected) in
            [(json!(ANSWER), ANSWER), (json!({"a": 1}), ANSWER), (json!([{"a": 1}]), "[{\"a\":1}]")]
        {
            let claude = json!({"type": "result", "subtype": "success", "result": result}).to_string();
            let gemini = json!({"response": result}).to_string();
            let item = json!({"type": "item.completed", "item": {"type": "agent_message", "text": result}});
            let codex = format!("{item}\n{}", json!({"type": "turn.completed"}));
            let listed = format!("[{}, {claude}]", json!({"type": "system"}));
            let streamed =
                format!("{}\n{claude}", json!({"type": "assistant", "message": {"content": "no"}}));
            for read in [
                read(&values(&claude)),
                read(&values(&listed)),
                read(&values(&streamed)),
                read(&values(&format!("{claude}\n{claude}"))),
                read(&values(&gemini)),
                read(&values(&format!("[{gemini}]"))),
                codex::read(&values(&codex), None),
                codex::read(&values(&format!("[{}]", codex.replace('\n', ","))), None),
            ] {
                assert_eq!(read.unwrap().text, expected, "{result}");
            }
        }
        let structured = json!({"type": "result", "result": "Done.", "structured_output": ANSWER});
        assert_eq!(read(&[structured]).unwrap().text, ANSWER);
    }

    #[test]
    fn an_error_is_reported_with_its_reasons() {
        for (envelope, expected) in [
            (
                json!({"type": "result", "subtype": "error_max_structured_output_retries", "is_error": true,
                       "errors": ["no valid output after 5 attempts"]}),
                "error_max_structured_output_retries: no valid output after 5 attempts",
            ),
            (
                json!({"type": "result", "subtype": "error_during_execution",
                       "errors": [{"message": "first"}, {"error": {"message": "second"}}, {"code": 7}]}),
                "error_during_execution: first: second: {\"code\":7}",
            ),
            (
                json!({"type": "result", "subtype": "success", "is_error": true, "result": "API Error: 529"}),
                "API Error: 529",
            ),
            (json!({"type": "result", "is_error": "true"}), "it gives no reason"),
            (json!({"type": "result", "result": ANSWER, "errors": ["late"]}), "{\"a\":1}: late"),
            (json!({"type": "result", "status": "error", "error": {"type": "x", "message": "m"}}), "m"),
            (json!({"response": ANSWER, "error": "quota"}), "quota"),
            (json!({"type": "error", "message": "no network"}), "no network"),
        ] {
            let whole = envelope.to_string();
            let beside = format!("{CLAUDE}\n{whole}\n{CLAUDE}");
            let expected = Err(ReplyError::Reported(expected.to_owned()));
            for output in [&whole, &beside, &format!("[{whole}]"), &format!("Warning: x\n{whole}")] {
                assert_eq!(read(&values(output)), expected, "{output}");
            }
        }
        let failed = r#"{"type":"turn.failed","error":{"message":"limit"}}"#;
        for output in [format!("{CODEX}\n{failed}"), format!("{failed}\n{CODEX}")] {
            assert_eq!(
                codex::read(&values(&output), Some(ANSWER.into())),
                Err(ReplyError::Reported("limit".into()))
            );
        }
        let earlier = CODEX.replace("\"type\":\"agent_message\"", "\"item_type\":\"assistant_message\"");
        assert_eq!(codex::read(&values(&earlier), None).map(|reply| reply.text), Ok(ANSWER.to_owned()));
        let reconnected = format!("{}\n{CODEX}", r#"{"type":"error","message":"Reconnecting... 1/5"}"#);
        assert!(codex::read(&values(&reconnected), None).is_ok());
    }

    #[test]
    fn a_cut_or_contradictory_output_is_not_an_answer() {
        let other = CLAUDE.replace(":1", ":2");
        assert_eq!(read(&values(&format!("{CLAUDE}\n{other}"))), Err(ReplyError::Ambiguous));
        assert_eq!(
            read(&values(&format!("{GEMINI}\n{}", GEMINI.replace(":1", ":2")))),
            Err(ReplyError::Ambiguous)
        );
        for output in [
            &CLAUDE[..40],
            &format!("{}\n{CLAUDE}", &CLAUDE[..40]),
            &format!("[{CLAUDE},\nnpm notice"),
            &format!("[{}", CLAUDE),
            "{\"type\":\"result\",\n\"structured_output\": {\"result\": \"{}\"},\nnpm notice",
        ] {
            assert_eq!(read(&values(output)), Err(ReplyError::Malformed), "{output}");
        }
        let lines: Vec<&str> = CODEX.lines().collect();
        for output in [
            lines[..2].join("\n"),
            format!("{}\n{}\n{}", lines[1], &lines[1][..30], lines[2]),
            format!("{}\n{}", lines[0], lines[2]),
        ] {
            assert_eq!(codex::read(&values(&output), None), Err(ReplyError::Malformed), "{output}");
            assert!(codex::read(&values(&output), Some(ANSWER.into())).is_ok(), "{output}");
        }
    }

    #[test]
    fn refused_tools_are_named_once() {
        for (output, expected) in [
            (
                json!({"type": "result", "permission_denials": [{"tool_name": "Bash"}, {"tool_name": "Bash"}]}),
                &["Bash"][..],
            ),
            (
                json!([{"type": "result", "permission_denials": ["Write", {"tool": "Read"}, 3, {}]}]),
                &["Write", "Read"],
            ),
            (
                json!({"type": "result", "is_error": true, "permission_denials": [{"name": "a\u{7}b"}]}),
                &["ab"],
            ),
            (
                json!({"type": "item.completed", "item": {"type": "command_execution", "status": "declined"}}),
                &["command_execution"],
            ),
            (
                json!({"type": "item.completed", "item": {"type": "mcp_tool_call", "tool": "query", "status": "declined"}}),
                &["query"],
            ),
            (
                json!({"response": "", "stats": {"tools": {"byName": {"shell": {"decisions": {"reject": 1}}, "read": {"decisions": {"reject": 0}}}}}}),
                &["shell"],
            ),
            (json!({"type": "result", "permission_denials": []}), &[]),
            (json!({"type": "result", "permission_denials": "Bash"}), &[]),
        ] {
            assert_eq!(refused_tools(&values(&format!("Warning\n{output}\n"))), expected, "{output}");
        }
        let many: Vec<_> = (0..100).map(|n| json!({"tool_name": format!("t{n}")})).collect();
        assert_eq!(refused_tools(&[json!({"permission_denials": many})]).len(), super::MAX_TOOLS);
    }

    #[test]
    fn notices_around_an_answer_without_an_envelope_are_left_out() {
        let printed =
            "\u{feff}npm notice\n{\"a\":1}\nnpm notice\nnpm notice New version\n(node:1) Warning: x\n";
        assert_eq!(without_notices(printed), "{\"a\":1}\n");
        assert_eq!(without_notices("I say no.\nnpm test fails.\n"), "I say no.\nnpm test fails.\n");
    }

    // Outputs of 4 MiB are read in their size.
    #[test]
    fn long_outputs_take_linear_time() {
        for piece in
            ["{", "[", "{\"", "x {\"a\":{", "{\"a\":[1,\n", "\u{1b}[", "x {}", "x {\"a\":[\n", "{\"a\":1}\n"]
        {
            let _ = values(&piece.repeat(20_000));
        }
    }
}
