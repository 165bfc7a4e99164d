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

use quorate_kernel::canonical::MAX_EXACT_INTEGER;
use quorate_kernel::ports::executor::Usage;

use super::fault::{self, Fault, Kind};
use super::schema::Dialect;
use super::sse::{Events, Item, Lines};

mod answer;
mod chat;
mod gemini;
mod messages;
mod ollama;
mod openai;
mod request;
mod responses;
mod whole;

use answer::{Answer, Step};
pub(super) use request::path_segment;
pub use request::{Cache, Format, HttpRequest, Request, Server};

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

impl Wire {
    pub const ALL: [Wire; 5] = [Wire::Messages, Wire::Chat, Wire::Responses, Wire::Gemini, Wire::Ollama];

    /// The word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Wire::Messages => "messages",
            Wire::Chat => "chat",
            Wire::Responses => "responses",
            Wire::Gemini => "gemini",
            Wire::Ollama => "ollama",
        }
    }

    /// The wire of a word.
    pub fn read(word: &str) -> Option<Wire> {
        Wire::ALL.into_iter().find(|wire| wire.as_str() == word)
    }

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

    pub fn takes_context_tokens(self) -> bool {
        self == Wire::Ollama
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
    XApiKey,
    Bearer,
    ApiKey,
    XGoogApiKey,
    None,
}

impl Auth {
    pub const ALL: [Auth; 5] = [Auth::XApiKey, Auth::Bearer, Auth::ApiKey, Auth::XGoogApiKey, Auth::None];

    /// The word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Auth::XApiKey => "x-api-key",
            Auth::Bearer => "bearer",
            Auth::ApiKey => "api-key",
            Auth::XGoogApiKey => "x-goog-api-key",
            Auth::None => "none",
        }
    }

    /// The style of a word.
    pub fn read(word: &str) -> Option<Auth> {
        Auth::ALL.into_iter().find(|auth| auth.as_str() == word)
    }

    /// The header's name and value.
    pub fn header(self, key: &str) -> Option<(&'static str, String)> {
        match self {
            Auth::Bearer => Some(("authorization", format!("Bearer {key}"))),
            Auth::XApiKey | Auth::ApiKey | Auth::XGoogApiKey => Some((self.as_str(), key.to_owned())),
            Auth::None => None,
        }
    }
}

/// What the bytes of a response say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What the model added to its answer.
    Text(String),
    /// The model or its server is at work.
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
    /// As far as it was reported.
    pub usage: Usage,
}

/// Reads the body of one successful response.
#[derive(Debug)]
pub struct Stream {
    wire: Wire,
    lines: Lines,
    events: Events,
    decoder: Decoder,
    answer: Answer,
    bytes_read: usize,
    /// What the body has in place of events, in part.
    stray: String,
    has_events: bool,
    has_ended: bool,
}

#[derive(Debug)]
enum Decoder {
    Messages(messages::Decoder),
    Chat(chat::Decoder),
    Responses(responses::Decoder),
    Gemini(gemini::Decoder),
    Ollama(ollama::Decoder),
}

impl Stream {
    pub fn new(wire: Wire) -> Self {
        Stream {
            wire,
            lines: Lines::default(),
            events: Events::default(),
            decoder: match wire {
                Wire::Messages => Decoder::Messages(messages::Decoder::default()),
                Wire::Chat => Decoder::Chat(chat::Decoder::default()),
                Wire::Responses => Decoder::Responses(responses::Decoder::default()),
                Wire::Gemini => Decoder::Gemini(gemini::Decoder),
                Wire::Ollama => Decoder::Ollama(ollama::Decoder),
            },
            answer: Answer::default(),
            bytes_read: 0,
            stray: String::new(),
            has_events: false,
            has_ended: false,
        }
    }

    /// Takes the next bytes. After [`Event::Ended`] there are no more events, whatever is fed.
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
                Err(Fault::new(Kind::TooLarge, said))
            }
            false => self.read_line(line),
        };
        self.apply(step, events);
    }

    /// Reads a body that is a whole response in place of a stream.
    fn take_whole(&mut self, events: &mut Vec<Event>) {
        let body = quorate_kernel::strict_json::parse(&self.stray).ok();
        // Beside an error nothing else in a body counts.
        if let Some(body) =
            body.as_ref().filter(|body| body.get("error").is_some_and(|error| !error.is_null()))
        {
            return self.apply(Err(fault::from_event(body)), events);
        }
        for data in body.and_then(|body| whole::events(self.wire, &body)).unwrap_or_default() {
            if !self.has_ended {
                let step = self.read_event("", &data).map(Some);
                self.apply(step, events);
            }
        }
    }

    fn apply(&mut self, mut step: Result<Option<Step>, Fault>, events: &mut Vec<Event>) {
        if self.answer.usage.counts().any(|count| count > MAX_EXACT_INTEGER) {
            self.answer.usage = Usage::default();
            step = Err(Fault::new(Kind::Malformed, "a number of tokens is past 2^53"));
        }
        if let Some(delta) = self.answer.take_delta() {
            events.push(Event::Text(delta));
        } else if matches!(step, Ok(Some(Step::More))) {
            events.push(Event::Progress);
        }
        match step {
            Ok(None | Some(Step::More)) => {}
            Ok(Some(Step::Done)) => {
                let text = self.answer.take_text();
                events.push(self.end(text));
            }
            Err(fault) => events.push(self.end(Err(fault))),
        }
    }

    /// Reads a line; `None` where it is no event and no sign of life.
    fn read_line(&mut self, line: &str) -> Result<Option<Step>, Fault> {
        if let Decoder::Ollama(decoder) = &mut self.decoder {
            return match line.trim() {
                "" => Ok(None),
                line => decoder.read(line, &mut self.answer).map(Some),
            };
        }
        match self.events.take_line(line)? {
            None => Ok(None),
            Some(Item::Comment) => Ok(Some(Step::More)),
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

    fn read_event(&mut self, name: &str, data: &str) -> Result<Step, Fault> {
        // Proxies say in plain text what went wrong.
        if name == "error" && !data.trim_start().starts_with('{') {
            return Err(Fault::new(Kind::Server, data));
        }
        let answer = &mut self.answer;
        match &mut self.decoder {
            Decoder::Messages(decoder) => decoder.read(data, answer),
            Decoder::Chat(decoder) => decoder.read(data, answer),
            Decoder::Responses(decoder) => decoder.read(data, answer),
            Decoder::Gemini(decoder) => decoder.read(data, answer),
            Decoder::Ollama(decoder) => decoder.read(data, answer),
        }
    }

    /// The fault of a body that ended before its terminal event. One without any event may be an error, or a page.
    fn early_end(&self) -> Fault {
        match quorate_kernel::strict_json::parse(&self.stray) {
            _ if self.has_events || self.stray.is_empty() => Fault::new(Kind::EndedEarly, ""),
            Ok(body) if body.get("error").is_some() || body.is_array() => fault::from_event(&body),
            _ => Fault::new(Kind::Malformed, &self.stray),
        }
    }

    fn end(&mut self, text: Result<String, Fault>) -> Event {
        self.has_ended = true;
        let answer = std::mem::take(&mut self.answer);
        Event::Ended(Box::new(Response { text, model: answer.model, usage: answer.usage }))
    }
}
