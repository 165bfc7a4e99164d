//! The Gemini API of Google.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde::Deserialize;
use serde_json::json;

use super::{
    Answer, AnswerStep, Decode, Format, HttpRequest, Request, path_segment, read_event, stopped_for,
};
use crate::executor::llm::fault::{self, Fault, FaultKind};

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

#[derive(Debug, Default)]
pub(super) struct Decoder;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<PromptFeedback>,
    usage_metadata: Option<Counts>,
    model_version: Option<String>,
    error: Option<Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: u64,
    content: Option<Content>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl Decode for Decoder {
    fn read(&mut self, data: &str, answer: &mut Answer) -> Result<AnswerStep, Fault> {
        let chunk: Chunk = read_event(data)?;
        if chunk.error.is_some() {
            return Err(fault::from_event(&read_event(data)?));
        }
        answer.name_model(chunk.model_version);
        if let Some(counts) = chunk.usage_metadata {
            answer.usage = counts.into();
        }
        if let Some(PromptFeedback { block_reason: Some(reason), block_reason_message }) =
            chunk.prompt_feedback
        {
            let said = block_reason_message.unwrap_or_default();
            return Err(Fault::new(FaultKind::Refused { category: Some(reason) }, said));
        }
        // One candidate was asked for.
        let first = |candidates: Vec<Candidate>| candidates.into_iter().find(|one| one.index == 0);
        let Some(candidate) = chunk.candidates.and_then(first) else {
            return Ok(AnswerStep::More);
        };
        let parts = candidate.content.and_then(|content| content.parts).unwrap_or_default();
        let text: String =
            parts.into_iter().filter(|part| !part.thought).filter_map(|part| part.text).collect();
        answer.add_text(&text)?;
        match candidate.finish_reason {
            None => Ok(AnswerStep::More),
            Some(reason) => stop(reason, candidate.finish_message.unwrap_or_default()),
        }
    }
}

fn stop(reason: String, said: String) -> Result<AnswerStep, Fault> {
    match reason.as_str() {
        "STOP" => Ok(AnswerStep::Done),
        "MAX_TOKENS" => Err(Fault::new(FaultKind::CutOff, said)),
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE"
        | "MODEL_ARMOR" => Err(Fault::new(FaultKind::ContentFilter { category: Some(reason) }, said)),
        other => Err(stopped_for(Some(other))),
    }
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Usage {
        let written = [counts.candidates_token_count, counts.thoughts_token_count];
        Usage {
            tokens_in: counts.prompt_token_count,
            tokens_cached: counts.cached_content_token_count,
            tokens_out: written.into_iter().flatten().reduce(u64::saturating_add),
            tokens_reasoning: counts.thoughts_token_count,
            ..Usage::default()
        }
    }
}
