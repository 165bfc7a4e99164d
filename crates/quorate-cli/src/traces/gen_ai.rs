//! The names of spans and attributes in OpenTelemetry's conventions for generative AI: a member is an invoked agent, a model
//! call is a chat. Attributes that the conventions lack begin with `quorate.`.

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{Key, KeyValue, Value};
use opentelemetry_sdk::trace::SpanData;

const OPERATION: &str = "gen_ai.operation.name";
const PROVIDER: &str = "gen_ai.provider.name";
const AGENT: &str = "gen_ai.agent.name";
const CONVERSATION: &str = "gen_ai.conversation.id";
const REQUEST_MODEL: &str = "gen_ai.request.model";
const RESPONSE_MODEL: &str = "gen_ai.response.model";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const ERROR: &str = "error.type";

/// The states of members and calls that have an answer.
const ANSWERED: [&str; 2] = ["answered", "said"];

/// The span, with the conventions' names.
pub(super) fn conventional(mut span: SpanData) -> SpanData {
    let text = |key: &str| {
        let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key)?;
        Some(found.value.as_str().into_owned())
    };
    let (model, requested) = (text("model"), text("requested_model"));
    let (operation, name) = match &*span.name {
        "member" => {
            let member = text("member").unwrap_or_default();
            (Some("invoke_agent"), format!("invoke_agent {member}"))
        }
        // A call without a model and without tokens is a program's or the rubric's.
        "attempt" => match requested.as_deref().or(model.as_deref()) {
            Some(model) => (Some("chat"), format!("chat {model}")),
            None if text("tokens_out").is_some() => (Some("chat"), "chat".to_owned()),
            None => (None, "attempt".to_owned()),
        },
        name => (None, name.to_owned()),
    };
    let status = text("status");
    let is_call = operation.is_some();
    if operation == Some("chat") {
        span.span_kind = SpanKind::Client;
    }
    for attribute in &mut span.attributes {
        attribute.key = key(attribute.key.as_str(), is_call);
    }
    if let Some(operation) = operation {
        span.attributes.push(KeyValue::new(OPERATION, operation));
    }
    if let Some(status) = status.filter(|status| !ANSWERED.contains(&&**status)) {
        span.attributes.push(KeyValue::new(ERROR, Value::from(status.clone())));
        span.status = Status::error(status);
    }
    span.name = name.into();
    span
}

fn key(ours: &str, is_call: bool) -> Key {
    Key::from_static_str(match (ours, is_call) {
        ("run", _) => CONVERSATION,
        ("member", true) => AGENT,
        ("executor", true) => PROVIDER,
        ("requested_model", true) => REQUEST_MODEL,
        ("model", true) => RESPONSE_MODEL,
        ("tokens_in", true) => INPUT_TOKENS,
        ("tokens_out", true) => OUTPUT_TOKENS,
        _ => return Key::from(format!("quorate.{ours}")),
    })
}
