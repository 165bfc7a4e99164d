//! The course of a run: who is about to be asked, keys that came later, its end, and what a person decided.
//! Also how a run was started, and what the host did for it.

use quorate_protocol::{Json, Name, SemanticHit};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::{Money, RecordData, Spent, lenient, readable_items};
use crate::budget::Amount;
use crate::ports::ledger::Kind;

/// Calls are about to be made; each that has no consultation later counts as spent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunIntent {
    #[serde(deserialize_with = "readable_items")]
    pub invocations: Vec<Name>,
    /// The amount reserved for the next call of an invocation, if the run's tokens or money are capped.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<Reserved>,
    /// The amount reserved for comparisons by meaning that begin now, as `reserved`.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub compares: Vec<Compares>,
    /// Whether a process begins with it that continues with the run.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
    /// Invocations superseded by a later event.
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
    /// Each is vouched for by a key that could sign before; the ledger reads and checks them.
    #[serde(deserialize_with = "lenient")]
    pub vouched: Vec<Json>,
}

impl RecordData for Keyring {
    const KIND: Kind = Kind::Keyring;
}

/// The first record of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOpened {
    /// The protocol with its version: `council/1`, `voting/1`, …
    #[serde(deserialize_with = "lenient")]
    pub protocol: String,
    /// The program that opened it.
    #[serde(deserialize_with = "lenient")]
    pub program: String,
    /// The protocol's setup.
    pub setup: Json,
    /// Hashes by component.
    #[serde(deserialize_with = "lenient")]
    pub fingerprint: Map<String, Json>,
    /// Hexadecimal.
    #[serde(deserialize_with = "lenient")]
    pub seed: String,
    /// The subject: a path, or `-`.
    #[serde(deserialize_with = "lenient")]
    pub subject: Option<String>,
    /// `None` for standard input, and where the path had a secret in it.
    #[serde(deserialize_with = "lenient")]
    pub artifact_path: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub artifact_sha256: Option<String>,
    #[serde(deserialize_with = "readable_items")]
    pub inputs: Vec<Input>,
    /// How many secrets were redacted.
    #[serde(deserialize_with = "lenient")]
    pub redactions: u64,
    /// The executors of all members, each once.
    #[serde(deserialize_with = "readable_items")]
    pub executors: Vec<ExecutorUsed>,
    /// The executor that the user named for all members; inside, `None` if the user named none.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub executor: Option<Option<String>>,
    /// The model that the user named.
    #[serde(deserialize_with = "lenient")]
    pub model: Option<String>,
    /// The cap on calls, which applies until a later record changes it (X8).
    #[serde(deserialize_with = "saturating")]
    pub max_calls: Option<u32>,
    /// The cap on tokens, likewise.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The cap on money, likewise.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub max_money: Option<Money>,
    /// The council's file; `None` for the built-in one.
    #[serde(deserialize_with = "lenient")]
    pub config: Option<String>,
    /// `quorate.toml`; `None` where there was none.
    #[serde(deserialize_with = "lenient")]
    pub host: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub producer: Option<Producer>,
    /// Where it was queued, if it was.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// The artifact's type of a review, the name of an assembly.
    #[serde(deserialize_with = "lenient")]
    pub artifact_type: Option<String>,
    /// Who signs, and how long answers are kept; `None` where the workspace's settings hold.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub audit: Option<RunAudit>,
    /// The files that it was set up from: of a review with their hashes, of an assembly from the root to the view.
    #[serde(skip_serializing_if = "Json::is_null")]
    pub files: Json,
    // The following fields are of reviews alone.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tier: Option<u64>,
    /// Who said the tier, where a model did or should have.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tier_source: Option<TierSource>,
    /// Earlier verdicts on texts of the same type, newest first.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub priors: Option<Vec<Json>>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    /// How long the log was; the run's lines are behind that.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    // The following fields are of assemblies alone.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grouping: Option<Json>,
    /// How many messages the conversation had.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// The texts of the overlays that were active, the weightiest first.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub overlays: Option<Vec<Json>>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

impl RunOpened {
    /// Whether a model is asked.
    pub fn asks_a_model(&self) -> bool {
        self.executors.iter().any(|executor| executor.asks_a_model)
    }

    /// The names of the executors, each once, for people: one may be asked for several models.
    pub fn executor_names(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for executor in &self.executors {
            if !names.contains(&&*executor.name) {
                names.push(&executor.name);
            }
        }
        names.join(", ")
    }

    /// Why its input is not its artifact, if so (D14): the members were shown another text, although nothing was redacted.
    pub fn input_mismatch(&self) -> Option<String> {
        let artifact = self.artifact_sha256.as_ref().filter(|_| self.redactions == 0)?;
        let input = self.inputs.iter().find(|input| input.sha256 != *artifact)?;
        let shown = &input.sha256;
        Some(format!("its input {shown} is not its artifact {artifact}, although nothing was redacted"))
    }

