//! The wire formats of model services, without I/O.
//!
//! A caller encodes a [`Request`], sends it as a POST to the base URL followed by [`HttpRequest::path`] with the
//! headers of [`HttpRequest::headers`] and [`Auth::header`], and reads the response:
//!
//! ```
//! use quorate_adapters::executor::llm::{fault, wire};
//! use wire::{Auth, Cache, Event, Format, Request, Server, Stream, Wire};
//!
//! let wire = Wire::Chat;
//! let request = Request {
//!     model: "gpt-5.6", system: None, prompt: "Say hello.", cuts: &[], format: Format::Text, max_tokens: 100,
//!     effort: None, cache: Cache::Auto, context_tokens: None, server: Server::Vendor,
//! };
//! let http = wire.encode(&request);
//! assert_eq!(http.path, "/chat/completions");
//! let key = Auth::Bearer.header("secret");
//! assert_eq!(key, Some(("authorization", "Bearer secret".to_owned())));
//!
//! // A status other than 2xx ends the call with `fault::from_response(status, header, body)`. Else:
//! let mut stream = Stream::new(wire);
//! let mut said = String::new();
//! let chunk = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
//! for event in stream.feed(chunk) {
//!     match event {
//!         Event::Text(delta) => said.push_str(&delta),
//!         Event::Progress => {}
//!         // The call is over, even if the socket is open.
//!         Event::Ended(response) => assert_eq!(response.text.as_deref(), Ok("Hi")),
//!     }
//! }
//! // Where the socket ends before: the fault, or what the last bytes made complete.
//! assert!(stream.finish().is_empty());
//! assert_eq!(said, "Hi");
//! ```
//!
//! However the bytes are split, the events are the same. An error within the response is a [`fault::Fault`] in
//! [`Response::text`], beside the usage that was reported until then. Nothing here panics on any input, and nothing grows
//! past a cap.

mod answer;
mod chat;
mod gemini;
mod lines;
mod messages;
mod ollama;
mod request;
mod responses;

use std::collections::BTreeSet;

use quorate_kernel::canonical::{self, MAX_EXACT_INTEGER};
use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde::Deserialize;

pub use lines::MAX_EVENT_BYTES;
pub(in crate::executor::llm) use request::path_segment;
pub use request::{Cache, Format, HttpRequest, Request, Server};

use answer::{Answer, AnswerStep, count, first_answers, stopped_for};
use lines::{Events, Item, Lines};

use super::fault::{self, Fault, FaultKind, any_of, quoted};
use super::schema::Dialect;

/// How many bytes a response has at most: a long answer with its reasoning, where each token is an event.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Anthropic's Messages API.
    Messages,
    /// OpenAI's Chat Completions API, and the servers compatible with it.
    #[default]
    Chat,
    /// OpenAI's Responses API.
    Responses,
    /// Google's Gemini API.
    Gemini,
    /// Ollama's own chat API.
    Ollama,
}

quorate_manifest::words!(Wire {
    Messages = "messages",
    Chat = "chat",
    Responses = "responses",
    Gemini = "gemini",
    Ollama = "ollama",
});

