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

mod chat;
mod gemini;
mod messages;
mod ollama;
mod responses;

use quorate_kernel::canonical::MAX_EXACT_INTEGER;
use quorate_kernel::ports::executor::Usage;
use quorate_protocol::{Json, answers};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::fault::{self, Fault, FaultKind};
use super::schema::Dialect;
use crate::executor::llm::fault::quoted;

/// How many bytes a response has at most: a long answer with its reasoning, where each token is an event.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// How many bytes a response has at most that is sent whole.
const MAX_WHOLE_BYTES: usize = 4 << 20;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic's Messages API.
    Messages,
    /// OpenAI's Chat Completions API, and the servers compatible with it.
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

    /// The dialect of JSON Schema that it takes.
    pub fn dialect(self) -> Dialect {
        match self {
            Wire::Messages => Dialect::Anthropic,
            Wire::Chat | Wire::Responses | Wire::Ollama => Dialect::OpenAi,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `x-api-key: KEY`.
    XApiKey,
    /// `authorization: Bearer KEY`.
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
#[derive(Debug)]
pub struct Stream {
    wire: Wire,
    lines: Lines,
    events: Events,
    decoder: Box<dyn Decode>,
    answer: Answer,
    bytes_read: usize,
    /// The start of a body that has no events.
    stray: String,
    has_events: bool,
    has_ended: bool,
}

/// Reads the events of one wire.
trait Decode: std::fmt::Debug + Send {
    /// # Errors
    /// When the event is malformed, or ends the call without an answer.
    fn read(&mut self, data: &str, answer: &mut Answer) -> Result<AnswerStep, Fault>;
}

impl Stream {
    /// A stream of which no byte was read.
    pub fn new(wire: Wire) -> Self {
        Stream {
            wire,
            lines: Lines::default(),
            events: Events::default(),
            decoder: match wire {
                Wire::Messages => Box::new(messages::Decoder::default()),
                Wire::Chat => Box::new(chat::Decoder::default()),
                Wire::Responses => Box::new(responses::Decoder::default()),
                Wire::Gemini => Box::new(gemini::Decoder),
                Wire::Ollama => Box::new(ollama::Decoder),
            },
            answer: Answer::default(),
            bytes_read: 0,
            stray: String::new(),
            has_events: false,
            has_ended: false,
        }
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
            Ok(Some(line)) => self.take_line(&line, &mut events),
            Ok(None) => {}
            Err(fault) => events.push(self.end(Err(fault))),
        }
        if !self.has_ended {
            self.take_line("", &mut events);
        }
        if !self.has_ended && !self.has_events {
            self.take_whole(&mut events);
        }
        if !self.has_ended {
            let fault = self.early_end();
            events.push(self.end(Err(fault)));
        }
        events
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

    /// Reads a body that is a whole response in place of a stream.
    fn take_whole(&mut self, events: &mut Vec<Event>) {
        let body = quorate_kernel::canonical::parse(&self.stray).ok();
        // Beside an error nothing else in a body counts.
        if let Some(body) =
            body.as_ref().filter(|body| body.get("error").is_some_and(|error| !error.is_null()))
        {
            return self.apply(Err(fault::from_event(body)), events);
        }
        for data in body.and_then(|body| whole_events(self.wire, &body)).unwrap_or_default() {
            if !self.has_ended {
                let step = self.read_event("", &data).map(Some);
                self.apply(step, events);
            }
        }
    }

    fn apply(&mut self, mut step: Result<Option<AnswerStep>, Fault>, events: &mut Vec<Event>) {
        if self.answer.usage.counts().any(|count| count > MAX_EXACT_INTEGER) {
            self.answer.usage = Usage::default();
            step = Err(Fault::new(FaultKind::Malformed, "a number of tokens is past 2^53"));
        }
        if let Some(delta) = self.answer.take_delta() {
            events.push(Event::Text(delta));
        } else if matches!(step, Ok(Some(AnswerStep::More))) {
            events.push(Event::Progress);
        }
        match step {
            Ok(None | Some(AnswerStep::More)) => {}
            Ok(Some(AnswerStep::Done)) => {
                let text = self.answer.take_text();
                events.push(self.end(text));
            }
            Err(fault) => events.push(self.end(Err(fault))),
        }
    }

    /// Reads a line; `None` if it is neither an event nor a sign of life.
    fn read_line(&mut self, line: &str) -> Result<Option<AnswerStep>, Fault> {
        if self.wire == Wire::Ollama {
            return match line.trim() {
                "" => Ok(None),
                line => self.decoder.read(line, &mut self.answer).map(Some),
            };
        }
        match self.events.take_line(line)? {
            None => Ok(None),
            Some(Item::Comment) => Ok(Some(AnswerStep::More)),
            Some(Item::Stray) => {
                if self.stray.len() + line.len() < MAX_WHOLE_BYTES {
                    self.stray.push_str(line);
                    self.stray.push('\n');
                }
                Ok(None)
            }
            Some(Item::Event { name, data }) => {
                self.has_events = true;
                self.read_event(&name, &data).map(Some)
            }
        }
    }

    fn read_event(&mut self, name: &str, data: &str) -> Result<AnswerStep, Fault> {
        // Proxies say in plain text what went wrong.
        if name == "error" && !data.trim_start().starts_with('{') {
            return Err(Fault::new(FaultKind::Server, data));
        }
        self.decoder.read(data, &mut self.answer)
    }

    /// The fault of a body that ended before its terminal event. One without any event may be an error, or a page.
    fn early_end(&self) -> Fault {
        match quorate_kernel::canonical::parse(&self.stray) {
            _ if self.has_events || self.stray.is_empty() => Fault::new(FaultKind::EndedEarly, ""),
            Ok(body) if body.get("error").is_some() || body.is_array() => fault::from_event(&body),
            _ => Fault::new(FaultKind::Malformed, &self.stray),
        }
    }

    fn end(&mut self, text: Result<String, Fault>) -> Event {
        self.has_ended = true;
        let answer = std::mem::take(&mut self.answer);
        Event::Ended(Box::new(Response { text, model: answer.model, usage: answer.usage }))
    }
}

/// The part of the answer that has arrived.
#[derive(Debug, Default)]
struct Answer {
    text: String,
    /// How much of the text was handed out, in bytes.
    handed_out: usize,
    refusal: String,
    model: Option<String>,
    usage: Usage,
}

/// What an event of a response leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerStep {
    More,
    /// It was the last event, and the answer is complete.
    Done,
}

impl Answer {
    /// Adds to the text.
    ///
    /// # Errors
    /// When the text is longer than an answer may be.
    fn add_text(&mut self, text: &str) -> Result<AnswerStep, Fault> {
        if self.text.len() + text.len() > answers::MAX_BYTES {
            let said = format!("the answer is longer than {} bytes", answers::MAX_BYTES);
            return Err(Fault::new(FaultKind::TooLarge, said));
        }
        self.text.push_str(text);
        Ok(AnswerStep::More)
    }

    /// What was added to the text since the last time.
    fn take_delta(&mut self) -> Option<String> {
        let delta = &self.text[self.handed_out..];
        self.handed_out = self.text.len();
        (!delta.is_empty()).then(|| delta.to_owned())
    }

    /// Adds to the words in which the model refuses. Only their beginning is kept.
    fn add_refusal(&mut self, text: &str) {
        if self.refusal.len() < 4_096 {
            self.refusal.push_str(text);
        }
    }

    /// Takes the model's name, where the event gives one.
    fn name_model(&mut self, name: Option<String>) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.model = Some(quoted(&name));
        }
    }

    /// The text of a complete answer.
    ///
    /// # Errors
    /// When the model refused, or said nothing.
    fn take_text(&mut self) -> Result<String, Fault> {
        if !self.refusal.is_empty() {
            return Err(Fault::new(FaultKind::Refused { category: None }, &self.refusal));
        }
        if self.text.trim().is_empty() {
            return Err(Fault::new(FaultKind::Empty, ""));
        }
        Ok(std::mem::take(&mut self.text))
    }
}

