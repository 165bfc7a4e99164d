//! Why a model gave no answer: one kind for each cause, the service's message, and whether asking again may
//! help. Error bodies and errors within a stream are read here, whichever wire they come from: their shapes overlap, and
//! gateways answer with the shapes of others.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use quorate_diagnostics::text::shortened;
use quorate_kernel::canonical;
use quorate_kernel::clock::{Clock as _, System};
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
    /// All texts of an error body, in lower case, those that name a field first. Never shown to a user.
    pub details: String,
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

impl FaultKind {
    /// What happened, in words; whether it is due to the question or the answer, and not to the service; and whether the same
    /// request may succeed later, where the service does not say: `None` if it would cost and end the same, whatever it says.
    fn facts(&self) -> (&'static str, bool, Option<bool>) {
        match self {
            FaultKind::Auth => ("the service did not accept the key", false, Some(false)),
            FaultKind::UnknownModel => {
                ("the service does not know the model or the address", false, Some(false))
            }
            FaultKind::RateLimited => {
                ("the service limits the rate of requests or tokens", false, Some(true))
            }
            FaultKind::SpendLimit => ("the account's quota or spend limit is reached", false, None),
            FaultKind::Overloaded => ("the service is overloaded", false, Some(true)),
            FaultKind::Server => ("the service failed", false, Some(true)),
            FaultKind::BadRequest => ("the service refused the request as invalid", true, Some(false)),
            FaultKind::Refused { .. } => ("the model refused to answer", true, None),
            FaultKind::CutOff => {
                ("the answer was cut off at the cap on output tokens (raise `max_tokens`)", true, None)
            }
            FaultKind::ContentFilter { .. } => ("a content filter stopped the answer", true, None),
            FaultKind::ContextOverflow => ("the prompt does not fit in the model's context", true, None),
            FaultKind::Empty => ("the answer is empty", true, Some(true)),
            FaultKind::Malformed => ("the response is not in the format of the API", false, None),
            FaultKind::TooLarge => ("the response is too large", true, None),
            FaultKind::EndedEarly => ("the response ended before the answer was complete", false, Some(true)),
        }
    }

    /// Whether it is due to the question or the answer, and not to the service: another model must not be asked instead.
    pub fn is_of_answer(&self) -> bool {
        self.facts().1
    }
}

impl Fault {
    /// A fault with the service's message.
    pub fn new(kind: FaultKind, said: impl AsRef<str>) -> Self {
        let (said, details) = (quoted(said.as_ref()), String::new());
        Fault { kind, status: None, said, details, after: None, should_retry: None }
    }

    /// Whether and when the same request may be sent again.
    pub fn retry(&self) -> Retry {
        let may_succeed = self.kind.facts().2.is_some_and(|by_kind| self.should_retry.unwrap_or(by_kind));
        // A wait of zero is ignored: the caller's own pause is longer.
        match self.after.filter(|after| !after.is_zero()) {
            _ if !may_succeed => Retry::Never,
            Some(after) => Retry::After(after),
            None => Retry::Soon,
        }
    }
}

/// The fault of a response whose status is not a success. `header` looks a header up by its name in lower case; `body` is
/// as much as was read of it.
pub fn from_response<'h>(status: u16, header: impl Fn(&str) -> Option<&'h str>, body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(body);
    let now = header("date").and_then(parse_http_date).unwrap_or_else(now);
    let mut fault = match canonical::parse(text.trim()) {
        Ok(value) => classify(Some(status), &value, now),
        Err(_) => Fault {
            status: Some(status),
            details: text.to_lowercase(),
            after: wait_in_words(&text),
            ..Fault::new(kind_of_status(status), text.trim())
        },
    };
    fault.after = wait_of_headers(&header, fault.kind == FaultKind::RateLimited, now).or(fault.after);
    fault.should_retry = header("x-should-retry").and_then(|answer| answer.parse().ok());
    fault
}