impl Wire {
    /// Where the vendor serves it; a path is appended.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Wire::Messages => "https://api.anthropic.com",
            Wire::Chat | Wire::Responses => "https://api.openai.com/v1",
            Wire::Gemini => "https://generativelanguage.googleapis.com/v1",
            Wire::Ollama => "http://localhost:11434",
        }
    }

    /// How the vendor's own client sends the key.
    pub fn default_auth(self) -> Auth {
        match self {
            Wire::Messages | Wire::Chat | Wire::Responses => Auth::Bearer,
            Wire::Gemini => Auth::XGoogApiKey,
            Wire::Ollama => Auth::None,
        }
    }

    /// The dialect of JSON Schema that a server takes.
    pub fn dialect(self, is_local: bool) -> Dialect {
        match self {
            Wire::Messages => Dialect::Anthropic,
            Wire::Chat | Wire::Responses if !is_local => Dialect::OpenAi,
            Wire::Chat | Wire::Responses | Wire::Ollama => Dialect::Local,
            Wire::Gemini => Dialect::Gemini,
        }
    }

    /// Whether a request can say what is cached, and for how long.
    pub fn has_cache_control(self, server: Server) -> bool {
        match self {
            Wire::Messages => true,
            Wire::Chat | Wire::Responses => server == Server::Vendor,
            Wire::Gemini | Wire::Ollama => false,
        }
    }

    /// The name of the cap on output tokens in a request, where servers have several names for it.
    pub(super) fn tokens_field(self, server: Server) -> Option<&'static str> {
        match (self, server) {
            (Wire::Chat, Server::Vendor) => Some("max_completion_tokens"),
            (Wire::Chat, Server::Compatible) => Some("max_tokens"),
            (Wire::Responses, _) => Some("max_output_tokens"),
            _ => None,
        }
    }

    /// Whether a body may end after this reason without a final event: many servers of the wire `chat` do not send theirs
    /// after `stop`, and Gemini's is the end of the body.
    fn may_end_after(self, reason: &str) -> bool {
        match self {
            Wire::Chat => reason.eq_ignore_ascii_case("stop"),
            Wire::Gemini => true,
            Wire::Messages | Wire::Responses | Wire::Ollama => false,
        }
    }

    /// The shortest prefix, in bytes, that a service caches, by itself or on request; `None` if other calls cannot read its
    /// cache. A token has about four bytes.
    pub(super) fn least_cached(self, server: Server) -> Option<usize> {
        match (self, server) {
            // From 512 to 4,096 tokens, by model; 1,024 tokens.
            (Wire::Messages, _) | (Wire::Chat | Wire::Responses, Server::Vendor) => Some(4 << 10),
            // From 2,048 to 4,096 tokens, by model.
            (Wire::Gemini, _) => Some(16 << 10),
            (Wire::Chat | Wire::Responses, Server::Compatible) | (Wire::Ollama, _) => None,
        }
    }

    /// The request for the list of models, as a GET.
    pub(super) fn models_request(self) -> HttpRequest {
        match self {
            Wire::Messages => messages::with_version(HttpRequest::get("/v1/models?limit=1000")),
            Wire::Chat | Wire::Responses => HttpRequest::get("/models"),
            Wire::Gemini => HttpRequest::get("/models?pageSize=1000"),
            Wire::Ollama => HttpRequest::get("/api/tags"),
        }
    }

    /// The names in a list of models, sorted; `None` where it is none.
    pub(super) fn read_models(self, list: &Json) -> Option<Vec<String>> {
        let (items, name) = match self {
            Wire::Messages | Wire::Chat | Wire::Responses => ("data", "id"),
            Wire::Gemini | Wire::Ollama => ("models", "name"),
        };
        let names = list.get(items)?.as_array()?.iter().filter_map(|item| item.get(name)?.as_str());
        let prefix = if self == Wire::Gemini { "models/" } else { "" };
        let names: BTreeSet<&str> = names.map(|name| name.strip_prefix(prefix).unwrap_or(name)).collect();
        Some(names.into_iter().map(str::to_owned).collect())
    }

    /// Reads an object of a response. `name` is what the event is called outside of it, or empty.
    ///
    /// # Errors
    /// When the text of the answer is malformed, or the event ends the call without an answer.
    fn read(self, name: &str, event: &Json, answer: &mut Answer) -> Result<AnswerStep, Fault> {
        match self {
            Wire::Messages => messages::read(name, event, answer),
            Wire::Chat => chat::read(event, answer),
            Wire::Responses => responses::read(name, event, answer),
            Wire::Gemini => gemini::read(event, answer),
            Wire::Ollama => ollama::read(event, answer),
        }
    }

    /// Whether [`Format::JsonObject`] asks for more than [`Format::Text`] does.
    pub fn has_json_mode(self) -> bool {
        self != Wire::Messages
    }

    /// The request for a streamed answer.
    pub fn encode(self, request: &Request) -> HttpRequest {
        match self {
            Wire::Messages => messages::encode(request),
            Wire::Chat => chat::encode(request),
            Wire::Responses => responses::encode(request),
            Wire::Gemini => gemini::encode(request),
            Wire::Ollama => ollama::encode(request),
        }
    }
}

