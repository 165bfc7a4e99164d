//! The Messages API of Anthropic, which others serve too.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde_json::json;

use super::{Answer, AnswerStep, Cache, Format, HttpRequest, Request, count, quoted};
use crate::executor::llm::fault::Fault;

/// The version of the API.
const VERSION: &str = "2026-10-21";

/// How many marks a request may have.
const MAX_MARKS: usize = 4;

pub(super) fn encode(request: &Request) -> HttpRequest {
    let mark = match request.cache {
        Cache::Off => None,
        Cache::Auto => Some(json!({"type": "ephemeral"})),
        Cache::Minutes => Some(json!({"type": "ephemeral", "ttl": "5m"})),
        Cache::Hour => Some(json!({"type": "ephemeral", "ttl": "1h"})),
    };
    let mut body = json!({
        "model": request.model,
        "max_tokens": request.max_tokens,
        "stream": true,
        "messages": [{"role": "user", "content": request.blocks("text", mark.as_ref().map(|mark| ("cache_control", mark)), MAX_MARKS)}],
    });
    if let Some(system) = request.system {
        body["system"] = json!([{"type": "text", "text": system}]);
    }
    if let Some(effort) = request.effort {
        body["output_config"]["effort"] = effort.into();
    }
    if let Format::Schema { schema, .. } = request.format {
        body["output_config"]["format"] = json!({"type": "json_schema", "schema": schema});
    }
    with_version(HttpRequest::new("/v1/messages", &body))
}

pub(super) fn with_version(mut request: HttpRequest) -> HttpRequest {
    request.headers.push(("anthropic-version", VERSION.to_owned()));
    request
}

/// Where usage has its counts. Each is from the start of the message. Input excludes what is read from the cache or written to
/// it.
const PLACES: [&str; 7] = [
    "/input_tokens",
    "/cache_read_input_tokens",
    "/cache_creation_input_tokens",
    "/cache_creation/ephemeral_5m_input_tokens",
    "/cache_creation/ephemeral_1h_input_tokens",
    "/output_tokens",
    "/output_tokens_details/thinking_tokens",
];

pub(super) fn read(name: &str, event: &Json, answer: &mut Answer) -> Result<AnswerStep, Fault> {
    let inner = |key: &str| event.get(key).unwrap_or(&Json::Null);
    match event.get("type").and_then(Json::as_str).unwrap_or(name) {
        "message_start" => take(inner("message"), answer).map(|()| AnswerStep::More),
        "content_block_start" => answer.add_content(event.get("content_block")),
        "content_block_delta" => answer.add_content(event.get("delta")),
        "message_delta" => {
            count_tokens(event, answer);
            note_stop(inner("delta"), answer).map(|()| AnswerStep::More)
        }
        "message_stop" => answer.end(),
        "message" | "" if event.get("content").is_some() => {
            take(event, answer).map(|()| AnswerStep::Document)
        }
        _ => Ok(AnswerStep::More),
    }
}

fn note_stop(reasons: &Json, answer: &mut Answer) -> Result<(), Fault> {
    let detail = |key: &str| reasons.get("stop_details")?.get(key)?.as_str().map(quoted);
    answer.category = detail("category").or(answer.category.take());
    if let Some(said) = detail("explanation") {
        answer.finish_said = said;
    }
    answer.note_finish(reasons.get("stop_reason"))
}

/// Takes a message, or the start of one.
fn take(message: &Json, answer: &mut Answer) -> Result<(), Fault> {
    answer.name_model(message.get("model"));
    count_tokens(message, answer);
    answer.add_content(message.get("content"))?;
    note_stop(message, answer)
}

fn count_tokens(event: &Json, answer: &mut Answer) {
    let Some(usage) = event.get("usage") else { return };
    for (known, place) in answer.counts.iter_mut().zip(PLACES) {
        *known = count(usage.pointer(place)).or(*known);
    }
    let [input, read, written, shorter, longer, output, reasoning] = answer.counts;
    answer.note_usage(Usage {
        tokens_in: [input, read, written].into_iter().flatten().reduce(u64::saturating_add),
        tokens_cached: read,
        tokens_written: shorter.or(written),
        tokens_written_long: longer,
        tokens_out: output,
        tokens_reasoning: reasoning,
        money: None,
    });
}
