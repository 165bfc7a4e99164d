//! An export as OpenTelemetry traces: one document of OTLP/JSON, with a span for each record. A run is a trace. Its
//! first record is the root span, which lasts until its last record; all other records are children. The document
//! contains no texts.
//!
//! Trace and span ids are derived from the ids of runs and records, so a second export adds no second trace.

use std::collections::BTreeMap;
use std::io::Write;

use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Consultation, RunOpened, Status};
use quorate_protocol::Json;
use serde_json::{Map, json};
use sha2::{Digest as _, Sha256};

use super::{CheckedRecords, ExportError};
use crate::prove::CheckedRecord;

const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

const ERROR: u8 = 2;

/// A run whose last record was not read yet.
struct OpenTrace {
    first: CheckedRecord,
    last_ms: i64,
    /// The verdict in its outcome. An override has a span of its own.
    verdict: Option<String>,
}

pub(super) async fn write(
    records: &mut CheckedRecords<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let origin = json!(records.selected.sealed.origin);
    let resource = list([("service.name", json!("quorate")), ("quorate.ledger.origin", origin)]);
    write!(
        out,
        "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":{resource}}},\"scopeSpans\":[{{\"scope\":{{\"name\":\"quorate\"}},\"spans\":["
    )?;
    let mut spans = SpanWriter { out, has_written: false };
    let mut open: BTreeMap<String, OpenTrace> = BTreeMap::new();
    while let Some(page) = records.next_page().await? {
        for (_, exported) in page {
            let (run, at_ms) = (exported.head.run.clone(), exported.at_ms);
            let outcome = exported.data.as_ref().filter(|_| exported.head.kind == Kind::Outcome.as_str());
            let verdict = outcome.and_then(record::verdict);
            match open.get_mut(&run) {
                None => {
                    open.insert(run, OpenTrace { first: exported, last_ms: at_ms, verdict: None });
                }
                Some(root) => {
                    root.last_ms = root.last_ms.max(at_ms);
                    root.verdict = verdict.or(root.verdict.take());
                    spans.put(&child(&exported))?;
                }
            }
        }
    }
    for run in open.into_values() {
        spans.put(&root(&run))?;
    }
    out.write_all(b"]}]}]}\n")?;
    Ok(())
}

/// Writes spans.
struct SpanWriter<'a> {
    out: &'a mut (dyn Write + Send),
    has_written: bool,
}

impl SpanWriter<'_> {
    fn put(&mut self, span: &Json) -> std::io::Result<()> {
        let comma = if std::mem::replace(&mut self.has_written, true) { "," } else { "" };
        write!(self.out, "{comma}{span}")
    }
}

/// The span of a run, from its first to its last record.
fn root(open: &OpenTrace) -> Json {
    let OpenTrace { first, last_ms, verdict } = open;
    let opened: Option<RunOpened> = first.data.as_ref().and_then(|data| record::read(data).ok());
    let subject = opened.and_then(|opened| opened.subject);
    let mut attributes = common(first);
    attributes.extend(subject.map(|subject| ("quorate.run.subject", json!(subject))));
    attributes.extend(verdict.clone().map(|verdict| (VERDICT, json!(verdict))));
    span(first, &format!("{} {}", first.head.kind, first.head.run), None, first.at_ms, *last_ms, attributes)
}

