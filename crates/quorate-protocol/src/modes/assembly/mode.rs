//! The interface of a mode: its inputs and its effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::effect::{Completion, Effect, LockResult};
use super::state::RunState;
use crate::assembly::{Member, Setup};
use crate::gather::Subject;
use crate::locks::Locks;
use crate::{Json, Name};

/// What a mode knows of the run, independent of its progress.
pub(crate) struct ModeContext {
    pub(crate) setup: Arc<Setup>,
    /// The index of a member in the roster.
    pub(crate) member_indices: BTreeMap<Name, usize>,
    pub(crate) run: Name,
    /// The time of the event that is taken, in milliseconds since the Unix epoch.
    pub(crate) now_ms: i64,
    pub(crate) locks: Locks,
    pub(super) subject: Option<Subject>,
}

impl ModeContext {
    pub(crate) fn member(&self, index: usize) -> &Member {
        &self.setup.members[index]
    }

    pub(crate) fn subject_text(&self) -> &str {
        self.subject.as_ref().map_or("", |subject| &subject.part.text)
    }
}

/// One way of deciding together.
pub(crate) trait Mode: Send {
    /// The run is opened.
    fn on_opened(&mut self, context: &ModeContext, run_state: &mut RunState) -> Vec<Effect>;

    /// Stores the answer of a member that was asked; `None` where it gave none. Nothing follows from it yet.
    fn store_answer(&mut self, index: usize, answer: Option<&Json>);

    /// A member that was asked ended: with an answer, or without.
    fn on_answer(
        &mut self,
        context: &ModeContext,
        run_state: &mut RunState,
        index: usize,
        answer: Option<&Json>,
    ) -> Vec<Effect>;

    /// A custom rule was applied.
    fn on_rule_result(
        &mut self,
        context: &ModeContext,
        run_state: &mut RunState,
        ticket: &str,
        result: Result<&Json, &str>,
    ) -> Vec<Effect>;

    /// A candidate was checked against the locks.
    fn on_checked(
        &mut self,
        context: &ModeContext,
        run_state: &mut RunState,
        candidate: &Name,
        result: &LockResult,
    ) -> Vec<Effect>;

    /// The run's budget is spent before the mode has a result: completes the outcome with what is known, and marks
    /// the members that it would still have asked as missing (X8, X12).
    fn on_budget_exhausted(
        &mut self,
        context: &ModeContext,
        run_state: &mut RunState,
        ending: Completion,
    ) -> Completion;
}
