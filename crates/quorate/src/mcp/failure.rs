//! Why a tool gave nothing: a code and what it says, as a tool's error and not as one of the protocol, since clients
//! show the former to whoever asked.

use std::sync::Arc;

use quorate_diagnostics::render::{concise, json};
use quorate_diagnostics::{Body, RefusalCode, codes};
use quorate_kernel::ports::{state, substrate};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::service::redaction::InForce;
use crate::service::stop::{Stop, chain};

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
}

impl Failure {
    /// One refusal.
    pub(super) fn new(code: RefusalCode, body: Body) -> Failure {
        Stop::configuration(code, body).into()
    }

    /// What was asked for makes no sense.
    pub(super) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(codes::USAGE, Body::new(message).help(help))
    }

    /// As a tool's result: the text for people, and `{code, message, help}` for programs, both without secrets.
    pub(super) fn result(&self, redacted: &InForce) -> CallToolResult {
        let mut object = json!({"code": self.code, "message": self.message, "help": self.help});
        if let Some(all) = &self.diagnostics {
            object["diagnostics"] = (**all).clone();
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(redacted.shown(&self.text))]);
        result.structured_content = Some(redacted.shown_json(object));
        result
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        let report = &stop.report;
        let first = report.refusals.first();
        let said = report.refusals.len() + report.warnings.len();
        let places = report.refusals.iter().any(|one| one.body.place.is_some());
        Failure {
            code: first.map_or(codes::USAGE.as_str(), |one| one.code.as_str()),
            message: stop.first(),
            help: first.and_then(|one| one.body.help.clone()),
            diagnostics: (said > 1 || places).then(|| Arc::new(json::diagnostics(report))),
            text: concise(report).trim_end().to_owned(),
        }
    }
}

impl From<substrate::Error> for Failure {
    fn from(error: substrate::Error) -> Failure {
        Stop::from(error).into()
    }
}

impl From<state::Error> for Failure {
    fn from(error: state::Error) -> Failure {
        Failure::new(codes::STATE_UNREADABLE, Body::new(chain(&error)))
    }
}
