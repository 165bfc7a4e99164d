//! One call: exactly one request, read to its terminal event, its idle limit or its deadline, whichever comes first.
//!
//! Some local servers cut a long prompt silently; [`Reader`] finds that by the tokens that they report.

use std::error::Error as _;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_kernel::budget::{fewest_tokens, has_more_tokens, most_tokens};
use quorate_kernel::canonical;
use quorate_kernel::ports::executor::{Failure, Retry, Usage};
use quorate_manifest::money::Money;
use quorate_protocol::Json;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};
use tokio::time::Instant;
use url::Url;

use super::fault::{self, Fault, FaultKind};
use super::pool::Outcome;
use super::service::{Secret, Service, without_key};
use super::wire::{self, Event, HttpRequest, Stream, Wire};
use crate::http::{error_chain, host_and_port};

/// The most that is kept of the names of a failed connection, in characters.
const MAX_REASON_CHARS: usize = 300;

/// The usual ports of local servers, and the commands that start them.
const STARTS: [(u16, &str); 2] = [(11434, "ollama serve"), (1234, "lms server start")];

/// The command that starts the server at an address.
fn start_command(url: &Url) -> Option<&'static str> {
    STARTS.iter().find(|(port, _)| url.port() == Some(*port)).map(|(_, start)| *start)
}

/// How long a complete answer waits for the final event of its wire.
const FINAL_EVENT_WAIT: Duration = Duration::from_secs(3);

/// Why a call has no answer, and how the pool counts it.
#[derive(Debug)]
pub(super) struct CallFailure {
    pub(super) failure: Failure,
    pub(super) outcome: Outcome,
    /// Whether the service did not accept the key.
    pub(super) is_auth: bool,
    /// Whether no model was asked, so that nothing is charged: nothing was sent, or the service turned the request down.
    pub(super) is_free: bool,
    /// Whether the failure is due to the question or the answer; see [`FaultKind::is_of_answer`].
    pub(super) is_of_answer: bool,
    /// The HTTP status, where it is one of an error.
    pub(super) http_status: Option<u16>,
    /// What the service said, where it said something.
    pub(super) fault: Option<Box<Fault>>,
}

impl CallFailure {
    fn of(failure: Failure, outcome: Outcome) -> Self {
        CallFailure {
            failure,
            outcome,
            is_auth: false,
            is_free: false,
            is_of_answer: false,
            http_status: None,
            fault: None,
        }
    }

    /// Adds to the message what a user can do.
    pub(super) fn add_hint(&mut self, hint: Option<String>) {
        if let (Failure::Failed { message, .. }, Some(hint)) = (&mut self.failure, hint) {
            message.push_str("; ");
            message.push_str(&hint);
        }
    }

