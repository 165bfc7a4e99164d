//! Events: everything that is fed to a protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Json, Name, Part};

/// An event and the time that was recorded with it, the only `now` that a protocol knows.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedEvent {
    /// Milliseconds since the Unix epoch, UTC.
    pub at_ms: i64,
    pub event: Event,
}

/// Something that happened and is (or is about to be) recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The run starts. Always the first event.
    Opened {
        /// The id of the run.
        run: Name,
        /// What is deliberated on.
        inputs: Vec<Part>,
        /// Earlier verdicts on the same type of artifact, newest first.
        priors: Vec<Json>,
        /// The texts of the overlays that are active, the weightiest first.
        overlays: Vec<Json>,
    },
    /// A custom gather strategy ended.
    Gathered {
        /// The invocation that it is for.
        id: Name,
        /// What it found, or why it found nothing.
        result: Result<Arc<str>, Arc<str>>,
    },
    /// An invocation ended, one way or another.
    Consulted {
        /// The invocation, for example `r1/skeptic`.
        id: Name,
        /// The result.
        result: ConsultationResult,
    },
    /// Texts were compared with traits by meaning.
    Matched {
        candidate: Name,
        /// The passages that mean the same as a trait, or why they could not be compared.
        result: Result<Vec<SemanticHit>, Arc<str>>,
        /// The model that was asked a question; `None` if vectors were compared.
        asked: Option<AskedModel>,
    },
    /// A custom rule was applied.
    RuleApplied {
        /// The target of the rule.
        ticket: Name,
        /// The rule's output, or the reason for its failure.
        result: Result<Json, Arc<str>>,
    },
}

/// Why a host call did not run: the run's time was over.
pub const TIME_EXHAUSTED: &str = "the run's time is spent";

impl Event {
    /// Whether it says that the run's budget is spent: nothing more is begun then (X8).
    pub fn is_over_budget(&self) -> bool {
        let spent = |why: &Arc<str>| **why == *TIME_EXHAUSTED;
        match self {
            Event::Opened { .. } => false,
            Event::Consulted { result, .. } => {
                *result == ConsultationResult::Absent(AbsenceReason::RunOverBudget)
            }
            Event::Gathered { result, .. } => result.as_ref().is_err_and(spent),
            Event::Matched { result, .. } => result.as_ref().is_err_and(spent),
            Event::RuleApplied { result, .. } => result.as_ref().is_err_and(spent),
        }
    }
}

/// A model that was asked whether texts say what a trait says.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedModel {
    /// Empty if the executor names no model.
    pub model: Arc<str>,
    /// The highest probability that it gave for one of the texts; `None` for a model that gives none.
    pub probability: Option<f64>,
}

/// A text that comes near a trait in meaning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SemanticHit {
    /// Which of the traits that were asked about.
    pub which: usize,
    /// Which of the texts.
    pub text: usize,
    /// The first byte of what comes near.
    pub start: usize,
    /// The byte after it.
    pub end: usize,
    /// The probability that a decision model gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// How one invocation ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ConsultationResult {
    /// With a JSON object that fits the schema.
    Answered(Json),
    /// Without output. Never counts as agreement.
    Absent(AbsenceReason),
}

/// The reason for the missing output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AbsenceReason {
    /// No answer before the deadline.
    TimedOut,
    /// The executor reported a failure.
    Failed,
    /// No answer that fits the schema, also after one re-prompt.
    SchemaFailed,
    /// The member's own budget was spent.
    OverBudget,
    /// The run's budget was spent: nothing more is asked.
    RunOverBudget,
    /// The protocol took the question back.
    Cancelled,
}

impl AbsenceReason {
    /// The status word of the consultation record.
    pub fn status(self) -> &'static str {
        match self {
            AbsenceReason::TimedOut => "timed_out",
            AbsenceReason::Failed => "failed",
            AbsenceReason::SchemaFailed => "schema_failed",
            AbsenceReason::OverBudget | AbsenceReason::RunOverBudget => "over_budget",
            AbsenceReason::Cancelled => "cancelled",
        }
    }
}
