//! One call: exactly one request, read to its terminal event, its idle limit or its deadline, whichever comes first.

use std::error::Error as _;
use std::ops::Deref;
use std::time::Duration;

use quorate_kernel::canonical;
use quorate_kernel::ports::executor::{Failure, Invocation, Retry, Usage};
use quorate_manifest::money::Money;
use quorate_protocol::Json;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response};
use tokio::time::Instant;
use url::Url;

use super::fault::{self, Fault, FaultKind};
use super::pool::{UnderWay, past_deadline};
use super::service::{Secret, Service, without_key};
use super::wire::{self, Event, HttpRequest, Stream};
use crate::http::{error_chain, host_and_port};

/// The most that is kept of the names of a failed connection, in characters.
const MAX_REASON_CHARS: usize = 300;

/// The command that starts the local server whose usual port an address has.
fn start_command(url: &Url) -> Option<&'static str> {
    match url.port()? {
        11434 => Some("ollama serve"),
        1234 => Some("lms server start"),
        _ => None,
    }
}

/// How long a complete answer waits for the final event of its wire.
const FINAL_EVENT_WAIT: Duration = Duration::from_secs(3);

/// Why a call has no answer.
#[derive(Debug)]
pub(super) struct CallFailure {
    pub(super) failure: Failure,
    /// Whether no model was asked, so that nothing is charged: nothing was sent, or the service turned the request down.
    pub(super) is_free: bool,
    /// What the service said, where it said something.
    pub(super) fault: Option<Box<Fault>>,
}

impl CallFailure {
    /// Adds to the message what a user can do.
    pub(super) fn add_hint(&mut self, hint: Option<String>) {
        if let (Failure::Failed { message, .. }, Some(hint)) = (&mut self.failure, hint) {
            message.push_str("; ");
            message.push_str(&hint);
        }
    }

    /// A request that could not be made.
    pub(super) fn unsent(failure: Failure) -> Self {
        CallFailure { failure, is_free: true, fault: None }
    }

    /// Ends the call for its pool. Returns the failure, to be repeated at once if the next call has another key.
    pub(super) async fn end(self, under_way: UnderWay, service: &Service, key: Option<&Secret>) -> Failure {
        let is_auth = self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Auth);
        if let Some(fault) = self.fault {
            under_way.fail(&fault);
        }
        // A command's key may have expired: the next attempt has another.
        match is_auth && service.renews_key(key).await {
            true => self.failure.with_retry(Retry::Soon),
            false => self.failure,
        }
    }

    /// As [`CallFailure::end`], with notes of the details. A wait that is longer than the remaining time is not waited for.
    pub(super) async fn settle(
        self,
        under_way: UnderWay,
        service: &Service,
        key: Option<&Secret>,
        invocation: &Invocation,
    ) -> Failure {
        invocation.notes.note(|noted| {
            noted.http_status = self.fault.as_ref().and_then(|fault| fault.status);
            noted.no_stand_in |= self.fault.as_ref().is_some_and(|fault| fault.kind.is_of_answer());
            noted.host = Some(host_and_port(&service.base_url));
            if self.is_free {
                noted.usage = Some(nothing());
            }
        });
        let failure = self.end(under_way, service, key).await;
        let Failure::Failed { message, retry } = failure else { return failure };
        let message = service.without_keys(message, key);
        let left = invocation.deadline.saturating_duration_since(Instant::now());
        match retry {
            Retry::After(wait) if wait >= left => {
                Failure::never(format!("{message}; the service asks to wait {}", past_deadline(wait)))
            }
            retry => Failure::Failed { message, retry },
        }
    }
}

/// The usage of a request that was not sent or was refused.
pub(super) fn nothing() -> Usage {
    Usage { tokens_in: Some(0), tokens_out: Some(0), money: Some(Money::ZERO), ..Usage::default() }
}

/// The largest list of models or vectors, in bytes.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;

/// The client, the service, the key and the deadline of one request.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) client: &'a Client,
    pub(super) service: &'a Service,
    pub(super) key: Option<&'a Secret>,
    pub(super) deadline: Instant,
}

