//! Why a tool gave nothing, with a code. What a call asks for and cannot have is the tool's error, which clients show to
//! whoever asked; a call that does not fit its tool is one of the protocol.
//!
//! The text says everything. What programs read stands beside it, in `_meta` and `data`: clients hold the structured
//! content of a result against the tool's output schema, of errors, too.

use std::sync::Arc;

use quorate_diagnostics::render::{concise, json};
use quorate_diagnostics::{Body, RefusalCode, codes};
use quorate_kernel::ports::{state, substrate};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject};
use serde_json::{Value, json};

use super::parameters::{with_parameter_names, with_parameter_names_json};
use quorate::service::error::{ServiceError, error_chain};
use quorate::service::redaction::CurrentRedactor;

/// The key of a result's `_meta` that has `{code, message, help}`.
const META: &str = "quorate/error";

/// Why a tool gave nothing. A job keeps it for everybody who asks later.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    code: &'static str,
    message: String,
    help: Option<String>,
    /// Everything that there is to say, where that is more than the first thing.
    diagnostics: Option<Arc<Value>>,
    /// For people.
    text: String,
    /// Whether the call does not fit what `tools/list` says of the tool.
    pub(super) malformed: bool,
}

impl Failure {
    /// One refusal.
    pub(super) fn new(code: RefusalCode, body: Body) -> Failure {
        ServiceError::configuration(code, body).into()
    }

    /// What was asked for makes no sense.
    pub(super) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(codes::USAGE, Body::new(message).help(help))
    }

    /// The call does not fit what `tools/list` says of the tool.
    pub(super) fn malformed(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure { malformed: true, ..Failure::usage(message, help) }
    }

    /// As a tool's result, without secrets.
    pub(super) fn result(&self, redacted: &CurrentRedactor) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(redacted.redact_text(&self.text))]);
        let mut meta = MetaObject::new();
        meta.insert(META.to_owned(), self.object(redacted));
        result.meta = Some(meta);
        result
    }

    /// As an error of the protocol, without secrets.
    pub(super) fn error(&self, redacted: &CurrentRedactor) -> ErrorData {
        let text = match &self.help {
            Some(help) => format!("{} ({help})", self.message),
            None => self.message.clone(),
        };
        ErrorData::invalid_params(redacted.redact_text(&text), Some(self.object(redacted)))
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
        let said = report.refusals.len() + report.warnings.len();
        let places = report.refusals.iter().any(|one| one.body.place.is_some());
        let diagnostics = (said > 1 || places).then(|| {
            let mut all = json::diagnostics(report);
            with_parameter_names_json(&mut all);
            Arc::new(all)
        });
        Failure {
            code: first.map_or(codes::USAGE.as_str(), |one| one.code.as_str()),
            message: with_parameter_names(&error.first_message()),
            help: first.and_then(|one| one.body.help.as_deref().map(with_parameter_names)),
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
