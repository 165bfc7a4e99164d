//! What kind of fault an error is: by the codes that vendors document, by the status, and last by the message, where a
//! vendor has no code for it.

use std::time::Duration;

use quorate_protocol::Json;

use super::{Fault, Kind, retry_after};

/// What an error object says, whatever its shape.
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
pub(super) fn fault(status: Option<u16>, body: &Json) -> Fault {
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
pub(super) fn kind_of_status(status: u16) -> Kind {
    match status {
        401 | 403 => Kind::Auth,
        402 => Kind::SpendLimit,
        404 => Kind::UnknownModel,
        408 | 409 => Kind::Server,
        413 => Kind::ContextOverflow,
        429 => Kind::RateLimited,
        503 | 529 => Kind::Overloaded,
        500..=599 => Kind::Server,
        300..=499 => Kind::BadRequest,
        _ => Kind::Malformed,
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
            after = after.or(detail.get("retryDelay").and_then(Json::as_str).and_then(retry_after::seconds));
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

    fn kind(&self, status: Option<u16>) -> Kind {
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
            return Kind::SpendLimit;
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
            return Kind::ContextOverflow;
        }
        if is(&["content_filter", "content_policy_violation", "moderation_blocked"]) {
            return Kind::ContentFilter { category: None };
        }
        if let Some(policy) =
            self.codes.iter().find(|code| code.ends_with("_policy") || code.ends_with("_policy_violation"))
        {
            return Kind::Refused { category: Some((*policy).to_owned()) };
        }
        if is(&["model_not_found", "model_not_available"]) {
            return Kind::UnknownModel;
        }
        if is(&["overloaded_error", "engine_overloaded", "UNAVAILABLE"]) {
            return Kind::Overloaded;
        }
        // A vendor's type is coarser than the status: `invalid_request_error` stands beside many of them.
        if let Some(status) = status {
            // Gemini answers 400 where the key is no key.
            return if is(&["API_KEY_INVALID", "invalid_api_key"])
                || (status == 400 && says(&["api key not valid"]))
            {
                Kind::Auth
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
            Kind::Auth
        } else if is(&["not_found_error", "NOT_FOUND"]) {
            Kind::UnknownModel
        } else if is(&["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"]) {
            Kind::RateLimited
        } else if is(&["invalid_request_error", "invalid_prompt", "INVALID_ARGUMENT", "FAILED_PRECONDITION"])
        {
            Kind::BadRequest
        } else {
            Kind::Server
        }
    }
}