    /// A request that could not be made.
    pub(super) fn unsent(failure: Failure) -> Self {
        CallFailure { is_free: true, ..CallFailure::of(failure, Outcome::Unknown) }
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
    pub(super) async fn send(
        self,
        (request, stream): (HttpRequest, Stream),
        on_event: impl FnMut(&Event),
    ) -> Result<wire::Response, CallFailure> {
        let response = self.connect(request).await?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        check_encoding(&response).map_err(|fault| self.failed(fault))?;
        self.read((response, stream), on_event).await
    }

    /// Gets a JSON document below the base URL. `fixed` are headers that all requests of the wire have.
    ///
    /// # Errors
    /// As [`Call::send`], and when the document is too large or no JSON.
    pub(super) async fn get(self, path: &str, fixed: &[(&'static str, String)]) -> Result<Json, CallFailure> {
        let get = self.client.get(self.url(path)?).headers(self.headers(fixed)?);
        let response = self.exchange(get).await?;
        self.document(response).await
    }

    /// Sends a request whose response is one JSON document.
    ///
    /// # Errors
    /// As [`Call::get`].
    pub(super) async fn post(self, request: HttpRequest) -> Result<Json, CallFailure> {
        let response = self.connect(request).await?;
        self.document(response).await
    }

    async fn connect(self, request: HttpRequest) -> Result<Response, CallFailure> {
        let (url, headers) = (self.url(&request.path)?, self.headers(&request.headers)?);
        self.exchange(self.client.post(url).headers(headers).body(request.body)).await
    }

    async fn document(self, mut response: Response) -> Result<Json, CallFailure> {
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        check_encoding(&response).map_err(|fault| self.failed(fault))?;
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

    fn url(self, path: &str) -> Result<Url, CallFailure> {
        Url::parse(&format!("{}{path}", self.service.base_url.as_str().trim_end_matches('/')))
            .map_err(|why| CallFailure::unsent(Failure::never(format!("the address cannot be built: {why}"))))
    }

    /// The headers of a request: the wire's, the settings' and the key's.
    fn headers(self, fixed: &[(&'static str, String)]) -> Result<HeaderMap, CallFailure> {
        let mut headers = HeaderMap::new();
        for (name, value) in fixed {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers.extend(self.service.headers.iter().cloned());
        if let Some((name, value)) = self.key.and_then(|key| self.service.auth.header(key)) {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| CallFailure::unsent(Failure::never("the key cannot stand in a header")))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    async fn exchange(self, request: RequestBuilder) -> Result<Response, CallFailure> {
        self.limited(request.send(), false).await?.map_err(|error| self.unreached(&error))
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
        if status.is_redirection() {
            let to = response.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            let to = short(&without_key(to.to_owned(), self.key));
            let said = format!("it redirects to {to}, which is not followed; set `base_url`");
            let fault = Fault::new(FaultKind::BadRequest, said);
            let fault = Fault { status: Some(status.as_u16()), ..fault };
            return CallFailure { is_free: true, ..self.failed(fault) };
        }
        let headers = response.headers().clone();
        // As much of a body as is quoted. One that breaks off is quoted until there.
        let mut body = Vec::new();
        while body.len() < fault::MAX_BODY_BYTES {
            let Ok(Ok(Some(bytes))) = self.limited(response.chunk(), true).await else { break };
            body.extend(&bytes[..bytes.len().min(fault::MAX_BODY_BYTES - body.len())]);
        }
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let failed = self.failed(fault::from_response(status.as_u16(), header, &body));
        CallFailure { is_free: status.is_client_error(), ..failed }
    }

    /// The failure of a call with a fault.
    pub(super) fn failed(self, mut fault: Fault) -> CallFailure {
        fault.said = without_key(fault.said, self.key);
        let outcome = match fault.kind {
            FaultKind::RateLimited => Outcome::Limited(fault.after),
            FaultKind::Overloaded | FaultKind::Server if fault.status.is_some() => {
                Outcome::Failed(fault.after)
            }
            FaultKind::Overloaded | FaultKind::Server | FaultKind::EndedEarly => {
                Outcome::Unavailable(fault.after)
            }
            _ => Outcome::Answered,
        };
        let is_auth = fault.kind == FaultKind::Auth;
        let mut message = without_key(fault.to_string(), self.key);
        if is_auth && let Some(key) = &self.service.key {
            message = format!("{message} (it was {})", key.source().describe());
        }
        let failure = Failure::Failed { message, retry: fault.retry() };
        CallFailure {
            failure,
            outcome,
            is_auth,
            is_free: false,
            is_of_answer: fault.kind.is_of_answer(),
            http_status: fault.status,
            fault: Some(Box::new(fault)),
        }
    }

    fn unreached(self, error: &reqwest::Error) -> CallFailure {
        let cause = error.source().map_or_else(|| error.to_string(), error_chain);
        let mut message = format!(
            "cannot reach {}: {}",
            host_and_port(&self.service.base_url),
            short(&without_key(cause.clone(), self.key))
        );
        if cause.to_ascii_lowercase().contains("certificate") {
            message.push_str("; `ca` names a file of authorities that are trusted beside the system's");
        }
        if let Some(start) = start_command(&self.service.base_url).filter(|_| error.is_connect()) {
            message.push_str(&format!("; start it with `{start}`"));
        }
        // A connection that one side does not trust, or that the other side does not encrypt, fails again the same way.
        let retry = if is_tls_error(error) { Retry::Never } else { Retry::Soon };
        let failure = Failure::Failed { message: without_key(message, self.key), retry };
        CallFailure { is_free: error.is_connect(), ..CallFailure::of(failure, Outcome::Unavailable(None)) }
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
            Err(_) if Instant::now() >= deadline => Err(CallFailure::of(Failure::TimedOut, Outcome::Unknown)),
            Err(_) => {
                let (host, idle) = (host_and_port(&service.base_url), service.idle.as_secs());
                let failure = Failure::failed(format!("{host} sent nothing for {idle} s (`idle`)"));
                Err(CallFailure::of(failure, Outcome::Unavailable(None)))
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

/// Prompts with no more words are not judged: they fit in every context.
const SHORT: u64 = 500;

/// No server has a smaller context, in tokens.
const LEAST_CONTEXT: u64 = 256;

/// What one server reads of a prompt.
#[derive(Debug)]
pub(super) struct Reader {
    wire: Wire,
    /// The size of its context, where the settings say it.
    context: Option<u32>,
    /// The cap on output tokens, which share the context with the prompt.
    max_tokens: u32,
    /// The longest prompt that it read, in tokens.
    longest: AtomicU64,
}

impl Reader {
    pub(super) fn new(wire: Wire, context: Option<u32>, max_tokens: u32) -> Reader {
        Reader { wire, context, max_tokens, longest: AtomicU64::new(0) }
    }

    /// Refuses a prompt that does not fit in any tokenizer.
    ///
    /// # Errors
    /// The reason, for a person.
    pub(super) fn check_fits(&self, prompt: &str) -> Result<(), String> {
        let Some(context) = self.context else { return Ok(()) };
        if has_more_tokens(prompt, context.into()) {
            let fewest = fewest_tokens(prompt);
            return Err(format!("the prompt has {fewest} tokens or more, and `context` is {context}"));
        }
        Ok(())
    }

    /// Refuses the answer to a prompt that was cut. `tokens_in` is what the server says that it read.
    ///
    /// # Errors
    /// The reason, for a person.
    pub(super) fn check_read(&self, prompt: &str, tokens_in: Option<u64>) -> Result<(), String> {
        let judged = matches!(self.wire, Wire::Ollama | Wire::Chat);
        // Such a small number is not the size of a context: the server counts only tokens outside of its cache.
        let least = (fewest_tokens(prompt) / 20).clamp(1, LEAST_CONTEXT);
        let Some(read) = tokens_in.filter(|read| judged && *read >= least) else { return Ok(()) };
        let longest = self.longest.fetch_max(read, Ordering::Relaxed).max(read);
        // A server that read a longer prompt does not cut this one.
        if !has_more_tokens(prompt, longest.max(SHORT)) || self.surely_fits(prompt) {
            return Ok(());
        }
        let fewest = fewest_tokens(prompt);
        let help = match self.wire {
            Wire::Ollama => "set a larger `context`, or choose a model with one",
            _ => {
                "raise its context. If it counts only what is not in its cache, set `context` to the size of its context"
            }
        };
        Err(format!(
            "the server read {read} tokens of a prompt that has {fewest} or more: it cut the prompt; {help}"
        ))
    }

    /// Whether the prompt and its answer fit in a context that the settings vouch for. Ollama's is what the program asks for, and
    /// not what the model has.
    fn surely_fits(&self, prompt: &str) -> bool {
        let needed = || most_tokens(prompt) + u64::from(self.max_tokens);
        self.wire == Wire::Chat && self.context.is_some_and(|context| needed() <= context.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: u32 = 1_000;

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

    #[test]
    fn a_number_below_that_of_words_is_of_a_cut_prompt() {
        let prompt = "word ".repeat(4_000);
        for wire in [Wire::Chat, Wire::Ollama] {
            let reader = Reader::new(wire, None, CAP);
            assert!(reader.check_read(&prompt, Some(2_048)).unwrap_err().contains("it cut the prompt"));
            // The same server gives another number for a prompt that it reads whole.
            assert_eq!(reader.check_read(&prompt[..5_000], Some(1_010)), Ok(()));
            assert!(reader.check_read(&prompt, Some(2_048)).is_err());
        }
        for (wire, read) in [(Wire::Chat, None), (Wire::Chat, Some(0)), (Wire::Messages, Some(12))] {
            assert_eq!(Reader::new(wire, None, CAP).check_read(&prompt, read), Ok(()));
        }
        assert_eq!(Reader::new(Wire::Chat, None, CAP).check_read("word ", Some(1)), Ok(()));
    }

    #[test]
    fn a_text_with_few_words_or_a_server_that_counts_without_its_cache_is_not_cut() {
        let reader = Reader::new(Wire::Chat, None, CAP);
        for text in ["=".repeat(60_000), "w".repeat(60_000), format!("{}\n", "- ".repeat(40)).repeat(500)] {
            assert_eq!(reader.check_read(&text, Some(900)), Ok(()));
        }
        let prompt = "word ".repeat(4_000);
        // The first call fills the cache, the second is read from it.
        assert_eq!(reader.check_read(&prompt, Some(4_100)), Ok(()));
        assert_eq!(reader.check_read(&prompt, Some(30)), Ok(()));
        // A cache that was full before, and a person who knows the context.
        let told = |context| Reader::new(Wire::Chat, Some(context), CAP).check_read(&prompt, Some(300));
        assert_eq!(told(16_384), Ok(()));
        assert!(told(8_192).is_err(), "it may not fit");
        assert!(Reader::new(Wire::Ollama, Some(16_384), CAP).check_read(&prompt, Some(300)).is_err());
        // Fewer tokens than any context has.
        for (read, is_cut) in [(12, false), (199, false), (200, true)] {
            let answer = Reader::new(Wire::Ollama, None, CAP).check_read(&prompt, Some(read));
            assert_eq!(answer.is_err(), is_cut, "{read}");
        }
    }

    #[test]
    fn what_cannot_fit_is_not_sent() {
        let reader = Reader::new(Wire::Chat, Some(2_048), CAP);
        assert!(reader.check_fits(&"word ".repeat(2_049)).unwrap_err().contains("`context` is 2048"));
        assert_eq!(reader.check_fits(&"word ".repeat(2_000)), Ok(()));
        assert_eq!(Reader::new(Wire::Chat, None, CAP).check_fits(&"word ".repeat(99_999)), Ok(()));
    }
}
