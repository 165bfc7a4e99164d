//! The records of one invocation: its attempts, and the consultation that it comes to (D7).

use std::time::Duration;

use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json, Name};
use serde_json::{Map, json};

use crate::ports::executor::{About, Usage};
use crate::ports::ledger::Entry;
use crate::record::{self, Spent, Status};

/// What an invocation cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Calls made, re-prompts and retries included.
    pub calls: u32,
    /// Tokens, where the executor knows.
    pub usage: Usage,
    /// From question to end.
    pub took: Duration,
}

impl Cost {
    /// Adds one call's usage.
    pub fn add_call(&mut self, usage: Usage) {
        self.usage.add(usage);
    }

    pub fn recorded(&self) -> Spent {
        let (calls, ms) = (Some(self.calls.into()), Some(millis(self.took)));
        Spent { calls, ms, ..Spent::from(&self.usage) }
    }

    /// As it is in reports.
    pub fn json(&self) -> Json {
        json!(self.recorded())
    }
}

/// One attempt that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub id: Name,
    /// 1 for the first.
    pub number: u32,
    /// Why it was made.
    pub why: &'static str,
    /// `said`, `failed` or `timed_out`.
    pub status: &'static str,
    /// What was said, or the failure's message.
    pub text: String,
    /// What did not fit.
    pub complaints: Vec<String>,
    /// How long it took.
    pub took: Duration,
    /// What it cost, where that is known.
    pub usage: Usage,
    /// The model that was asked, where it says so.
    pub model: Option<String>,
    /// The version of the program that was asked, where it is known.
    pub version: Option<String>,
    /// Whether the reply was given to an earlier question of the same content.
    pub recorded: bool,
    /// The HTTP status of a response that is an error.
    pub http_status: Option<u16>,
}

impl Attempt {
    pub fn into_entry(self, at_ms: i64) -> Entry {
        let spent = Spent::from(&self.usage);
        let data = record::Attempt {
            invocation: self.id,
            attempt: self.number,
            why: self.why.to_owned(),
            status: self.status.to_owned(),
            text: self.text,
            complaints: self.complaints,
            ms: millis(self.took),
            spent: Some(spent).filter(|spent| *spent != Spent::default()),
            model: self.model,
            version: self.version,
            recorded: self.recorded,
            http_status: self.http_status,
        };
        Entry::from_data(data, at_ms)
    }
}

/// An invocation that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Consultation {
    /// The answer, or the reason for its absence.
    pub result: ConsultationResult,
    /// The reason for a missing output, as a message for users.
    pub message: Option<String>,
    /// Whether the answer needed a re-prompt.
    pub repaired: bool,
    /// SHA-256 of the first prompt; `None` if no call was made.
    pub prompt_sha256: Option<String>,
    /// The model that said it answered.
    pub model: Option<String>,
    /// The version of the program that was asked.
    pub version: Option<String>,
    pub spent: Cost,
    /// How many secrets were taken out.
    pub redactions: usize,
    /// Whether the answer came from a recording of an earlier question of the same content, or is missing there: no executor was called.
    pub recorded: bool,
    /// The turn, where the other side has put what was said into the conversation itself.
    pub posted: Option<Name>,
}

impl Consultation {
    /// An invocation without a call, or one that was cancelled.
    pub fn without_answer(why: AbsenceReason, spent: Cost) -> Self {
        Consultation {
            result: ConsultationResult::Absent(why),
            message: None,
            repaired: false,
            prompt_sha256: None,
            model: None,
            version: None,
            spent,
            redactions: 0,
            recorded: false,
            posted: None,
        }
    }

    pub fn status(&self) -> Status {
        Status::of(&self.result)
    }

    pub fn into_entry(
        self,
        invoke: &Invoke,
        executor: &str,
        about: &About,
        weight: Option<f64>,
        at_ms: i64,
    ) -> Entry {
        Entry::from_data(self.into_record(invoke, executor, about, weight), at_ms)
    }

    pub fn into_record(
        self,
        invoke: &Invoke,
        executor: &str,
        about: &About,
        weight: Option<f64>,
    ) -> record::Consultation {
        let status = self.status();
        let (answer, text, scope) = match self.result {
            ConsultationResult::Answered(answer) => (Some(answer), None, None),
            ConsultationResult::Absent(why) => {
                let scope = (why == AbsenceReason::RunOverBudget).then(|| "run".to_owned());
                (None, self.message, scope)
            }
        };
        let requested_model =
            about.model.clone().filter(|asked| self.model.as_ref().is_some_and(|model| model != asked));
        let mut more = Map::new();
        more.insert("woven".to_owned(), Json::Array(Vec::new()));
        more.extend(weight.map(|weight| ("weight".to_owned(), json!(weight))));
        more.extend(invoke.extra_fields.clone());
        record::Consultation {
            invocation: invoke.id.clone(),
            member: invoke.member.clone(),
            step: invoke.step.clone(),
            status,
            attempts: self.spent.calls,
            repaired: self.repaired,
            executor: executor.to_owned(),
            kind: about.kind.to_string(),
            spent: self.spent.recorded(),
            redactions: self.redactions as u64,
            prompt_sha256: self.prompt_sha256,
            model: self.model.or_else(|| about.model.clone()),
            requested_model,
            version: self.version,
            recorded: self.recorded,
            answer,
            text,
            scope,
            more,
        }
    }
}

/// A duration in whole milliseconds.
pub fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// The object of a `json!({…})`.
pub fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(object) => object,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
