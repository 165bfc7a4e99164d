//! Ollama's own chat API, whose response is a JSON object on each line.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde_json::json;

use super::{Answer, AnswerStep, Format, HttpRequest, Request, count};
use crate::executor::llm::fault::{Fault, FaultKind};

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

pub(super) fn read(line: &Json, answer: &mut Answer) -> Result<AnswerStep, Fault> {
    answer.name_model(line.get("model"));
    answer.add_content(line.get("message"))?;
    match line.get("done") {
        None | Some(Json::Null | Json::Bool(false)) => Ok(AnswerStep::More),
        Some(Json::Bool(true)) => {
            let (tokens_in, tokens_out) =
                (count(line.get("prompt_eval_count")), count(line.get("eval_count")));
            answer.note_usage(Usage { tokens_in, tokens_out, ..Usage::default() });
            answer.note_finish(line.get("done_reason"))?;
            answer.end()
        }
        Some(other) => Err(Fault::new(FaultKind::Malformed, format!("`done` is `{other}`"))),
    }
}