/// Reads the JSON of one event. Keys that the type does not name are passed over.
///
/// # Errors
/// When it is not JSON, names one of these keys twice, or a value has another type than documented.
fn read_event<T: DeserializeOwned>(data: &str) -> Result<T, Fault> {
    serde_json::from_str(data).map_err(|error| Fault::new(FaultKind::Malformed, error.to_string()))
}

/// The reason why an answer ended, after a later event. An abnormal reason is kept.
fn later_reason(old: Option<String>, new: Option<String>, is_end: impl Fn(&str) -> bool) -> Option<String> {
    match old {
        Some(old) if !is_end(&old) => Some(old),
        old => new.or(old),
    }
}

/// The fault of an answer that ended for an abnormal reason.
fn stopped_for(reason: Option<&str>) -> Fault {
    let said = match reason {
        Some(reason) => format!("the model stopped for `{reason}`"),
        None => "the stream does not say why the model stopped".to_owned(),
    };
    Fault::new(FaultKind::Malformed, said)
}

/// One question to a model. Every wire sends the same text.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model, as the service names it.
    pub model: &'a str,
    /// The host's own instruction.
    pub system: Option<&'a str>,
    pub prompt: &'a str,
    /// Where prefixes of the prompt end that other prompts share: byte offsets, ascending. One that is not between two
    /// characters of the prompt is passed over.
    pub cuts: &'a [usize],
    pub format: Format<'a>,
    /// The cap on output tokens, those of reasoning included.
    pub max_tokens: u32,
    /// How much the model thinks, in the vendor's words, such as `low`. For `gemini` also a number of tokens.
    pub effort: Option<&'a str>,
    pub cache: Cache,
    /// The size of the context that the server makes room for. Only [`Wire::Ollama`] sends it.
    pub context_tokens: Option<u32>,
    pub server: Server,
}

