//! Effects: what a mode can request.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Map;

use crate::{ApplyRule, Fact, Json, Name, Part};

/// An effect that a mode requests; effects are carried out in order.
pub(crate) enum Effect {
    /// Gather for a member and ask it.
    Ask(AskMember),
    /// Cancel an invocation.
    Cancel(Name),
    /// Apply a custom rule.
    Apply(ApplyRule),
    /// Check a candidate outcome against the locks.
    Check(Candidate),
    Record(Fact),
    /// End the run. Nothing after it is done.
    End(Completion),
}

/// Something that may become part of an outcome.
pub(crate) struct Candidate {
    /// Its name in records: `fragment/<member>`, `decision`, `rationale/<member>`, `message/<round>/<member>`,
    /// `node/<member>`.
    pub(crate) name: Name,
    pub(crate) texts: Vec<Text>,
    pub(crate) on_hit: OnHit,
}

/// What a locked trait in one of a candidate's texts does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnHit {
    /// The whole candidate is dropped.
    Drop,
    /// The touched text alone is withheld, so every text is checked in every way (V6).
    Withhold,
}

/// The result of checking a candidate against the locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockResult {
    Pass,
    /// Each text that touches a trait, by its index in the candidate, with the trait.
    Hit(Vec<(usize, String)>),
    /// The host could not compare the texts by meaning (L4).
    Unchecked,
}

impl LockResult {
    pub(crate) fn is_clean(&self) -> bool {
        *self == LockResult::Pass
    }

    /// The text at an index, or a placeholder for it if it touches a trait.
    pub(crate) fn visible_text(&self, index: usize, text: &str) -> String {
        match self {
            LockResult::Pass => text.to_owned(),
            LockResult::Unchecked => "withheld: the locked traits could not be checked".to_owned(),
            LockResult::Hit(hits) => {
                let touched =
                    hits.iter().filter(|(at, _)| *at == index).map(|(_, locked)| format!("`{locked}`"));
                let traits: Vec<String> = touched.collect::<BTreeSet<_>>().into_iter().collect();
                match traits.is_empty() {
                    true => text.to_owned(),
                    false => format!("withheld: touches {}", traits.join(", ")),
                }
            }
        }
    }
}

/// One text of a candidate.
pub(crate) struct Text {
    /// Whose words it is made of; `None` where it is the program's.
    pub(crate) member: Option<Name>,
    /// The invocation that the words come from.
    pub(crate) invocation: Option<Name>,
    /// What it is: `fragment`, `decision`, `rationale`, `message`, `concern`, `evidence`, `suggestion`.
    pub(crate) kind: &'static str,
    pub(crate) text: Arc<str>,
}

/// A question to a member.
pub(crate) struct AskMember {
    pub(crate) id: Name,
    pub(crate) step: Name,
    pub(crate) member_index: usize,
    /// What it is shown besides what is gathered for it.
    pub(crate) parts: Vec<Part>,
    pub(crate) task: Arc<str>,
    /// What its consultation's record says besides mode and layer.
    pub(crate) extra_fields: Vec<(&'static str, Json)>,
}

/// How a run completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunStatus {
    Done,
    Refused,
    Incomplete,
}

/// The completion of a run.
pub(crate) struct Completion {
    pub(crate) status: RunStatus,
    /// The word for it: `pass`, `fail`, `done`, `refused`, `incomplete`.
    pub(crate) result: &'static str,
    /// A stable word for the reason, where there is one.
    pub(crate) code: Option<&'static str>,
    /// Why, in a sentence.
    pub(crate) reason: Option<String>,
    /// What was made, by its name in the outcome: `fragments`, `decision`, `messages`, `rollup`.
    pub(crate) artifact: Map<String, Json>,
    /// What else the outcome says.
    pub(crate) extra: Map<String, Json>,
}

impl RunStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RunStatus::Done => "done",
            RunStatus::Refused => "refused",
            RunStatus::Incomplete => "incomplete",
        }
    }
}

impl Completion {
    /// A completion with a result.
    pub(crate) fn done() -> Self {
        Completion {
            status: RunStatus::Done,
            result: RunStatus::Done.as_str(),
            code: None,
            reason: None,
            artifact: Map::new(),
            extra: Map::new(),
        }
    }

    /// A completion without a result, with the reason.
    pub(crate) fn without_artifact(stand: RunStatus, code: &'static str, because: impl Into<String>) -> Self {
        Completion {
            status: stand,
            result: stand.as_str(),
            code: Some(code),
            reason: Some(because.into()),
            ..Completion::done()
        }
    }
}
