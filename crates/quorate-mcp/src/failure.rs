//! Why a tool failed, with a code. A request that cannot be fulfilled is a tool error, which clients show to the user or
//! the model; a call that does not fit the tool's schema is an error of the protocol.
//!
//! The text is complete. Programs read `_meta` and `data`, since clients check structured content against the tool's output
//! schema even in errors.

use std::sync::Arc;

use quorate_diagnostics::render::{concise, json};
use quorate_diagnostics::{Body, RefusalCode, codes};
use quorate_kernel::ports::{state, substrate};
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, MetaObject};
use serde_json::{Value, json};

use super::parameters::{with_parameter_names, with_parameter_names_json};
use quorate::service::error::{ServiceError, error_chain};
use quorate::service::redaction::CurrentRedactor;

/// The key of a result's `_meta` that has `{code, message, help}`.
const META: &str = "quorate/error";

/// Why a tool failed. A job keeps it for later polls.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    code: &'static str,
    message: String,
    help: Option<String>,
    /// All diagnostics, if there are more than the first one.
    diagnostics: Option<Arc<Value>>,
    text: String,
    /// Whether the call does not fit the schema in `tools/list`.
    pub(super) malformed: bool,
}

impl Failure {
    /// A failure with one refusal.
    pub(super) fn new(code: RefusalCode, body: Body) -> Failure {
        ServiceError::configuration(code, body).into()
    }

    /// An unusable argument.
    pub(super) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(codes::USAGE, Body::new(message).help(help))
    }

    /// The call does not fit the schema in `tools/list`.
    pub(super) fn malformed(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure { malformed: true, ..Failure::usage(message, help) }
    }

    /// The failure as a tool's result, with secrets redacted.
    pub(super) fn result(&self, redacted: &CurrentRedactor) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(redacted.redact_text(&self.text))]);
        let mut meta = MetaObject::new();
        meta.insert(META.to_owned(), self.object(redacted));
        result.meta = Some(meta);
        result
    }

    /// The failure as an error of the protocol, with secrets redacted.
    pub(super) fn error(&self, redacted: &CurrentRedactor) -> ErrorData {
        let text = match &self.help {
            Some(help) => format!("{} ({help})", self.message),
            None => self.message.clone(),
        };
        ErrorData::invalid_params(redacted.redact_text(&text), Some(self.object(redacted)))
    }

    /// The failure as an error of the protocol about a resource, with secrets redacted.
    pub(super) fn resource_error(&self, redacted: &CurrentRedactor) -> ErrorData {
        ErrorData { code: ErrorCode::RESOURCE_NOT_FOUND, ..self.error(redacted) }
    }

    /// `{code, message, help}`, for programs.
    fn object(&self, redacted: &CurrentRedactor) -> Value {
        let mut object = json!({"code": self.code, "message": self.message, "help": self.help});
        if let Some(all) = &self.diagnostics {
            object["diagnostics"] = (**all).clone();
        }
        redacted.redact_json(object)
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Failure {
        let report = &error.report;
        let first = report.refusals.first();
        let count = report.refusals.len() + report.warnings.len();
        let places = report.refusals.iter().any(|refusal| refusal.body.place.is_some());
        let diagnostics = (count > 1 || places).then(|| {
            let mut all = json::diagnostics(report);
            with_parameter_names_json(&mut all);
            Arc::new(all)
        });
        Failure {
            code: first.map_or(codes::USAGE.as_str(), |refusal| refusal.code.as_str()),
            message: with_parameter_names(&error.first_message()),
            help: first.and_then(|refusal| refusal.body.help.as_deref().map(with_parameter_names)),
            diagnostics,
            text: with_parameter_names(concise(report).trim_end()),
            malformed: false,
        }
    }
}

impl From<substrate::Error> for Failure {
    fn from(error: substrate::Error) -> Failure {
        ServiceError::from(error).into()
    }
}

impl From<state::Error> for Failure {
    fn from(error: state::Error) -> Failure {
        Failure::new(codes::STATE_UNREADABLE, Body::new(error_chain(&error)))
    }
}
