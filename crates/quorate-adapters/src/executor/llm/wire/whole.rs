//! Responses that a service sends whole although a stream was asked for, as some gateways do: the events that a stream of
//! the same response would have.

use quorate_protocol::Json;
use serde_json::json;

use super::Wire;

/// The data of the events, in order; `None` where the body is no response of the wire.
pub(super) fn events(wire: Wire, body: &Json) -> Option<Vec<String>> {
    let events = match wire {
        Wire::Messages => messages(body)?,
        Wire::Chat => chat(body)?,
        Wire::Responses => responses(body)?,
        Wire::Gemini => vec![body.get("candidates").map(|_| body.to_string())?],
        // Its stream is one JSON object a line, and a whole response is its last line.
        Wire::Ollama => return None,
    };
    Some(events)
}

fn messages(body: &Json) -> Option<Vec<String>> {
    if body.get("type").is_some_and(|kind| kind != "message") {
        return None;
    }
    let blocks = body.get("content")?.as_array()?;
    let started = json!({"type": "message_start", "message": body});
    let stopped = json!({
        "type": "message_delta",
        "delta": {"stop_reason": body.get("stop_reason"), "stop_details": body.get("stop_details")},
    });
    let blocks = blocks.iter().map(|block| json!({"type": "content_block_start", "content_block": block}));
    let all = std::iter::once(started).chain(blocks).chain([stopped, json!({"type": "message_stop"})]);
    Some(all.map(|event| event.to_string()).collect())
}

fn chat(body: &Json) -> Option<Vec<String>> {
    let choices = body.get("choices")?.as_array()?;
    let mut chunk = body.clone();
    chunk["choices"] = choices
        .iter()
        .map(|choice| {
            let mut choice = choice.clone();
            choice["delta"] = choice["message"].take();
            choice
        })
        .collect();
    Some(vec![chunk.to_string(), "[DONE]".to_owned()])
}

fn responses(body: &Json) -> Option<Vec<String>> {
    let items = body.get("output")?.as_array()?;
    let status = body.get("status")?.as_str()?;
    let mut events = Vec::new();
    for (index, item) in items.iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        for part in item.get("content").and_then(Json::as_array).into_iter().flatten() {
            let (kind, delta) = match (part.get("text"), part.get("refusal")) {
                (Some(text), _) => ("response.output_text.delta", text),
                (None, Some(refusal)) => ("response.refusal.delta", refusal),
                (None, None) => continue,
            };
            events.push(json!({"type": kind, "output_index": index, "delta": delta}));
        }
    }
    events.push(json!({"type": format!("response.{status}"), "response": body}));
    Some(events.into_iter().map(|event| event.to_string()).collect())
}