/// The header that has the key. It never stands in the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// `x-api-key: KEY`.
    XApiKey,
    /// `authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// `api-key: KEY`.
    ApiKey,
    /// `x-goog-api-key: KEY`.
    XGoogApiKey,
    /// No header: the service needs no key.
    None,
}

quorate_manifest::words!(Auth {
    XApiKey = "x-api-key",
    Bearer = "bearer",
    ApiKey = "api-key",
    XGoogApiKey = "x-goog-api-key",
    None = "none",
});

impl Auth {
    /// The header's name and value.
    pub fn header(self, key: &str) -> Option<(&'static str, String)> {
        match self {
            Auth::Bearer => Some(("authorization", format!("Bearer {key}"))),
            Auth::XApiKey | Auth::ApiKey | Auth::XGoogApiKey => Some((self.as_str(), key.to_owned())),
            Auth::None => None,
        }
    }
}

/// An event of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What the model added to its answer.
    Text(String),
    /// The model or its server is working.
    Progress,
    /// The last event.
    Ended(Box<Response>),
}

/// A response that ended, well or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The whole answer, or why there is none.
    pub text: Result<String, Fault>,
    /// The model that answered, as the service names it.
    pub model: Option<String>,
    /// Unreported counts are `None`.
    pub usage: Usage,
}

/// Reads the body of one successful response.
///
/// The envelope is read liberally: events, a JSON value on each line, one document, or a list of chunks. An answer needs its
/// end: the final event of its wire, the end of a document, or the end of the body after a reason that is the wire's own.
#[derive(Debug, Default)]
pub struct Stream {
    wire: Wire,
    lines: Lines,
    events: Events,
    answer: Answer,
    bytes_read: usize,
    /// Lines outside of events: a page, a document, a list, or what a failing server says in plain text.
    stray: String,
    has_events: bool,
    /// How many JSON values stood alone.
    values: usize,
    /// The start of a JSON value without any field of the wire.
    foreign: String,
    /// The last plain sentence in place of an event.
    remark: String,
    body: Body,
    /// Whether the body ended within a line.
    is_cut: bool,
    has_ended: bool,
}

/// The form of the whole body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Body {
    #[default]
    Events,
    /// A list of chunks, which is closed.
    List,
    /// A complete response that is not part of a stream.
    Document,
}

impl Stream {
    /// A stream of which no byte was read.
    pub fn new(wire: Wire) -> Self {
        Stream { wire, ..Stream::default() }
    }

