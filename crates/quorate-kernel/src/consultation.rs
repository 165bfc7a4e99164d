//! The records of one invocation: its attempts, and the consultation that it comes to (D7).

use std::time::Duration;

use quorate_protocol::{AbsenceReason, ConsultationResult, Event, Invoke, Json, Name};
use serde_json::{Map, json};

use crate::canonical;
use crate::ports::executor::{About, Usage};
use crate::ports::ledger::{Entry, Kind};

/// The status of an answer that came after its question was taken back. It is fed to nobody.
pub const LATE: &str = "late";

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

    /// As it stands in records and reports.
    pub fn json(&self) -> Json {
        let mut spent = usage_object(&self.usage);
        spent.insert("calls".to_owned(), json!(self.calls));
        spent.insert("ms".to_owned(), json!(millis(self.took)));
        Json::Object(spent)
    }
}

/// Usage as it stands in `spent`: what is known of it.
pub fn usage_object(usage: &Usage) -> Map<String, Json> {
    let tokens = [
        ("tokens_in", usage.tokens_in),
        ("tokens_cached", usage.tokens_cached),
        ("tokens_out", usage.tokens_out),
    ];
    let tokens = tokens.into_iter().filter_map(|(key, count)| Some((key.to_owned(), json!(count?))));
    let money = usage.usd_nanos.map(|nanos| ("money".to_owned(), usd_json(nanos)));
    tokens.chain(money).collect()
}

/// Usage as [`usage_object`] writes it.
pub fn read_usage(spent: &Json) -> Usage {
    let tokens = |key: &str| spent.get(key).and_then(Json::as_u64);
    Usage {
        tokens_in: tokens("tokens_in"),
        tokens_cached: tokens("tokens_cached"),
        tokens_out: tokens("tokens_out"),
        usd_nanos: spent.get("money").and_then(read_usd_nanos),
    }
}

const NANOS: u64 = 1_000_000_000;

/// An amount is a decimal text, since sums of binary fractions are not exact.
fn usd_json(nanos: u64) -> Json {
    let fraction = format!("{:09}", nanos % NANOS);
    let fraction = fraction.trim_end_matches('0');
    let amount = match fraction.is_empty() {
        true => (nanos / NANOS).to_string(),
        false => format!("{}.{fraction}", nanos / NANOS),
    };
    json!({"amount": amount, "currency": "USD"})
}

fn read_usd_nanos(money: &Json) -> Option<u64> {
    if money.get("currency")? != "USD" {
        return None;
    }
    let amount = money.get("amount")?.as_str()?;
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(NANOS)?.checked_add(fraction)
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
}

impl Attempt {
    pub fn entry(&self, at_ms: i64) -> Entry {
        let mut data = object(json!({
            "invocation": &*self.id,
            "attempt": self.number,
            "why": self.why,
            "status": self.status,
            "text": self.text,
            "complaints": self.complaints,
            "ms": millis(self.took),
        }));
        let spent = usage_object(&self.usage);
        if !spent.is_empty() {
            data.insert("spent".to_owned(), Json::Object(spent));
        }
        for (key, value) in [("model", &self.model), ("version", &self.version)] {
            if let Some(value) = value {
                data.insert(key.to_owned(), json!(value));
            }
        }
        Entry { kind: Kind::Attempt, at_ms, data }
    }
}

/// An invocation that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Consultation {
    /// What came of it.
    pub result: ConsultationResult,
    /// Why there is no output, for a person.
    pub message: Option<String>,
    /// Whether the answer needed a re-prompt.
    pub repaired: bool,
    /// SHA-256 of the first prompt; `None` where nobody was asked.
    pub prompt_sha256: Option<String>,
    /// The model that said it answered.
    pub model: Option<String>,
    /// The version of the program that was asked.
    pub version: Option<String>,
    pub spent: Cost,
    /// How many secrets were taken out.
    pub redactions: usize,
    /// The turn, where the other side has put what was said into the conversation itself.
    pub posted: Option<Name>,
}

