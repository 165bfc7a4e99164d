//! The dispatcher port: who of a conversation's participants speaks next.

use async_trait::async_trait;
use quorate_protocol::{AbsenceReason, Json, Name, Part, answers};

use crate::conversation::{Capabilities, Participant, Turn};

/// The keys that every dispatcher's block may have. The kernel reads them; an adapter takes them for known, and honours
/// `reentry` where it chooses.
pub const COMMON_KEYS: [&str; 4] = ["kind", "reentry", "maxAgentTurns", "window"];

/// What a dispatcher sees.
pub struct Input<'a> {
    /// The window, oldest first; the last one is the trigger. Never empty.
    pub window: &'a [Turn],
    /// How many participants' turns lead from a person's turn to the trigger, itself included, each by answering the one
    /// before; 0 if a person wrote the trigger.
    pub chain: usize,
    /// All participants, in the manifest's order.
    pub participants: &'a [Participant],
    /// The substrate's features.
    pub capabilities: &'a Capabilities,
    /// How to ask an executor.
    pub ask: &'a dyn Ask,
}

impl Input<'_> {
    /// The turn to dispatch.
    pub fn trigger(&self) -> Option<&Turn> {
        self.window.last()
    }
}

/// A question of a dispatcher to an executor.
#[derive(Debug, Clone)]
pub struct Question {
    /// The role prompt of the executor that is asked.
    pub role: String,
    /// What is wanted, in a sentence or two.
    pub task: String,
    /// The material of the question.
    pub parts: Vec<Part>,
    /// The form of the answer.
    pub answer_schema: answers::Schema,
}

/// Asks through the executor port.
#[async_trait]
pub trait Ask: Send + Sync {
    /// The answer of an executor. The dispatcher gets the member config when it is built.
    async fn ask(
        &self,
        config: &crate::attempts::MemberConfig,
        question: Question,
    ) -> Result<Json, Unanswered>;
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The result.
    pub absent: AbsenceReason,
    /// Why, where more is known.
    pub why: Option<String>,
}

impl From<AbsenceReason> for Unanswered {
    fn from(absent: AbsenceReason) -> Self {
        Unanswered { absent, why: None }
    }
}

/// Why a dispatcher failed to select participants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DispatchError(pub String);

/// The dispatcher port: who speaks next.
///
/// # For adapter authors
///
/// A dispatcher looks at a window of the conversation and names participants. An adapter must satisfy:
///
/// - It never names the author of the last turn, unless its block sets `reentry`; without that the kernel takes the
///   name out in any case.
/// - An empty selection is normal: the runtime is idle. Several selected participants speak in one cycle, from the same
///   window.
/// - The same window and chain give the same names, unless a model it asks answers differently. It keeps no state between
///   calls: window and chain show where it left off.
/// - It looks up required substrate features in [`Input::capabilities`]; without them it selects no participant.
/// - It asks models only through [`Input::ask`], which applies deadlines and budgets and makes records.
///
/// `quorate_testkit::conformance::dispatcher` checks the first four.
#[async_trait]
pub trait Dispatcher: Send + Sync {
    fn kind(&self) -> &'static str;

    /// Who speaks next, in order, each once.
    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, DispatchError>;

    /// Suggestions for mentions of unknown participants: a sentence for each, for the author of the text.
    fn near_misses(&self, text: &str, participants: &[Participant]) -> Vec<String> {
        let _ = (text, participants);
        Vec::new()
    }

    /// Warnings about this roster before it runs: names that select each other, no participant who could
    /// ever be named. Shown by `check` as warnings.
    fn warnings(&self, participants: &[Participant]) -> Vec<String> {
        let _ = participants;
        Vec::new()
    }
}
