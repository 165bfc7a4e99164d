//! What a report shows of each member, from the run's records: its executor and cost, and why an answer is missing.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_kernel::attempts::Cost;
use quorate_kernel::history::History;
use quorate_kernel::record::{Consultation, Status};
use schemars::JsonSchema;
use serde::Serialize;

/// The questions to one member, added up. Reports add the keys of its JSON to the member's object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct MemberUsage {
    /// The member's id.
    #[serde(skip)]
    pub member: String,
    /// The name of its executor; that of the last question, if a resumed run used another.
    pub executor: String,
    /// The executor's kind.
    pub kind: String,
    /// The model that answered last; the requested model if no answer names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub model: Option<String>,
    /// The requested model, if another one answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub requested_model: Option<String>,
    /// Calls, known tokens and prices, and the time from each question to its end, added up.
    pub spent: Cost,
}

impl MemberUsage {
    /// The usage of each member that was asked, by its id.
    pub(crate) fn all(history: &History) -> BTreeMap<String, MemberUsage> {
        let mut all: BTreeMap<String, MemberUsage> = BTreeMap::new();
        // An erased record has neither executor nor price.
        for ended in history.consultations().filter(|ended| !ended.executor.is_empty()) {
            let member = ended.member.to_string();
            all.entry(member.clone()).or_insert(MemberUsage { member, ..MemberUsage::default() }).add(ended);
        }
        all
    }

    fn add(&mut self, ended: &Consultation) {
        self.executor.clone_from(&ended.executor);
        self.kind.clone_from(&ended.kind);
        if let Some(model) = &ended.model {
            self.model = Some(model.clone());
            self.requested_model.clone_from(&ended.requested_model);
        }
        let calls = u32::try_from(ended.spent.calls.unwrap_or(0)).unwrap_or(u32::MAX);
        self.spent.calls = self.spent.calls.saturating_add(calls);
        self.spent.usage.add(ended.spent.usage());
        self.spent.took = self.spent.took.saturating_add(Duration::from_millis(ended.spent.ms.unwrap_or(0)));
    }
}

/// The headline of a run whose answers were all recorded before.
const RECORDED: &str = "Recorded answers; no model was asked";

/// The number of a run's answers that were recorded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedAnswers {
    recorded: usize,
    answers: usize,
    /// Questions without a recorded answer, for which no model was asked.
    missing: usize,
    /// Questions that were put to a member, with or without an answer.
    asked: usize,
}

impl RecordedAnswers {
    /// Counts the answers of a run.
    pub(crate) fn count(history: &History) -> Self {
        let count = |is: fn(&&Consultation) -> bool| history.consultations().filter(is).count();
        RecordedAnswers {
            recorded: count(|ended| ended.recorded && ended.answer.is_some()),
            answers: count(|ended| ended.answer.is_some()),
            missing: count(|ended| ended.recorded && ended.answer.is_none()),
            asked: count(|ended| !ended.recorded && ended.attempts > 0),
        }
    }

    /// Whether all answers come from recordings, so that no model was asked.
    pub(crate) fn all(self) -> bool {
        self.recorded + self.missing > 0 && self.asked == 0
    }

    /// The headline of a run that asked no model: its answers were recorded, or recordings are missing.
    pub(crate) fn headline(self) -> Option<String> {
        match self.missing {
            0 => self.all().then(|| RECORDED.to_owned()),
            1 => Some("1 recorded answer is missing; no model was asked".to_owned()),
            many => Some(format!("{many} recorded answers are missing; no model was asked")),
        }
    }

    /// The note on a run some of whose answers were recorded.
    pub(crate) fn note(self) -> Option<String> {
        let RecordedAnswers { recorded, answers, .. } = self;
        (recorded > 0 && !self.all())
            .then(|| format!("{recorded} of {answers} answers come from recordings."))
    }
}

/// The maximum length of a quoted excerpt, in characters.
const MAX_EXCERPT_CHARS: usize = 200;

/// Why an invocation has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "failure", deny_unknown_fields)]
pub struct Failure {
    /// The status of the invocation: `timed_out`, `failed`, `schema_failed`, `over_budget`, `cancelled`, `late` or
    /// `erased`.
    pub kind: String,
    /// One sentence; never empty.
    pub message: String,
    /// The HTTP status of the last response, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u16", range(min = 100, max = 599))]
    pub http: Option<u16>,
    /// Calls that repeat one that failed. Re-prompts do not count.
    pub retries: u32,
    /// The beginning of the text that the member gave instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub excerpt: Option<String>,
}

impl Failure {
    /// Why a consultation has no answer; `None` if it has one.
    pub(crate) fn of(history: &History, ended: &Consultation) -> Option<Failure> {
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