    /// Reads the next bytes. After [`Event::Ended`] no further bytes cause an event.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while !self.has_ended {
            match self.lines.next_line(&mut bytes) {
                Ok(Some(line)) => self.take_line(&line, &mut events),
                Ok(None) => break,
                Err(fault) => events.push(self.end(Err(fault))),
            }
        }
        events
    }

    /// Takes the end of the body. The last event is [`Event::Ended`], unless there was one before.
    pub fn finish(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        match self.lines.last_line() {
            _ if self.has_ended => return events,
            Ok(Some(line)) => {
                self.is_cut = true;
                self.take_line(&line, &mut events);
            }
            Ok(None) => {}
            // It ended within a character.
            Err(_) if self.has_events => events.push(self.end(Err(self.early_end()))),
            Err(fault) => events.push(self.end(Err(fault))),
        }
        if !self.has_ended {
            self.take_line("", &mut events);
        }
        if !self.has_ended && !self.has_events && self.values == 0 {
            let step = self.read_whole();
            self.apply(step, &mut events);
        }
        if !self.has_ended {
            let step = self.end_of_body();
            self.apply(step, &mut events);
        }
        events
    }

    /// Whether the answer is complete although the final event of the wire has not arrived: a reason for the end arrived, and
    /// no text after it.
    pub fn is_complete(&self) -> bool {
        let is_last = self.wire == Wire::Chat && !self.answer.has_resumed && self.answer.finish.is_some();
        is_last && self.end_of_body().is_ok()
    }

    fn take_line(&mut self, line: &str, events: &mut Vec<Event>) {
        self.bytes_read += line.len() + 1;
        let step = match self.bytes_read > MAX_RESPONSE_BYTES {
            true => {
                let said = format!("it is longer than {MAX_RESPONSE_BYTES} bytes");
                Err(Fault::new(FaultKind::TooLarge, said))
            }
            false => self.read_line(line),
        };
        self.apply(step, events);
    }

    fn apply(&mut self, step: Result<Option<AnswerStep>, Fault>, events: &mut Vec<Event>) {
        // Records cannot hold larger numbers.
        if self.answer.usage.counts().any(|count| count > MAX_EXACT_INTEGER) {
            self.answer.usage = Usage::default();
        }
        if let Some(delta) = self.answer.take_delta() {
            events.push(Event::Text(delta));
        } else if matches!(step, Ok(Some(AnswerStep::More | AnswerStep::Document))) {
            events.push(Event::Progress);
        }
        match step {
            Ok(None | Some(AnswerStep::More | AnswerStep::Document)) => {}
            Ok(Some(AnswerStep::Done)) => {
                let text = self.answer.take_text();
                events.push(self.end(text));
            }
            Err(fault) => events.push(self.end(Err(fault))),
        }
    }

    /// Reads a line; `None` if it is neither an event nor a sign of life.
    fn read_line(&mut self, line: &str) -> Result<Option<AnswerStep>, Fault> {
        match self.events.take_line(line)? {
            None => Ok(None),
            Some(Item::Comment) => Ok(Some(AnswerStep::More)),
            Some(Item::Stray) => self.read_stray(line.trim()),
            Some(Item::Event { name, data }) => {
                self.has_events = true;
                self.read_data(&name, &data).map(Some)
            }
        }
    }

    /// Reads a line outside of events: a JSON value, or a part of the value that the whole body is.
    fn read_stray(&mut self, line: &str) -> Result<Option<AnswerStep>, Fault> {
        let is_value = line == DONE || (line.starts_with('{') && line.ends_with('}'));
        if is_value && (self.has_events || self.stray.is_empty()) {
            match parse(line) {
                Ok(value) => return self.read_value(&value, line).map(Some),
                Err(fault) if fault.kind == FaultKind::TooLarge => return Err(fault),
                Err(_) => {}
            }
        }
        // llama.cpp writes a late failure so.
        if let Some(Ok(error @ Json::Object(_))) =
            line.strip_prefix("error:").map(|error| parse(error.trim()))
        {
            return Err(fault::from_event(&error));
        }
        if self.values > 0 && !line.is_empty() {
            return Err(self.unreadable(Fault::new(FaultKind::Malformed, line)));
        }
        if self.has_events {
            self.remark = quoted(line);
        }
        if !line.is_empty() {
            if self.stray.len() + line.len() > MAX_EVENT_BYTES {
                let said = format!("it is longer than {MAX_EVENT_BYTES} bytes");
                return Err(Fault::new(FaultKind::TooLarge, said));
            }
            self.stray.push_str(line);
            self.stray.push('\n');
        }
        Ok(None)
    }

    /// Reads a body that is one JSON value in several lines. Keeps other bodies, such as pages.
    fn read_whole(&mut self) -> Result<Option<AnswerStep>, Fault> {
        let stray = std::mem::take(&mut self.stray);
        match parse(&stray) {
            Ok(value) => {
                let step = self.read_value(&value, &stray);
                if value.is_array() {
                    self.body = Body::List;
                }
                step.map(Some)
            }
            Err(fault) if fault.kind == FaultKind::TooLarge => Err(fault),
            Err(_) => {
                self.stray = stray;
                Ok(None)
            }
        }
    }

    /// Reads a JSON value that stands alone.
    fn read_value(&mut self, value: &Json, text: &str) -> Result<AnswerStep, Fault> {
        const KEYS: &str = "choices|candidates|message|type|output|model|done|promptFeedback|usageMetadata";
        self.values += 1;
        let is_known = match value {
            Json::Object(fields) => any_of(KEYS, |key| fields.contains_key(key)),
            Json::Array(items) => !items.is_empty(),
            Json::String(mark) => mark == DONE,
            _ => false,
        };
        if self.values == 1 && !is_known {
            self.foreign = text.chars().take(MAX_FOREIGN_CHARS).collect();
        }
        self.read_json("", value)
    }

    /// Reads the data of an event.
    fn read_data(&mut self, name: &str, data: &str) -> Result<AnswerStep, Fault> {
        // Some gateways wrap an event of another one.
        let data = data.trim().trim_start_matches("data: ");
        let is_error = name == "error";
        if !is_error && is_sign_of_life(data) {
            if data.contains(' ') && !data.starts_with(':') {
                self.remark = quoted(data);
            }
            return Ok(AnswerStep::More);
        }
        match parse(data) {
            Ok(event) if is_error => Err(fault::from_event(&event)),
            Ok(event) => self.read_json(name, &event),
            // Proxies say in plain text what went wrong.
            Err(_) if is_error => Err(Fault::new(FaultKind::Server, data)),
            // Some servers put no blank line between events.
            Err(fault) if fault.kind == FaultKind::Malformed && data.contains('\n') => {
                let lines = data.lines().filter(|line| !line.trim().is_empty());
                self.read_each(lines, |stream, line| stream.read_data(name, line))
            }
            Err(fault) => Err(self.unreadable(fault)),
        }
    }

    /// Reads the parts of something, up to the last event.
    fn read_each<Part>(
        &mut self,
        parts: impl IntoIterator<Item = Part>,
        mut read: impl FnMut(&mut Self, Part) -> Result<AnswerStep, Fault>,
    ) -> Result<AnswerStep, Fault> {
        let mut step = AnswerStep::More;
        for part in parts {
            if step != AnswerStep::Done {
                step = read(self, part)?;
            }
        }
        Ok(step)
    }

    /// The fault of a text that cannot be read: the last one of a body may have been cut.
    fn unreadable(&self, fault: Fault) -> Fault {
        let is_cut = self.is_cut && fault.kind == FaultKind::Malformed;
        if is_cut { Fault { kind: FaultKind::EndedEarly, ..fault } } else { fault }
    }

    fn read_json(&mut self, name: &str, value: &Json) -> Result<AnswerStep, Fault> {
        match value {
            Json::Object(_) => {
                if let Some(fault) = error_in(value) {
                    return Err(fault);
                }
                let step = self.wire.read(name, value, &mut self.answer)?;
                if step == AnswerStep::Document {
                    self.body = Body::Document;
                }
                Ok(step)
            }
            Json::Array(all) => self.read_each(all, |stream, one| stream.read_json(name, one)),
            Json::String(mark) if mark == DONE => self.read_mark(),
            Json::Null => Ok(AnswerStep::More),
            other => Err(Fault::new(FaultKind::Malformed, format!("`{other}` is not an event"))),
        }
    }

    /// Reads the mark of the end of one wire, which compatible servers of the others send as well.
    fn read_mark(&self) -> Result<AnswerStep, Fault> {
        match self.wire {
            Wire::Chat | Wire::Messages | Wire::Gemini if self.answer.finish.is_some() => self.answer.end(),
            // A server that failed late may send the mark after what it says.
            Wire::Chat if !self.stray.is_empty() => Err(self.early_end()),
            Wire::Chat => self.answer.end(),
            _ => Ok(AnswerStep::More),
        }
    }

    /// The result if the body ends here, before a final event.
    fn end_of_body(&self) -> Result<Option<AnswerStep>, Fault> {
        if let Some(fault) = self.answer.finish_fault() {
            return Err(fault);
        }
        let reason = self.answer.finish.as_deref();
        let is_complete = match self.body {
            Body::Document if !self.has_events && self.values <= 1 => true,
            Body::List => reason.is_some(),
            Body::Document | Body::Events => reason.is_some_and(|reason| self.wire.may_end_after(reason)),
        };
        if is_complete { Ok(Some(AnswerStep::Done)) } else { Err(self.early_end()) }
    }

    /// The fault of a body that ended before its terminal event. One without any event may be a page.
    fn early_end(&self) -> Fault {
        match (&*self.stray, &*self.foreign, self.answer.finish.as_deref()) {
            (page, ..) if !self.has_events && !page.is_empty() => Fault::new(FaultKind::Malformed, page),
            (_, foreign, _) if !self.has_events && self.values == 1 && !foreign.is_empty() => {
                Fault::new(FaultKind::Malformed, foreign)
            }
            (.., Some(reason)) => {
                let said = format!("it stopped for `{reason}`, but the final event is missing");
                Fault::new(FaultKind::EndedEarly, said)
            }
            _ => Fault::new(FaultKind::EndedEarly, &self.remark),
        }
    }

    fn end(&mut self, text: Result<String, Fault>) -> Event {
        self.has_ended = true;
        let answer = std::mem::take(&mut self.answer);
        Event::Ended(Box::new(Response { text, model: answer.model, usage: answer.usage }))
    }
}

