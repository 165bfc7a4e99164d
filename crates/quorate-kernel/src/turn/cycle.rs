//! One cycle: the oldest pending turn is dispatched, and whoever is selected answers it (SEMANTICS K2).

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use quorate_protocol::{Name, Part, PartKind};
use serde_json::json;
use tokio::time::Instant;

use super::{Cycled, Error, PAGE, Runner, Scene, Spoken, shown};
use crate::consultation::{millis, object};
use crate::conversation::{NewTurn, Stamp, Turn, key};
use crate::clock::rfc3339;
use crate::ports::ledger::{Entry, Kind};
use crate::ports::substrate::{self, Keeps};
use crate::ports::telemetry::What;

/// How often an append is tried again, and the first pause before it, which doubles.
const APPENDS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

impl Runner {
    /// Settles the oldest turn that is not settled, if there is one.
    ///
    /// # Errors
    /// When substrate or ledger fail. What was said and could not be appended is kept, and appended by the next call.
    pub async fn cycle(&mut self) -> Result<Cycled, Error> {
        let started = Instant::now();
        self.flush().await?;
        // What is read belongs to the cycle that it begins; without anything new there is none.
        self.cycles += 1;
        self.read(started).await?;
        let Some(trigger) = self.pending.front().cloned() else {
            self.cycles -= 1;
            return Ok(Cycled::Nothing);
        };
        self.emit(What::CycleStarted { trigger: trigger.id.clone(), by: trigger.participant.clone() });
        let in_a_row = if self.is_agents(&trigger) { self.in_a_row + 1 } else { 0 };
        if in_a_row >= self.swarm.policy.max_agent_turns {
            self.emit(What::GuardHit { trigger: trigger.id.clone(), turns: in_a_row });
            let why = format!("{in_a_row} turns of participants in a row without a person's");
            return self.nobody(trigger, Some(why), started).await;
        }
        let (selected, trouble) = self.select(&trigger).await;
        if selected.is_empty() {
            let cycle = self.cycles;
            if self.swarm.flags.on_idle {
                self.hooks.idle(cycle);
            }
            return self.nobody(trigger, trouble, started).await;
        }
        let answered = self.answered(&trigger);
        let asked: Vec<Name> = selected.iter().filter(|id| !answered.contains(*id)).cloned().collect();
        if asked.is_empty() {
            // All of them have answered, before this process or in another one.
            return self.nobody(trigger, None, started).await;
        }
        let scene = self.scene(&trigger, selected);
        if self.swarm.flags.on_mention {
            asked.iter().for_each(|id| self.hooks.mention(self.cycles, id, &trigger));
        }
        let spoken = join_all(asked.iter().map(|id| self.speak(&scene, id))).await;
        self.conclude(trigger, &scene, spoken, started).await
    }

    /// Reads new turns, where none are pending.
    async fn read(&mut self, started: Instant) -> Result<(), Error> {
        // The next page is read when the last turn of this one is up, so that answers to it are known.
        if self.pending.len() > 1 {
            return Ok(());
        }
        let page = self.swarm.substrate.read(self.read_to.as_ref(), PAGE).await?;
        if !page.known {
            // Somebody has cut, restored or replaced the conversation under us.
            return self.take_up_again().await;
        }
        if let Some(last) = page.turns.last() {
            self.read_to = Some(last.id.clone());
            self.emit(What::SubstrateRead {
                substrate: self.swarm.substrate.about().kind,
                turns: page.turns.len(),
                ms: millis(started.elapsed()),
            });
        }
        self.pending.extend(page.turns);
        Ok(())
    }

    /// Who has answered a trigger already: before this process, or in another one.
    fn answered(&mut self, trigger: &Turn) -> BTreeSet<Name> {
        let before = self.resumed.take().filter(|one| one.trigger == trigger.id);
        let mut answered = before.map(|one| one.answered).unwrap_or_default();
        let stamps = self.pending.iter().filter_map(|turn| Some((turn.stamp.as_ref()?, &turn.participant)));
        let answers = stamps.filter(|(stamp, by)| stamp.key == key(&trigger.id, by));
        answered.extend(answers.map(|(_, by)| by.clone()));
        answered
    }

    /// The window up to the trigger.
    pub(super) fn window(&self, trigger: &Turn) -> Vec<Turn> {
        let before = self.swarm.policy.window.saturating_sub(1);
        let skip = self.behind.len().saturating_sub(before);
        self.behind.iter().skip(skip).chain([trigger]).cloned().collect()
    }

    fn scene(&self, trigger: &Turn, selected: Vec<Name>) -> Scene {
        let mut window = self.window(trigger);
        for turn in &mut window {
            let (clean, found) = self.swarm.redactor.redact(&turn.content);
            if found > 0 {
                turn.content = clean.into();
            }
        }
        let turns = Part::new(PartKind::Turns, "", shown(&window));
        let conversation = self.swarm.substrate.about().conversation;
        Scene { window, turns, conversation, selected }
    }

