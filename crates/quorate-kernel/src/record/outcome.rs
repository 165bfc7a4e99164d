//! The outcome of a run, and what was applied and refused on the way.

use quorate_protocol::Json;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Map;

use super::{RecordData, lenient, readable_items};
use crate::ports::ledger::Kind;

record_data! {
    /// The last outcome of a run holds. Reviews and the modes of assemblies each write a part of the fields.
    pub struct Outcome: Outcome {
        /// The kind: `verdict`, `guidance`, `decision`, `log` or `rollup`.
        pub kind?: String,
        /// A review's verdict, or an assembly's result in one word.
        pub verdict?: String,
        /// The status of an assembly: `done`, `refused` or `incomplete`.
        pub stand?: String,
        /// A stable word for the reason.
        pub code?: String,
        pub because?: String,
        pub reasoning?: String,
        /// Whether an answer is missing.
        pub partial?: bool,
        pub missing[]: String,
        pub notes[]: String,
        pub risk?: Risk,
        #[serde(rename = "shouldEscalate")]
        pub should_escalate?: bool,
        /// The rules that were applied, in order.
        pub rules[]: AppliedRule,
        /// Advisory: what advisers suggest to the agent.
        pub fragments[]: Fragment,
        /// Voting.
        pub decision?: VoteCount,
        /// Whether a terminal rule ended the synthesis.
        pub terminal?: bool,
        /// Peers.
        pub messages[]: Message,
        pub rounds?: u64,
        #[serde(rename = "endedBy")]
        pub ended_by?: String,
        pub topology?: String,
        pub objecting[]: String,
        pub objections[]: Objection,
        #[serde(skip_serializing_if = "Map::is_empty")]
        pub synthesis: Map<String, Json>,
        /// A hierarchy: what its root passes up.
        pub rollup?: Rollup,
        pub nodes[]: Node,
        /// A review: each deliberator, and how its answer counts.
        pub deliberators[]: CountedAnswer,
        pub findings[]: Json,
        pub revision_brief?: String,
        pub dissent_summary?: String,
        pub prior_verdicts_consulted?: u64,
        pub ..more: Map<String, Json>,
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Risk {
    /// The highest severity, 0 to 10.
    #[schemars(with = "Option<u64>", range(max = 10))]
    pub severity: u64,
    /// `ok`, `watch`, `intervene` or `escalate`, or another label of the manifest.
    #[serde(default, deserialize_with = "lenient")]
    #[schemars(extend("enum" = ["ok", "watch", "intervene", "escalate", null]))]
    pub level: Option<String>,
}

/// A piece of guidance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Fragment {
    /// The author of these words.
    pub member: String,
    /// What the author suggests to the agent.
    pub text: String,
    /// How grave its author found it, 0 to 10.
    #[schemars(range(max = 10))]
    pub severity: u64,
    /// How weighty it is.
    pub priority: u64,
    /// The rule that emitted it.
    pub rule: String,
    /// When it stops to hold, RFC 3339.
    pub expires: String,
}

/// The result of a vote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct VoteCount {
    /// `pass`, `fail`, `refused` or `incomplete`.
    pub result: String,
    /// Yes by total, rounded.
    #[schemars(range(min = 0))]
    pub ratio: f64,
    /// The weights that say yes.
    #[schemars(range(min = 0))]
    pub yes: f64,
    /// The weights that say no.
    #[schemars(range(min = 0))]
    pub no: f64,
    /// The weights that abstain.
    #[schemars(range(min = 0))]
    pub abstain: f64,
    /// The weights without a vote.
    #[schemars(range(min = 0))]
    pub missing: f64,
    /// The ratio without rounding.
    pub exact: ExactRatio,
    /// The rule that decided; null where nothing was decided.
    #[serde(default, deserialize_with = "lenient")]
    pub rule: Option<String>,
    /// How a tie was broken.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub tie: Option<String>,
    /// The proposal in short, and the result in a sentence.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub text: Option<String>,
    /// Who decided alone, by a `terminal` rule, and why.
    #[serde(default, deserialize_with = "readable_items", skip_serializing_if = "Vec::is_empty")]
    pub contribution: Vec<Contribution>,
    /// Every voter, in roster order.
    #[serde(default, deserialize_with = "readable_items")]
    pub votes: Vec<CountedVote>,
}

/// The weights that say yes, and what the ratio is of, as fractions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct ExactRatio {
    /// The weight of yes: `5/2`, or a whole number.
    pub yes: String,
    /// The weight that the deciding rule counts.
    pub total: String,
}

/// The words of a member that decided alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Contribution {
    /// The member's id.
    pub member: String,
    /// `yes` or `no`.
    #[schemars(with = "Option<String>")]
    pub vote: String,
    /// The reason that the member gave.
    #[schemars(with = "Option<String>")]
    pub rationale: String,
    /// The quotes that the member gave.
    #[serde(default, deserialize_with = "readable_items")]
    pub evidence: Vec<String>,
}

