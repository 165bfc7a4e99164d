//! What a scripted answer can be.
//!
//! An object is an answer as it stands, a text is said verbatim. Keys that start with `$` make an instruction of an
//! object: `{"$fail": "message"}`, `{"$timeout": true}`, `{"$delay_ms": 50, "answer": …}`.

use std::time::Duration;

use quorate_protocol::Json;
use serde_json::Map;

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// How long it takes.
    pub(super) delay: Duration,
    /// What comes then.
    pub(super) saying: Saying,
}

/// What comes of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Saying {
    /// A reply.
    Text(String),
    /// A failure with this message.
    Failure(String),
    /// Nothing until the deadline.
    Nothing,
}

impl Answer {
    /// A text, said at once.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Answer { delay: Duration::ZERO, saying: Saying::Text(text.into()) }
    }

    /// Reads one answer; `Err` is what is wrong with it.
    pub(super) fn read(value: &Json) -> Result<Self, String> {
        match value {
            Json::String(text) => Ok(Answer::text(text)),
            Json::Object(keys) if is_instruction(keys) => instruction(keys),
            Json::Object(_) => Ok(Answer::text(value.to_string())),
            _ => Err("an answer is an object, a text, or a list of these, one for each attempt".into()),
        }
    }
}

/// Whether an object says what to do, in place of being the answer.
pub(super) fn is_instruction(keys: &Map<String, Json>) -> bool {
    keys.keys().any(|key| key.starts_with('$'))
}

fn instruction(keys: &Map<String, Json>) -> Result<Answer, String> {
    let known = ["$fail", "$timeout", "$delay_ms", "answer"];
    if let Some(unknown) = keys.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("`{unknown}` is no instruction; there are `$fail`, `$timeout` and `$delay_ms`"));
    }
    let delay = match keys.get("$delay_ms") {
        None => Duration::ZERO,
        Some(delay) => Duration::from_millis(delay.as_u64().ok_or("`$delay_ms` is a whole number")?),
    };
    let saying = match (keys.get("$fail"), keys.get("$timeout"), keys.get("answer")) {
        (Some(Json::String(message)), None, None) => Saying::Failure(message.clone()),
        (None, Some(Json::Bool(true)), None) => Saying::Nothing,
        (None, None, Some(answer)) => {
            let inner = Answer::read(answer)?;
            return Ok(Answer { delay: delay + inner.delay, saying: inner.saying });
        }
        _ => {
            return Err(
                "an instruction has one of `\"$fail\": \"message\"`, `\"$timeout\": true` and, beside \
                        `$delay_ms`, `answer`"
                    .into(),
            );
        }
    };
    Ok(Answer { delay, saying })
}
