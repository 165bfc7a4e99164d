//! Ollama's own chat API, whose response is a JSON object on each line.

use quorate_kernel::ports::executor::Usage;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, AnswerStep, Decode, Format, HttpRequest, Request, read_event, stopped_for};
use crate::executor::llm::fault::{self, Fault, FaultKind};

pub(super) fn encode(request: &Request) -> HttpRequest {
    let mut messages = vec![json!({"role": "user", "content": request.prompt})];
    if let Some(system) = request.system {
        messages.insert(0, json!({"role": "system", "content": system}));
    }
    let mut options = json!({"num_predict": request.max_tokens});
    if let Some(context) = request.context_tokens {
        options["num_ctx"] = context.into();
    }
    let mut body = json!({"model": request.model, "messages": messages, "options": options, "stream": true});
    match request.format {
        Format::Text => {}
        Format::JsonObject => body["format"] = "json".into(),
        Format::Schema { schema, .. } => body["format"] = schema.clone(),
    }
    if let Some(effort) = request.effort {
        body["think"] = match effort {
            "true" => true.into(),
            "false" => false.into(),
            level => level.into(),
        };
    }
    HttpRequest::new("/api/chat", &body)
}

#[derive(Debug, Default)]
pub(super) struct Decoder;

#[derive(Deserialize)]
struct Line {
    model: Option<String>,
    message: Option<Message>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<quorate_protocol::Json>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

impl Decode for Decoder {
    fn read(&mut self, data: &str, answer: &mut Answer) -> Result<AnswerStep, Fault> {
        let line: Line = read_event(data)?;
        if line.error.is_some() {
            return Err(fault::from_event(&read_event(data)?));
        }
        answer.name_model(line.model);
        let text = line.message.and_then(|message| message.content).unwrap_or_default();
        answer.add_text(&text)?;
        if !line.done {
            return Ok(AnswerStep::More);
        }
        answer.usage =
            Usage { tokens_in: line.prompt_eval_count, tokens_out: line.eval_count, ..Usage::default() };
        match line.done_reason.as_deref() {
            Some("stop") => Ok(AnswerStep::Done),
            Some("length") => Err(Fault::new(FaultKind::CutOff, "")),
            other => Err(stopped_for(other)),
        }
    }
}
