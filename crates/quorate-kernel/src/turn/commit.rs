//! What was said becomes turns: it is appended, then remembered, then recorded. All of it stays in hand until it is done,
//! whatever fails or is interrupted in between (K5).

use std::time::Duration;

use quorate_protocol::Name;

use super::recorder::Slot;
use super::{CycleResult, Error, PendingCommit, Runner};
use crate::consultation::millis;
use crate::conversation::Turn;
use crate::ports::ledger::Entry;
use crate::ports::substrate::{self, Keeps};
use crate::ports::telemetry::EventKind;
use crate::record::{self, Status};

/// How often an append is tried again, and the first pause before it, which doubles.
const MAX_APPEND_ATTEMPTS: u32 = 4;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);

impl Runner {
    /// Appends, remembers and records what was said about the last trigger, as far as that is still to be done.
    pub(super) async fn commit(&mut self) -> Result<Option<CycleResult>, Error> {
        let posted = self.append_responses().await;
        self.save_states().await;
        posted?;
        if self.pending_commit.is_some() {
            self.record_pending(self.needs_no_state_recovery()).await?;
        }
        let Some(PendingCommit { trigger, failed, appended, started, .. }) = self.pending_commit.take()
        else {
            return Ok(None);
        };
        self.unrecorded_idle_turns = usize::from(!self.needs_no_state_recovery());
        self.emit(EventKind::CycleFinished {
            appended: appended.len(),
            failed: failed.len(),
            ms: millis(started.elapsed()),
        });
        Ok(Some(CycleResult::Asked { trigger: trigger.id, appended, failed }))
    }

    /// Records what came of the last trigger; that it is settled only where nothing of it is left to do.
    pub(super) async fn record_pending(&mut self, settled: bool) -> Result<(), Error> {
        let Some(open) = self.pending_commit.as_ref().filter(|open| !open.recorded) else {
            return Ok(self.records.wait_durable().await?);
        };
        let failed = |(participant, why): &(Name, String)| record::FailedTurn {
            participant: participant.clone(),
            why: why.clone(),
        };
        let data = record::Turn {
            trigger: Some(open.trigger.id.clone()),
            by: Some(open.trigger.participant.clone()),
            selected: Some(open.selected.clone()),
            appended: Some(open.appended.iter().map(appended_turn).collect()),
            failed: Some(open.failed.iter().map(failed).collect()),
            cursor: (settled && open.is_complete).then(|| open.trigger.id.clone()),
            ..record::Turn::default()
        };
        let mut entries = open.entries.clone();
        entries.push(Entry::of(&data, self.swarm.clock.now_ms()));
        let slot = self.records.reserve().await?;
        // Taken note of before anything is waited for: interrupted from here on, it is not recorded once more.
        self.pending_commit.iter_mut().for_each(|open| open.recorded = true);
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

    /// Appends what was said, in order.
    async fn append_responses(&mut self) -> Result<(), Error> {
        let (mut pause, mut left) = (FIRST_RETRY_DELAY, MAX_APPEND_ATTEMPTS);
        while let Some((turn, tried)) = self.unappended.front_mut() {
            // Also where this is interrupted: it may have been appended, and nobody has learnt that.
            let again = std::mem::replace(tried, true);
            let one = match self.swarm.substrate.append(turn.clone()).await {
                Ok(one) => Ok(one),
                Err(error @ substrate::Error::Refused(_)) => Err(error),
                Err(error) if left == 0 => return Err(error.into()),
                Err(_) => {
                    tokio::time::sleep(pause).await;
                    (pause, left) = (pause * 2, left - 1);
                    continue;
                }
            };
            let Some((turn, _)) = self.unappended.pop_front() else { return Ok(()) };
            (pause, left) = (FIRST_RETRY_DELAY, MAX_APPEND_ATTEMPTS);
            let participant = turn.participant;
            match one {
                Ok(one) if one.fresh || again && one.turn.content == turn.content => {
                    self.unsaved_states.extend(
                        turn.stamp.and_then(|stamp| stamp.state).map(|state| (participant.clone(), state)),
                    );
                    self.emit(EventKind::SubstrateAppended { turn: one.turn.id.clone(), participant });
                    if self.swarm.flags.on_turn_end {
                        self.hooks.turn_end(self.cycles, &one.turn);
                    }
                    self.pending_commit.iter_mut().for_each(|open| open.appended.push(one.turn.clone()));
                }
                // Another process has answered it, and remembers that.
                Ok(_) => {}
                Err(error) => {
                    let error = self.swarm.redactor.redact(&error.to_string()).0;
                    self.emit(EventKind::ParticipantFailed {
                        participant: participant.clone(),
                        status: Status::Failed,
                        error: error.clone(),
                    });
                    self.pending_commit
                        .iter_mut()
                        .for_each(|open| open.failed.push((participant.clone(), error.clone())));
                }
            }
        }
        Ok(())
    }
}

/// An answer that stands in the conversation, as it is recorded.
pub(super) fn appended_turn(turn: &Turn) -> record::AppendedTurn {
    record::AppendedTurn { participant: turn.participant.clone(), turn: turn.id.clone() }
}
