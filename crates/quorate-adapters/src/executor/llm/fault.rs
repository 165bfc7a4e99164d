//! Why a model gave no answer: one kind for each cause, the service's message, and whether asking again may
//! help. Error bodies and errors within a stream are read here, whichever wire they come from: their shapes overlap, and
//! gateways answer with the shapes of others.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use quorate_diagnostics::text::shortened;
use quorate_kernel::canonical;
use quorate_kernel::ports::executor::Retry;
use quorate_protocol::Json;

/// How much of an error body has to be read at most, in bytes.
pub const MAX_BODY_BYTES: usize = 64 << 10;

/// How much is quoted of what the other side said, in characters.
const MAX_QUOTED_CHARS: usize = 400;

/// A call that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The cause.
    pub kind: FaultKind,
    /// The HTTP status, where it is one of an error.
    pub status: Option<u16>,
    /// What the other side said, on one line and shortened; may be empty.
    pub said: String,
    /// How long it asks to wait.
    pub after: Option<Duration>,
    /// Whether it says that asking again may help (`x-should-retry`).
    pub should_retry: Option<bool>,
}

/// The cause of a fault; it decides whether the request may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The key was not accepted, or may not do this.
    Auth,
    /// No such model, or no such address.
    UnknownModel,
    /// The service limits the rate of requests or tokens.
    RateLimited,
    /// Money or a quota of days is used up.
    SpendLimit,
    /// The service has no capacity now.
    Overloaded,
    /// The service failed.
    Server,
    /// The service refuses the request as invalid.
    BadRequest,
    /// The model, or its vendor for it, declined.
    Refused { category: Option<String> },
    /// The answer reached `max_tokens`.
    CutOff,
    /// A filter of the service stopped the answer.
    ContentFilter { category: Option<String> },
    /// The prompt, or the prompt with the answer, is longer than the model's context.
    ContextOverflow,
    /// The model answered without text.
    Empty,
    /// Not what the wire's documentation says.
    Malformed,
    /// More than this program reads.
    TooLarge,
    /// The stream ended before its terminal event.
    EndedEarly,
}

impl Fault {
    /// A fault with the service's message.
    pub fn new(kind: FaultKind, said: impl AsRef<str>) -> Self {
        Fault { kind, status: None, said: quoted(said.as_ref()), after: None, should_retry: None }
    }

