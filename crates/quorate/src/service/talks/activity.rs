//! The participants that a run is asking now, from the run's events.

use std::collections::BTreeMap;

use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

/// What a participant does
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Doing {
    /// It is being asked.
    Asked,
    /// It has answered in this run.
    Answered,
    /// It was asked in this run and has not answered.
    Failed,
}

/// The participants that a run of this process has asked, by id, each with the reason where it failed.
pub type Activity = BTreeMap<Name, (Doing, Option<String>)>;

/// Tracks a run's participants and notifies subscribers of each change.
pub struct Tracker {
    activity: watch::Sender<Activity>,
}

impl Default for Tracker {
    fn default() -> Self {
        Tracker { activity: watch::Sender::new(Activity::new()) }
    }
}

impl Tracker {
    pub fn subscribe(&self) -> watch::Receiver<Activity> {
        self.activity.subscribe()
    }

    pub fn now(&self) -> Activity {
        self.activity.borrow().clone()
    }

    /// A run has ended: no participant is being asked.
    pub fn end(&self) {
        self.activity.send_modify(|activity| activity.retain(|_, (doing, _)| *doing != Doing::Asked));
    }

    fn set(&self, participant: &Name, doing: Doing, why: Option<String>) {
        self.activity.send_modify(|activity| drop(activity.insert(participant.clone(), (doing, why))));
    }
}

impl Telemetry for Tracker {
    fn emit(&self, event: &Event) {
        match &event.kind {
            EventKind::ParticipantStarted { participant, .. } => self.set(participant, Doing::Asked, None),
            EventKind::ParticipantFinished { participant, .. } => {
                self.set(participant, Doing::Answered, None)
            }
            EventKind::ParticipantFailed { participant, error, .. } => {
                self.set(participant, Doing::Failed, Some(error.clone()));
            }
            _ => {}
        }
    }
}
