//! The Chat Completions API of OpenAI and of the many servers that are compatible with it.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde_json::json;

use super::{Answer, AnswerStep, Cache, Format, HttpRequest, Request, Server, count, first_answers};
use crate::executor::llm::fault::{self, Fault};

pub(super) fn encode(request: &Request) -> HttpRequest {
    let (content, cache) = marked_content(request, "text");
    let is_vendor = request.server == Server::Vendor;
    let mut messages = vec![json!({"role": "user", "content": content})];
    if let Some(system) = request.system {
        let role = if is_vendor { "developer" } else { "system" };
        messages.insert(0, json!({"role": role, "content": system}));
    }
    let mut body = json!({
        "model": request.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    body[if is_vendor { "max_completion_tokens" } else { "max_tokens" }] = request.max_tokens.into();
    match request.format {
        Format::Text => {}
        Format::JsonObject => body["response_format"] = json!({"type": "json_object"}),
        Format::Schema { name, schema } => {
            let schema = json!({"name": name, "strict": true, "schema": schema});
            body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        }
    }
    if let Some(cache) = cache {
        body["prompt_cache_options"] = cache;
    }
    if let Some(effort) = request.effort {
        body["reasoning_effort"] = effort.into();
    }
    HttpRequest::new("/chat/completions", &body)
}

pub(super) fn read(chunk: &Json, answer: &mut Answer) -> Result<AnswerStep, Fault> {
    answer.name_model(chunk.get("model"));
    answer.note_usage(chunk.get("usage").map(usage).unwrap_or_default());
    let mut step = AnswerStep::More;
    for choice in first_answers(chunk.get("choices"))? {
        if choice.get("error").is_some_and(|error| !error.is_null()) {
            return Err(fault::from_event(choice));
        }
        let part = |key: &str| choice.get(key).filter(|part| !part.is_null());
        let (delta, message) = (part("delta"), part("message"));
        let mut text = String::new();
        answer.collect(delta.unwrap_or(&Json::Null), &mut text)?;
        if text.is_empty() {
            // Some servers name a delta `message`, and some send the whole message after its deltas.
            let other = if delta.is_some() { &Json::Null } else { choice };
            answer.collect(message.unwrap_or(other), &mut text)?;
            let rest = message.and_then(|_| answer.rest_of(&text)).map(str::to_owned);
            text = rest.unwrap_or(text);
        }
        answer.add_text(&text)?;
        let is_chunk = chunk.get("object").and_then(Json::as_str) == Some("chat.completion.chunk");
        if delta.is_none() && message.is_some() && !is_chunk {
            step = AnswerStep::Document;
        }
        answer.note_finish(choice.get("finish_reason"))?;
    }
    Ok(step)
}

fn usage(counts: &Json) -> Usage {
    let at = |place: &str| count(counts.pointer(place));
    let cached = at("/prompt_tokens_details/cached_tokens");
    // A gateway that has more tokens in its cache than in all counts these apart.
    let apart = |read: u64| cached.filter(|cached| read > 0 && *cached > read).unwrap_or(0);
    Usage {
        tokens_in: at("/prompt_tokens").map(|read| read.saturating_add(apart(read))),
        tokens_cached: cached,
        tokens_written: at("/prompt_tokens_details/cache_write_tokens"),
        tokens_written_long: None,
        tokens_out: at("/completion_tokens"),
        tokens_reasoning: at("/completion_tokens_details/reasoning_tokens"),
        money: None,
    }
}

/// How many marks a request may have.
const MAX_MARKS: usize = 4;

/// The prompt as content, in blocks where its cuts are marked, and the options that go with the marks. Without marks it is
/// one text: some compatible servers join blocks with line breaks.
pub(super) fn marked_content(request: &Request, kind: &str) -> (Json, Option<Json>) {
    let ttl = match (request.cache, request.server) {
        (Cache::Auto, _) | (_, Server::Compatible) => return (request.prompt.into(), None),
        // Explicit marks turn the automatic one off, and there are none.
        (Cache::Off, _) => return (request.prompt.into(), Some(json!({"mode": "explicit"}))),
        (Cache::Minutes, _) => "30m",
        (Cache::Hour, _) => "12h",
    };
    let mark = json!({"mode": "explicit"});
    let blocks = request.blocks(kind, Some(("prompt_cache_breakpoint", &mark)), MAX_MARKS);
    (blocks.into(), Some(json!({"mode": "explicit", "ttl": ttl})))
}
