//! The records of one invocation: each attempt, and the consultation (D7).
//! Also the cost of a call or an invocation.

use std::collections::BTreeMap;
use std::fmt;

use quorate_manifest::money::Money;
use quorate_protocol::answers::samples::Spread;
use quorate_protocol::{AbsenceReason, ConsultationResult, Event, Json, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::{RecordData, lenient, readable_items, to_data};
use crate::canonical;
use crate::ports::executor::Usage;
use crate::ports::ledger::Kind;

record_data! {
    /// One attempt of an invocation ended.
    pub struct Attempt: Attempt {
        pub invocation: Name,
        /// 1 for the first.
        pub attempt: u32,
        /// Why it was made.
        pub why: String,
        /// `said`, `failed` or `timed_out`.
        pub status: String,
        /// What was said, or the failure's message.
        pub text: String,
        /// What did not fit.
        pub complaints: Vec<String>,
        pub ms: u64,
        pub spent?: Spent,
        pub model?: String,
        pub version?: String,
        /// Whether the reply came from a recording, or is missing there: no executor was called.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub recorded: bool,
        /// The HTTP status of a response that is an error.
        pub http_status?: u16,
        /// How many requests it made, if more than one: the service refused a part of the first.
        pub requests?: u32,
        /// What a request needed so that the service accepted it, and the setting that does the same.
        pub changed[]: String,
        /// The number of the sample, counted from 1, where the member is asked for several.
        pub sample?: u32,
        /// The hash of the first prompt of a sample.
        pub prompt_sha256?: String,
        /// The executor, where it stands in for another one.
        pub executor?: String,
    }

    /// An invocation ended.
    pub struct Consultation {
        pub invocation: Name,
        pub member: Name,
        pub step: Name,
        pub status: Status,
        /// How many calls were made.
        pub attempts: u32,
        /// Whether the answer needed a re-prompt.
        pub repaired: bool,
        pub executor: String,
        /// The executor's kind.
        pub kind: String,
        /// The executor that it stands in for.
        pub stand_in_for?: String,
        /// Whether the stand-in asks a model.
        pub asks_a_model?: bool,
        /// The executors before the stand-in, in the order in which they were asked.
        pub tried[]: Tried,
        pub spent: Spent,
        /// How many secrets were taken out.
        pub redactions: u64,
        /// The hash of the first prompt; `None` if no call was made.
        pub prompt_sha256?: String,
        pub model?: String,
        /// The model that the settings name, where another one answered.
        pub requested_model?: String,
        pub version?: String,
        /// The tools that the program refused its model, by its own names.
        pub refused_tools[]: String,
        /// Whether the answer came from a recording, or is missing there: no executor was called.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub recorded: bool,
        /// How the samples of the answer differ, where it has several.
        pub samples?: Samples,
        /// The probability of each option, where a decision model answered.
        pub probabilities?: BTreeMap<String, f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub answer: Option<Json> = plain,
        /// The reason for a missing answer, as a message for users.
        pub text?: String,
        /// `run` where the budget of the whole run was spent.
        pub scope?: String,
        /// The protocol's own fields (`weight`, `mode`, …), and the member of its prompt (`woven`, `shadows`).
        pub ..more: Map<String, Json>,
    }
}

record_data! {
    /// An executor whose service failed, so that a stand-in was asked.
    #[derive(Eq, JsonSchema)]
    #[schemars(inline, deny_unknown_fields, extend("required" = ["executor", "message"]))]
    pub struct Tried {
        /// The executor's name.
        pub executor: String,
        /// Why it gave no answer.
        pub message: String,
        /// The HTTP status of its last response, if it is an error.
        #[schemars(with = "u16", range(min = 100, max = 599))]
        pub http?: u16,
    }
}

record_data! {
    /// How the samples of one answer differ.
    #[derive(Eq, JsonSchema)]
    #[schemars(inline, deny_unknown_fields, extend("required" = ["asked", "answered", "agree", "spread"]))]
    pub struct Samples {
        /// How many samples were asked for.
        pub asked: u32,
        /// How many of them have an answer that fits.
        pub answered: u32,
        /// How many of them agree with the answer that counts, in the fields that decide; 0 where no answer counts.
        pub agree: u32,
        /// The number of the sample whose answer counts, counted from 1.
        #[schemars(with = "u32")]
        pub chosen?: u32,
        /// For each typed field, how many samples gave each value.
        pub spread: Spread,
        /// The samples without an answer.
        pub missing[]: MissingSample,
    }

    /// A sample without an answer.
    #[derive(Eq, JsonSchema)]
    #[schemars(inline, deny_unknown_fields, extend("required" = ["sample", "why"]))]
    pub struct MissingSample {
        /// The number of the sample, counted from 1.
        pub sample: u32,
        /// The reason.
        pub why: String,
    }
}

impl Attempt {
    /// Whether it is an answer that fits.
    pub fn is_answer(&self) -> bool {
        self.status == "said" && self.complaints.is_empty()
    }
}

impl RecordData for Consultation {
    const KIND: Kind = Kind::Consultation;

    fn into_data(mut self) -> Map<String, Json> {
        let (answer, more) = (self.answer.take(), std::mem::take(&mut self.more));
        let mut data = to_data(&self);
        data.extend(answer.map(|answer| ("answer".to_owned(), answer)));
        data.extend(more);
        data
    }
}

impl Consultation {
    /// The event that it stands for, the same before it is recorded and after; `None` where it stands for none, as that of
    /// a late answer does.
    pub fn event(&self) -> Option<Event> {
        let absent = |reason| ConsultationResult::Absent(reason);
        let result = match &self.status {
            Status::Answered => ConsultationResult::Answered(canonical::normalize(self.answer.clone()?)),
            Status::TimedOut => absent(AbsenceReason::TimedOut),
            Status::Failed => absent(AbsenceReason::Failed),
            Status::SchemaFailed => absent(AbsenceReason::SchemaFailed),
            Status::OverBudget if self.scope.is_some() => absent(AbsenceReason::RunOverBudget),
            Status::OverBudget => absent(AbsenceReason::OverBudget),
            Status::Cancelled => absent(AbsenceReason::Cancelled),
            Status::Late | Status::Erased | Status::Other(_) => return None,
        };
        (!self.invocation.is_empty()).then(|| Event::Consulted { id: self.invocation.clone(), result })
    }
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Answered,
    TimedOut,
    Failed,
    SchemaFailed,
    OverBudget,
    Cancelled,
    /// The answer came after its invocation was cancelled. It is not fed to the protocol.
    Late,
    /// The consultation was erased. Only views use this status; it is not recorded.
    Erased,
    /// A word of another version, which stands for no event.
    #[serde(untagged)]
    Other(String),
}

impl Default for Status {
    fn default() -> Self {
        Status::Other(String::new())
    }
}

impl Status {
    pub fn of(result: &ConsultationResult) -> Status {
        match result {
            ConsultationResult::Answered(_) => Status::Answered,
            ConsultationResult::Absent(AbsenceReason::TimedOut) => Status::TimedOut,
            ConsultationResult::Absent(AbsenceReason::Failed) => Status::Failed,
            ConsultationResult::Absent(AbsenceReason::SchemaFailed) => Status::SchemaFailed,
            ConsultationResult::Absent(AbsenceReason::OverBudget | AbsenceReason::RunOverBudget) => {
                Status::OverBudget
            }
            ConsultationResult::Absent(AbsenceReason::Cancelled) => Status::Cancelled,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Status::Answered => "answered",
            Status::TimedOut => "timed_out",
            Status::Failed => "failed",
            Status::SchemaFailed => "schema_failed",
            Status::OverBudget => "over_budget",
            Status::Cancelled => "cancelled",
            Status::Late => "late",
            Status::Erased => "erased",
            Status::Other(word) => word,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

record_data! {
    /// What is known of it.
    #[derive(Eq, JsonSchema)]
    #[schemars(inline, deny_unknown_fields)]
    pub struct Spent {
        /// Tokens of the prompts, those of a cache included.
        #[schemars(with = "u64")]
        pub tokens_in?: u64,
        /// Of `tokens_in`, those read from a cache.
        #[schemars(with = "u64")]
        pub tokens_cached?: u64,
        /// Of `tokens_in`, those written to a cache for minutes.
        #[schemars(with = "u64")]
        pub tokens_written?: u64,
        /// Of `tokens_in`, those written to a cache for an hour or longer.
        #[schemars(with = "u64")]
        pub tokens_written_long?: u64,
        /// Tokens that the models wrote, reasoning included.
        #[schemars(with = "u64")]
        pub tokens_out?: u64,
        /// Of `tokens_out`, those of reasoning.
        #[schemars(with = "u64")]
        pub tokens_reasoning?: u64,
        /// The price, if it is known.
        #[schemars(with = "Money")]
        pub money?: Money,
        /// Calls made, re-prompts and retries included.
        #[schemars(with = "u64")]
        pub calls?: u64,
        /// Milliseconds from question to end.
        #[schemars(with = "u64")]
        pub ms?: u64,
    }
}

impl From<&Usage> for Spent {
    fn from(usage: &Usage) -> Spent {
        Spent {
            tokens_in: usage.tokens_in,
            tokens_cached: usage.tokens_cached,
            tokens_written: usage.tokens_written,
            tokens_written_long: usage.tokens_written_long,
            tokens_out: usage.tokens_out,
            tokens_reasoning: usage.tokens_reasoning,
            money: usage.money,
            calls: None,
            ms: None,
        }
    }
}

impl Spent {
    pub fn usage(&self) -> Usage {
        Usage {
            tokens_in: self.tokens_in,
            tokens_cached: self.tokens_cached,
            tokens_written: self.tokens_written,
            tokens_written_long: self.tokens_written_long,
            tokens_out: self.tokens_out,
            tokens_reasoning: self.tokens_reasoning,
            money: self.money,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{read, to_data};

    #[test]
    fn usage_is_read_back_as_it_was_written() {
        for nanos in [None, Some(0), Some(1), Some(1_500_000_000), Some(13_037_250), Some(u64::MAX)] {
            let usage = Usage {
                tokens_in: Some(3),
                tokens_cached: None,
                tokens_written: Some(1),
                tokens_written_long: Some(2),
                tokens_out: Some(u64::MAX),
                tokens_reasoning: Some(0),
                money: nanos.map(Money::from_nanos),
            };
            let spent: Spent = read(&to_data(&Spent::from(&usage))).expect("it is read");
            assert_eq!(spent.usage(), usage);
        }
    }

    #[test]
    fn an_amount_in_another_form_is_unknown() {
        let money = |amount: serde_json::Value, currency: &str| {
            let spent = json!({"money": {"amount": amount, "currency": currency}});
            read::<Spent>(spent.as_object().expect("an object")).expect("it is read").usage().money
        };
        for amount in [json!("1e3"), json!("1.0000000001"), json!("-1"), json!("1.+5"), json!(1), json!("")] {
            assert_eq!(money(amount.clone(), "USD"), None, "{amount}");
        }
        assert_eq!(money(json!("1"), "EUR"), None);
    }
}
