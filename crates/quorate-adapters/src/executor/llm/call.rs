//! One call: exactly one request, read to its terminal event, its idle limit or its deadline, whichever comes first.

use std::error::Error as _;
use std::time::Duration;

use quorate_kernel::ports::executor::{Failure, Retry};
use quorate_kernel::strict_json;
use quorate_protocol::Json;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};
use tokio::time::Instant;
use url::Url;

use super::config::Config;
use super::fault::{self, Fault, Kind};
use super::key::{Secret, without_key};
use super::pool::Outcome;
use super::wire::{self, Event, HttpRequest, Request, Stream, Wire};
use crate::http::{error_chain, host_and_port};

/// The most that is kept of the names of a failed connection, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Why there is no answer, and how the pool takes it.
#[derive(Debug)]
pub(super) struct CallFailure {
    pub(super) failure: Failure,
    pub(super) outcome: Outcome,
    /// Whether the service did not accept the key.
    pub(super) is_auth: bool,
}

impl CallFailure {
    fn of(failure: Failure, outcome: Outcome) -> Self {
        CallFailure { failure, outcome, is_auth: false }
    }

    fn timed_out() -> Self {
        CallFailure::of(Failure::TimedOut, Outcome::Answered)
    }
}

/// The largest list of models, in bytes.
const MAX_DOCUMENT_BYTES: usize = 8 << 20;

/// Sends a request and reads the response. `on_event` is told of each event.
///
/// # Errors
/// When there is no answer; usage that was reported until then was told to `on_event`.
pub(super) async fn send(
    client: &Client,
    config: &Config,
    key: Option<&Secret>,
    request: HttpRequest,
    deadline: Instant,
    mut on_event: impl FnMut(&Event),
) -> Result<wire::Response, CallFailure> {
    let response = connect(client, config, key, request, deadline).await?;
    if !response.status().is_success() {
        return Err(refused(config, key, response, deadline).await);
    }
    if let Some(encoding) = response.headers().get("content-encoding").filter(|value| *value != "identity") {
        let said = format!("it is encoded as {encoding:?}, which was not asked for");
        return Err(failed(config, key, Fault::new(Kind::Malformed, said)));
    }
    read(config, key, response, deadline, &mut on_event).await
}

async fn connect(
    client: &Client,
    config: &Config,
    key: Option<&Secret>,
    request: HttpRequest,
    deadline: Instant,
) -> Result<Response, CallFailure> {
    let url = url(config, &request.path)?;
    let headers = headers(config, key, &request.headers)?;
    exchange(config, key, client.post(url).headers(headers).body(request.body), deadline).await
}

/// Gets a JSON document below the base URL.
///
/// # Errors
/// As [`send`].
pub(super) async fn get(
    client: &Client,
    config: &Config,
    key: Option<&Secret>,
    path: &str,
    deadline: Instant,
) -> Result<Json, CallFailure> {
    // Headers of a wire that hold for all its requests stand in any request.
    let request = config.wire.encode(&Request::probe(&config.model));
    let fixed: Vec<_> = request.headers.into_iter().filter(|(name, _)| *name != "content-type").collect();
    let get = client.get(url(config, path)?).headers(headers(config, key, &fixed)?);
    let response = exchange(config, key, get, deadline).await?;
    if !response.status().is_success() {
        return Err(refused(config, key, response, deadline).await);
    }
    let body = body_start(response, MAX_DOCUMENT_BYTES, config.idle, deadline).await;
    strict_json::parse(String::from_utf8_lossy(&body).trim())
        .map_err(|error| failed(config, key, Fault::new(Kind::Malformed, error.to_string())))
}

fn url(config: &Config, path: &str) -> Result<Url, CallFailure> {
    Url::parse(&format!("{}{path}", config.base_url.as_str().trim_end_matches('/'))).map_err(|why| {
        CallFailure::of(Failure::never(format!("the address cannot be built: {why}")), Outcome::Answered)
    })
}

