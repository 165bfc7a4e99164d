//! The Responses API of OpenAI.

use std::collections::BTreeSet;

use quorate_kernel::ports::executor::Usage;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, AnswerStep, Decode, Format, HttpRequest, Request, chat, read_event, stopped_for};
use crate::executor::llm::fault::{self, Fault, FaultKind};

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

#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The output items that are talk on the way to the answer.
    commentary: BTreeSet<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "response.created", alias = "response.in_progress")]
    Created { response: Response },
    #[serde(rename = "response.output_item.added")]
    ItemAdded {
        #[serde(default)]
        output_index: u64,
        item: Item,
    },
    #[serde(rename = "response.output_text.delta")]
    Text {
        #[serde(default)]
        output_index: u64,
        delta: String,
    },
    #[serde(rename = "response.refusal.delta")]
    Refusal { delta: String },
    #[serde(rename = "response.completed")]
    Completed { response: Response },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response },
    #[serde(rename = "response.failed", alias = "response.cancelled")]
    Failed { response: Response },
    #[serde(rename = "error")]
    Error,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Item {
    phase: Option<String>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct Response {
    model: Option<String>,
    usage: Option<Counts>,
    error: Option<quorate_protocol::Json>,
    incomplete_details: Option<Incomplete>,
    status: Option<String>,
    output: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    cache_write_tokens_details: Option<Written>,
}

#[derive(Deserialize)]
struct Written {
    ttl_30m_tokens: u64,
    ttl_12h_tokens: u64,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Decode for Decoder {
    fn read(&mut self, data: &str, answer: &mut Answer) -> Result<AnswerStep, Fault> {
        // Compatible servers end with the mark of the other wire; the terminal event came before.
        if data.trim() == "[DONE]" {
            return Ok(AnswerStep::More);
        }
        match read_event(data)? {
            Event::Created { response } => {
                take(response, answer);
                Ok(AnswerStep::More)
            }
            Event::ItemAdded { output_index, item } => {
                if item.phase.as_deref() == Some("commentary") {
                    self.commentary.insert(output_index);
                }
                Ok(AnswerStep::More)
            }
            Event::Text { output_index, .. } if self.commentary.contains(&output_index) => {
                Ok(AnswerStep::More)
            }
            Event::Text { delta, .. } => answer.add_text(&delta),
            Event::Refusal { delta } => {
                answer.add_refusal(&delta);
                Ok(AnswerStep::More)
            }
            Event::Completed { mut response } => {
                let (error, status) = (response.error.take(), response.status.take());
                let items = response.output.take().unwrap_or_default();
                let incomplete = take(response, answer);
                // The event's name is not all that says how it ended.
                match (error, incomplete, status.as_deref()) {
                    (Some(error), ..) => Err(fault::from_event(&error)),
                    (None, Some(details), _) => Err(incomplete_for(details.reason.as_deref())),
                    (None, None, None | Some("completed")) => {
                        let part =
                            items.into_iter().filter_map(|item| item.status).find(|it| it != "completed");
                        part.map_or(Ok(AnswerStep::Done), |status| Err(stopped_for(Some(&status))))
                    }
                    (None, None, other) => Err(stopped_for(other)),
                }
            }
            Event::Incomplete { response } => {
                let reason = take(response, answer).and_then(|details| details.reason);
                Err(incomplete_for(reason.as_deref()))
            }
            Event::Failed { mut response } => {
                let error = response.error.take();
                take(response, answer);
                Err(fault::from_event(&error.unwrap_or_default()))
            }
            Event::Error => Err(fault::from_event(&read_event(data)?)),
            Event::Other => Ok(AnswerStep::More),
        }
    }
}

/// The fault of a response that the service calls incomplete.
fn incomplete_for(reason: Option<&str>) -> Fault {
    match reason {
        Some("max_output_tokens") => Fault::new(FaultKind::CutOff, ""),
        Some("content_filter") => Fault::new(FaultKind::ContentFilter { category: None }, ""),
        other => stopped_for(other),
    }
}

/// Takes model and usage, and returns why it is incomplete, if it is.
fn take(response: Response, answer: &mut Answer) -> Option<Incomplete> {
    answer.name_model(response.model);
    if let Some(counts) = response.usage {
        answer.usage = counts.into();
    }
    response.incomplete_details
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Usage {
        let input = counts.input_tokens_details.as_ref();
        let by_age = input.and_then(|details| details.cache_write_tokens_details.as_ref());
        Usage {
            tokens_in: counts.input_tokens,
            tokens_cached: input.and_then(|details| details.cached_tokens),
            tokens_written: by_age
                .map(|written| written.ttl_30m_tokens)
                .or(input.and_then(|details| details.cache_write_tokens)),
            tokens_written_long: by_age.map(|written| written.ttl_12h_tokens),
            tokens_out: counts.output_tokens,
            tokens_reasoning: counts.output_tokens_details.and_then(|details| details.reasoning_tokens),
            money: None,
        }
    }
}