/// The form that the service enforces on the answer.
#[derive(Debug, Clone, Copy)]
pub enum Format<'a> {
    /// Nothing: it is plain text, or the prompt alone says its form.
    Text,
    /// Some JSON object, where the wire can ask for one.
    JsonObject,
    /// A JSON Schema in the wire's dialect, as [`crate::executor::llm::schema::form`] makes it.
    Schema { name: &'a str, schema: &'a Json },
}

/// How the service's prompt cache is used. What is not [`Cache::Auto`] counts where [`Wire::has_cache_control`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Asks the service to write nothing to its cache, if the wire can express that.
    Off,
    /// The vendor's default; if it caches only marked content, the cuts are marked.
    Auto,
    /// The cuts are marked, to be kept for the shorter time that the vendor has (5 or 30 minutes).
    Minutes,
    /// The cuts are marked, to be kept for the longer time that the vendor has (1 or 12 hours).
    Hour,
}

quorate_manifest::words!(Cache { Off = "off", Auto = "auto", Minutes = "5m", Hour = "1h" });

/// The server's owner. Servers that are compatible with a vendor's know older names of fields, and no cache settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// The vendor of the wire format.
    Vendor,
    /// Another program that speaks the wire format.
    Compatible,
}

/// A POST request, without the key: see [`Auth::header`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// To be appended to the base URL; with its query.
    pub path: String,
    /// Names are in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Vec<u8>,
}

impl HttpRequest {
    pub(in crate::executor::llm) fn new(path: impl Into<String>, body: &impl Serialize) -> Self {
        let headers = [("accept", "application/json"), ("content-type", "application/json")];
        HttpRequest {
            path: path.into(),
            headers: headers.map(|(name, value)| (name, value.to_owned())).into(),
            // A body of texts, numbers and lists of them always has a form.
            body: serde_json::to_vec(body).unwrap_or_default(),
        }
    }
}

/// A text as one segment of a path.
pub(in crate::executor::llm) fn path_segment(text: &str) -> String {
    let mut segment = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => segment.push(char::from(byte)),
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}

impl<'a> Request<'a> {
    /// The smallest question.
    pub fn probe(model: &'a str) -> Self {
        Request {
            model,
            system: None,
            prompt: "ping",
            cuts: &[],
            format: Format::Text,
            max_tokens: 1,
            effort: None,
            cache: Cache::Off,
            context_tokens: None,
            server: Server::Vendor,
        }
    }

    /// The prompt as content blocks of a type. With a mark, a block ends at each of the last `max_marks` cuts, and has it.
    fn blocks(&self, kind: &str, mark: Option<(&str, &Json)>, max_marks: usize) -> Vec<Json> {
        let mut blocks = Vec::new();
        let mut start = 0;
        for end in mark.map(|_| self.last_cuts(max_marks)).unwrap_or_default() {
            blocks.push(json!({"type": kind, "text": &self.prompt[start..end]}));
            start = end;
        }
        if let Some((key, mark)) = mark {
            blocks.iter_mut().for_each(|block| block[key] = mark.clone());
        }
        if start < self.prompt.len() || blocks.is_empty() {
            blocks.push(json!({"type": kind, "text": &self.prompt[start..]}));
        }
        blocks
    }

    /// The last cuts, at most so many: longer prefixes spare more than shorter ones.
    fn last_cuts(&self, most: usize) -> Vec<usize> {
        let mut cuts: Vec<usize> = Vec::new();
        for &cut in self.cuts {
            if self.prompt.is_char_boundary(cut) && cut > cuts.last().copied().unwrap_or(0) {
                cuts.push(cut);
            }
        }
        cuts.split_off(cuts.len().saturating_sub(most))
    }
}

/// The data of the events, in order; `None` if the body is not a response of the wire.
fn whole_events(wire: Wire, body: &Json) -> Option<Vec<String>> {
    let events = match wire {
        Wire::Messages => whole_messages(body)?,
        Wire::Chat => whole_chat(body)?,
        Wire::Responses => whole_responses(body)?,
        Wire::Gemini => vec![body.get("candidates").map(|_| body.to_string())?],
        // Its stream is one JSON object a line, and a whole response is its last line.
        Wire::Ollama => return None,
    };
    Some(events)
}

