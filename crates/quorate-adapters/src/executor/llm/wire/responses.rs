//! The Responses API of OpenAI.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde_json::json;

use super::{Answer, AnswerStep, Format, HttpRequest, Request, chat, count, stopped_for};
use crate::executor::llm::fault::{self, Fault};

pub(super) fn encode(request: &Request) -> HttpRequest {
    let (content, cache) = chat::marked_content(request, "input_text");
    let mut body = json!({
        "model": request.model,
        "input": [{"role": "user", "content": content}],
        "max_output_tokens": request.max_tokens,
        "store": false,
        "stream": true,
    });
    if let Some(system) = request.system {
        body["instructions"] = system.into();
    }
    match request.format {
        Format::Text => {}
        Format::JsonObject => body["text"] = json!({"format": {"type": "json_object"}}),
        Format::Schema { name, schema } => {
            body["text"] =
                json!({"format": {"type": "json_schema", "name": name, "strict": true, "schema": schema}});
        }
    }
    if let Some(cache) = cache {
        body["prompt_cache_options"] = cache;
    }
    if let Some(effort) = request.effort {
        body["reasoning"] = json!({"effort": effort});
    }
    HttpRequest::new("/responses", &body)
}

pub(super) fn read(name: &str, event: &Json, answer: &mut Answer) -> Result<AnswerStep, Fault> {
    let inner = |key: &str| event.get(key).unwrap_or(&Json::Null);
    let index = count(event.get("output_index")).unwrap_or(0);
    match event.get("type").and_then(Json::as_str).unwrap_or(name) {
        "response.created" | "response.in_progress" => take(inner("response"), answer),
        "response.output_item.added" if is_commentary(inner("item")) => {
            answer.commentary.insert(index);
        }
        "response.output_text.delta" if !answer.commentary.contains(&index) => {
            answer.in_pieces = Some(index);
            return answer.add_content(event.get("delta"));
        }
        "response.refusal.delta" => answer.add_refusal(inner("delta").as_str().unwrap_or_default()),
        "response.refusal.done" if answer.refusal.is_empty() => {
            answer.add_refusal(inner("refusal").as_str().unwrap_or_default());
        }
        "response.output_text.done" => return add_whole(index, event, answer),
        "response.content_part.done" => return add_whole(index, inner("part"), answer),
        "response.output_item.done" if !is_commentary(inner("item")) => {
            return add_whole(index, inner("item"), answer);
        }
        "response.completed" | "response.done" => {
            return complete(event.get("response").unwrap_or(event), answer);
        }
        "response.incomplete" => {
            take(inner("response"), answer);
            return Err(incomplete_for(inner("response").pointer(REASON).and_then(Json::as_str), answer));
        }
        "response.failed" | "response.cancelled" => {
            take(inner("response"), answer);
            let error = inner("response").get("error").cloned().unwrap_or_default();
            return Err(fault::from_event(&error));
        }
        // A document.
        "response" | "" if event.get("output").is_some() || event.get("output_text").is_some() => {
            return complete(event, answer);
        }
        _ => {}
    }
    Ok(AnswerStep::More)
}

/// Where a response says why it is incomplete.
const REASON: &str = "/incomplete_details/reason";

fn is_commentary(item: &Json) -> bool {
    item.get("phase").and_then(Json::as_str) == Some("commentary")
}

/// Adds the text of a part or an item that has ended, if it did not come in pieces.
fn add_whole(index: u64, part: &Json, answer: &mut Answer) -> Result<AnswerStep, Fault> {
    if answer.commentary.contains(&index) {
        return Ok(AnswerStep::More);
    }
    let whole = whole_text(part, answer)?;
    match answer.rest_of(&whole) {
        Some(rest) => answer.add_text(rest),
        // A part ends, and then its item.
        None if answer.in_pieces == Some(index) || answer.text.ends_with(&whole) => Ok(AnswerStep::More),
        None => answer.add_text(&whole),
    }
}

/// The text of an item or a list of them. The words of a refusal are taken once.
fn whole_text(content: &Json, answer: &mut Answer) -> Result<String, Fault> {
    let mut text = String::new();
    let refusal = answer.refusal.len();
    match content.get("type").and_then(Json::as_str) {
        // The event of a text names itself.
        Some("response.output_text.done") => {
            answer.collect(content.get("text").unwrap_or(&Json::Null), &mut text)?
        }
        _ => answer.collect(content, &mut text)?,
    }
    if refusal > 0 {
        answer.refusal.truncate(refusal);
    }
    Ok(text)
}

/// Takes a response that the service calls complete.
fn complete(response: &Json, answer: &mut Answer) -> Result<AnswerStep, Fault> {
    take(response, answer);
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        return Err(fault::from_event(error));
    }
    // The event's name is not all that says how it ended.
    if let Some(reason) = response.pointer(REASON).and_then(Json::as_str) {
        return Err(incomplete_for(Some(reason), answer));
    }
    let items = response.get("output").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let is_reasoning = |item: &&Json| item.get("type").is_some_and(|kind| kind == "reasoning");
    let parts = items.iter().filter(|item| !is_reasoning(item));
    let mut all = std::iter::once(response).chain(parts).filter_map(|part| part.get("status")?.as_str());
    if let Some(other) = all.find(|status| !status.eq_ignore_ascii_case("completed")) {
        return Err(stopped_for(Some(other)));
    }
    let mut whole = String::new();
    for item in items.iter().filter(|item| !is_commentary(item)) {
        whole.push_str(&whole_text(item, answer)?);
    }
    if whole.is_empty() {
        whole = whole_text(response.get("output_text").unwrap_or(&Json::Null), answer)?;
    }
    let rest = answer.rest_of(&whole).unwrap_or_default();
    answer.add_text(rest)?;
    Ok(AnswerStep::Done)
}

/// The fault of a response that the service calls incomplete.
fn incomplete_for(reason: Option<&str>, answer: &mut Answer) -> Fault {
    answer.finish = reason.map(str::to_owned);
    answer.finish_fault().unwrap_or_else(|| stopped_for(reason))
}

/// Takes model and usage.
fn take(response: &Json, answer: &mut Answer) {
    answer.name_model(response.get("model"));
    let Some(counts) = response.get("usage") else { return };
    let at = |place: &str| count(counts.pointer(place));
    let written = |age: &str| at(&format!("/input_tokens_details/cache_write_tokens_details/{age}"));
    answer.note_usage(Usage {
        tokens_in: at("/input_tokens"),
        tokens_cached: at("/input_tokens_details/cached_tokens"),
        tokens_written: written("ttl_30m_tokens").or_else(|| at("/input_tokens_details/cache_write_tokens")),
        tokens_written_long: written("ttl_12h_tokens"),
        tokens_out: at("/output_tokens"),
        tokens_reasoning: at("/output_tokens_details/reasoning_tokens"),
        money: None,
    });
}