/// The end of a stream of the wire `chat`.
const DONE: &str = "[DONE]";

/// How much of a value without any field of the wire is kept, in characters.
const MAX_FOREIGN_CHARS: usize = 500;

/// Whether the data of an event is a keep-alive: empty, a comment, or plain words such as `ping`.
fn is_sign_of_life(data: &str) -> bool {
    let words = data.trim_start_matches(['[', '(', '<', '-', ' ']);
    let is_word = data.starts_with(':') || words.starts_with(char::is_alphabetic);
    data.is_empty() || (data != DONE && is_word && !data.contains(['{', '}', '"']))
}

/// The error that an event reports in place of a part of the answer, in the words of any API or gateway.
fn error_in(event: &Json) -> Option<Fault> {
    const PARTS: &str = "choices|candidates|delta|content|content_block|output|response|item|part|done";
    let text = |key: &str| event.get(key).and_then(Json::as_str);
    let says = |key: &str| {
        event.get(key).is_some_and(|value| match value {
            Json::Null | Json::Bool(false) => false,
            Json::String(text) => !text.is_empty(),
            Json::Number(number) => !matches!(number.as_u64(), Some(0 | 200)),
            _ => true,
        })
    };
    let is_named = any_of("type|object|status", |key| text(key).is_some_and(|word| word.contains("error")));
    let is_bare = !any_of(PARTS, |key| event.get(key).is_some());
    // A status in words may be that of a job, such as `queued`.
    let has_code = any_of("code|status_code|statusCode|error_code", says)
        || event.get("status").is_some_and(Json::is_number);
    let has_message = says("detail") || (has_code && (text("message").is_some() || text("msg").is_some()));
    let is_error = says("error") || is_named || (is_bare && (says("errors") || has_message));
    is_error.then(|| fault::from_event(event))
}

