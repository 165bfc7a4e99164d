//! The records of one invocation: each attempt, and the consultation (D7).
//! Also the cost of a call or an invocation.

use std::fmt;

use quorate_protocol::{AbsenceReason, ConsultationResult, Event, Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::{RecordData, lenient, to_data};
use crate::canonical;
use crate::ports::executor::Usage;
use crate::ports::ledger::Kind;

/// One attempt of an invocation ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    #[serde(deserialize_with = "lenient")]
    pub invocation: Name,
    /// 1 for the first.
    #[serde(deserialize_with = "lenient")]
    pub attempt: u32,
    /// Why it was made.
    #[serde(deserialize_with = "lenient")]
    pub why: String,
    /// `said`, `failed` or `timed_out`.
    #[serde(deserialize_with = "lenient")]
    pub status: String,
    /// What was said, or the failure's message.
    #[serde(deserialize_with = "lenient")]
    pub text: String,
    /// What did not fit.
    #[serde(deserialize_with = "lenient")]
    pub complaints: Vec<String>,
    #[serde(deserialize_with = "lenient")]
    pub ms: u64,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the reply came from a recording, or is missing there: no executor was called.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_false")]
    pub recorded: bool,
    /// The HTTP status of a response that is an error.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl RecordData for Attempt {
    const KIND: Kind = Kind::Attempt;
}

/// An invocation ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Consultation {
    #[serde(deserialize_with = "lenient")]
    pub invocation: Name,
    #[serde(deserialize_with = "lenient")]
    pub member: Name,
    #[serde(deserialize_with = "lenient")]
    pub step: Name,
    #[serde(deserialize_with = "lenient")]
    pub status: Status,
    /// How many calls were made.
    #[serde(deserialize_with = "lenient")]
    pub attempts: u32,
    /// Whether the answer needed a re-prompt.
    #[serde(deserialize_with = "lenient")]
    pub repaired: bool,
    #[serde(deserialize_with = "lenient")]
    pub executor: String,
    /// The executor's kind.
    #[serde(deserialize_with = "lenient")]
    pub kind: String,
    #[serde(deserialize_with = "lenient")]
    pub spent: Spent,
    /// How many secrets were taken out.
    #[serde(deserialize_with = "lenient")]
    pub redactions: u64,
    /// The hash of the first prompt; `None` if no call was made.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub prompt_sha256: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model that the settings name, where another one answered.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub requested_model: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the answer came from a recording, or is missing there: no executor was called.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_false")]
    pub recorded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Json>,
    /// The reason for a missing answer, as a message for users.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `run` where the budget of the whole run was spent.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The protocol's own fields (`weight`, `mode`, …), and the member of its prompt (`woven`, `shadows`).
    #[serde(flatten)]
    pub more: Map<String, Json>,
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

/// What is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_cached: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_written: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_written_long: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_reasoning: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Calls made, re-prompts and retries included; `None` of one attempt.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// From question to end.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// An amount is a decimal text, since sums of binary fractions are not exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    pub amount: String,
    pub currency: String,
}

const NANOS: u64 = 1_000_000_000;

impl From<&Usage> for Spent {
    fn from(usage: &Usage) -> Spent {
        Spent {
            tokens_in: usage.tokens_in,
            tokens_cached: usage.tokens_cached,
            tokens_written: usage.tokens_written,
            tokens_written_long: usage.tokens_written_long,
            tokens_out: usage.tokens_out,
            tokens_reasoning: usage.tokens_reasoning,
            money: usage.usd_nanos.map(Money::usd),
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
            usd_nanos: self.money.as_ref().and_then(Money::usd_nanos),
        }
    }
}

impl Money {
    /// An amount in billionths of a US dollar.
    pub fn usd(nanos: u64) -> Money {
        let fraction = format!("{:09}", nanos % NANOS);
        let fraction = fraction.trim_end_matches('0');
        let amount = match fraction.is_empty() {
            true => (nanos / NANOS).to_string(),
            false => format!("{}.{fraction}", nanos / NANOS),
        };
        Money { amount, currency: "USD".to_owned() }
    }

    /// Billionths of a US dollar; `None` for another currency, or an amount in another form.
    pub fn usd_nanos(&self) -> Option<u64> {
        if self.currency != "USD" {
            return None;
        }
        let (whole, fraction) = self.amount.split_once('.').unwrap_or((&self.amount, ""));
        if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(NANOS)?.checked_add(fraction)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{read, to_data};

    #[test]
    fn usage_is_read_back_as_it_was_written() {
        for usd_nanos in [None, Some(0), Some(1), Some(1_500_000_000), Some(13_037_250), Some(u64::MAX)] {
            let usage = Usage {
                tokens_in: Some(3),
                tokens_cached: None,
                tokens_written: Some(1),
                tokens_written_long: Some(2),
                tokens_out: Some(u64::MAX),
                tokens_reasoning: Some(0),
                usd_nanos,
            };
            let spent: Spent = read(&to_data(&Spent::from(&usage))).expect("it is read");
            assert_eq!(spent.usage(), usage);
        }
        assert_eq!(json!(Money::usd(13_037_250)), json!({"amount": "0.01303725", "currency": "USD"}));
    }

    #[test]
    fn an_amount_in_another_form_is_unknown() {
        let nanos = |amount: serde_json::Value, currency: &str| {
            let money = json!({"money": {"amount": amount, "currency": currency}});
            read::<Spent>(money.as_object().expect("an object")).expect("it is read").usage().usd_nanos
        };
        for amount in [json!("1e3"), json!("1.0000000001"), json!("-1"), json!("1.+5"), json!(1), json!("")] {
            assert_eq!(nanos(amount.clone(), "USD"), None, "{amount}");
        }
        assert_eq!(nanos(json!("1"), "EUR"), None);
    }
}
