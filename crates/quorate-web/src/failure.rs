//! Why a request failed: an HTTP status with `{code, message, help}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quorate::{Error, ErrorKind, Quorate};
use quorate_diagnostics::{RefusalCode, codes};
use schemars::JsonSchema;
use serde::Serialize;

/// Why a request failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) problem: Problem,
}

/// The body of a failed request.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// The code: `quorate explain CODE` has a page for each
    pub(crate) code: String,
    /// What is wrong
    pub(crate) message: String,
    /// What to do
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) help: Option<String>,
}

impl Failure {
    pub(crate) fn new(
        status: StatusCode,
        code: RefusalCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Failure {
        let problem =
            Problem { code: code.as_str().to_owned(), message: message.into(), help: Some(help.into()) };
        Failure { status, problem }
    }

    /// A request that does not fit its route.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, codes::USAGE, message, help)
    }
}

impl Failure {
    /// Without the secrets of this process.
    pub(crate) fn redacted(mut self, quorate: &Quorate) -> Failure {
        self.problem.message = quorate.redact_text(&self.problem.message);
        self.problem.help = self.problem.help.map(|help| quorate.redact_text(&help));
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let first = error.report().refusals.first();
        let code = first.map_or(codes::USAGE, |refusal| refusal.code);
        let status = match error.kind() {
            ErrorKind::Ledger => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Busy => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Moved | ErrorKind::Conflict | ErrorKind::Interrupted => StatusCode::CONFLICT,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Refused | ErrorKind::Configuration | ErrorKind::Untrusted | ErrorKind::Altered => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            ErrorKind::InvalidRequest => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let (message, help) = first
            .map(|refusal| (refusal.body.message.clone(), refusal.body.help.clone()))
            .unwrap_or_default();
        Failure { status, problem: Problem { code: code.as_str().to_owned(), message, help } }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(self.problem)).into_response()
    }
}