/// The fault of an error within a response that began as a success: an event, a line, or the whole body.
pub fn from_event(event: &Json) -> Fault {
    classify(None, event, now())
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.kind.facts().0)?;
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
    // A text can have millions of words.
    let start = &text[..text.floor_char_boundary(16 * MAX_QUOTED_CHARS)];
    let words = start.split(|letter: char| letter.is_whitespace() || letter.is_control());
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
    /// Headers of the service behind a gateway, which the gateway puts into the body; their names in lower case.
    headers: BTreeMap<String, String>,
}

/// The fault of an error at a time. `status` is that of the response, where it is not a success.
fn classify(status: Option<u16>, body: &Json, now: Timestamp) -> Fault {
    let problem = Problem::read(body);
    let known = status.or(problem.status);
    let kind = problem.kind(known);
    let mut details = String::new();
    add_texts(body, &mut details);
    let said = match problem.message.trim() {
        // A gateway that checks a request lists what is wrong in place of a message.
        "" if known.is_some() && body.get("error").is_none() => details.trim().to_owned(),
        "" => problem.codes.join(", "),
        message => message.to_owned(),
    };
    let header = |name: &str| problem.headers.get(name).map(String::as_str);
    let after = problem.after.or_else(|| wait_of_headers(&header, kind == FaultKind::RateLimited, now));
    let after = after.or_else(|| wait_in_words(problem.message));
    Fault { status: known, after, details: details.to_lowercase(), ..Fault::new(kind, said) }
}

/// The part of an error's text that is read: an event can have megabytes.
fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BODY_BYTES)]
}

/// Adds all texts of an error, without those of the request that it repeats. The name of a field comes before what is said
/// of it.
fn add_texts(error: &Json, texts: &mut String) {
    match error {
        Json::String(text) => {
            texts.push_str(start_of(text));
            texts.push(' ');
        }
        Json::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Json::Object(fields) => {
            for place in ["param", "loc"].iter().filter_map(|key| fields.get(*key)) {
                let mut path = String::new();
                add_texts(place, &mut path);
                texts.push_str(&path.trim().replace(' ', "."));
                texts.push(' ');
            }
            for (key, value) in fields {
                if !["param", "loc", "input", "body", "request", "ctx", "url"].contains(&key.as_str()) {
                    add_texts(value, texts);
                }
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
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
        424 | 425 | 503 | 529 => FaultKind::Overloaded,
        500..=599 => FaultKind::Server,
        300..=499 => FaultKind::BadRequest,
        _ => FaultKind::Malformed,
    }
}

impl<'j> Problem<'j> {
    /// Reads `{"error": {…}}`, `{"error": "…"}`, `{"errors": […]}`, an object without that wrapper, and a list of any of
    /// them.
    fn read(body: &'j Json) -> Problem<'j> {
        let first = |value: &'j Json| value.as_array().and_then(|all| all.first()).unwrap_or(value);
        let body = first(body);
        let inner =
            ["error", "errors"].iter().filter_map(|key| body.get(*key)).find(|inner| !inner.is_null());
        let inner = inner.map(first);
        let error = inner.filter(|inner| inner.is_object()).unwrap_or(body);
        let text = |key: &str| error.get(key).and_then(Json::as_str);
        let details = error.get("details");
        let detail_code = details.and_then(|details| details.get("error_code")).and_then(Json::as_str);
        let mut codes: Vec<&str> =
            ["code", "type", "status", "__type"].into_iter().filter_map(text).chain(detail_code).collect();
        let mut after = None;
        for detail in details.and_then(Json::as_array).into_iter().flatten() {
            let delay = detail.get("retryDelay").and_then(Json::as_str);
            after = after.or(delay.and_then(|delay| parse_wait(delay, Timestamp::UNIX_EPOCH)));
            let violations = detail.get("violations").and_then(Json::as_array).into_iter().flatten();
            codes.extend(violations.filter_map(|violation| violation.get("quotaId")?.as_str()));
        }
        let codes_of = |object: &'j Json| {
            let keys = ["code", "status", "status_code", "statusCode", "error_code"];
            keys.into_iter().filter_map(move |key| object.get(key))
        };
        let numbers = codes_of(error).chain(codes_of(body));
        let mut numbers =
            numbers.filter_map(|code| code.as_u64().or_else(|| code.as_str()?.trim().parse().ok()));
        let status = numbers.find(|code| (400..600).contains(code)).and_then(|code| u16::try_from(code).ok());
        let details_of = |object: &'j Json| {
            let detail = first(object.get("detail")?);
            detail.as_str().or_else(|| detail.get("msg").or_else(|| detail.get("message"))?.as_str())
        };
        let headers = error.get("metadata").and_then(|metadata| metadata.get("headers"));
        let headers = headers.and_then(Json::as_object).into_iter().flatten().map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.to_ascii_lowercase(), value)
        });
        Problem {
            codes,
            message: inner
                .and_then(Json::as_str)
                .or_else(|| text("message"))
                .or_else(|| text("msg"))
                .or_else(|| details_of(error))
                .or_else(|| body.get("message")?.as_str())
                .or_else(|| details_of(body))
                .map_or("", start_of),
            status,
            after,
            headers: headers.collect(),
        }
    }

    fn kind(&self, status: Option<u16>) -> FaultKind {
        let message = self.message.to_ascii_lowercase();
        let is = |names: &str| any_of(names, |name| self.codes.contains(&name));
        let has = |parts: &str| any_of(parts, |part| self.codes.iter().any(|code| code.contains(part)));
        let says = |parts: &str| any_of(parts, |part| message.contains(part));
        let is_policy = |code: &&&str| code.ends_with("_policy") || code.ends_with("_policy_violation");
        let mut known =
            SIGNS.iter().filter(|(_, names, parts, words)| is(names) || has(parts) || says(words));
        if let Some((kind, ..)) = known.next() {
            kind.clone()
        } else if let Some(policy) = self.codes.iter().find(is_policy) {
            FaultKind::Refused { category: Some((*policy).to_owned()) }
        } else if let Some(status) = status {
            // A vendor's type is coarser than the status: `invalid_request_error` stands beside many of them.
            kind_of_status(status)
        } else {
            let coarse = COARSE_SIGNS.iter().find(|(_, names)| is(names));
            coarse.map_or(FaultKind::Server, |(kind, _)| kind.clone())
        }
    }
}

