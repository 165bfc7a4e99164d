//! What was said becomes turns: it is appended, then remembered, then recorded. All of it stays in hand until it is done,
//! whatever fails or is interrupted in between (SEMANTICS K5).

use std::time::Duration;

use serde_json::json;

use super::cycle::names;
use super::recorder::Slot;
use super::{Cycled, Error, Open, Runner};
use crate::consultation::{millis, object};
use crate::conversation::Turn;
use crate::ports::ledger::{Entry, Kind};
use crate::ports::substrate::{self, Keeps};
use crate::ports::telemetry::What;

/// How often an append is tried again, and the first pause before it, which doubles.
const APPENDS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

impl Runner {
    /// Appends, remembers and records what was said about the last trigger, as far as that is still to be done.
    pub(super) async fn finish(&mut self) -> Result<Option<Cycled>, Error> {
        let posted = self.post().await;
        self.remember().await;
        posted?;
        if self.open.is_some() {
            self.record_open(self.is_remembered()).await?;
        }
        let Some(Open { trigger, failed, appended, started, .. }) = self.open.take() else { return Ok(None) };
        self.passed_over = usize::from(!self.is_remembered());
        self.emit(What::CycleFinished {
            appended: appended.len(),
            failed: failed.len(),
            ms: millis(started.elapsed()),
        });
        Ok(Some(Cycled::Asked { trigger: trigger.id, appended, failed }))
    }

    /// Records what came of the last trigger; that it is settled only where nothing of it is left to do.
    pub(super) async fn record_open(&mut self, settled: bool) -> Result<(), Error> {
        let Some(open) = self.open.as_ref().filter(|open| !open.recorded) else {
            return Ok(self.records.durable().await?);
        };
        let mut data = object(json!({
            "trigger": &*open.trigger.id,
            "by": &*open.trigger.participant,
            "selected": names(&open.selected),
            "appended": open.appended.iter().map(|turn: &Turn| {
                json!({"participant": &*turn.participant, "turn": &*turn.id})
            }).collect::<Vec<_>>(),
            "failed": open.failed.iter().map(|(id, why)| {
                json!({"participant": &**id, "why": why})
            }).collect::<Vec<_>>(),
        }));
        if settled && open.whole {
            data.insert("cursor".to_owned(), json!(&*open.trigger.id));
        }
        let mut entries = open.entries.clone();
        entries.push(Entry { kind: Kind::Turn, at_ms: self.swarm.clock.now_ms(), data });
        let slot = self.records.place().await?;
        // Taken note of before anything is waited for: interrupted from here on, it is not recorded once more.
        self.open.iter_mut().for_each(|open| open.recorded = true);
        self.record_in(slot, entries).await
    }

    /// Records; before anything else where the conversation could not tell what was answered.
    pub(super) async fn record(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        let slot = self.records.place().await?;
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
    pub(super) fn is_remembered(&self) -> bool {
        self.unwritten.is_empty() || self.swarm.substrate.about().keeps == Keeps::Turns
    }

    /// Stores the states that came with appended turns. What cannot be stored is tried again with the next cycle; until
    /// then it is what its participant remembers.
    pub(super) async fn remember(&mut self) {
        for participant in self.unwritten.keys().cloned().collect::<Vec<_>>() {
            let Some(state) = self.unwritten.get(&participant) else { continue };
            match self.swarm.state.write(&participant, state).await {
                Ok(()) => {
                    self.unwritten.remove(&participant);
                    self.emit(What::StateWritten { participant });
                }
                Err(error) => self.emit(What::StateFailed { participant, error: error.to_string() }),
            }
        }
    }

    /// Appends what was said, in order.
    async fn post(&mut self) -> Result<(), Error> {
        let (mut pause, mut left) = (PAUSE, APPENDS);
        while let Some((turn, tried)) = self.unposted.front_mut() {
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
            let Some((turn, _)) = self.unposted.pop_front() else { return Ok(()) };
            (pause, left) = (PAUSE, APPENDS);
            let participant = turn.participant;
            match one {
                Ok(one) if one.fresh || again && one.turn.content == turn.content => {
                    self.unwritten.extend(
                        turn.stamp.and_then(|stamp| stamp.state).map(|state| (participant.clone(), state)),
                    );
                    self.emit(What::SubstrateAppended { turn: one.turn.id.clone(), participant });
                    if self.swarm.flags.on_turn_end {
                        self.hooks.turn_end(self.cycles, &one.turn);
                    }
                    self.open.iter_mut().for_each(|open| open.appended.push(one.turn.clone()));
                }
                // Another process has answered it, and remembers that.
                Ok(_) => {}
                Err(error) => {
                    let error = self.swarm.redactor.redact(&error.to_string()).0;
                    self.emit(What::ParticipantFailed {
                        participant: participant.clone(),
                        status: "failed",
                        error: error.clone(),
                    });
                    self.open
                        .iter_mut()
                        .for_each(|open| open.failed.push((participant.clone(), error.clone())));
                }
            }
        }
        Ok(())
    }
}
