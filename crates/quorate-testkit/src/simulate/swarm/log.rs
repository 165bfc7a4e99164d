//! What happened, for the checkers: what processes did, in the order in which they did it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::lifecycle::{HookError, Lifecycle};
use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};
use quorate_protocol::Name;

use super::conversation::position;
use super::stores::STATE_READ_ERROR;
use crate::rng::Rng;

#[derive(Default)]
pub(super) struct Log {
    /// Every trigger that was taken up, in order.
    pub(super) taken: Vec<TriggerTaken>,
    /// What dispatchers saw and said.
    pub(super) decided: Vec<Decision>,
    /// Who was asked for the first time for what, in order.
    pub(super) asked: Vec<FirstCall>,
    /// The cursors that were recorded.
    pub(super) cursors: Vec<Cursor>,
    /// Whose turn could not be asked for since its state could not be read: trigger and participant.
    pub(super) forgotten: BTreeSet<(usize, Name)>,
    /// Turns that hooks were told of, and in which life.
    pub(super) ended: Vec<(usize, usize)>,
    /// The manifest of each life.
    pub(super) lives: Vec<usize>,
}

/// A trigger that was taken up.
pub(super) struct TriggerTaken {
    pub(super) life: usize,
    pub(super) trigger: usize,
}

/// What a dispatcher saw and said.
pub(super) struct Decision {
    pub(super) manifest: usize,
    /// Where the window's turns stand.
    pub(super) window: Vec<usize>,
    /// Whom it named; `None` where it failed.
    pub(super) named: Option<Vec<Name>>,
}

pub(super) struct FirstCall {
    pub(super) life: usize,
    pub(super) trigger: usize,
    pub(super) participant: Name,
}

/// A cursor that was recorded when the conversation had so many turns.
pub(super) struct Cursor {
    pub(super) manifest: usize,
    pub(super) at: usize,
    pub(super) length: usize,
}

/// Writes down what a process tells.
pub(super) struct RecordingTelemetry {
    pub(super) life: usize,
    pub(super) log: Arc<Mutex<Log>>,
    /// The trigger of the cycle under way.
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

/// A hook that writes down what it is told, and then fails, panics or hangs.
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
            // Without the message that a panic prints.
            1 => std::panic::resume_unwind(Box::new("simulated")),
            2 => std::future::pending().await,
            _ => Ok(()),
        }
    }
}
