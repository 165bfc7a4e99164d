//! The log of the processes' actions, in order, for the checkers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::lifecycle::{HookError, Lifecycle};
use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};
use quorate_protocol::Name;

use super::conversation::position;
use crate::rng::Rng;

/// The message of the error when a state cannot be read.
pub(super) const STATE_READ_ERROR: &str = "simulated: a state could not be read";

#[derive(Default)]
pub(super) struct Log {
    /// Triggers that were taken up, in order.
    pub(super) taken: Vec<TriggerTaken>,
    /// Inputs and results of dispatchers.
    pub(super) decided: Vec<Decision>,
    /// The first call of each participant for each trigger, in order.
    pub(super) asked: Vec<FirstCall>,
    pub(super) cursors: Vec<Cursor>,
    /// Participants that could not be asked since their state could not be read: trigger and participant.
    pub(super) forgotten: BTreeSet<(usize, Name)>,
    /// Turns that hooks received, with the life.
    pub(super) ended: Vec<(usize, usize)>,
    /// Lives in which a cycle was dropped, so that its trigger is taken up again.
    pub(super) dropped: BTreeSet<usize>,
    /// The manifest of each life.
    pub(super) lives: Vec<usize>,
}

pub(super) struct TriggerTaken {
    pub(super) life: usize,
    pub(super) trigger: usize,
}

/// Input and result of a dispatcher.
pub(super) struct Decision {
    pub(super) manifest: usize,
    pub(super) life: usize,
    /// The number of triggers that any process had taken up by then.
    pub(super) taken: usize,
    /// The indices of the window's turns.
    pub(super) window: Vec<usize>,
    /// The selection; `None` if it failed.
    pub(super) named: Option<Vec<Name>>,
}

pub(super) struct FirstCall {
    pub(super) life: usize,
    pub(super) trigger: usize,
    pub(super) participant: Name,
}

/// A recorded cursor, with the number of turns at that time.
pub(super) struct Cursor {
    pub(super) manifest: usize,
    pub(super) at: usize,
    pub(super) length: usize,
}

/// Logs the events of a process.
pub(super) struct RecordingTelemetry {
    pub(super) life: usize,
    pub(super) log: Arc<Mutex<Log>>,
    /// The trigger of the current cycle.
    pub(super) trigger: Mutex<usize>,
}

impl Telemetry for RecordingTelemetry {
    fn emit(&self, event: &Event) {
        let mut trigger = self.trigger.lock().unwrap_or_else(PoisonError::into_inner);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.kind {
            EventKind::CycleStarted { trigger: id, .. } => {
                *trigger = position(id).unwrap_or(usize::MAX);
                log.taken.push(TriggerTaken { life: self.life, trigger: *trigger });
            }
            EventKind::ParticipantFailed { participant, error, .. } if error.contains(STATE_READ_ERROR) => {
                log.forgotten.insert((*trigger, participant.clone()));
            }
            _ => {}
        }
    }
}

/// A hook that logs the event, and then fails, panics or hangs.
pub(super) struct UnreliableHooks {
    pub(super) life: usize,
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) seed: u64,
}

#[async_trait]
impl Lifecycle for UnreliableHooks {
    fn kind(&self) -> &'static str {
        "simulated"
    }

    async fn on_turn_end(&self, turn: &Turn) -> Result<(), HookError> {
        let at = position(&turn.id).unwrap_or(usize::MAX);
        self.log.lock().unwrap_or_else(PoisonError::into_inner).ended.push((self.life, at));
        match Rng::from_seed_and_name(self.seed, &turn.id).below(8) {
            0 => Err("simulated: a hook failed".to_owned()),
            // Without printing the panic's message.
            1 => std::panic::resume_unwind(Box::new("simulated")),
            2 => std::future::pending().await,
            _ => Ok(()),
        }
    }
}
