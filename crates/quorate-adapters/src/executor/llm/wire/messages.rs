//! The Messages API of Anthropic, which others serve too.

use quorate_kernel::ports::executor::Usage;
use serde::Deserialize;
use serde_json::json;

use super::{
    Answer, AnswerStep, Cache, Decode, Format, HttpRequest, Request, later_reason, read_event, stopped_for,
};
use crate::executor::llm::fault::{self, Fault, FaultKind};

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
    let mut request = HttpRequest::new("/v1/messages", &body);
    request.headers.push(("anthropic-version", VERSION.to_owned()));
    request
}

#[derive(Debug, Default)]
pub(super) struct Decoder {
    counts: Counts,
    stop_reason: Option<String>,
    stop_details: Option<StopDetails>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        content_block: Piece,
    },
    ContentBlockDelta {
        delta: Piece,
    },
    MessageDelta {
        delta: Stop,
        usage: Option<Counts>,
    },
    MessageStop,
    Error,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Message {
    model: Option<String>,
    usage: Option<Counts>,
}

/// A content block, or what is added to one.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    Text {
        #[serde(default)]
        text: String,
    },
    TextDelta {
        text: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Stop {
    stop_reason: Option<String>,
    stop_details: Option<StopDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct StopDetails {
    category: Option<String>,
    explanation: Option<String>,
}

/// Tokens, counted from the start of the message. Input excludes what is read from the cache or written to it.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<Written>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Written {
    ephemeral_5m_input_tokens: u64,
    ephemeral_1h_input_tokens: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

/// Whether a stop reason is the end of a whole answer.
fn is_end(reason: &str) -> bool {
    matches!(reason, "end_turn" | "stop_sequence")
}

impl Decode for Decoder {
    fn read(&mut self, data: &str, answer: &mut Answer) -> Result<AnswerStep, Fault> {
        match read_event(data)? {
            Event::MessageStart { message } => {
                answer.name_model(message.model);
                self.count(message.usage, answer);
                Ok(AnswerStep::More)
            }
            Event::ContentBlockStart { content_block: Piece::Text { text } }
            | Event::ContentBlockDelta { delta: Piece::TextDelta { text } } => answer.add_text(&text),
            Event::MessageDelta { delta, usage } => {
                self.count(usage, answer);
                self.stop_reason = later_reason(self.stop_reason.take(), delta.stop_reason, is_end);
                self.stop_details = delta.stop_details.or(self.stop_details.take());
                Ok(AnswerStep::More)
            }
            Event::MessageStop => self.stop(),
            Event::Error => Err(fault::from_event(&read_event(data)?)),
            Event::ContentBlockStart { .. } | Event::ContentBlockDelta { .. } | Event::Other => {
                Ok(AnswerStep::More)
            }
        }
    }
}

impl Decoder {
    fn stop(&mut self) -> Result<AnswerStep, Fault> {
        let StopDetails { category, explanation } = self.stop_details.take().unwrap_or_default();
        let why = explanation.unwrap_or_default();
        match self.stop_reason.as_deref() {
            Some(reason) if is_end(reason) => Ok(AnswerStep::Done),
            Some("max_tokens") => Err(Fault::new(FaultKind::CutOff, "")),
            Some("refusal") => Err(Fault::new(FaultKind::Refused { category }, why)),
            Some("model_context_window_exceeded") => Err(Fault::new(FaultKind::ContextOverflow, why)),
            other => Err(stopped_for(other)),
        }
    }

    fn count(&mut self, new: Option<Counts>, answer: &mut Answer) {
        let (Some(new), old) = (new, self.counts) else { return };
        let counts = Counts {
            input_tokens: new.input_tokens.or(old.input_tokens),
            cache_read_input_tokens: new.cache_read_input_tokens.or(old.cache_read_input_tokens),
            cache_creation_input_tokens: new.cache_creation_input_tokens.or(old.cache_creation_input_tokens),
            cache_creation: new.cache_creation.or(old.cache_creation),
            output_tokens: new.output_tokens.or(old.output_tokens),
            output_tokens_details: new.output_tokens_details.or(old.output_tokens_details),
        };
        self.counts = counts;
        let (read, written) = (counts.cache_read_input_tokens, counts.cache_creation_input_tokens);
        let all = [counts.input_tokens, read, written];
        answer.usage = Usage {
            tokens_in: all.into_iter().flatten().reduce(u64::saturating_add),
            tokens_cached: read,
            tokens_written: counts.cache_creation.map(|by_age| by_age.ephemeral_5m_input_tokens).or(written),
            tokens_written_long: counts.cache_creation.map(|by_age| by_age.ephemeral_1h_input_tokens),
            tokens_out: counts.output_tokens,
            tokens_reasoning: counts.output_tokens_details.and_then(|details| details.thinking_tokens),
            money: None,
        };
    }
}
