//! The forms of a scripted answer.
//!
//! An object is an answer as it stands, a string is given verbatim. For a turn of a conversation, a string is its
//! content, and an object has `content`, and optionally `meta` and `stateUpdate`. Keys that start with `$` make an
//! instruction of an object: `{"$fail": "message"}`, `{"$timeout": true}`, `{"$delay_ms": 50, "answer": …}`.

use std::time::Duration;

use quorate_protocol::Json;
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::turn::Turn;
use serde_json::Map;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// How long to wait before the response.
    pub(super) delay: Duration,
    pub(super) response: Response,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Response {
    Verbatim(String),
    PlainText(String),
    Failure(String),
    /// No response until the deadline.
    Timeout,
}

impl Answer {
    /// A verbatim text without delay.
    pub(super) fn verbatim(text: impl Into<String>) -> Self {
        Answer { delay: Duration::ZERO, response: Response::Verbatim(text.into()) }
    }

    /// Plain text without delay.
    pub(super) fn plain_text(words: impl Into<String>) -> Self {
        Answer { delay: Duration::ZERO, response: Response::PlainText(words.into()) }
    }

    /// Reads one answer.
    ///
    /// # Errors
    /// The problem, as a message for users.
    pub(super) fn read(value: &Json) -> Result<Self, String> {
        match value {
            Json::String(words) => Ok(Answer::plain_text(words)),
            Json::Object(keys) if is_instruction(keys) => instruction(keys),
            Json::Object(_) => Ok(Answer::verbatim(value.to_string())),
            _ => Err("an answer is an object, a text, or a list of these, one for each attempt".into()),
        }
    }
}

impl Response {
    /// The reply in the requested form: plain text becomes a turn, and a turn becomes its content where text is requested.
    pub(super) fn reply(self, form: Schema) -> Result<String, Response> {
        match (self, form) {
            (Response::PlainText(words), Schema::Turn) => Ok(Turn::plain_text_answer(&words).to_string()),
            (Response::Verbatim(text), Schema::PlainText) => Ok(content(&text).unwrap_or(text)),
            (Response::Verbatim(text) | Response::PlainText(text), _) => Ok(text),
            (response, _) => Err(response),
        }
    }
}

fn content(text: &str) -> Option<String> {
    let turn: Json = serde_json::from_str(text).ok()?;
    Some(turn.get("content")?.as_str()?.to_owned())
}

/// Whether an object is an instruction instead of an answer.
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
    let response = match (keys.get("$fail"), keys.get("$timeout"), keys.get("answer")) {
        (Some(Json::String(message)), None, None) => Response::Failure(message.clone()),
        (None, Some(Json::Bool(true)), None) => Response::Timeout,
        (None, None, Some(answer)) => {
            let inner = Answer::read(answer)?;
            return Ok(Answer { delay: delay + inner.delay, response: inner.response });
        }
        _ => {
            return Err(
                "an instruction has one of `\"$fail\": \"message\"`, `\"$timeout\": true` and, beside \
                        `$delay_ms`, `answer`"
                    .into(),
            );
        }
    };
    Ok(Answer { delay, response })
}
