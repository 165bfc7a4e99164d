//! The ports that observe a conversation: hooks ([`Lifecycle`]) and telemetry ([`Telemetry`]). Each trait's documentation is the
//! manual for adapter authors.

use std::time::Duration;

use async_trait::async_trait;
use quorate_protocol::Name;
use serde::Serialize;

use super::executor::SideEffect;
use crate::conversation::Turn;
use crate::record::Status;

/// An event and its circumstances.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The cycle: a number that counts up in one process.
    pub cycle: u64,
    /// When, as RFC 3339.
    pub at: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened. Durations are in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind")]
pub enum EventKind {
    /// A cycle begins, for one trigger.
    #[serde(rename = "cycle.started")]
    CycleStarted {
        /// The id of the trigger.
        trigger: Name,
        /// The id of its author.
        by: Name,
    },
    /// New turns were read.
    #[serde(rename = "substrate.read")]
    SubstrateRead {
        /// The kind of the substrate.
        substrate: &'static str,
        /// How many turns are new.
        turns: usize,
        /// How long it took.
        ms: u64,
    },
    /// The dispatcher has decided.
    #[serde(rename = "dispatch.decided")]
    DispatchDecided {
        /// The kind of the dispatcher.
        dispatcher: &'static str,
        /// The selected participants.
        selected: Vec<Name>,
        /// How long it took.
        ms: u64,
    },
    /// The dispatcher failed; no participant is selected.
    #[serde(rename = "dispatch.failed")]
    DispatchFailed {
        /// The kind of the dispatcher.
        dispatcher: &'static str,
        /// Why, as a message for users.
        error: String,
    },
    /// A participant is asked.
    #[serde(rename = "participant.started")]
    ParticipantStarted {
        /// The id of the participant.
        participant: Name,
        /// The name of its executor.
        executor: String,
    },
    /// A participant waits for more than two seconds before it is asked again, or at all.
    #[serde(rename = "participant.waiting")]
    ParticipantWaiting {
        /// The id of the participant.
        participant: Name,
        /// The wait in one line, which names the participant.
        line: String,
        /// How long.
        ms: u64,
    },
    /// The program of a participant refused its model tools.
    #[serde(rename = "participant.tools_refused")]
    ParticipantToolsRefused {
        /// The id of the participant.
        participant: Name,
        /// The tools, by the program's own names.
        tools: Vec<String>,
    },
    /// A participant has spoken.
    #[serde(rename = "participant.finished")]
    ParticipantFinished {
        /// The id of the participant.
        participant: Name,
        /// How long it took.
        ms: u64,
        /// The length of what it said, in bytes.
        bytes: usize,
    },
    /// A participant has not spoken.
    #[serde(rename = "participant.failed")]
    ParticipantFailed {
        /// The id of the participant.
        participant: Name,
        /// How its consultation ended.
        status: Status,
        /// Why, as a message for users.
        error: String,
    },
    /// A turn was appended.
    #[serde(rename = "substrate.appended")]
    SubstrateAppended {
        /// The id of the turn.
        turn: Name,
        /// The id of its author.
        participant: Name,
    },
    /// A participant's state was written.
    #[serde(rename = "state.written")]
    StateWritten {
        /// The id of the participant.
        participant: Name,
    },
    /// A participant's state could not be read or written.
    #[serde(rename = "state.failed")]
    StateFailed {
        /// The id of the participant.
        participant: Name,
        /// Why, as a message for users.
        error: String,
    },
    /// A lifecycle hook failed.
    #[serde(rename = "hook.failed")]
    HookFailed {
        /// Which: `onTurnEnd`, `onMention`, `onIdle`.
        hook: &'static str,
        /// Why, as a message for users.
        error: String,
    },
    /// The chain of triggers since a person's turn is too long: the trigger is passed over.
    #[serde(rename = "guard.hit")]
    GuardHit {
        /// The id of the trigger.
        trigger: Name,
        /// How many participants' turns the chain has.
        turns: usize,
    },
    /// The cycle ends without a question.
    #[serde(rename = "cycle.idle")]
    CycleIdle {
        /// The trigger that no participant answers.
        trigger: Name,
    },
    /// The cycle is over.
    #[serde(rename = "cycle.finished")]
    CycleFinished {
        /// How many turns were appended.
        appended: usize,
        /// How many participants failed.
        failed: usize,
        /// How long it took.
        ms: u64,
    },
    /// A sink did not take events fast enough. The sink itself emits this once it takes events again.
    #[serde(rename = "events.dropped")]
    EventsDropped {
        /// How many are missing before this one.
        count: usize,
    },
    /// The ledger and the conversation differed; the conversation holds.
    #[serde(rename = "ledger.differs")]
    LedgerDiffers {
        /// What was restored.
        what: String,
    },
}

/// The telemetry port: one structured event at each boundary of a cycle.
///
/// # For adapter authors
///
/// A sink must not block and cannot fail: what it cannot pass on at once, it keeps, up to a limit. Every event has its
/// cycle, so that
/// spans can be rebuilt from the events alone.
pub trait Telemetry: Send + Sync {
    fn emit(&self, event: &Event);
}

/// How long a hook may take before it is abandoned.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Why a hook failed, as a message for users.
pub type HookError = String;

/// The lifecycle port: listeners to events of a conversation.
///
/// # For adapter authors
///
/// Hooks are advisory. The kernel starts them in the order of events and waits for none of them: a hook that fails, hangs
/// or panics is recorded, and the conversation continues. Each has [`DEADLINE`] to end. A few run at once and some hundred
/// wait; if a conversation outpaces its hooks for long, calls are dropped, which is recorded too.
///
/// `quorate_testkit::conformance::lifecycle` checks that a failing hook does not affect the conversation.
#[async_trait]
pub trait Lifecycle: Send + Sync {
    fn kind(&self) -> &'static str;

    /// Its side effects outside of this process, as [`Executor::side_effects`](super::executor::Executor::side_effects)
    /// describes them.
    fn side_effects(&self) -> Vec<SideEffect> {
        Vec::new()
    }

    /// A turn was appended.
    async fn on_turn_end(&self, turn: &Turn) -> Result<(), HookError> {
        let _ = turn;
        Ok(())
    }

    /// The dispatcher chose a participant.
    async fn on_mention(&self, target: &str, by: &Turn) -> Result<(), HookError> {
        let _ = (target, by);
        Ok(())
    }

    async fn on_idle(&self) -> Result<(), HookError> {
        Ok(())
    }
}