fn whole_messages(body: &Json) -> Option<Vec<String>> {
    if body.get("type").is_some_and(|kind| kind != "message") {
        return None;
    }
    let blocks = body.get("content")?.as_array()?;
    let started = json!({"type": "message_start", "message": body});
    let stopped = json!({
        "type": "message_delta",
        "delta": {"stop_reason": body.get("stop_reason"), "stop_details": body.get("stop_details")},
    });
    let blocks = blocks.iter().map(|block| json!({"type": "content_block_start", "content_block": block}));
    let all = std::iter::once(started).chain(blocks).chain([stopped, json!({"type": "message_stop"})]);
    Some(all.map(|event| event.to_string()).collect())
}

fn whole_chat(body: &Json) -> Option<Vec<String>> {
    let choices = body.get("choices")?.as_array()?;
    let mut chunk = body.clone();
    chunk["choices"] = choices
        .iter()
        .map(|choice| {
            let mut choice = choice.clone();
            choice["delta"] = choice["message"].take();
            choice
        })
        .collect();
    Some(vec![chunk.to_string(), "[DONE]".to_owned()])
}

fn whole_responses(body: &Json) -> Option<Vec<String>> {
    let items = body.get("output")?.as_array()?;
    let status = body.get("status")?.as_str()?;
    let mut events = Vec::new();
    for (index, item) in items.iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        for part in item.get("content").and_then(Json::as_array).into_iter().flatten() {
            let (kind, delta) = match (part.get("text"), part.get("refusal")) {
                (Some(text), _) => ("response.output_text.delta", text),
                (None, Some(refusal)) => ("response.refusal.delta", refusal),
                (None, None) => continue,
            };
            events.push(json!({"type": kind, "output_index": index, "delta": delta}));
        }
    }
    events.push(json!({"type": format!("response.{status}"), "response": body}));
    Some(events.into_iter().map(|event| event.to_string()).collect())
}

/// How many bytes a line, and the data of one event, has at most. The last event of some wires repeats the whole answer,
/// with escapes.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

/// Splits bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
    /// The last line ended with CR: an LF that comes next belongs to it.
    skip_line_feed: bool,
    past_first: bool,
}

impl Lines {
    /// The next line without its end, and `bytes` without the line. `None` where no line ends in `bytes`, which are kept.
    ///
    /// # Errors
    /// When the line is too long or is not UTF-8.
    pub fn next_line(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, Fault> {
        if let [first, rest @ ..] = bytes
            && std::mem::take(&mut self.skip_line_feed)
            && *first == b'\n'
        {
            *bytes = rest;
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if self.pending.len() + line.len() > MAX_EVENT_BYTES {
            return Err(Fault::new(
                FaultKind::TooLarge,
                format!("a line is longer than {MAX_EVENT_BYTES} bytes"),
            ));
        }
        self.pending.extend_from_slice(line);
        *bytes = rest;
        let [end, rest @ ..] = rest else { return Ok(None) };
        *bytes = rest;
        self.skip_line_feed = *end == b'\r';
        self.take_line().map(Some)
    }

    /// What came after the last line end; `None` where nothing did.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn last_line(&mut self) -> Result<Option<String>, Fault> {
        if self.pending.is_empty() { Ok(None) } else { self.take_line().map(Some) }
    }

    fn take_line(&mut self) -> Result<String, Fault> {
        let line = String::from_utf8(std::mem::take(&mut self.pending))
            .map_err(|_| Fault::new(FaultKind::Malformed, "a line is not UTF-8"))?;
        match std::mem::replace(&mut self.past_first, true) {
            true => Ok(line),
            false => Ok(line.strip_prefix('\u{feff}').unwrap_or(&line).to_owned()),
        }
    }
}

/// Puts lines together to events.
#[derive(Debug, Default)]
pub struct Events {
    name: String,
    data: Option<String>,
}

/// What a line led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// A comment: the server is alive.
    Comment,
    Event {
        name: String,
        data: String,
    },
    /// A line that belongs to no event stream.
    Stray,
}

impl Events {
    /// Takes a line without its end. An event without data is none.
    ///
    /// # Errors
    /// When the data of an event is too long.
    pub fn take_line(&mut self, line: &str) -> Result<Option<Item>, Fault> {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            return Ok(self.data.take().map(|data| Item::Event { name, data }));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => return Ok(Some(Item::Comment)),
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                None => self.data = Some(value.to_owned()),
                Some(data) if data.len() + value.len() < MAX_EVENT_BYTES => {
                    data.push('\n');
                    data.push_str(value);
                }
                Some(_) => {
                    let said = format!("an event is longer than {MAX_EVENT_BYTES} bytes");
                    return Err(Fault::new(FaultKind::TooLarge, said));
                }
            },
            "id" | "retry" => {}
            _ => return Ok(Some(Item::Stray)),
        }
        Ok(None)
    }
}
