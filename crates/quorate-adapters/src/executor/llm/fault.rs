//! Why a model gave no answer: one kind for each cause, what the other side said of it, and whether asking again may
//! help. Error bodies and errors within a stream are read here, whichever wire they come from: their shapes overlap, and
//! gateways answer with the shapes of others.

use std::fmt;
use std::time::Duration;

use quorate_kernel::ports::executor::{Failure, Retry};
use quorate_kernel::strict_json;
use quorate_protocol::Json;

mod classify;
mod retry_after;

/// How much of an error body has to be read at most, in bytes.
pub const MAX_BODY_BYTES: usize = 64 << 10;

/// How much is quoted of what the other side said, in characters.
const MAX_QUOTED_CHARS: usize = 400;

/// A call that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// The HTTP status, where it is one of an error.
    pub status: Option<u16>,
    /// What the other side said, on one line and shortened; may be empty.
    pub said: String,
    /// How long it asks to wait.
    pub after: Option<Duration>,
    /// Whether it says that asking again may help (`x-should-retry`).
    pub should_retry: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The key was not accepted, or may not do this.
    Auth,
    /// No such model, or no such address.
    UnknownModel,
    RateLimited,
    /// Money or a quota of days is used up.
    SpendLimit,
    Overloaded,
    Server,
    BadRequest,
    /// The model, or its vendor for it, declined.
    Refused {
        category: Option<String>,
    },
    /// The answer reached `max_tokens`.
    CutOff,
    ContentFilter {
        category: Option<String>,
    },
    /// The prompt, or the prompt with the answer, is longer than the model's context.
    ContextOverflow,
    Empty,
    /// Not what the wire's documentation says.
    Malformed,
    /// More than this program reads.
    TooLarge,
    /// The stream ended before its terminal event.
    EndedEarly,
}

impl Fault {
    /// A fault with what was said of it.
    pub fn new(kind: Kind, said: impl AsRef<str>) -> Self {
        Fault { kind, status: None, said: quoted(said.as_ref()), after: None, should_retry: None }
    }

    /// Whether and when the same request may be sent again.
    pub fn retry(&self) -> Retry {
        let by_kind = match self.kind {
            // Whatever the server says, these would cost the same and end the same.
            Kind::SpendLimit
            | Kind::Refused { .. }
            | Kind::CutOff
            | Kind::ContentFilter { .. }
            | Kind::ContextOverflow
            | Kind::Malformed
            | Kind::TooLarge => return Retry::Never,
            Kind::Auth | Kind::UnknownModel | Kind::BadRequest => false,
            Kind::RateLimited | Kind::Overloaded | Kind::Server | Kind::Empty | Kind::EndedEarly => true,
        };
        match (self.should_retry.unwrap_or(by_kind), self.after) {
            (false, _) => Retry::Never,
            (true, Some(after)) => Retry::After(after),
            (true, None) => Retry::Soon,
        }
    }
}

/// The fault of a response whose status is not a success. `header` looks a header up by its name in lower case; `body` is
/// as much as was read of it.
pub fn from_response<'h>(status: u16, header: impl Fn(&str) -> Option<&'h str>, body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(body);
    let mut fault = match strict_json::parse(text.trim()) {
        Ok(value) => classify::fault(Some(status), &value),
        Err(_) => Fault { status: Some(status), ..Fault::new(classify::kind_of_status(status), text.trim()) },
    };
    fault.after = retry_after::from_headers(&header).or(fault.after);
    fault.should_retry = match header("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    fault
}

/// The fault of an error within a response that began as a success: an event, a line, or the whole body.
pub fn from_event(event: &Json) -> Fault {
    classify::fault(None, event)
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Failed { message: fault.to_string(), retry: fault.retry() }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match &self.kind {
            Kind::Auth => "the service did not accept the key",
            Kind::UnknownModel => "the service does not know the model or the address",
            Kind::RateLimited => "the service limits the rate of requests or tokens",
            Kind::SpendLimit => "the account's quota or spend limit is reached",
            Kind::Overloaded => "the service is overloaded",
            Kind::Server => "the service failed",
            Kind::BadRequest => "the service refused the request as invalid",
            Kind::Refused { .. } => "the model refused to answer",
            Kind::CutOff => "the answer was cut off at the cap on output tokens (raise `max_tokens`)",
            Kind::ContentFilter { .. } => "a content filter stopped the answer",
            Kind::ContextOverflow => "the prompt does not fit in the model's context",
            Kind::Empty => "the answer is empty",
            Kind::Malformed => "the response is not in the format of the API",
            Kind::TooLarge => "the response is too large",
            Kind::EndedEarly => "the response ended before the answer was complete",
        })?;
        if let Kind::Refused { category: Some(category) } | Kind::ContentFilter { category: Some(category) } =
            &self.kind
        {
            write!(to, " ({category})")?;
        }
        if let Some(status) = self.status {
            write!(to, " (HTTP {status})")?;
        }
        if !self.said.is_empty() {
            write!(to, ": {}", self.said)?;
        }
        Ok(())
    }
}

/// A text on one line, without control characters, shortened.
pub(super) fn quoted(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
