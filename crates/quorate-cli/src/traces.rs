//! Traces for OpenTelemetry: spans of runs, members and calls, sent over OTLP. The variables of its specification
//! (`OTEL_EXPORTER_OTLP_ENDPOINT` and others) configure the endpoint. Spans have ids, names, numbers and times, never texts.
//!
//! Names of spans and attributes follow OpenTelemetry's conventions for generative AI: a member is an invoked agent, a model
//! call is a chat. Attributes that the conventions lack begin with `quorate.`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status, TracerProvider as _};
use opentelemetry::{Key, KeyValue, Value};
use opentelemetry_otlp::SpanExporter as OtlpExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use quorate::process::install_tls_provider;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::environment::variable;

/// The default of `OTEL_SERVICE_NAME`.
const SERVICE: &str = "quorate";
/// The target prefix of exported spans: Quorate's own crates.
const TARGET: &str = "quorate";
/// How long the last spans may take at the end of a command.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The exporter of this process's spans.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    /// The first failed export.
    failure: Arc<Mutex<Option<String>>>,
}

impl Traces {
    /// Starts sending spans if the environment names an endpoint and does not disable traces.
    ///
    /// # Errors
    /// A message about an invalid variable.
    pub(crate) fn start() -> Result<Option<Traces>, String> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let is_wanted = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or(set("OTEL_EXPORTER_OTLP_ENDPOINT"))
            .is_some()
            && set("OTEL_SDK_DISABLED").is_none_or(|is_disabled| !is_disabled.eq_ignore_ascii_case("true"))
            && set("OTEL_TRACES_EXPORTER").is_none_or(|exporter| exporter == "otlp");
        if !is_wanted {
            return Ok(None);
        }
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(protocol) = set(name).filter(|protocol| protocol != "http/protobuf") {
                return Err(format!("{name} is `{protocol}`; traces are sent as `http/protobuf` alone"));
            }
        }
        // The exporter builds a client, which asks for it.
        install_tls_provider();
        let exporter = OtlpExporter::builder().with_http().build();
        let exporter = exporter.map_err(|error| format!("the variables OTEL_EXPORTER_OTLP_…: {error}"))?;
        let failure = Arc::<Mutex<Option<String>>>::default();
        let resource = Resource::builder();
        let resource = match set("OTEL_SERVICE_NAME") {
            Some(_) => resource,
            None => resource.with_service_name(SERVICE),
        };
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Conventional { exporter, failure: failure.clone() })
            .with_resource(resource.with_attribute(version).build())
            .build();
        Ok(Some(Traces { provider, failure }))
    }

    /// The layer that receives the spans.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let spans = tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false);
        spans.with_filter(filter_fn(|metadata: &Metadata<'_>| {
            metadata.is_span() && metadata.target().starts_with(TARGET)
        }))
    }

    /// Sends the remaining spans within a time limit; returns the reason if some could not be sent.
    pub(crate) fn close(self) -> Option<String> {
        let closed = self.provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.or_else(|| closed.err().map(|error| error.to_string()))
    }
}

/// An exporter of spans with the names of the conventions.
#[derive(Debug)]
struct Conventional {
    exporter: OtlpExporter,
    failure: Arc<Mutex<Option<String>>>,
}

impl SpanExporter for Conventional {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let batch = batch.into_iter().map(conventional).collect();
        let exported = self.exporter.export(batch).await;
        if let Err(error) = &exported {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| error.to_string());
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

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
fn conventional(mut span: SpanData) -> SpanData {
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
