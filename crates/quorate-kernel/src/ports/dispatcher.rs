//! The ports of a conversation's participants: who speaks next ([`Dispatcher`]), what a participant remembers ([`State`])
//! and which
//! tools it has ([`Effectors`]). Each trait's documentation is the manual for adapter authors.

use async_trait::async_trait;
use quorate_protocol::{AbsenceReason, Json, Name, Part, answers};
use serde_json::Map;

use crate::conversation::{Capabilities, Participant, Tools, Turn};

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

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StateError {
    /// What failed, for a person.
    pub what: String,
    /// The underlying error.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StateError {
    pub fn new(what: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        StateError { what: what.into(), source: Some(source.into()) }
    }
}

/// The state port: what a participant remembers between its turns. Keeps one object for each participant.
///
/// # For adapter authors
///
/// - A participant without a state has the empty object.
/// - [`State::write`] replaces the whole state. A read during a write, or after a crash in the middle of one, returns the
///   old or the new state, never a mixture.
/// - A state that is not [storable](quorate_protocol::storable) is refused, written and read.
/// - Ids are any text; two of them never share an entry, whatever the store does to names.
///
/// `quorate_testkit::conformance::state` checks it.
#[async_trait]
pub trait State: Send + Sync {
    fn kind(&self) -> &'static str;

    /// Warnings about the stored states. `check` shows them too, so it makes no connection.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a participant remembers.
    async fn read(&self, participant: &str) -> Result<Map<String, Json>, StateError>;

    /// Replaces what a participant remembers.
    async fn write(&self, participant: &str, state: &Map<String, Json>) -> Result<(), StateError>;
}

/// The effectors port: which tools a participant has.
///
/// # For adapter authors
///
/// Effectors are declared by the manifest, resolved here, and used by the executor, which gets them as [`Tools`] with every
/// turn. Only the executor enforces them. `check` reports a server that is not configured, and it is not passed on.
pub trait Effectors: Send + Sync {
    fn kind(&self) -> &'static str;

    /// The tools of a participant.
    fn tools(&self, participant: &str) -> Tools;

    /// Named servers that are not configured, each with its participant.
    fn unknown_servers(&self) -> Vec<(String, String)>;
}