/// How many parts the value of a long text has at most: each takes up to 400 bytes of memory.
const MAX_PARTS: usize = 50_000;

/// Reads the JSON of one event, or the mark of the end.
///
/// # Errors
/// When it is not JSON, names a key twice, or has too many parts.
fn parse(text: &str) -> Result<Json, Fault> {
    if text == DONE {
        return Ok(DONE.into());
    }
    if text.len() > MAX_PARTS && parts(text) > MAX_PARTS {
        return Err(Fault::new(FaultKind::TooLarge, format!("an event has more than {MAX_PARTS} parts")));
    }
    canonical::parse_received(text).map_err(|error| Fault::new(FaultKind::Malformed, error.to_string()))
}

/// How many parts a JSON text has, without reading it.
fn parts(text: &str) -> usize {
    let (mut in_text, mut is_escaped) = (false, false);
    let mut starts_part = |byte: &u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            _ => return !in_text && matches!(byte, b'[' | b'{' | b','),
        }
        false
    };
    text.as_bytes().iter().filter(|byte| starts_part(byte)).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_read_as_each_service_writes_them() {
        let openai = json!({"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": "b"}, {"x": 1}]});
        for wire in [Wire::Messages, Wire::Chat, Wire::Responses] {
            assert_eq!(wire.read_models(&openai).unwrap(), ["a", "b"]);
        }
        let gemini = json!({"models": [{"name": "models/gemini-3.5-flash"}]});
        assert_eq!(Wire::Gemini.read_models(&gemini).unwrap(), ["gemini-3.5-flash"]);
        assert_eq!(
            Wire::Ollama.read_models(&json!({"models": [{"name": "qwen3:8b"}]})).unwrap(),
            ["qwen3:8b"]
        );
        assert_eq!(Wire::Chat.read_models(&gemini), None);
        assert_eq!(Wire::Chat.read_models(&json!({"data": "x"})), None);
    }
}
