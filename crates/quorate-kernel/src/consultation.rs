//! The records of one invocation: its attempts, and the consultation that it comes to (INTERFACES, D7).

use std::time::Duration;

use quorate_protocol::{Absent, Consultation, Event, Invoke, Json, Name};
use serde_json::{Map, json};

use crate::canonical;
use crate::ports::executor::{About, Usage};
use crate::ports::ledger::{Entry, Kind};

/// The status of an answer that came after its question was taken back. It is fed to nobody.
pub const LATE: &str = "late";

/// What an invocation cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Calls made, re-prompts and retries included.
    pub calls: u32,
    /// Tokens, where the executor knows.
    pub usage: Usage,
    /// From question to end.
    pub took: Duration,
}

impl Spent {
    /// Adds one call's usage.
    pub fn call(&mut self, usage: Usage) {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.usage.tokens_in = add(self.usage.tokens_in, usage.tokens_in);
        self.usage.tokens_out = add(self.usage.tokens_out, usage.tokens_out);
    }

    fn json(&self) -> Json {
        let mut spent = json!({"calls": self.calls, "ms": millis(self.took)});
        for (key, tokens) in [("tokens_in", self.usage.tokens_in), ("tokens_out", self.usage.tokens_out)] {
            if let Some(tokens) = tokens {
                spent[key] = json!(tokens);
            }
        }
        spent
    }
}

/// One attempt that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The invocation.
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
}

impl Attempt {
    /// Its record.
    pub fn entry(&self, at_ms: i64) -> Entry {
        let data = object(json!({
            "invocation": &*self.id,
            "attempt": self.number,
            "why": self.why,
            "status": self.status,
            "text": self.text,
            "complaints": self.complaints,
            "ms": millis(self.took),
        }));
        Entry { kind: Kind::Attempt, at_ms, data }
    }
}

/// An invocation that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// What came of it.
    pub result: Consultation,
    /// Why there is no output, for a person.
    pub message: Option<String>,
    /// Whether the answer needed a re-prompt.
    pub repaired: bool,
    /// SHA-256 of the first prompt; `None` where nobody was asked.
    pub prompt_sha256: Option<String>,
    /// The model that said it answered.
    pub model: Option<String>,
    /// What it cost.
    pub spent: Spent,
    /// How many secrets were taken out.
    pub redactions: usize,
    /// The turn, where the other side has put what was said into the conversation itself.
    pub posted: Option<Name>,
}

impl Ended {
    /// Nobody was asked, or what was asked was taken back.
    pub fn without_answer(why: Absent, spent: Spent) -> Self {
        Ended {
            result: Consultation::Absent(why),
            message: None,
            repaired: false,
            prompt_sha256: None,
            model: None,
            spent,
            redactions: 0,
            posted: None,
        }
    }

    /// The status word.
    pub fn status(&self) -> &'static str {
        match &self.result {
            Consultation::Answered(_) => "answered",
            Consultation::Absent(why) => why.status(),
        }
    }

    /// Its record.
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
        put("weight", weight.map(|weight| json!(weight)));
        for (key, value) in &invoke.marks {
            put(key, Some(value.clone()));
        }
        match &self.result {
            Consultation::Answered(answer) => put("answer", Some(answer.clone())),
            Consultation::Absent(why) => {
                put("text", self.message.as_ref().map(|message| json!(message)));
                put("scope", (*why == Absent::RunOverBudget).then(|| json!("run")));
            }
        }
        Entry { kind: Kind::Consultation, at_ms, data }
    }
}

/// The event that a consultation's record stands for, the same before it is recorded and after; `None` where it stands for
/// none, as that of a late answer does.
pub fn event(data: &Map<String, Json>) -> Option<Event> {
    let id: Name = data.get("invocation")?.as_str()?.into();
    let result = match data.get("status")?.as_str()? {
        "answered" => Consultation::Answered(canonical::normal(data.get("answer")?.clone())),
        "timed_out" => Consultation::Absent(Absent::TimedOut),
        "failed" => Consultation::Absent(Absent::Failed),
        "schema_failed" => Consultation::Absent(Absent::SchemaFailed),
        "over_budget" if data.contains_key("scope") => Consultation::Absent(Absent::RunOverBudget),
        "over_budget" => Consultation::Absent(Absent::OverBudget),
        "cancelled" => Consultation::Absent(Absent::Cancelled),
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
