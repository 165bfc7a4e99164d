//! Traces for OpenTelemetry, as a collector receives them.

#![cfg(feature = "otel")]

use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::models::Model;
use crate::support::council::{all_ship, all_ship_except};
use crate::support::http::read_request;
use crate::support::{CommandOutput, TestDir, finish};

const DRAFT: &str = "The walrus moved the meeting to Tuesday at ten.\n";

/// A collector that keeps what it is sent.
struct Collector {
    address: String,
    requests: Requests,
}

/// Heads and bodies.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Requests::default();
        let kept = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read_request(&mut BufReader::new(stream.try_clone().unwrap())) else {
                    continue;
                };
                kept.lock().unwrap().push(request);
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Collector { address, requests }
    }

    /// What was sent, with who sent it.
    fn spans(&self) -> (BTreeMap<String, String>, Vec<Span>) {
        let (mut resource, mut spans) = (BTreeMap::new(), Vec::new());
        for (head, body) in self.requests.lock().unwrap().iter() {
            assert!(head.starts_with("POST /v1/traces "), "{head}");
            let request = ExportTraceServiceRequest::decode(&body[..]).expect("a request of OTLP");
            for sent in request.resource_spans {
                resource.extend(attributes(&sent.resource.unwrap().attributes));
                spans.extend(sent.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        }
        (resource, spans)
    }
}

fn attributes(found: &[opentelemetry_proto::tonic::common::v1::KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pairs = found.iter().map(|pair| {
        let value = pair.value.as_ref().and_then(|value| value.value.as_ref()).expect("a value");
        (pair.key.clone(), text(value))
    });
    pairs.collect()
}

fn review(place: &TestDir, variables: &[(&str, &str)], arguments: &[&str]) -> CommandOutput {
    let mut command = place.command(&[&["review", "draft.md"], arguments].concat());
    command.envs(variables.iter().copied());
    finish(command.spawn().unwrap())
}

#[test]
fn a_run_its_members_and_their_calls_are_one_trace() {
    let (collector, model) = (Collector::start(), Model::start(8));
    let place = TestDir::with("draft.md", DRAFT);
    let executor = format!("{}#small", model.address);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.address),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer canary-44d1"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
    ];
    let report = review(&place, &variables, &["--executor", &executor, "--format", "json"]).assert_code(0);
    assert_eq!(report.stderr, "");
    let run = report.json()["run"].as_str().unwrap().to_owned();

    let (resource, spans) = collector.spans();
    assert_eq!(resource["service.name"], "quorate");
    assert_eq!(resource["deployment.environment"], "test");
    assert!(collector.requests.lock().unwrap()[0].0.contains("authorization: Bearer canary-44d1"));
    let root = spans.iter().find(|span| span.name == "run").expect("a run");
    assert_eq!(attributes(&root.attributes)["gen_ai.conversation.id"], run);
    assert!(root.parent_span_id.is_empty() && spans.iter().all(|span| span.trace_id == root.trace_id));
    let below =
        |parent: &Span| spans.iter().filter(|span| span.parent_span_id == parent.span_id).collect::<Vec<_>>();
    let members = below(root);
    assert_eq!(members.len(), 9);
    let skeptics: Vec<_> = members.iter().filter(|span| span.name == "invoke_agent skeptic").collect();
    assert_eq!(skeptics.len(), 2, "two rounds");
    for member in members {
        let of_member = attributes(&member.attributes);
        assert_eq!(of_member["gen_ai.operation.name"], "invoke_agent");
        assert_eq!(format!("invoke_agent {}", of_member["gen_ai.agent.name"]), member.name);
        assert_eq!(
            (&*of_member["gen_ai.usage.input_tokens"], &*of_member["gen_ai.usage.output_tokens"]),
            ("1000", "10")
        );
        let [call] = below(member)[..] else { panic!("one call each") };
        assert_eq!((&*call.name, call.kind), ("chat small", 3), "a client's");
        let of_call = attributes(&call.attributes);
        assert_eq!(of_call["gen_ai.operation.name"], "chat");
        assert_eq!(of_call["gen_ai.request.model"], "small");
        assert_eq!(of_call["gen_ai.response.model"], "small-2026");
        assert_eq!(of_call["gen_ai.usage.output_tokens"], "10");
        assert!(!of_call.contains_key("error.type"), "{of_call:?}");
        assert!(
            call.start_time_unix_nano < call.end_time_unix_nano
                && call.end_time_unix_nano <= member.end_time_unix_nano
        );
    }
    for (_, body) in collector.requests.lock().unwrap().iter() {
        assert!(!String::from_utf8_lossy(body).contains("walrus"), "no text is sent");
    }
}

#[test]
fn a_member_without_an_answer_is_an_error() {
    let collector = Collector::start();
    let fails = serde_json::json!({"r1/skeptic": {"$fail": "out of order: canary-91c0"}});
    let place = TestDir::scripted(&all_ship_except(fails));
    place.write("draft.md", DRAFT);
    review(
        &place,
        &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{}/v1/traces", collector.address))],
        &[],
    );
    let (_, spans) = collector.spans();
    let of_first = |span: &&Span| {
        attributes(&span.attributes).get("quorate.invocation").is_some_and(|id| id == "r1/skeptic")
    };
    let skeptic = spans.iter().find(of_first).unwrap();
    assert_eq!(attributes(&skeptic.attributes)["error.type"], "failed");
    assert_eq!(skeptic.status.as_ref().unwrap().code, 2, "an error");
    for (_, body) in collector.requests.lock().unwrap().iter() {
        assert!(!String::from_utf8_lossy(body).contains("canary-91c0"), "no text is sent");
    }
}

#[test]
fn without_a_collector_everything_is_as_before() {
    let collector = Collector::start();
    let place = TestDir::scripted(&all_ship());
    place.write("draft.md", DRAFT);
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.address);
    for off in
        [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "")]
    {
        review(&place, &[endpoint, off], &[]).assert_code(0);
    }
    assert!(collector.requests.lock().unwrap().is_empty());
    let gone = review(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")], &[]).assert_code(0);
    gone.assert_stderr_contains("some traces could not be sent");
    let refused = review(&place, &[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], &[]).assert_code(64);
    refused.assert_stderr_contains("OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`");
}
