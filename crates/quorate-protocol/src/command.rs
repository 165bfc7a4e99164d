//! Commands: everything that a protocol can want.

use std::sync::Arc;

use serde_json::Map;

use crate::{Json, Name, Part, answers};

/// What is to be done. Commands of one `advance` belong together: they leave after one sync.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Ask somebody.
    Invoke(Invoke),
    /// Take a question back; what still comes is recorded as late and fed to nobody.
    Cancel(Name),
    /// Write down something that follows from the events.
    Record(Fact),
    /// The deliberation is over. Always the last command.
    Finish,
}

/// One question to one member.
#[derive(Debug, Clone, PartialEq)]
pub struct Invoke {
    /// Stable and derived: `r1/skeptic`, `adjudicate`.
    pub id: Name,
    /// The member's id.
    pub member: Name,
    /// The step that it belongs to: `r1`, `r2`, `adjudicate`.
    pub step: Name,
    /// What the member is shown, the widest shared first.
    pub parts: Vec<Part>,
    /// The form of the answer.
    pub schema: answers::Schema,
    /// What the member is asked to do, in a sentence or two.
    pub task: Arc<str>,
    /// What its consultation's record says besides (D7): mode, phase or class, trigger, round, weight, layer.
    pub marks: Map<String, Json>,
}

/// A record that the protocol asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Which kind of record.
    pub kind: FactKind,
    /// Its body.
    pub data: Json,
}

/// The kinds of record that protocols ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// A rule or policy was applied.
    Rule,
    /// What the deliberation came to.
    Outcome,
}

impl FactKind {
    /// The record kind in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            FactKind::Rule => "rule",
            FactKind::Outcome => "outcome",
        }
    }
}