impl Consultation {
    /// Nobody was asked, or what was asked was taken back.
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
            posted: None,
        }
    }

    pub fn status(&self) -> &'static str {
        match &self.result {
            ConsultationResult::Answered(_) => "answered",
            ConsultationResult::Absent(why) => why.status(),
        }
    }

    pub fn entry(
        &self,
        invoke: &Invoke,
        executor: &str,
        about: &About,
        weight: Option<f64>,
        at_ms: i64,
    ) -> Entry {
        let mut data = object(json!({
            "invocation": &*invoke.id,
            "member": &*invoke.member,
            "step": &*invoke.step,
            "status": self.status(),
            "attempts": self.spent.calls,
            "repaired": self.repaired,
            "woven": [],
            "executor": executor,
            "kind": about.kind,
            "spent": self.spent.json(),
            "redactions": self.redactions,
        }));
        let mut put = |key: &str, value: Option<Json>| {
            if let Some(value) = value {
                data.insert(key.to_owned(), value);
            }
        };
        put("prompt_sha256", self.prompt_sha256.as_ref().map(|hash| json!(hash)));
        put("model", self.model.as_ref().or(about.model.as_ref()).map(|model| json!(model)));
        put("version", self.version.as_ref().map(|version| json!(version)));
        put("weight", weight.map(|weight| json!(weight)));
        for (key, value) in &invoke.extra_fields {
            put(key, Some(value.clone()));
        }
        match &self.result {
            ConsultationResult::Answered(answer) => put("answer", Some(answer.clone())),
            ConsultationResult::Absent(why) => {
                put("text", self.message.as_ref().map(|message| json!(message)));
                put("scope", (*why == AbsenceReason::RunOverBudget).then(|| json!("run")));
            }
        }
        Entry { kind: Kind::Consultation, at_ms, data }
    }
}

/// The event that a consultation's record stands for, the same before it is recorded and after; `None` where it stands for
/// none, as that of a late answer does.
pub fn to_event(data: &Map<String, Json>) -> Option<Event> {
    let id: Name = data.get("invocation")?.as_str()?.into();
    let result = match data.get("status")?.as_str()? {
        "answered" => ConsultationResult::Answered(canonical::normalize(data.get("answer")?.clone())),
        "timed_out" => ConsultationResult::Absent(AbsenceReason::TimedOut),
        "failed" => ConsultationResult::Absent(AbsenceReason::Failed),
        "schema_failed" => ConsultationResult::Absent(AbsenceReason::SchemaFailed),
        "over_budget" if data.contains_key("scope") => {
            ConsultationResult::Absent(AbsenceReason::RunOverBudget)
        }
        "over_budget" => ConsultationResult::Absent(AbsenceReason::OverBudget),
        "cancelled" => ConsultationResult::Absent(AbsenceReason::Cancelled),
        _ => return None,
    };
    Some(Event::Consulted { id, result })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_back_as_it_was_written() {
        for usd_nanos in [None, Some(0), Some(1), Some(1_500_000_000), Some(13_037_250), Some(u64::MAX)] {
            let usage =
                Usage { tokens_in: Some(3), tokens_cached: None, tokens_out: Some(u64::MAX), usd_nanos };
            assert_eq!(read_usage(&Json::Object(usage_object(&usage))), usage);
        }
        assert_eq!(usd_json(13_037_250), json!({"amount": "0.01303725", "currency": "USD"}));
    }

    #[test]
    fn an_amount_in_another_form_is_unknown() {
        for amount in [json!("1e3"), json!("1.0000000001"), json!("-1"), json!("1.+5"), json!(1), json!("")] {
            assert_eq!(read_usd_nanos(&json!({"amount": amount, "currency": "USD"})), None, "{amount}");
        }
        assert_eq!(read_usd_nanos(&json!({"amount": "1", "currency": "EUR"})), None);
    }
}
