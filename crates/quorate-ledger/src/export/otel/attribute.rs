//! Names of attributes: OpenTelemetry's semantic conventions for generative AI, and ours beside them.

use quorate_kernel::record::{Consultation, Spent};
use quorate_protocol::Json;
use serde_json::json;

pub(super) const SERVICE_NAME: &str = "service.name";
pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";

/// The operation of a consultation.
pub(super) const INVOKE_AGENT: &str = "invoke_agent";

pub(super) const ORIGIN: &str = "quorate.ledger.origin";
pub(super) const RECORD: &str = "quorate.record.id";
pub(super) const KIND: &str = "quorate.record.kind";
pub(super) const LEAF: &str = "quorate.record.leaf";
pub(super) const SIGNED_BY: &str = "quorate.record.signed_by";
pub(super) const SUBJECT: &str = "quorate.run.subject";
pub(super) const VERDICT: &str = "quorate.verdict";

/// What a consultation says in texts.
pub(super) fn texts(ended: &Consultation) -> [(&'static str, &str); 6] {
    let answered = ended.model.as_deref().unwrap_or_default();
    [
        ("gen_ai.agent.name", &ended.member),
        ("gen_ai.provider.name", &ended.executor),
        ("gen_ai.request.model", ended.requested_model.as_deref().unwrap_or(answered)),
        ("gen_ai.response.model", ended.requested_model.as_ref().map_or("", |_| answered)),
        ("quorate.step", &ended.step),
        ("quorate.status", ended.status.as_str()),
    ]
}

/// What it counts.
pub(super) fn counts(spent: &Spent) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    [
        ("gen_ai.usage.input_tokens", spent.tokens_in),
        ("gen_ai.usage.output_tokens", spent.tokens_out),
        ("quorate.calls", spent.calls),
    ]
    .into_iter()
}

/// Attributes as OTLP/JSON has them: 64-bit integers are texts there.
pub(super) fn list(all: impl IntoIterator<Item = (&'static str, Json)>) -> Json {
    let value = |value: Json| match value {
        Json::Number(number) => json!({"intValue": number.to_string()}),
        Json::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    };
    all.into_iter().map(|(key, one)| json!({"key": key, "value": value(one)})).collect()
}
