//! Answers become turns: each is appended, its state stored, then recorded. All of it is kept until it is done,
//! through failures and interrupts (K5).

use std::time::Duration;

use quorate_protocol::Name;

use super::phase::{Commit, Input, Phase, Unappended};
use super::recorder::Slot;
use super::{CycleResult, Error, Runner};
use crate::consultation::millis;
use crate::conversation::Turn;
use crate::ports::ledger::Entry;
use crate::ports::substrate::{self, Keeps};
use crate::ports::telemetry::EventKind;
use crate::record;

/// How often an append is tried again, and the first pause before it, which doubles.
const MAX_APPEND_ATTEMPTS: u32 = 4;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);

impl Runner {
    /// Ends what was begun before, if something was.
    pub(super) async fn finish(&mut self) -> Result<Option<CycleResult>, Error> {
        if let Phase::Committing(_) = self.phase {
            return self.commit().await.map(Some);
        }
        self.save_states().await;
        Ok(None)
    }

    /// Appends, remembers and records what was said about the trigger, as far as that is still to be done.
    pub(super) async fn commit(&mut self) -> Result<CycleResult, Error> {
        let appended = self.append_answers().await;
        self.save_states().await;
        appended?;
        self.record_commit(self.needs_no_state_recovery()).await?;
        self.unrecorded_idle_turns = usize::from(!self.needs_no_state_recovery());
        match std::mem::take(&mut self.phase) {
            Phase::Committing(Commit { trigger, failed, appended, started, .. }) => {
                self.emit(EventKind::CycleFinished {
                    appended: appended.len(),
                    failed: failed.len(),
                    ms: millis(started.elapsed()),
                });
                Ok(CycleResult::Asked { trigger: trigger.id, appended, failed })
            }
            Phase::Idle | Phase::Asking(_) => Ok(CycleResult::NoNewTurn),
        }
    }

    /// Records the commit; that its trigger is settled only where nothing of it is left to do.
    pub(super) async fn record_commit(&mut self, settled: bool) -> Result<(), Error> {
        let commit = match &self.phase {
            Phase::Committing(commit) if !commit.recorded => commit,
            _ => return Ok(self.records.wait_durable().await?),
        };
        let failed = |(participant, why): &(Name, String)| record::FailedTurn {
            participant: participant.clone(),
            why: why.clone(),
        };
        let settles = settled && commit.is_complete;
        let data = record::Turn {
            trigger: Some(commit.trigger.id.clone()),
            by: Some(commit.trigger.participant.clone()),
            selected: Some(commit.selected.clone()),
            appended: Some(commit.appended.iter().map(appended_turn).collect()),
            failed: Some(commit.failed.iter().map(failed).collect()),
            cursor: settles.then(|| commit.trigger.id.clone()),
            settled: settles.then(|| self.unrecorded_settled.clone()),
            position: self.position.filter(|_| settles),
            ..record::Turn::default()
        };
        let mut entries = commit.entries.clone();
        entries.push(Entry::of(&data, self.swarm.clock.now_ms()));
        let answers: Vec<_> = commit.appended.iter().map(appended_turn).collect();
        let trigger = commit.trigger.id.clone();
        let slot = self.records.reserve().await?;
        self.evidence.expect(&trigger, answers);
        if settles {
            self.unrecorded_settled.clear();
        }
        // Taken note of before anything is waited for: interrupted from here on, it is not recorded once more.
        self.apply(Input::Recorded);
        self.record_in(slot, entries).await
    }

    /// Records; before anything else where the conversation could not tell what was answered.
    pub(super) async fn record(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        let slot = self.records.reserve().await?;
        self.record_in(slot, entries).await
    }

    async fn record_in(&mut self, slot: Slot, entries: Vec<Entry>) -> Result<(), Error> {
        match self.swarm.substrate.about().keeps {
            Keeps::Stamps => slot.put(entries),
            Keeps::Turns => self.records.put_durably(slot, entries).await?,
        }
        Ok(())
    }

    /// Whether a restart need not make states good: either they are stored, or it could not.
    pub(super) fn needs_no_state_recovery(&self) -> bool {
        self.unsaved_states.is_empty() || self.swarm.substrate.about().keeps == Keeps::Turns
    }

    /// Stores the states that came with appended turns. What cannot be stored is tried again with the next cycle; until
    /// then it is what its participant remembers.
    pub(super) async fn save_states(&mut self) {
        for participant in self.unsaved_states.keys().cloned().collect::<Vec<_>>() {
            let Some(state) = self.unsaved_states.get(&participant) else { continue };
            match self.swarm.state.write(&participant, state).await {
                Ok(()) => {
                    self.unsaved_states.remove(&participant);
                    self.emit(EventKind::StateWritten { participant });
                }
                Err(error) => self.emit(EventKind::StateFailed { participant, error: error.to_string() }),
            }
        }
    }

    /// Appends the answers, in order.
    async fn append_answers(&mut self) -> Result<(), Error> {
        let (mut pause, mut left) = (FIRST_RETRY_DELAY, MAX_APPEND_ATTEMPTS);
        while let Some(Unappended { turn, was_tried }) = self.phase.next_answer() {
            // Also where this is interrupted: the turn may have been appended without a confirmation.
            self.apply(Input::AppendTried);
            let input = match self.swarm.substrate.append(turn.clone()).await {
                Ok(one) if one.fresh || was_tried && one.turn.content == turn.content => {
                    Input::Appended(one.turn)
                }
                Ok(_) => Input::AnsweredElsewhere,
                Err(error @ substrate::Error::Refused(_)) => {
                    Input::Refused(self.swarm.redactor.redact(&error.to_string()).0)
                }
                Err(error) if left == 0 => return Err(error.into()),
                Err(_) => {
                    tokio::time::sleep(pause).await;
                    (pause, left) = (pause * 2, left - 1);
                    continue;
                }
            };
            (pause, left) = (FIRST_RETRY_DELAY, MAX_APPEND_ATTEMPTS);
            self.apply(input);
        }
        Ok(())
    }
}

/// An answer that is in the conversation, as it is recorded.
pub(super) fn appended_turn(turn: &Turn) -> record::AppendedTurn {
    record::AppendedTurn { participant: turn.participant.clone(), turn: turn.id.clone() }
}
