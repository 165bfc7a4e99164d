//! The outcome of a run, and what was applied and refused on the way.

use quorate_protocol::Json;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Map;

use super::{RecordData, lenient, readable_items};
use crate::ports::ledger::Kind;

/// The last outcome of a run holds. Reviews and the modes of assemblies each write a part of the fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// The kind: `verdict`, `guidance`, `decision`, `log` or `rollup`.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A review's verdict, or an assembly's result in one word.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The status of an assembly: `done`, `refused` or `incomplete`.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub stand: Option<String>,
    /// A stable word for the reason.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Whether an answer is missing.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(
        rename = "shouldEscalate",
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub should_escalate: Option<bool>,
    /// The rules that were applied, in order.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<AppliedRule>,
    /// Advisory: what advisers suggest to the agent.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub fragments: Vec<Fragment>,
    /// Voting.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub decision: Option<VoteCount>,
    /// Whether a terminal rule ended the synthesis.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub terminal: Option<bool>,
    /// Peers.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    #[serde(rename = "endedBy", deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub objecting: Vec<String>,
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<Objection>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Map::is_empty")]
    pub synthesis: Map<String, Json>,
    /// A hierarchy: what its root passes up.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub rollup: Option<Rollup>,
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// A review: each deliberator, and how its answer counts.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub deliberators: Vec<CountedAnswer>,
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Json>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub revision_brief: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub dissent_summary: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub prior_verdicts_consulted: Option<u64>,
    #[serde(flatten)]
    pub more: Map<String, Json>,
}

impl RecordData for Outcome {
    const KIND: Kind = Kind::Outcome;
}

impl Outcome {
    /// Whether nothing was decided, since answers are missing: the run may be resumed.
    pub fn is_incomplete(&self) -> bool {
        self.verdict.as_deref().is_some_and(|verdict| verdict.eq_ignore_ascii_case("incomplete"))
    }

    /// The result in one word: the verdict, else the result of a vote.
    pub fn word(&self) -> Option<&str> {
        self.verdict.as_deref().or_else(|| Some(&*self.decision.as_ref()?.result))
    }
}

/// How grave it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    /// The highest severity, 0 to 10.
    pub severity: u64,
    /// `ok`, `watch`, `intervene` or `escalate`, or another label of the manifest.
    #[serde(default, deserialize_with = "lenient")]
    pub level: Option<String>,
}

/// A piece of guidance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// The author of these words.
    pub member: String,
    pub text: String,
    /// How grave its author found it.
    pub severity: u64,
    /// How weighty it is.
    pub priority: u64,
    /// The rule that emitted it.
    pub rule: String,
    /// When it stops to hold, RFC 3339.
    pub expires: String,
}

/// The result of a vote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoteCount {
    /// `pass`, `fail`, `refused` or `incomplete`.
    pub result: String,
    /// Yes by total, rounded.
    pub ratio: f64,
    /// The weights that say yes.
    pub yes: f64,
    /// The weights that say no.
    pub no: f64,
    /// The weights that abstain.
    pub abstain: f64,
    /// The weights without a vote.
    pub missing: f64,
    pub exact: ExactRatio,
    /// The rule that decided; `None` where nothing was decided.
    #[serde(default, deserialize_with = "lenient")]
    pub rule: Option<String>,
    /// How a tie was broken.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tie: Option<String>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Who decided alone, by a `terminal` rule, and why.
    #[serde(default, deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub contribution: Vec<Contribution>,
    /// Every voter, in roster order.
    #[serde(default, deserialize_with = "readable_items")]
    pub votes: Vec<CountedVote>,
}

/// The weights that say yes, and what the ratio is of, as fractions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactRatio {
    pub yes: String,
    pub total: String,
}