impl Call<'_> {
    /// Sends a request and reads the response as a stream. `on_event` is told of each event.
    ///
    /// # Errors
    /// When the service gives no answer; `on_event` has received the usage reported until then.
    pub(super) async fn stream(
        self,
        (request, stream): (HttpRequest, Stream),
        on_event: impl FnMut(&Event),
    ) -> Result<wire::Response, CallFailure> {
        let response = self.send(Method::POST, request).await?;
        self.read((response, stream), on_event).await
    }

    /// Sends a request whose response is one JSON document.
    ///
    /// # Errors
    /// As [`Call::stream`], and when the document is too large or no JSON.
    pub(super) async fn document(self, method: Method, request: HttpRequest) -> Result<Json, CallFailure> {
        let mut response = self.send(method, request).await?;
        let mut body = Vec::new();
        while let Some(bytes) = self.chunk(&mut response, !body.is_empty()).await? {
            if body.len() + bytes.len() > MAX_DOCUMENT_BYTES {
                let said = format!("it is longer than {MAX_DOCUMENT_BYTES} bytes");
                return Err(self.failed(Fault::new(FaultKind::TooLarge, said)));
            }
            body.extend_from_slice(&bytes);
        }
        let parsed = std::str::from_utf8(&body).map_err(|error| error.to_string());
        let parsed = parsed.and_then(|text| canonical::parse(text.trim()).map_err(|error| error.to_string()));
        parsed.map_err(|why| self.failed(Fault::new(FaultKind::Malformed, why)))
    }

    /// Sends a request with the headers of its wire, the settings and the key. Returns the response once it is known to be a
    /// success that can be read.
    async fn send(self, method: Method, request: HttpRequest) -> Result<Response, CallFailure> {
        let unsent = |why: String| CallFailure::unsent(Failure::never(why));
        let url = format!("{}{}", self.service.base_url.as_str().trim_end_matches('/'), request.path);
        let url = Url::parse(&url).map_err(|why| unsent(format!("the address cannot be built: {why}")))?;
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers.extend(self.service.headers.iter().cloned());
        if let Some((name, value)) = self.key.and_then(|key| self.service.auth.header(key)) {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| unsent("the key cannot stand in a header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let sent = self.client.request(method, url).headers(headers).body(request.body).send();
        let response = self.limited(sent, false).await?.map_err(|error| self.unreached(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        check_encoding(&response).map_err(|fault| self.failed(fault))?;
        Ok(response)
    }

    /// The next bytes of a body; `None` at its end.
    async fn chunk(
        self,
        response: &mut Response,
        has_begun: bool,
    ) -> Result<Option<impl Deref<Target = [u8]>>, CallFailure> {
        self.limited(response.chunk(), has_begun).await?.map_err(|error| {
            let said = short(&without_key(error_chain(&error), self.key));
            self.failed(Fault::new(FaultKind::EndedEarly, said))
        })
    }

    async fn read(
        self,
        (mut response, mut stream): (Response, Stream),
        mut on_event: impl FnMut(&Event),
    ) -> Result<wire::Response, CallFailure> {
        let mut has_begun = false;
        let ended = loop {
            let mut ended = None;
            let next = self.chunk(&mut response, has_begun);
            let chunk = match stream.is_complete() {
                // Some servers send no final event, and keep the connection open or break it off.
                true => {
                    let left = self.deadline.saturating_duration_since(Instant::now());
                    let wait = FINAL_EVENT_WAIT.min(left / 2);
                    tokio::time::timeout(wait, next).await.ok().and_then(Result::ok).flatten()
                }
                false => next.await?,
            };
            has_begun = true;
            let events = match chunk {
                Some(bytes) => stream.feed(&bytes),
                None => stream.finish(),
            };
            for mut event in events {
                if let Event::Ended(response) = &mut event {
                    response.model = response.model.take().map(|model| without_key(model, self.key));
                    // No prompt has no tokens: a gateway that does not count says 0, and a budget must not believe it.
                    if response.usage.tokens_in == Some(0) {
                        response.usage = Usage::default();
                    }
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
            Err(fault) => Err(self.failed(fault.clone())),
        }
    }

    async fn refused(self, mut response: Response) -> CallFailure {
        let status = response.status();
        let headers = response.headers().clone();
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let fault = if status.is_redirection() {
            let to = short(&without_key(header("location").unwrap_or("nowhere").to_owned(), self.key));
            let said = format!("it redirects to {to}, which is not followed; set `base_url`");
            Fault { status: Some(status.as_u16()), ..Fault::new(FaultKind::BadRequest, said) }
        } else {
            // As much of a body as is quoted. One that breaks off is quoted until there.
            let mut body = Vec::new();
            while body.len() < fault::MAX_BODY_BYTES {
                let Ok(Ok(Some(bytes))) = self.limited(response.chunk(), true).await else { break };
                body.extend(&bytes[..bytes.len().min(fault::MAX_BODY_BYTES - body.len())]);
            }
            fault::from_response(status.as_u16(), header, &body)
        };
        CallFailure { is_free: !status.is_server_error(), ..self.failed(fault) }
    }

    /// The failure of a call with a fault.
    pub(super) fn failed(self, mut fault: Fault) -> CallFailure {
        fault.said = without_key(fault.said, self.key);
        let mut message = without_key(fault.to_string(), self.key);
        if let Some(key) = self.service.key.as_ref().filter(|_| fault.kind == FaultKind::Auth) {
            message = format!("{message} (it was {})", key.source.describe());
        }
        let failure = Failure::Failed { message, retry: fault.retry() };
        CallFailure { failure, is_free: false, fault: Some(Box::new(fault)) }
    }

    fn unreached(self, error: &reqwest::Error) -> CallFailure {
        let cause = error.source().map_or_else(|| error.to_string(), error_chain);
        let host = host_and_port(&self.service.base_url);
        let mut message = format!("cannot reach {host}: {}", short(&without_key(cause.clone(), self.key)));
        if cause.to_ascii_lowercase().contains("certificate") {
            message.push_str("; `ca` names a file of authorities that are trusted beside the system's");
        }
        if let Some(start) = start_command(&self.service.base_url).filter(|_| error.is_connect()) {
            message.push_str(&format!("; start it with `{start}`"));
        }
        // A connection that one side does not trust, or that the other side does not encrypt, fails again the same way.
        let retry = if is_tls_error(error) { Retry::Never } else { Retry::Soon };
        let failure = Failure::Failed { message: without_key(message, self.key), retry };
        CallFailure { failure, is_free: error.is_connect(), fault: None }
    }

    /// Waits for something, at most for the idle limit and to the deadline. `has_begun` says whether a part of the answer is
    /// there.
    async fn limited<T>(self, future: impl Future<Output = T>, has_begun: bool) -> Result<T, CallFailure> {
        let Call { service, deadline, .. } = self;
        let idle = Some(service.idle).filter(|_| has_begun || !service.is_slow_to_start);
        let until = idle.and_then(|idle| Instant::now().checked_add(idle));
        let until = until.map_or(deadline, |until| until.min(deadline));
        match tokio::time::timeout_at(until, future).await {
            Ok(value) => Ok(value),
            Err(_) => {
                let (host, idle) = (host_and_port(&service.base_url), service.idle.as_secs());
                let failure = match Instant::now() >= deadline {
                    true => Failure::TimedOut,
                    false => Failure::failed(format!("{host} sent nothing for {idle} s (`idle`)")),
                };
                Err(CallFailure { failure, is_free: false, fault: None })
            }
        }
    }
}

/// Whether TLS is the cause of an error.
fn is_tls_error(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An I/O error gives the cause of its content, not the content.
        let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = inside.map_or_else(|| error.source(), |inside| Some(inside));
    }
    false
}

/// Refuses a compressed body: its size when unpacked is not known.
fn check_encoding(response: &Response) -> Result<(), Fault> {
    const PACKED: [&str; 7] = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];
    let values = response.headers().get_all("content-encoding");
    let named = values.iter().filter_map(|value| value.to_str().ok());
    let mut words = named.flat_map(|value| value.split(',')).map(str::trim);
    match words.find(|word| PACKED.iter().any(|packed| word.eq_ignore_ascii_case(packed))) {
        Some(encoding) => {
            let said = format!("it is encoded as {encoding:?}, which was not asked for");
            Err(Fault::new(FaultKind::Malformed, said))
        }
        None => Ok(()),
    }
}

fn short(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_port_of_a_local_server_has_the_command_that_starts_it() {
        for (address, command) in [
            ("http://localhost:11434", Some("ollama serve")),
            ("http://127.0.0.1:11434/v1", Some("ollama serve")),
            ("http://localhost:1234/v1", Some("lms server start")),
            ("http://localhost:8080/v1", None),
            ("https://api.example.com/v1", None),
            ("http://localhost/11434", None),
        ] {
            assert_eq!(start_command(&Url::parse(address).unwrap()), command, "{address}");
        }
    }
}