/// The span of any other record.
fn child(exported: &CheckedRecord) -> Json {
    let parent = span_id(&exported.head.run, 0);
    let data = exported.data.as_ref();
    let Some(data) = data.filter(|_| exported.head.kind == Kind::Consultation.as_str()) else {
        let verdict = data.and_then(record::verdict);
        let mut attributes = common(exported);
        attributes.extend(verdict.map(|verdict| (VERDICT, json!(verdict))));
        return span(
            exported,
            &exported.head.kind,
            Some(&parent),
            exported.at_ms,
            exported.at_ms,
            attributes,
        );
    };
    let ended: Consultation = record::read(data).unwrap_or_default();
    let mut attributes = common(exported);
    attributes.push(("gen_ai.operation.name", json!(INVOKE_AGENT)));
    let texts = texts(&ended).into_iter().filter(|(_, text)| !text.is_empty());
    attributes.extend(texts.map(|(name, text)| (name, json!(text))));
    let counts = [
        ("gen_ai.usage.input_tokens", ended.spent.tokens_in),
        ("gen_ai.usage.output_tokens", ended.spent.tokens_out),
        ("quorate.calls", ended.spent.calls),
    ];
    attributes.extend(counts.into_iter().filter_map(|(name, count)| Some((name, json!(count?)))));
    let status =
        (ended.status != Status::Answered).then(|| ended.status.as_str()).filter(|status| !status.is_empty());
    attributes.extend(status.map(|status| ("error.type", json!(status))));
    let took_ms = ended.spent.ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
    let started_ms = exported.at_ms.saturating_sub(took_ms);
    let name = format!("{} {}", INVOKE_AGENT, ended.member);
    let mut span = span(exported, name.trim_end(), Some(&parent), started_ms, exported.at_ms, attributes);
    span["kind"] = json!(CLIENT);
    if let Some(status) = status {
        span["status"] = json!({"code": ERROR, "message": status});
    }
    span
}

/// Attributes of every span.
fn common(exported: &CheckedRecord) -> Vec<(&'static str, Json)> {
    let head = &exported.head;
    let mut all = vec![
        ("gen_ai.conversation.id", json!(head.run)),
        ("quorate.record.id", json!(format!("{}/{}", head.run, head.n))),
        ("quorate.record.kind", json!(head.kind)),
        ("quorate.record.leaf", json!(hex(&exported.leaf))),
    ];
    let signers: Vec<String> = exported.signers.iter().map(ToString::to_string).collect();
    if !signers.is_empty() {
        all.push(("quorate.record.signed_by", json!(signers.join(" "))));
    }
    all
}

fn span(
    exported: &CheckedRecord,
    name: &str,
    parent: Option<&str>,
    start_ms: i64,
    end_ms: i64,
    attributes: Vec<(&'static str, Json)>,
) -> Json {
    let head = &exported.head;
    let mut span = Map::from_iter([
        ("traceId".to_owned(), json!(trace_id(&head.run))),
        ("spanId".to_owned(), json!(span_id(&head.run, head.n))),
        ("name".to_owned(), json!(name)),
        ("kind".to_owned(), json!(INTERNAL)),
        ("startTimeUnixNano".to_owned(), json!(nanoseconds(start_ms))),
        ("endTimeUnixNano".to_owned(), json!(nanoseconds(end_ms))),
        ("attributes".to_owned(), list(attributes)),
    ]);
    if let Some(parent) = parent {
        span.insert("parentSpanId".to_owned(), json!(parent));
    }
    Json::Object(span)
}

/// The first 16 bytes of SHA-256 over the run's id.
fn trace_id(run: &str) -> String {
    hex(&Sha256::digest(run.as_bytes())[..16])
}

/// The first 8 bytes of SHA-256 over the record's id.
fn span_id(run: &str, n: u64) -> String {
    hex(&Sha256::digest(format!("{run}/{n}").as_bytes())[..8])
}

/// Nanoseconds since the Unix epoch, as a text: OTLP/JSON encodes 64-bit integers as texts.
fn nanoseconds(ms: i64) -> String {
    (i128::from(ms.max(0)) * 1_000_000).to_string()
}

/// The operation of a consultation.
const INVOKE_AGENT: &str = "invoke_agent";

const VERDICT: &str = "quorate.verdict";

/// The texts of a consultation.
fn texts(ended: &Consultation) -> [(&'static str, &str); 6] {
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

/// Attributes as OTLP/JSON encodes them: 64-bit integers are texts.
fn list(all: impl IntoIterator<Item = (&'static str, Json)>) -> Json {
    let value = |value: Json| match value {
        Json::Number(number) => json!({"intValue": number.to_string()}),
        Json::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    };
    all.into_iter().map(|(key, one)| json!({"key": key, "value": value(one)})).collect()
}