/// Whether an entry of a list that `|` separates is as asked for.
pub(super) fn any_of(list: &str, is: impl FnMut(&str) -> bool) -> bool {
    list.split('|').filter(|entry| !entry.is_empty()).any(is)
}

/// The signs of a fault that say more than a status, in their order: its codes, parts of its codes, and parts of its message.
const SIGNS: [(FaultKind, &str, &str, &str); 8] = [
    (
        FaultKind::SpendLimit,
        "insufficient_quota|billing_error|billing_hard_limit_reached|billing_not_active",
        // The quota of a day is one that Gemini reports with a delay of seconds.
        "spend_limit_reached|PerDay",
        "credit balance is too low|spend limit|spending limit",
    ),
    (
        FaultKind::ContextOverflow,
        "context_length_exceeded|exceed_context_size_error|request_too_large|string_above_max_length",
        "",
        "prompt is too long|maximum context length|exceeds the context window|exceeds the available context size|\
         exceeds the maximum number of tokens|exceed context limit",
    ),
    (
        FaultKind::ContentFilter { category: None },
        "content_filter|content_policy_violation|moderation_blocked",
        "",
        "",
    ),
    (FaultKind::UnknownModel, "model_not_found|model_not_available", "", ""),
    (
        FaultKind::Overloaded,
        "overloaded_error|engine_overloaded|UNAVAILABLE",
        "",
        "is loading|currently loading|still loading",
    ),
    (FaultKind::RateLimited, "", "Throttling", ""),
    // The model wrote something else than JSON, of which nothing is sent.
    (FaultKind::Empty, "json_validate_failed", "", ""),
    // Gemini answers 400 to an invalid key.
    (FaultKind::Auth, "API_KEY_INVALID|invalid_api_key", "", "api key not valid"),
];