/// The headers of a request: the wire's, the settings' and the key's.
fn headers(
    config: &Config,
    key: Option<&Secret>,
    fixed: &[(&'static str, String)],
) -> Result<HeaderMap, CallFailure> {
    let mut headers = HeaderMap::new();
    for (name, value) in fixed {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers.extend(config.headers.iter().cloned());
    if let Some((name, value)) = key.and_then(|key| config.auth.header(key)) {
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            CallFailure::of(Failure::never("the key cannot stand in a header"), Outcome::Answered)
        })?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

async fn exchange(
    config: &Config,
    key: Option<&Secret>,
    request: RequestBuilder,
    deadline: Instant,
) -> Result<Response, CallFailure> {
    match limited(config.idle, deadline, request.send()).await {
        Err(Limit::Deadline) => Err(CallFailure::timed_out()),
        Err(Limit::Idle) => Err(idle(config)),
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(unreached(config, key, &error)),
    }
}

async fn read(
    config: &Config,
    key: Option<&Secret>,
    mut response: Response,
    deadline: Instant,
    on_event: &mut impl FnMut(&Event),
) -> Result<wire::Response, CallFailure> {
    let mut stream = Stream::new(config.wire);
    let ended = loop {
        let mut ended = None;
        let events = match limited(config.idle, deadline, response.chunk()).await {
            Err(Limit::Deadline) => return Err(CallFailure::timed_out()),
            Err(Limit::Idle) => return Err(idle(config)),
            Ok(Ok(Some(bytes))) => stream.feed(&bytes),
            Ok(Ok(None)) => stream.finish(),
            Ok(Err(error)) => {
                let said = short(&without_key(error_chain(&error), key));
                return Err(failed(config, key, Fault::new(Kind::EndedEarly, said)));
            }
        };
        for mut event in events {
            if let Event::Ended(response) = &mut event {
                response.model = response.model.take().map(|model| without_key(model, key));
            }
            on_event(&event);
            if let Event::Ended(response) = event {
                ended = Some(*response);
            }
        }
        if let Some(ended) = ended {
            break ended;
        }
    };
    match &ended.text {
        Ok(_) => Ok(ended),
        Err(fault) => Err(failed(config, key, fault.clone())),
    }
}

async fn refused(
    config: &Config,
    key: Option<&Secret>,
    response: Response,
    deadline: Instant,
) -> CallFailure {
    let status = response.status();
    if status.is_redirection() {
        let to = response.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
        let said = format!(
            "it redirects to {}, which is not followed; set `base_url`",
            short(&without_key(to.to_owned(), key))
        );
        return failed(
            config,
            key,
            Fault { status: Some(status.as_u16()), ..Fault::new(Kind::BadRequest, said) },
        );
    }
    let headers = response.headers().clone();
    let body = body_start(response, fault::MAX_BODY_BYTES, config.idle, deadline).await;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    failed(config, key, fault::from_response(status.as_u16(), header, &body))
}

/// As much of a body as is quoted. One that breaks off is quoted until there.
async fn body_start(mut response: Response, most: usize, idle: Duration, deadline: Instant) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < most {
        match limited(idle, deadline, response.chunk()).await {
            Ok(Ok(Some(bytes))) => body.extend(&bytes[..bytes.len().min(most - body.len())]),
            _ => break,
        }
    }
    body
}

fn failed(config: &Config, key: Option<&Secret>, mut fault: Fault) -> CallFailure {
    fault.said = without_key(fault.said, key);
    let outcome = match fault.kind {
        Kind::RateLimited | Kind::Overloaded => Outcome::Limited(fault.after),
        Kind::Server => Outcome::Unreached,
        _ => Outcome::Answered,
    };
    let is_auth = fault.kind == Kind::Auth;
    let mut message = without_key(fault.to_string(), key);
    if is_auth && let Some(source) = config.key.as_ref().map(super::key::Key::source) {
        message = format!("{message} (it was {})", source.describe());
    }
    CallFailure { failure: Failure::Failed { message, retry: fault.retry() }, outcome, is_auth }
}

fn unreached(config: &Config, key: Option<&Secret>, error: &reqwest::Error) -> CallFailure {
    let cause = error.source().map_or_else(|| error.to_string(), error_chain);
    let mut message = format!(
        "cannot reach {}: {}",
        host_and_port(&config.base_url),
        short(&without_key(cause.clone(), key))
    );
    if cause.to_ascii_lowercase().contains("certificate") {
        message.push_str("; `ca` names a file of authorities that are trusted beside the system's");
    }
    let failure = Failure::Failed { message: without_key(message, key), retry: Retry::Soon };
    CallFailure::of(failure, Outcome::Unreached)
}

fn idle(config: &Config) -> CallFailure {
    let message =
        format!("{} sent nothing for {} s (`idle`)", host_and_port(&config.base_url), config.idle.as_secs());
    CallFailure::of(Failure::failed(message), Outcome::Unreached)
}

fn short(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(MAX_REASON_CHARS).collect()
}

enum Limit {
    Idle,
    Deadline,
}

/// Waits for something, at most for the idle limit and to the deadline.
async fn limited<T>(idle: Duration, deadline: Instant, future: impl Future<Output = T>) -> Result<T, Limit> {
    let until = Instant::now().checked_add(idle).map_or(deadline, |until| until.min(deadline));
    match tokio::time::timeout_at(until, future).await {
        Ok(value) => Ok(value),
        Err(_) if Instant::now() >= deadline => Err(Limit::Deadline),
        Err(_) => Err(Limit::Idle),
    }
}

/// Whether the host's prompt is far longer than what the service says it read: some servers cut prompts without a word.
pub(super) fn was_truncated(wire: Wire, prompt_bytes: usize, tokens_in: Option<u64>) -> bool {
    // A token has about four bytes; ten is more than in any language.
    let fewest = prompt_bytes as u64 / 10;
    matches!(wire, Wire::Ollama | Wire::Chat)
        && fewest > 500
        && tokens_in.is_some_and(|read| read > 0 && read < fewest)
}