    /// Appends what was said, in the order of selection, and settles the trigger.
    async fn conclude(
        &mut self,
        trigger: Turn,
        scene: &Scene,
        spoken: Vec<Spoken>,
        started: Instant,
    ) -> Result<Cycled, Error> {
        let (mut appended, mut failed, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let mut states = Vec::new();
        for one in spoken {
            entries.extend(one.entries);
            match one.result {
                Err((status, error)) => {
                    let participant = one.participant.clone();
                    self.emit(What::ParticipantFailed { participant, status, error: error.clone() });
                    failed.push((one.participant, error));
                }
                Ok(said) => {
                    self.emit(What::ParticipantFinished {
                        participant: one.participant.clone(),
                        ms: millis(one.took),
                        bytes: said.content.len(),
                    });
                    states.extend(said.state.clone().map(|state| (one.participant.clone(), state)));
                    if said.posted.is_some() {
                        // It stands in the conversation already, and is read from there.
                        continue;
                    }
                    let several = scene.selected.len() > 1;
                    self.unposted.push_back(NewTurn {
                        stamp: Some(Stamp {
                            key: key(&trigger.id, &one.participant),
                            runtime: self.swarm.runtime.clone(),
                            trigger: trigger.id.clone(),
                            selected: if several { scene.selected.clone() } else { Vec::new() },
                            state: said.state,
                        }),
                        participant: one.participant,
                        content: said.content.into(),
                        timestamp: rfc3339(self.swarm.clock.now_ms()),
                        meta: said.meta,
                    });
                }
            }
        }
        // From here on everything is made good from what is in hand: the trigger is behind us.
        self.pending.pop_front();
        self.settle(trigger.clone());
        let flushed = self.flush_into(&mut appended).await;
        for (participant, state) in states {
            self.write_state(participant, state).await;
        }
        let mut data = object(json!({
            "trigger": &*trigger.id,
            "by": &*trigger.participant,
            "selected": names(&scene.selected),
            "appended": appended.iter().map(|turn: &Turn| {
                json!({"participant": &*turn.participant, "turn": &*turn.id})
            }).collect::<Vec<_>>(),
            "failed": failed.iter().map(|(id, why)| json!({"participant": &**id, "why": why})).collect::<Vec<_>>(),
        }));
        // What could not be appended is not settled, whatever becomes of this process.
        if self.unposted.is_empty() {
            data.insert("cursor".to_owned(), json!(&*trigger.id));
        }
        entries.push(Entry { kind: Kind::Turn, at_ms: self.swarm.clock.now_ms(), data });
        self.passed_over = usize::from(!self.unposted.is_empty());
        self.record(entries).await?;
        flushed?;
        self.emit(What::CycleFinished {
            appended: appended.len(),
            failed: failed.len(),
            ms: millis(started.elapsed()),
        });
        Ok(Cycled::Asked { trigger: trigger.id, appended, failed })
    }

    /// Nobody answers the trigger. That is recorded now and then: to dispatch it again after a crash costs nothing.
    async fn nobody(
        &mut self,
        trigger: Turn,
        why: Option<String>,
        started: Instant,
    ) -> Result<Cycled, Error> {
        self.resumed = None;
        self.pending.pop_front();
        let id = trigger.id.clone();
        self.settle(trigger);
        self.passed_over += 1;
        if why.is_some() || self.passed_over >= PAGE || self.swarm.substrate.about().keeps == Keeps::Turns {
            let entry = self.passed(&id, why.as_deref());
            self.record(vec![entry]).await?;
        }
        self.emit(What::CycleIdle { trigger: id.clone() });
        self.emit(What::CycleFinished { appended: 0, failed: 0, ms: millis(started.elapsed()) });
        Ok(Cycled::Idle { trigger: id, why })
    }

    /// The record of turns that nobody answers, up to this one.
    pub(super) fn passed(&mut self, id: &Name, why: Option<&str>) -> Entry {
        self.passed_over = 0;
        let data = object(json!({"trigger": &**id, "selected": [], "why": why, "cursor": &**id}));
        Entry { kind: Kind::Turn, at_ms: self.swarm.clock.now_ms(), data }
    }

    /// Records; before anything else where the conversation could not tell what was answered.
    async fn record(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        match self.swarm.substrate.about().keeps {
            Keeps::Stamps => self.records.put(entries).await?,
            Keeps::Turns => self.records.put_durably(entries).await?,
        }
        Ok(())
    }

    /// Appends what an earlier call could not.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        let mut appended = Vec::new();
        self.flush_into(&mut appended).await
    }

    async fn flush_into(&mut self, appended: &mut Vec<Turn>) -> Result<(), Error> {
        while let Some(turn) = self.unposted.front() {
            let mut pause = PAUSE;
            let mut left = APPENDS;
            let one = loop {
                match self.swarm.substrate.append(turn.clone()).await {
                    Ok(one) => break Ok(one),
                    Err(error @ substrate::Error::Refused(_)) => break Err(error),
                    Err(error) if left == 0 => return Err(error.into()),
                    Err(_) => tokio::time::sleep(pause).await,
                }
                left -= 1;
                pause *= 2;
            };
            let participant = turn.participant.clone();
            self.unposted.pop_front();
            match one {
                Ok(one) if one.fresh => {
                    self.emit(What::SubstrateAppended { turn: one.turn.id.clone(), participant });
                    if self.swarm.flags.on_turn_end {
                        self.hooks.turn_end(self.cycles, &one.turn);
                    }
                    appended.push(one.turn);
                }
                // Another process has answered it.
                Ok(_) => {}
                Err(error) => {
                    let error = error.to_string();
                    self.emit(What::ParticipantFailed { participant, status: "failed", error });
                }
            }
        }
        Ok(())
    }

    async fn write_state(&self, participant: Name, state: serde_json::Map<String, quorate_protocol::Json>) {
        match self.swarm.state.write(&participant, &state).await {
            Ok(()) => self.emit(What::StateWritten { participant }),
            Err(error) => self.emit(What::StateFailed { participant, error: error.to_string() }),
        }
    }
}

/// Names for a record.
pub(super) fn names(names: &[Name]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}
