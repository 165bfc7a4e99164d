//! The preset `gemini`: `gemini --output-format json`, prompt on stdin, one JSON envelope on stdout. The CLI has no
//! flag for a schema; the prompt asks for the shape.

use std::ffi::OsString;

use quorate_kernel::ports::executor::{Reply, Usage};
use quorate_protocol::Json;

use super::{Arguments, Ask, Preset, count};
use crate::executor::agent_cli::output::{NoReply, Output};

pub(super) const PRESET: Preset = Preset {
    name: "gemini",
    command: "gemini",
    output: Output::GeminiJson,
    needs_model: false,
    wants_files: false,
    own_flags: &["--output-format", "-o", "--model", "-m", "--prompt-interactive", "-i"],
    implied: &[],
    arguments,
};

fn arguments(ask: &Ask<'_>) -> Vec<OsString> {
    Arguments::of(&["--output-format", "json"]).model("--model", ask.model).extra(ask.extra).list
}

/// The reply in an envelope.
pub(in crate::executor::agent_cli) fn read(stdout: &str) -> Result<Reply, NoReply> {
    // Some versions print notices before the envelope.
    let start = stdout.find('{').unwrap_or(0);
    let envelope: Json = serde_json::Deserializer::from_str(&stdout[start..])
        .into_iter()
        .next()
        .and_then(Result::ok)
        .filter(Json::is_object)
        .ok_or(NoReply::Malformed)?;
    if let Some(error) = envelope.get("error").filter(|error| !error.is_null()) {
        let message =
            error.get("message").and_then(Json::as_str).map_or_else(|| error.to_string(), str::to_owned);
        return Err(NoReply::Reported(message));
    }
    let text = envelope.get("response").and_then(Json::as_str).ok_or(NoReply::Malformed)?.to_owned();
    let (model, usage) = spent(&envelope);
    Ok(Reply { text, model, usage, posted: None })
}

/// Tokens of all models together, and the model that wrote most: a small one may route before it.
fn spent(envelope: &Json) -> (Option<String>, Usage) {
    let Some(models) = envelope.pointer("/stats/models").and_then(Json::as_object) else {
        return (None, Usage::default());
    };
    let tokens = |model: &Json, key: &str| model.get("tokens").and_then(|tokens| count(tokens, key));
    let written = |model: &Json| {
        ["candidates", "thoughts"].iter().filter_map(|key| tokens(model, key)).reduce(u64::saturating_add)
    };
    let sum = |of: &dyn Fn(&Json) -> Option<u64>| models.values().filter_map(of).reduce(u64::saturating_add);
    let usage = Usage { tokens_in: sum(&|model| tokens(model, "prompt")), tokens_out: sum(&written) };
    let most = models.iter().max_by_key(|(_, model)| written(model)).map(|(name, _)| name.clone());
    (most, usage)
}

#[cfg(test)]
mod tests {
    use super::{NoReply, arguments, read};
    use crate::executor::agent_cli::presets::{Ask, words};
    use serde_json::json;

    #[test]
    fn the_envelope_is_asked_for() {
        let ask = Ask { model: Some("m"), extra: &[], schema: &json!({}), files: None };
        assert_eq!(words(&arguments(&ask)), ["--output-format", "json", "--model", "m"]);
    }

    #[test]
    fn the_response_is_the_answer() {
        let reply = read(
            r#"Loaded cached credentials.
            {"response": "{\"a\":1}", "stats": {"models": {
                "pro": {"tokens": {"prompt": 24939, "candidates": 20, "total": 25113, "cached": 21263, "thoughts": 154}},
                "flash": {"tokens": {"prompt": 61, "candidates": 4}}}}}"#,
        )
        .unwrap();
        assert_eq!(reply.text, "{\"a\":1}");
        assert_eq!(reply.model.as_deref(), Some("pro"));
        assert_eq!((reply.usage.tokens_in, reply.usage.tokens_out), (Some(25000), Some(178)));
    }

    #[test]
    fn an_error_is_no_answer() {
        let error = read(r#"{"response": "", "error": {"type": "ApiError", "message": "no", "code": 500}}"#)
            .unwrap_err();
        assert_eq!(error, NoReply::Reported("no".into()));
        assert_eq!(read("{}").unwrap_err(), NoReply::Malformed);
        assert_eq!(read("plain words").unwrap_err(), NoReply::Malformed);
    }
}