    /// A component of the fingerprint.
    pub fn fingerprint_of(&self, component: &str) -> Option<&str> {
        self.fingerprint.get(component)?.as_str()
    }
}

impl RecordData for RunOpened {
    const KIND: Kind = Kind::RunOpened;
}

/// How a model came to say the tier of a text. The question is recorded in a stream of its own, `council/tiers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TierSource {
    /// The question, which the hash of text and executor identifies.
    #[serde(deserialize_with = "lenient")]
    pub invocation: Name,
    /// The model's reason, or the reason for the missing answer.
    #[serde(deserialize_with = "lenient")]
    pub reason: String,
    /// Whether there was an answer; without one the tier is the strictest.
    #[serde(deserialize_with = "lenient")]
    pub answered: bool,
    /// What the question cost this run; `None` where the answer was recorded before.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// A text that was deliberated on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    #[serde(deserialize_with = "lenient")]
    pub kind: String,
    #[serde(deserialize_with = "lenient")]
    pub name: String,
    #[serde(deserialize_with = "lenient")]
    pub sha256: String,
}

/// Who answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorUsed {
    #[serde(deserialize_with = "lenient")]
    pub name: String,
    #[serde(deserialize_with = "lenient")]
    pub kind: String,
    #[serde(deserialize_with = "lenient")]
    pub model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub asks_a_model: bool,
    /// The tools that it has; `None` where that is not known.
    #[serde(deserialize_with = "lenient")]
    pub tools: Option<Vec<String>>,
}

/// The author of the judged text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Producer {
    pub operator: String,
    /// The playbooks in shadow that were in its prompt then.
    pub trying: Vec<String>,
    /// A sketch of what was made.
    #[serde(default)]
    pub sketch: Json,
}

/// The queue that a run comes from: a worker held it, without the files of the machine that queued it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Queued {
    #[serde(deserialize_with = "lenient")]
    pub tenant: String,
    /// What was queued together.
    #[serde(deserialize_with = "lenient")]
    pub batch: String,
}

/// Who signs the records of a run, and how long its answers are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunAudit {
    /// `required`, `optional` or `none`.
    #[serde(deserialize_with = "lenient")]
    pub signing: String,
    /// The id of the key that was to sign.
    #[serde(deserialize_with = "lenient")]
    pub signer: Option<String>,
    /// The public keys whose signatures count.
    #[serde(deserialize_with = "readable_items")]
    pub keyring: Vec<String>,
    /// Whether governance bound them.
    #[serde(deserialize_with = "lenient")]
    pub governed: bool,
    #[serde(deserialize_with = "saturating")]
    pub retention_days: Option<u32>,
    /// `Some(false)` where answers are erased when the run ends.
    #[serde(deserialize_with = "lenient")]
    pub keep_consultations: Option<bool>,
}

/// A count that may be greater than this version writes.
fn saturating<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<u32>, D::Error> {
    let count: Option<u64> = lenient(field)?;
    Ok(count.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
}

/// A gather strategy ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gathered {
    /// The invocation that it was for; a record without one stands for no event.
    #[serde(deserialize_with = "lenient")]
    pub invocation: Option<Name>,
    #[serde(deserialize_with = "lenient")]
    pub member: Name,
    #[serde(deserialize_with = "lenient")]
    pub strategy: Name,
    /// What was gathered; `None` where it failed.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Texts were compared with traits by meaning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Match {
    /// The candidate outcome; a record without one stands for no event.
    #[serde(deserialize_with = "lenient")]
    pub candidate: Option<Name>,
    /// The embedder's model.
    #[serde(deserialize_with = "lenient")]
    pub model: String,
    /// What came near a trait; `None` where it failed.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub near: Option<Vec<SemanticHit>>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the embedder's requests took, where it made any that are paid for; `calls` are these requests.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// What they count as against the run's caps on tokens and money.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub charged: Option<Charged>,
}

/// A custom rule was applied. The rule records of protocols have no ticket.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRule {
    #[serde(deserialize_with = "lenient")]
    pub ticket: Option<Name>,
    /// The rule's kind.
    #[serde(deserialize_with = "lenient")]
    pub kind: Name,
    /// What it gave; `None` where it failed.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Null is an output.
fn present<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(field).map(Some)
}

impl RecordData for Gathered {
    const KIND: Kind = Kind::Gathered;
}

impl RecordData for Match {
    const KIND: Kind = Kind::Match;
}

impl RecordData for HostRule {
    const KIND: Kind = Kind::Rule;
}