    /// Whether and when the same request may be sent again.
    pub fn retry(&self) -> Retry {
        let by_kind = match self.kind {
            // A retry would cost and end the same, even if the server advises it.
            FaultKind::SpendLimit
            | FaultKind::Refused { .. }
            | FaultKind::CutOff
            | FaultKind::ContentFilter { .. }
            | FaultKind::ContextOverflow
            | FaultKind::Malformed
            | FaultKind::TooLarge => return Retry::Never,
            FaultKind::Auth | FaultKind::UnknownModel | FaultKind::BadRequest => false,
            FaultKind::RateLimited
            | FaultKind::Overloaded
            | FaultKind::Server
            | FaultKind::Empty
            | FaultKind::EndedEarly => true,
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
    let mut fault = match canonical::parse(text.trim()) {
        Ok(value) => classify(Some(status), &value),
        Err(_) => Fault { status: Some(status), ..Fault::new(kind_of_status(status), text.trim()) },
    };
    fault.after = retry_after(&header).or(fault.after);
    fault.should_retry = match header("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    fault
}

/// The fault of an error within a response that began as a success: an event, a line, or the whole body.
pub fn from_event(event: &Json) -> Fault {
    classify(None, event)
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match &self.kind {
            FaultKind::Auth => "the service did not accept the key",
            FaultKind::UnknownModel => "the service does not know the model or the address",
            FaultKind::RateLimited => "the service limits the rate of requests or tokens",
            FaultKind::SpendLimit => "the account's quota or spend limit is reached",
            FaultKind::Overloaded => "the service is overloaded",
            FaultKind::Server => "the service failed",
            FaultKind::BadRequest => "the service refused the request as invalid",
            FaultKind::Refused { .. } => "the model refused to answer",
            FaultKind::CutOff => "the answer was cut off at the cap on output tokens (raise `max_tokens`)",
            FaultKind::ContentFilter { .. } => "a content filter stopped the answer",
            FaultKind::ContextOverflow => "the prompt does not fit in the model's context",
            FaultKind::Empty => "the answer is empty",
            FaultKind::Malformed => "the response is not in the format of the API",
            FaultKind::TooLarge => "the response is too large",
            FaultKind::EndedEarly => "the response ended before the answer was complete",
        })?;
        if let FaultKind::Refused { category: Some(category) }
        | FaultKind::ContentFilter { category: Some(category) } = &self.kind
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
    shortened(&line, MAX_QUOTED_CHARS)
}

/// The fields of an error object, read from any of its shapes.
#[derive(Debug, Default)]
struct Problem<'j> {
    /// Its codes and types, as they stand.
    codes: Vec<&'j str>,
    message: &'j str,
    /// The status that the object itself names.
    status: Option<u16>,
    after: Option<Duration>,
}

/// The fault of an error. `status` is that of the response, where it is not a success.
fn classify(status: Option<u16>, body: &Json) -> Fault {
    let problem = Problem::read(body);
    let known = status.or(problem.status);
    let kind = problem.kind(known);
    let said = match problem.message.trim() {
        "" => problem.codes.join(", "),
        message => message.to_owned(),
    };
    Fault { status: known, after: problem.after, ..Fault::new(kind, said) }
}

/// The kind of a status, where nothing else is known.
fn kind_of_status(status: u16) -> FaultKind {
    match status {
        401 | 403 => FaultKind::Auth,
        402 => FaultKind::SpendLimit,
        404 => FaultKind::UnknownModel,
        408 | 409 => FaultKind::Server,
        413 => FaultKind::ContextOverflow,
        429 => FaultKind::RateLimited,
        503 | 529 => FaultKind::Overloaded,
        500..=599 => FaultKind::Server,
        300..=499 => FaultKind::BadRequest,
        _ => FaultKind::Malformed,
    }
}

impl<'j> Problem<'j> {
    /// Reads `{"error": {…}}`, `{"error": "…"}`, an object without that wrapper, and a list of any of them.
    fn read(body: &'j Json) -> Problem<'j> {
        let body = body.as_array().and_then(|all| all.first()).unwrap_or(body);
        let error = match body.get("error").filter(|error| !error.is_null()) {
            Some(Json::String(message)) => return Problem { message, ..Problem::default() },
            Some(error) => error,
            None => body,
        };
        let text = |key: &str| error.get(key).and_then(Json::as_str);
        let details = error.get("details");
        let detail_code = details.and_then(|details| details.get("error_code")).and_then(Json::as_str);
        let mut codes: Vec<&str> =
            ["code", "type", "status"].into_iter().filter_map(text).chain(detail_code).collect();
        let mut after = None;
        for detail in details.and_then(Json::as_array).into_iter().flatten() {
            after = after.or(detail.get("retryDelay").and_then(Json::as_str).and_then(parse_seconds));
            let violations = detail.get("violations").and_then(Json::as_array).into_iter().flatten();
            codes.extend(violations.filter_map(|violation| violation.get("quotaId")?.as_str()));
        }
        let status = error.get("code").and_then(Json::as_u64).and_then(|code| u16::try_from(code).ok());
        Problem {
            codes,
            message: text("message").or_else(|| body.get("detail")?.as_str()).unwrap_or_default(),
            status: status.filter(|status| (400..600).contains(status)),
            after,
        }
    }

    fn kind(&self, status: Option<u16>) -> FaultKind {
        let is = |names: &[&str]| self.codes.iter().any(|code| names.contains(code));
        let has = |part: &str| self.codes.iter().any(|code| code.contains(part));
        let says = |parts: &[&str]| {
            let message = self.message.to_ascii_lowercase();
            parts.iter().any(|part| message.contains(part))
        };
        if is(&["insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"])
            || has("spend_limit_reached")
            // The quota of a day, which Gemini reports with a delay of seconds.
            || has("PerDay")
            || says(&["credit balance is too low", "spend limit", "spending limit"])
        {
            return FaultKind::SpendLimit;
        }
        if is(&[
            "context_length_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            "string_above_max_length",
        ]) || says(&[
            "prompt is too long",
            "maximum context length",
            "exceeds the context window",
            "exceeds the available context size",
            "exceeds the maximum number of tokens",
            "exceed context limit",
        ]) {
            return FaultKind::ContextOverflow;
        }
        if is(&["content_filter", "content_policy_violation", "moderation_blocked"]) {
            return FaultKind::ContentFilter { category: None };
        }
        if let Some(policy) =
            self.codes.iter().find(|code| code.ends_with("_policy") || code.ends_with("_policy_violation"))
        {
            return FaultKind::Refused { category: Some((*policy).to_owned()) };
        }
        if is(&["model_not_found", "model_not_available"]) {
            return FaultKind::UnknownModel;
        }
        if is(&["overloaded_error", "engine_overloaded", "UNAVAILABLE"]) {
            return FaultKind::Overloaded;
        }
        // A vendor's type is coarser than the status: `invalid_request_error` stands beside many of them.
        if let Some(status) = status {
            // Gemini answers 400 to an invalid key.
            return if is(&["API_KEY_INVALID", "invalid_api_key"])
                || (status == 400 && says(&["api key not valid"]))
            {
                FaultKind::Auth
            } else {
                kind_of_status(status)
            };
        }
        if is(&[
            "authentication_error",
            "permission_error",
            "invalid_api_key",
            "UNAUTHENTICATED",
            "PERMISSION_DENIED",
        ]) {
            FaultKind::Auth
        } else if is(&["not_found_error", "NOT_FOUND"]) {
            FaultKind::UnknownModel
        } else if is(&["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"]) {
            FaultKind::RateLimited
        } else if is(&["invalid_request_error", "invalid_prompt", "INVALID_ARGUMENT", "FAILED_PRECONDITION"])
        {
            FaultKind::BadRequest
        } else {
            FaultKind::Server
        }
    }
}

/// The wait that the headers ask for: `retry-after-ms`, else `retry-after` as seconds or as a date, which counts from the
/// response's own `date`.
fn retry_after<'h>(header: &impl Fn(&str) -> Option<&'h str>) -> Option<Duration> {
    if let Some(ms) = header("retry-after-ms").and_then(parse_number) {
        return parse_duration(ms / 1_000.0);
    }
    let value = header("retry-after")?;
    parse_seconds(value).or_else(|| {
        let wait = parse_timestamp(value)?.duration_since(parse_timestamp(header("date")?)?);
        Some(Duration::try_from(wait).unwrap_or_default())
    })
}

/// A number of seconds, such as `45`, `45.8` or `45.8s`.
fn parse_seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    parse_duration(parse_number(text.strip_suffix('s').unwrap_or(text))?)
}

fn parse_number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

fn parse_duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// A date in the format of HTTP.
fn parse_timestamp(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}