/// The signs that count without a status.
const COARSE_SIGNS: [(FaultKind, &str); 4] = [
    (FaultKind::Auth, "authentication_error|permission_error|UNAUTHENTICATED|PERMISSION_DENIED"),
    (FaultKind::UnknownModel, "not_found_error|NOT_FOUND"),
    (FaultKind::RateLimited, "rate_limit_error|rate_limit_exceeded|RESOURCE_EXHAUSTED"),
    (FaultKind::BadRequest, "invalid_request_error|invalid_prompt|INVALID_ARGUMENT|FAILED_PRECONDITION"),
];

/// The headers with the time of a limit's reset. That of what is left until then has `remaining` in place of `reset`.
const RESETS: &str = "x-ratelimit-reset|x-rate-limit-reset|ratelimit-reset|x-ratelimit-reset-requests|\
    x-ratelimit-reset-tokens|anthropic-ratelimit-requests-reset|anthropic-ratelimit-tokens-reset|\
    anthropic-ratelimit-input-tokens-reset|anthropic-ratelimit-output-tokens-reset";

/// Phrases in messages before a wait.
const WAIT_PHRASES: [&str; 4] = ["try again in ", "retry in ", "try again after ", "retry after "];

/// Numbers of this size are seconds since the Unix epoch (2017), not a wait (47 years).
const FIRST_EPOCH_SECONDS: f64 = 1.5e9;

/// The wait that the headers ask for: `retry-after-ms`, else `retry-after`; of a response that limits the rate, else the
/// reset of a limit that is used up. A limit with something left is not what refused the call.
fn wait_of_headers<'h>(
    header: &impl Fn(&str) -> Option<&'h str>,
    is_limit: bool,
    now: Timestamp,
) -> Option<Duration> {
    let ms = header("retry-after-ms").and_then(parse_number).and_then(|ms| parse_duration(ms / 1_000.0));
    let asked = ms.or_else(|| parse_wait(header("retry-after")?, now));
    let has_left = |reset: &str| {
        header(&reset.replace("reset", "remaining")).is_some_and(|left| parse_number(left) > Some(0.0))
    };
    let resets = RESETS.split('|').filter(|reset| is_limit && !has_left(reset));
    asked.or_else(|| resets.filter_map(|reset| parse_wait(header(reset)?, now)).max())
}

/// The wait that a message asks for in words: `Please try again in 7.66s.`, `Retry after 20 seconds.`
fn wait_in_words(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    let end = WAIT_PHRASES.iter().find_map(|phrase| Some(message.find(phrase)? + phrase.len()))?;
    let mut words = message[end..].split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', ')']));
    let first = words.next()?;
    let unit = words.next().and_then(|unit| parse_span(&format!("{first} {unit}")));
    unit.or_else(|| parse_wait(first, Timestamp::UNIX_EPOCH))
}

/// A wait as services write it: seconds (`45`, `45.8`), a duration (`6m0s`, `250ms`), or a time to wait until, in seconds
/// or milliseconds since the Unix epoch or as a date. A time that has passed is a wait of no time.
fn parse_wait(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let until = match parse_number(text) {
        Some(seconds) if seconds < FIRST_EPOCH_SECONDS => return parse_duration(seconds),
        Some(time) => {
            let ms = if time < FIRST_EPOCH_SECONDS * 1_000.0 { time * 1_000.0 } else { time };
            let now = Duration::from_millis(u64::try_from(now.as_millisecond()).unwrap_or(0));
            return Some(parse_duration(ms / 1_000.0)?.saturating_sub(now));
        }
        None => match parse_span(text) {
            Some(span) => return Some(span),
            None => text.parse().ok().or_else(|| parse_http_date(text))?,
        },
    };
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// A duration with units, such as `6m0s`, `1h2m3.5s` or `20 seconds`.
fn parse_span(text: &str) -> Option<Duration> {
    Duration::try_from(text.parse::<SignedDuration>().ok()?).ok()
}

fn parse_number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

fn parse_duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// A date in the format of HTTP.
fn parse_http_date(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

fn now() -> Timestamp {
    Timestamp::from_millisecond(System.now_ms()).unwrap_or_default()
}
