//! The Chat Completions API of OpenAI and of the many servers that are compatible with it.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Answer, AnswerStep, Cache, Decode, Format, HttpRequest, Request, Server, later_reason, read_event,
    stopped_for,
};
use crate::executor::llm::fault::{self, Fault, FaultKind};

/// What is sent. It borrows the prompt and the form of the answer, which are long.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_options: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: MarkedContent<'a>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: NamedSchema<'a> },
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a Json,
}

pub(super) fn encode(request: &Request) -> HttpRequest {
    let (content, prompt_cache_options) = marked_content(request, "text");
    let is_vendor = request.server == Server::Vendor;
    let role = if is_vendor { "developer" } else { "system" };
    let system = request.system.map(|system| Message { role, content: MarkedContent::Text(system) });
    let body = Body {
        model: request.model,
        messages: system.into_iter().chain([Message { role: "user", content }]).collect(),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_completion_tokens: is_vendor.then_some(request.max_tokens),
        max_tokens: (!is_vendor).then_some(request.max_tokens),
        response_format: match request.format {
            Format::Text => None,
            Format::JsonObject => Some(ResponseFormat::JsonObject),
            Format::Schema { name, schema } => {
                Some(ResponseFormat::JsonSchema { json_schema: NamedSchema { name, strict: true, schema } })
            }
        },
        prompt_cache_options,
        reasoning_effort: request.effort,
    };
    HttpRequest::new("/chat/completions", &body)
}

#[derive(Debug, Default)]
pub(super) struct Decoder {
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
    error: Option<Json>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl Decode for Decoder {
    fn read(&mut self, data: &str, answer: &mut Answer) -> Result<AnswerStep, Fault> {
        if data.trim() == "[DONE]" {
            return self.stop();
        }
        let chunk: Chunk = read_event(data)?;
        if chunk.error.is_some() {
            return Err(fault::from_event(&read_event(data)?));
        }
        answer.name_model(chunk.model);
        if let Some(counts) = chunk.usage {
            answer.usage = counts.into();
        }
        let mut text = String::new();
        // One choice was asked for.
        for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                text.push_str(&delta.content.unwrap_or_default());
                answer.add_refusal(&delta.refusal.unwrap_or_default());
            }
            let finish_reason = choice.finish_reason;
            self.finish_reason =
                later_reason(self.finish_reason.take(), finish_reason, |reason| reason == "stop");
        }
        answer.add_text(&text)
    }
}

impl Decoder {
    fn stop(&self) -> Result<AnswerStep, Fault> {
        match self.finish_reason.as_deref() {
            Some("stop") => Ok(AnswerStep::Done),
            Some("length") => Err(Fault::new(FaultKind::CutOff, "")),
            Some("content_filter") => Err(Fault::new(FaultKind::ContentFilter { category: None }, "")),
            other => Err(stopped_for(other)),
        }
    }
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Usage {
        let cached = counts.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        // A gateway that has more tokens in its cache than in all counts these apart.
        let apart = |read: u64| cached.filter(|cached| read > 0 && *cached > read).unwrap_or(0);
        Usage {
            tokens_in: counts.prompt_tokens.map(|read| read.saturating_add(apart(read))),
            tokens_cached: cached,
            tokens_written: counts.prompt_tokens_details.and_then(|details| details.cache_write_tokens),
            tokens_written_long: None,
            tokens_out: counts.completion_tokens,
            tokens_reasoning: counts.completion_tokens_details.and_then(|details| details.reasoning_tokens),
            money: None,
        }
    }
}

/// How many marks a request may have.
const MAX_MARKS: usize = 4;

/// The content of a message.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MarkedContent<'a> {
    Text(&'a str),
    Blocks(Vec<Json>),
}

/// The prompt as content, in blocks where its cuts are marked, and the options that go with the marks. Without marks it is
/// one text: some compatible servers join blocks with line breaks.
pub(super) fn marked_content<'a>(request: &Request<'a>, kind: &str) -> (MarkedContent<'a>, Option<Json>) {
    let ttl = match (request.cache, request.server) {
        (Cache::Auto, _) | (_, Server::Compatible) => return (MarkedContent::Text(request.prompt), None),
        // Explicit marks turn the automatic one off, and there are none.
        (Cache::Off, _) => return (MarkedContent::Text(request.prompt), Some(json!({"mode": "explicit"}))),
        (Cache::Minutes, _) => "30m",
        (Cache::Hour, _) => "12h",
    };
    let mark = json!({"mode": "explicit"});
    let blocks = request.blocks(kind, Some(("prompt_cache_breakpoint", &mark)), MAX_MARKS);
    (MarkedContent::Blocks(blocks), Some(json!({"mode": "explicit", "ttl": ttl})))
}
