//! Commands: everything that a protocol can request.

use std::sync::Arc;

use serde_json::Map;

use crate::rules::custom::RuleRequest;
use crate::{Json, Name, Part, answers};

/// A command to the driver. The commands of one `advance` belong together: they leave after one sync.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Gather material by a custom strategy.
    Gather(Gather),
    /// Ask a member.
    Invoke(Invoke),
    /// Cancels an invocation; a later answer is recorded as late and not fed to the protocol.
    Cancel(Name),
    /// Compare texts by meaning, which only the host can do.
    SemanticMatch(SemanticMatch),
    /// Apply a rule of a custom kind.
    ApplyRule(ApplyRule),
    /// Record a fact derived from the events.
    Record(Fact),
    /// The deliberation is over. Always the last command.
    Finish,
}

/// The request to a custom gather strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct Gather {
    /// The invocation that it is for.
    pub id: Name,
    pub member: Name,
    /// The strategy, as the manifest writes it.
    pub strategy: Name,
    /// The parameters of the strategy.
    pub params: Map<String, Json>,
    /// The whole subject of the run.
    pub subject: Part,
}

/// One question to one member.
#[derive(Debug, Clone, PartialEq)]
pub struct Invoke {
    /// Stable and derived: `r1/skeptic`, `adjudicate`, `ask/ciso`, `round2/ada`, `node/lead`.
    pub id: Name,
    pub member: Name,
    /// The step that it belongs to: `r1`, `r2`, `adjudicate`, `ask`, `round2`, `node`.
    pub step: Name,
    /// The material for the member, most widely shared first.
    pub parts: Vec<Part>,
    /// The form of the answer.
    pub schema: answers::Schema,
    /// The member's task, in a sentence or two.
    pub task: Arc<str>,
    /// Further fields of its consultation's record (D7): mode, phase or class, trigger, round, weight, layer.
    pub extra_fields: Map<String, Json>,
}

/// Texts to compare with traits by meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct SemanticMatch {
    /// The name of the candidate outcome, unique in the run.
    pub candidate: Name,
    /// Its texts, in the candidate's order.
    pub texts: Vec<Arc<str>>,
    /// The traits to compare with; a hit refers to one by its index.
    pub traits: Vec<String>,
}

/// A custom rule to apply.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyRule {
    /// The target of the rule, unique in the run: the rule's id, and a node, a round or a case where there are several.
    pub ticket: Name,
    pub kind: Name,
    /// What the rule looks at.
    pub input: RuleRequest,
}

/// A record that the protocol asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Which kind of record.
    pub kind: FactKind,
    /// The content of the record, without the fields that all records have.
    pub data: Json,
}

/// The kinds of record that protocols ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// A rule or policy was applied.
    Rule,
    /// The result of checking a candidate outcome against the locked traits.
    LockCheck,
    /// A candidate outcome was dropped, or a message refused.
    Violation,
    /// The outcome of the run.
    Outcome,
}

quorate_manifest::words!(FactKind {
    Rule = "rule",
    LockCheck = "lock_check",
    Violation = "violation",
    Outcome = "outcome",
});