/// The words of a member that decided alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    pub member: String,
    pub vote: String,
    pub rationale: String,
    #[serde(default, deserialize_with = "readable_items")]
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedVote {
    pub member: String,
    pub weight: String,
    /// `yes`, `no`, `abstain`, `missing` or `cancelled`.
    pub vote: String,
    /// The placeholder for a rationale that touches a locked trait (V6).
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// A message that was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub round: u64,
    pub from: String,
    /// To whom; `None`, recorded as `*`, is everybody in reach.
    #[serde(deserialize_with = "recipients", serialize_with = "recipients_or_all")]
    pub to: Option<Vec<String>>,
    pub text: String,
}

fn recipients<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Vec<String>>, D::Error> {
    let to = Json::deserialize(field)?;
    Ok(to.is_array().then(|| readable_items(to).unwrap_or_default()))
}

fn recipients_or_all<S: Serializer>(to: &Option<Vec<String>>, field: S) -> Result<S::Ok, S::Error> {
    match to {
        Some(ids) => ids.serialize(field),
        None => field.serialize_str("*"),
    }
}

/// What a member objected to last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Objection {
    pub member: String,
    pub round: u64,
    /// Whether its author took it back.
    pub taken_back: bool,
    /// Whether another member's message reached its author after it.
    pub answered: bool,
}

/// What a node of a hierarchy passes up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollup {
    /// How grave it is, 0 to 10.
    pub severity: u64,
    pub concern: String,
    /// What it rests on.
    #[serde(default, deserialize_with = "readable_items")]
    pub evidence: Vec<String>,
    pub suggestion: String,
}

/// A node of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub member: String,
    /// To whom it reports.
    #[serde(default, deserialize_with = "lenient")]
    pub parent: Option<String>,
    /// `passed`, `passed_up` (it gave nothing itself), `silent`, `refused` or `not_asked`.
    pub status: String,
    /// The rule that made what it passes up; `None` is its own answer.
    #[serde(default, deserialize_with = "lenient")]
    pub rule: Option<String>,
    /// The children that it is made of.
    #[serde(default, deserialize_with = "readable_items")]
    pub from: Vec<String>,
    /// What it passes up.
    #[serde(default, deserialize_with = "lenient")]
    pub output: Option<Rollup>,
}

/// How a deliberator's answer counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CountedAnswer {
    #[serde(deserialize_with = "lenient")]
    pub id: String,
    /// Which of its answers counts.
    #[serde(deserialize_with = "lenient")]
    pub counted: String,
    #[serde(deserialize_with = "lenient")]
    pub would_block: bool,
    /// Whether its block rests on words that the text does not have.
    #[serde(deserialize_with = "lenient")]
    pub ungrounded: bool,
}

/// A rule that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedRule {
    pub id: String,
    pub kind: String,
    /// Whether it did anything.
    pub fired: bool,
    /// Whose words made it.
    #[serde(default, deserialize_with = "readable_items")]
    pub members: Vec<String>,
    /// The node that it was applied at, in a hierarchy.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Advisory: how many fragments it emitted.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub emitted: Option<u64>,
    /// Voting: `pass` or `fail`.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub decides: Option<String>,
    /// Voting: whether it was asked only when missing votes counted as no.
    #[serde(
        default,
        rename = "missingAsNo",
        deserialize_with = "lenient",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub missing_as_no: bool,
}

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Violation {
    /// `assembly_overlay_lock_violation`, `lock_unchecked` or `out_of_reach`.
    #[serde(deserialize_with = "lenient")]
    pub code: String,
    #[serde(deserialize_with = "lenient")]
    pub candidate: String,
    /// Whose words; `None` where they are the program's.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// What was checked: `fragment`, `decision`, `rationale`, `message`, `concern`, `evidence`, `suggestion`.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    #[serde(rename = "trait", deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub locked: Option<String>,
    /// Which reading of the text hit it.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Whom a message did not reach.
    #[serde(deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Why it could not be checked.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl RecordData for Violation {
    const KIND: Kind = Kind::Violation;
}
