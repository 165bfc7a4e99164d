//! The Chat Completions API of OpenAI and of the many servers that are compatible with it.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde::Deserialize;
use serde_json::json;

use super::answer::{Answer, Step, read, stopped_for};
use super::openai;
use super::request::{Format, HttpRequest, Request, Server};
use crate::executor::llm::fault::{self, Fault, Kind};

pub(super) fn encode(request: &Request) -> HttpRequest {
    let (content, cache) = openai::content(request, "text");
    let (role, cap) = match request.server {
        Server::Vendor => ("developer", "max_completion_tokens"),
        Server::Compatible => ("system", "max_tokens"),
    };
    let mut messages = vec![json!({"role": "user", "content": content})];
    if let Some(system) = request.system {
        messages.insert(0, json!({"role": role, "content": system}));
    }
    let mut body = json!({
        "model": request.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    body[cap] = request.max_tokens.into();
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

impl Decoder {
    pub(super) fn read(&mut self, data: &str, answer: &mut Answer) -> Result<Step, Fault> {
        if data.trim() == "[DONE]" {
            return self.stop();
        }
        let chunk: Chunk = read(data)?;
        if chunk.error.is_some() {
            return Err(fault::from_event(&read(data)?));
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
            self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        }
        answer.add_text(&text)
    }

    fn stop(&self) -> Result<Step, Fault> {
        match self.finish_reason.as_deref() {
            Some("stop") => Ok(Step::Done),
            Some("length") => Err(Fault::new(Kind::CutOff, "")),
            Some("content_filter") => Err(Fault::new(Kind::ContentFilter { category: None }, "")),
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
            usd_nanos: None,
        }
    }
}
