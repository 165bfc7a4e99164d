//! Pure protocols: which member is asked next, and what follows from the answers.
//!
//! A [`Protocol`] is a function of its setup and of the events fed so far. It uses no async, no clock, no randomness and no
//! files: its only `now` is the time recorded with an event, its only random input the seed of [`Event::Opened`]. The same
//! recorded events therefore give the same commands on any machine; resume, replay and simulation rely on that.

pub mod answers;
pub mod assembly;
pub mod command;
pub mod event;
pub mod gather;
pub mod locks;
pub mod material;
pub mod modes;
pub mod overlay;
pub mod policy;
pub mod rules;
pub mod storable;
pub mod tally;

pub use command::{ApplyRule, Command, Fact, FactKind, Gather, Invoke, SemanticMatch};
pub use event::{AbsenceReason, AskedModel, ConsultationResult, Event, SemanticHit, TimedEvent};
pub use material::{Part, PartKind};

use std::sync::Arc;

/// A short shared string: ids, member names, steps.
pub type Name = Arc<str>;

/// Untyped JSON, as answers and facts carry it.
pub type Json = serde_json::Value;

/// A state machine that runs one deliberation.
pub trait Protocol: Send {
    /// Takes one event and returns the commands that follow from it.
    ///
    /// An event that the machine does not expect (a second answer to one invocation, an answer that was not asked for) changes
    /// nothing and gives no commands.
    fn advance(&mut self, event: &TimedEvent) -> Vec<Command>;

    /// The mode and its version, for example `council/4`. It changes when the commands of the mode would; a run can
    /// only be resumed by the version that opened it.
    fn version(&self) -> &'static str;

    /// The lock result of an answer, for its consultation's record (D7): `pass`, `hit` or `unchecked`. `None` in a protocol
    /// without locks.
    fn lock_result(&self, answer: Option<&Json>) -> Option<&'static str> {
        let _ = answer;
        None
    }
}