/// The vote of one member, as the count has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct CountedVote {
    /// The member's id.
    pub member: String,
    /// The member's weight, as a fraction.
    pub weight: String,
    /// `yes`, `no`, `abstain`, `missing` or `cancelled`.
    #[schemars(with = "Option<String>")]
    pub vote: String,
    /// The placeholder for a rationale that touches a locked trait.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub withheld: Option<String>,
}

/// A message that was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Message {
    /// The round that it was sent in, from 1.
    pub round: u64,
    /// The id of its author.
    pub from: String,
    /// To whom: members, or `*` for everybody in reach (`None`).
    #[serde(deserialize_with = "recipients", serialize_with = "recipients_or_all")]
    #[schemars(
        schema_with = "recipients_schema",
        description = "To whom: members, or `*` for everybody in reach."
    )]
    pub to: Option<Vec<String>>,
    /// The message.
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

fn recipients_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"const": "*"}, {"type": "array", "items": {"type": "string"}}]})
}

/// What a member objected to last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub struct Objection {
    /// The member's id.
    pub member: String,
    /// The round of the objection, from 1.
    #[schemars(range(min = 1))]
    pub round: u64,
    /// Whether its author took it back.
    pub taken_back: bool,
    /// Whether another member's message reached its author after it.
    pub answered: bool,
}

/// What a node of a hierarchy passes up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Rollup {
    /// How grave it is, 0 to 10.
    #[schemars(range(max = 10))]
    pub severity: u64,
    /// What is wrong.
    pub concern: String,
    /// What it rests on.
    #[serde(default, deserialize_with = "readable_items")]
    pub evidence: Vec<String>,
    /// What to do about it.
    pub suggestion: String,
}

/// A node of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Node {
    /// The member's id.
    pub member: String,
    /// To whom it reports.
    #[serde(default, deserialize_with = "lenient")]
    pub parent: Option<String>,
    /// `passed`, `passed_up` (it gave nothing itself), `silent`, `refused` or `not_asked`.
    pub status: String,
    /// The rule that made what it passes up; null for its own answer.
    #[serde(default, deserialize_with = "lenient")]
    pub rule: Option<String>,
    /// The children that it is made of.
    #[serde(default, deserialize_with = "readable_items")]
    pub from: Vec<String>,
    /// What it passes up.
    #[serde(default, deserialize_with = "lenient")]
    pub output: Option<Rollup>,
}

record_data! {
    /// How a deliberator's answer counts.
    #[derive(Eq)]
    pub struct CountedAnswer {
        pub id: String,
        /// Which of its answers counts.
        pub counted: String,
        pub would_block: bool,
        pub irreducible: bool,
        /// Whether its block rests on words that the text does not have.
        pub ungrounded: bool,
    }
}

/// A rule that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct AppliedRule {
    /// Its id in the manifest.
    pub id: String,
    /// Its kind: `quorum`, `terminal`, `aggregate`, …
    pub kind: String,
    /// Whether it did anything.
    pub fired: bool,
    /// Whose words made it.
    #[serde(default, deserialize_with = "readable_items")]
    pub members: Vec<String>,
    /// The node that it was applied at, in a hierarchy.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub node: Option<String>,
    /// Advisory: how many fragments it emitted.
    #[schemars(skip)]
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub emitted: Option<u64>,
    /// Voting: `pass` or `fail`.
    #[schemars(skip)]
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub decides: Option<String>,
    /// Voting: whether it was asked only when missing votes counted as no.
    #[schemars(skip)]
    #[serde(
        default,
        rename = "missingAsNo",
        deserialize_with = "lenient",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub missing_as_no: bool,
}

record_data! {
    /// Something that was refused.
    #[derive(JsonSchema)]
    #[schemars(
        inline,
        deny_unknown_fields,
        extend("required" = ["code", "candidate", "member", "what", "trait", "layer", "excerpt", "to"])
    )]
    pub struct Violation: Violation {
        /// `assembly_overlay_lock_violation`, `lock_unchecked` or `out_of_reach`.
        pub code: String,
        pub candidate: String,
        /// Whose words; `None` where they are the program's.
        #[schemars(description = "Whose words; null where they are the program's.")]
        pub member?: String,
        /// What was checked: `fragment`, `decision`, `rationale`, `message`, `concern`, `evidence`, `suggestion`.
        pub what?: String,
        #[serde(rename = "trait")]
        pub locked?: String,
        /// Which reading of the text hit it.
        #[schemars(schema_with = "anything")]
        pub layer?: String,
        pub excerpt?: String,
        /// Whom a message did not reach.
        #[schemars(schema_with = "anything")]
        pub to[]: String,
        /// Why it could not be checked.
        #[schemars(skip)]
        pub why?: String,
        /// The probability that a decision model gave.
        #[schemars(skip)]
        pub probability?: f64,
    }
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}
