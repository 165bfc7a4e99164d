//! Answers become turns: each is appended, its state stored, then recorded. All of it is kept until it is done,
//! through failures and interrupts (K5).
//! The recorder writes the ledger's records asynchronously, in order; a crash loses none that the conversation cannot restore.

use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::Name;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::phase::{Commit, Phase, PhaseInput, Unappended};
use super::{CycleResult, Runner, TurnError, TurnFailure};
use crate::attempts::millis;
use crate::call::Recorder;
use crate::conversation::Turn;
use crate::ports::ledger::{Durability, Entry, Ledger, LedgerError};
use crate::ports::substrate::{self, Keeps};
use crate::ports::telemetry::EventKind;
use crate::record;

/// How often an append is tried again, and the first pause before it, which doubles.
const MAX_APPEND_ATTEMPTS: u32 = 4;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);

impl Runner {
    /// Ends what was begun before, if something was.
    pub(super) async fn finish(&mut self) -> Result<Option<CycleResult>, TurnError> {
        if let Phase::Committing(_) = self.phase {
            return self.commit().await.map(Some);
        }
        self.save_states().await;
        Ok(None)
    }

    /// Appends, remembers and records what was said about the trigger, as far as that is still to be done.
    pub(super) async fn commit(&mut self) -> Result<CycleResult, TurnError> {
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
    pub(super) async fn record_commit(&mut self, settled: bool) -> Result<(), TurnError> {
        let commit = match &self.phase {
            Phase::Committing(commit) if !commit.recorded => commit,
            _ => return Ok(self.records.wait_durable().await?),
        };
        let failed = |(participant, failure): &(Name, TurnFailure)| record::FailedTurn {
            participant: participant.clone(),
            why: failure.why.clone(),
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
        self.apply(PhaseInput::Recorded);
        self.record_in(slot, entries).await
    }

    /// Records; before anything else where the conversation could not tell what was answered.
    pub(super) async fn record(&mut self, entries: Vec<Entry>) -> Result<(), TurnError> {
        let slot = self.records.reserve().await?;
        self.record_in(slot, entries).await
    }

    async fn record_in(&mut self, slot: Slot, entries: Vec<Entry>) -> Result<(), TurnError> {
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

    /// Stores the states that came with appended turns. A state that cannot be stored is tried again in the next cycle;
    /// until then the participant gets it from memory.
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
    async fn append_answers(&mut self) -> Result<(), TurnError> {
        let (mut pause, mut left) = (FIRST_RETRY_DELAY, MAX_APPEND_ATTEMPTS);
        while let Some(Unappended { turn, was_tried }) = self.phase.next_answer() {
            // Also where this is interrupted: the turn may have been appended without a confirmation.
            self.apply(PhaseInput::AppendTried);
            let input = match self.swarm.substrate.append(turn.clone()).await {
                Ok(one) if one.fresh || was_tried && one.turn.content == turn.content => {
                    PhaseInput::Appended(one.turn)
                }
                Ok(_) => PhaseInput::AnsweredElsewhere,
                Err(error @ substrate::SubstrateError::Refused(_)) => {
                    PhaseInput::Refused(self.swarm.redactor.redact(&error.to_string()).0)
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

/// The record of an answer that is in the conversation.
pub(super) fn appended_turn(turn: &Turn) -> record::AppendedTurn {
    record::AppendedTurn { participant: turn.participant.clone(), turn: turn.id.clone() }
}

/// How many cycles the ledger may be behind; then the conversation waits for it.
const MAX_QUEUED: usize = 1_024;

/// Queued records, and the channel that reports that they are durable; `None` where they need only survive the process.
type QueuedRecords = (Vec<Entry>, Option<oneshot::Sender<()>>);

/// Writes records asynchronously, in order.
pub(super) struct RecordQueue {
    recorder: Arc<Recorder>,
    queue: mpsc::Sender<QueuedRecords>,
    /// Resolves when the records of the last durable write are durable.
    not_durable: Option<oneshot::Receiver<()>>,
    /// `None` once its error was reported.
    writer: Option<JoinHandle<Result<(), LedgerError>>>,
}

impl RecordQueue {
    pub(super) fn start(ledger: Arc<dyn Ledger>, stream: Name, next: u64) -> Self {
        let recorder = Arc::new(Recorder::new(ledger, stream, next));
        let (queue, mut queued) = mpsc::channel::<QueuedRecords>(MAX_QUEUED);
        let writes = recorder.clone();
        let writer = tokio::spawn(async move {
            while let Some((mut entries, waiting)) = queued.recv().await {
                let mut waiting: Vec<_> = waiting.into_iter().collect();
                while let Ok((more, also)) = queued.try_recv() {
                    entries.extend(more);
                    waiting.extend(also);
                }
                let durability = if waiting.is_empty() { Durability::Written } else { Durability::Synced };
                writes.append(entries, Vec::new(), durability).await?;
                // A caller that was interrupted no longer waits; its records are written all the same.
                for waiter in waiting {
                    let _ = waiter.send(());
                }
            }
            Ok(())
        });
        RecordQueue { recorder, queue, not_durable: None, writer: Some(writer) }
    }

    /// For invocations, which record their attempts themselves.
    pub(super) fn recorder(&self) -> Arc<Recorder> {
        self.recorder.clone()
    }

    /// Reserves a place in the queue: what is put there is written even if the caller is dropped.
    ///
    /// # Errors
    /// If the ledger has failed: the caller must not continue unrecorded.
    pub(super) async fn reserve(&mut self) -> Result<Slot, LedgerError> {
        match self.queue.clone().reserve_owned().await {
            Ok(permit) => Ok(Slot(permit)),
            Err(_) => Err(self.take_error().await),
        }
    }

    /// Puts records into the queue.
    ///
    /// # Errors
    /// As [`RecordQueue::reserve`].
    pub(super) async fn put(&mut self, entries: Vec<Entry>) -> Result<(), LedgerError> {
        self.reserve().await?.put(entries);
        Ok(())
    }

    /// Puts records into a place of the queue, and returns when they are durable with everything before them.
    ///
    /// # Errors
    /// When the ledger has failed.
    pub(super) async fn put_durably(&mut self, slot: Slot, entries: Vec<Entry>) -> Result<(), LedgerError> {
        let (notify, durable) = oneshot::channel();
        slot.0.send((entries, Some(notify)));
        self.not_durable = Some(durable);
        self.wait_durable().await
    }

    /// Returns when the records of the last durable write are durable: their caller may have been interrupted.
    ///
    /// # Errors
    /// When the ledger has failed.
    pub(super) async fn wait_durable(&mut self) -> Result<(), LedgerError> {
        let Some(durable) = &mut self.not_durable else { return Ok(()) };
        let written = durable.await;
        self.not_durable = None;
        match written {
            Ok(()) => Ok(()),
            Err(_) => Err(self.take_error().await),
        }
    }

    /// Why nothing is written any more.
    async fn take_error(&mut self) -> LedgerError {
        match self.writer.take() {
            Some(writer) => {
                writer.await.unwrap_or_else(|_| Err(writer_stopped())).err().unwrap_or_else(writer_stopped)
            }
            None => writer_stopped(),
        }
    }

    /// Writes what is queued.
    pub(super) async fn close(self) -> Result<(), LedgerError> {
        drop(self.queue);
        match self.writer {
            Some(writer) => writer.await.unwrap_or_else(|_| Err(writer_stopped())),
            None => Err(writer_stopped()),
        }
    }
}

/// A place in the queue.
pub(super) struct Slot(mpsc::OwnedPermit<QueuedRecords>);

impl Slot {
    pub(super) fn put(self, entries: Vec<Entry>) {
        self.0.send((entries, None));
    }
}

fn writer_stopped() -> LedgerError {
    LedgerError::Unavailable { what: "the task that writes the ledger is gone".into(), source: None }
}
