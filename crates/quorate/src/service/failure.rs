//! The reason why an invocation has no answer, in the form of every machine format.

use quorate_kernel::history::History;
use quorate_kernel::record::{Consultation, Status};
use serde::Serialize;

/// The maximum length of a quoted excerpt, in characters.
const MAX_EXCERPT_CHARS: usize = 200;

/// Why an invocation has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The status of the invocation: `timed_out`, `failed`, `schema_failed`, …
    pub kind: String,
    /// One sentence; never empty.
    pub message: String,
    /// The HTTP status of the last response, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
    /// Calls that repeat one that failed. Re-prompts do not count.
    pub retries: u32,
    /// The beginning of the text that the member gave instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

impl Failure {
    /// Why a consultation has no answer; `None` if it has one.
    pub fn of(history: &History, ended: &Consultation) -> Option<Failure> {
        if ended.status == Status::Answered {
            return None;
        }
        let attempts = history.failed.get(&ended.invocation).cloned().unwrap_or_default();
        let recorded = ended.text.clone().filter(|text| !text.trim().is_empty());
        Some(Failure {
            kind: ended.status.as_str().to_owned(),
            message: recorded.unwrap_or_else(|| default_message(ended)),
            http: attempts.http_status,
            retries: attempts.retries,
            excerpt: attempts.said.as_deref().map(excerpt).filter(|excerpt| !excerpt.is_empty()),
        })
    }
}

/// The message for a consultation that records none.
fn default_message(ended: &Consultation) -> String {
    match &ended.status {
        Status::TimedOut => {
            let seconds = ended.spent.ms.unwrap_or(0) / 1_000;
            format!("no answer within {seconds} s (timeout of executor `{}`)", ended.executor)
        }
        Status::Failed => format!("executor `{}` failed without a reason", ended.executor),
        Status::SchemaFailed => "the answer does not fit its schema".to_owned(),
        Status::OverBudget if ended.scope.is_some() => "the budget of the run is spent".to_owned(),
        Status::OverBudget => "the member's budget is spent".to_owned(),
        Status::Cancelled => "the call was cancelled".to_owned(),
        Status::Late => "the answer came after the call was cancelled".to_owned(),
        Status::Erased => "the record was erased".to_owned(),
        Status::Answered | Status::Other(_) => format!("the invocation ended as `{}`", ended.status),
    }
}

/// The beginning of a text, on one line.
fn excerpt(said: &str) -> String {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}\u{2026}", &line[..end]),
        None => line,
    }
}
