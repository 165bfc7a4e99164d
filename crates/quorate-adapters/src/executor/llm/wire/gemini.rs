//! The Gemini API of Google.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde_json::json;

use super::{Answer, AnswerStep, Format, HttpRequest, Request, count, first_answers, path_segment, quoted};
use crate::executor::llm::fault::{Fault, FaultKind};

pub(super) fn encode(request: &Request) -> HttpRequest {
    let mut settings = json!({"maxOutputTokens": request.max_tokens});
    match request.format {
        Format::Text => {}
        Format::JsonObject => settings["responseMimeType"] = "application/json".into(),
        Format::Schema { schema, .. } => {
            settings["responseMimeType"] = "application/json".into();
            settings["responseJsonSchema"] = schema.clone();
        }
    }
    if let Some(effort) = request.effort {
        settings["thinkingConfig"] = match effort.parse::<u32>() {
            Ok(budget) => json!({"thinking_budget": budget}),
            Err(_) => json!({"thinking_level": effort.to_ascii_uppercase()}),
        };
    }
    let mut body = json!({
        "contents": [{"role": "user", "parts": [{"text": request.prompt}]}],
        "generationConfig": settings,
    });
    if let Some(system) = request.system {
        body["systemInstruction"] = json!({"role": "user", "parts": [{"text": system}]});
    }
    let model = request.model.strip_prefix("models/").unwrap_or(request.model);
    HttpRequest::new(format!("/models/{}:streamGenerateContent?alt=sse", path_segment(model)), &body)
}

pub(super) fn read(chunk: &Json, answer: &mut Answer) -> Result<AnswerStep, Fault> {
    answer.name_model(field(chunk, "modelVersion", "model_version"));
    answer.note_usage(field(chunk, "usageMetadata", "usage_metadata").map(usage).unwrap_or_default());
    let feedback = field(chunk, "promptFeedback", "prompt_feedback").unwrap_or(&Json::Null);
    if let Some(reason) = field(feedback, "blockReason", "block_reason").and_then(Json::as_str) {
        let said = field(feedback, "blockReasonMessage", "block_reason_message").and_then(Json::as_str);
        let kind = FaultKind::Refused { category: Some(quoted(reason)) };
        return Err(Fault::new(kind, said.unwrap_or_default()));
    }
    for candidate in first_answers(chunk.get("candidates"))? {
        answer.add_content(candidate.get("content"))?;
        if let Some(said) = field(candidate, "finishMessage", "finish_message").and_then(Json::as_str) {
            answer.finish_said = quoted(said);
        }
        answer.note_finish(field(candidate, "finishReason", "finish_reason"))?;
    }
    // The end of the body is the last event: some servers give a reason with each chunk.
    Ok(AnswerStep::More)
}

/// A field by its name in JSON, or by that of the protocol.
fn field<'j>(object: &'j Json, name: &str, other: &str) -> Option<&'j Json> {
    object.get(name).or_else(|| object.get(other))
}

fn usage(counts: &Json) -> Usage {
    let at = |name: &str, other: &str| count(field(counts, name, other));
    let thoughts = at("thoughtsTokenCount", "thoughts_token_count");
    let written = [at("candidatesTokenCount", "candidates_token_count"), thoughts];
    Usage {
        tokens_in: at("promptTokenCount", "prompt_token_count"),
        tokens_cached: at("cachedContentTokenCount", "cached_content_token_count"),
        tokens_out: written.into_iter().flatten().reduce(u64::saturating_add),
        tokens_reasoning: thoughts,
        ..Usage::default()
    }
}
