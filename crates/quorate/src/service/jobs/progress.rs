//! The progress of a job, from the kernel's observer or a sweep's watcher, shared with its waiters.

use quorate_kernel::observer::{Observer, RunEvent};
use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};
use quorate_protocol::Json;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use crate::service::sweep::{SweepObserver, SweptFile};

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Progress {
    /// The run, once it is recorded: `quorate resume` can go on with it from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// How many members were asked; of a sweep, how many reviews were begun.
    pub asked: u32,
    /// How many of them are done.
    pub ended: u32,
    /// How many there will be, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<u32>,
    /// The last thing that happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The run that the job continues.
    #[serde(skip)]
    #[schemars(skip)]
    pub continues: Option<String>,
    /// Who is answering: member, step, and the bytes so far.
    #[serde(skip)]
    #[schemars(skip)]
    pub writing: Vec<(String, String, u64)>,
}

impl Progress {
    /// A number that grows with every step, and what it will be in the end where that is known.
    pub fn steps(&self) -> (f64, Option<f64>) {
        let steps = |asked: u32, ended: u32| f64::from(asked) + f64::from(ended);
        (steps(self.asked, self.ended), self.planned.map(|planned| steps(planned, planned)))
    }
}

#[derive(Debug, Clone)]
pub struct State<F> {
    pub progress: Progress,
    /// The result, once the job has ended.
    pub outcome: Option<Result<Json, F>>,
}

impl<F> Default for State<F> {
    fn default() -> Self {
        State { progress: Progress::default(), outcome: None }
    }
}

/// Updates a job's state from the events of its run, sweep or conversation.
pub struct Reporter<F> {
    state: watch::Sender<State<F>>,
}

impl<F> Reporter<F> {
    pub(super) fn new(state: watch::Sender<State<F>>) -> Reporter<F> {
        Reporter { state }
    }

    fn update(&self, change: impl FnOnce(&mut Progress)) {
        self.state.send_modify(|state| change(&mut state.progress));
    }

    /// Sets the run that the job continues. A new run is known from its events.
    pub fn continues(&self, run: &str) {
        self.update(|progress| progress.continues = Some(run.to_owned()));
    }

    fn written(&self, invocation: &str, member: &str, bytes: usize) {
        // An invocation's id is its step and its member.
        let step = invocation.split('/').next().unwrap_or(invocation);
        self.update(|progress| {
            progress.writing.retain(|(known, at, _)| (&**known, &**at) != (member, step));
            progress.writing.push((member.to_owned(), step.to_owned(), bytes as u64));
        });
    }

    fn asked(&self, member: &str, step: &str) {
        self.update(|progress| {
            progress.asked += 1;
            progress.last = Some(format!("{member} is asked ({step})"));
        });
    }

    fn ended(&self, last: String) {
        self.update(|progress| {
            progress.ended += 1;
            progress.last = Some(last);
        });
    }
}

impl<F: Send + Sync + 'static> Observer for Reporter<F> {
    fn observe(&self, event: RunEvent) {
        match event {
            RunEvent::Opened { run } => self.update(|progress| progress.run = Some(run.to_string())),
            RunEvent::Asked { member, step, .. } => self.asked(&member, &step),
            RunEvent::Writing { invocation, member, bytes } => self.written(&invocation, &member, bytes),
            RunEvent::Retried { invocation, why, .. } => {
                self.update(|progress| progress.last = Some(format!("{invocation} is asked again: {why}")));
            }
            RunEvent::Answered { invocation, status, .. } => self.ended(format!("{invocation}: {status}")),
            _ => {}
        }
    }
}

impl<F: Send + Sync + 'static> SweepObserver for Reporter<F> {
    fn planned(&self, reviews: usize) {
        self.update(|progress| progress.planned = u32::try_from(reviews).ok());
    }

    fn started(&self, path: &str) {
        self.update(|progress| {
            progress.asked += 1;
            progress.last = Some(format!("{path} is reviewed"));
        });
    }

    fn ended(&self, swept: &SweptFile) {
        Reporter::ended(self, format!("{} is done", swept.path));
    }
}

impl<F: Send + Sync + 'static> Telemetry for Reporter<F> {
    fn emit(&self, event: &Event) {
        match &event.kind {
            EventKind::ParticipantStarted { participant, .. } => self.asked(participant, "turn"),
            EventKind::ParticipantFinished { participant, .. } => {
                Reporter::ended(self, format!("{participant}: answered"));
            }
            EventKind::ParticipantFailed { participant, status, .. } => {
                Reporter::ended(self, format!("{participant}: {status}"));
            }
            _ => {}
        }
    }
}
