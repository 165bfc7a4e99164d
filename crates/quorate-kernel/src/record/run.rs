//! The course of a run: who is about to be asked, keys that came later, its end, and what a person decided.

use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};

use super::{Money, RecordData, lenient, readable_items};
use crate::budget::Amount;
use crate::ports::ledger::Kind;

/// Calls are about to be made; each that has no consultation later counts as spent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunIntent {
    #[serde(deserialize_with = "readable_items")]
    pub invocations: Vec<Name>,
    /// What the next call of an invocation may take, where the run's tokens or money are capped.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<Reserved>,
    /// What comparisons by meaning may take that begin now, as `reserved`.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub compares: Vec<Compares>,
    /// Whether a process begins with it that continues with the run.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
    /// What was fed and is taken back.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<Name>,
}

impl RecordData for RunIntent {
    const KIND: Kind = Kind::RunIntent;
}

/// The most that one call may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    pub invocation: Name,
    #[serde(flatten)]
    pub most: Charged,
}

/// The most that one comparison takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compares {
    pub candidate: Name,
    #[serde(flatten)]
    pub most: Charged,
}

/// Tokens and money as they count against caps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charged {
    pub tokens: u64,
    pub money: Money,
}

impl From<Amount> for Charged {
    fn from(amount: Amount) -> Charged {
        Charged { tokens: amount.tokens, money: Money::usd(amount.usd_nanos) }
    }
}

impl Charged {
    /// As much as there is, where the amount of money cannot be read.
    pub fn amount(&self) -> Amount {
        Amount { tokens: self.tokens, usd_nanos: self.money.usd_nanos().unwrap_or(u64::MAX) }
    }
}

/// Everything that follows from the outcome is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnded {
    /// Whether its lines are in a log.
    #[serde(deserialize_with = "lenient")]
    pub logged: bool,
    /// The log, where it is another one than its first record names.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
}

impl RecordData for RunEnded {
    const KIND: Kind = Kind::RunEnded;
}

/// A person decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Override {
    #[serde(deserialize_with = "lenient")]
    pub verdict: String,
    #[serde(deserialize_with = "lenient")]
    pub reason: String,
    #[serde(deserialize_with = "lenient")]
    pub by: String,
    /// What the council had decided.
    #[serde(deserialize_with = "lenient")]
    pub council_verdict: Option<String>,
    /// `Some(false)` where its line was still to be logged when it was recorded.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub logged: Option<bool>,
}

impl Override {
    /// Whether its line was still to be logged when it was recorded; then the run ends once more when it is.
    pub fn is_unlogged(&self) -> bool {
        self.logged == Some(false)
    }
}

impl RecordData for Override {
    const KIND: Kind = Kind::Override;
}

/// Keys that may sign for the run from here on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Keyring {
    /// Each vouched for by one that could sign before; the ledger reads and checks them.
    #[serde(deserialize_with = "lenient")]
    pub vouched: Vec<Json>,
}

impl RecordData for Keyring {
    const KIND: Kind = Kind::Keyring;
}
