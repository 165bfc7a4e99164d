//! One cycle: the oldest pending turn is dispatched, and whoever is selected answers it (SEMANTICS K2).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use quorate_protocol::{Name, Part, PartKind};
use serde_json::json;
use tokio::time::Instant;

use super::dispatch::{Cost, Selected};
use super::{Answering, Cycled, Error, Open, PAGE, Runner, Scene, Settled, Spoken, Underway};
use crate::clock::rfc3339;
use crate::consultation::{millis, object};
use crate::conversation::{NewTurn, Stamp, Turn, key};
use crate::ports::ledger::{self, Entry, Kind};
use crate::ports::substrate::Keeps;
use crate::ports::telemetry::What;
use crate::redact::Redactor;

impl Runner {
    /// Settles the oldest turn that is not settled, if there is one.
    ///
    /// # Errors
    /// When substrate or ledger fail. What was said and could not be appended is kept, and appended by the next call.
    pub async fn cycle(&mut self) -> Result<Cycled, Error> {
        let started = Instant::now();
        // The last one may have been dropped on its way, or the ledger failed.
        self.break_off();
        if let Some(finished) = self.finish().await? {
            return Ok(finished);
        }
        // What is read belongs to the cycle that it begins; without anything new there is none.
        self.cycles += 1;
        self.read(started).await?;
        let Some(trigger) = self.pending.front().cloned() else {
            self.cycles -= 1;
            return Ok(Cycled::Nothing);
        };
        self.emit(What::CycleStarted { trigger: trigger.id.clone(), by: trigger.participant.clone() });
        let in_a_row = if self.is_agents(&trigger) { self.in_a_row + 1 } else { 0 };
        let most = self.swarm.policy.max_agent_turns;
        if in_a_row >= most {
            self.emit(What::GuardHit { trigger: trigger.id.clone(), turns: in_a_row });
            let turns = if in_a_row == 1 { "1 turn" } else { &format!("{in_a_row} turns") };
            let why = format!(
                "{turns} of participants without a person's between, and `maxAgentTurns` is {most}; what a person says \
                 next is answered"
            );
            return self.nobody(trigger, Some(why), Cost::Nothing, started).await;
        }
        let window = self.window(&trigger);
        let selected = match self.select(&window, &trigger).await? {
            Selected::Named(selected, cost) if selected.is_empty() => {
                let cycle = self.cycles;
                if self.swarm.flags.on_idle {
                    self.hooks.idle(cycle);
                }
                let misses = self.swarm.dispatcher.misses(&trigger.content, &self.roster);
                let why = (!misses.is_empty()).then(|| misses.join(" "));
                return self.nobody(trigger, why, cost, started).await;
            }
            Selected::Named(selected, _) => selected,
            Selected::Undecided(why, cost) => {
                let id = trigger.id.clone();
                self.nobody(trigger, Some(why.clone()), cost, started).await?;
                return Ok(Cycled::Undecided { trigger: id, why });
            }
            Selected::Spent => return Ok(Cycled::Spent { trigger: trigger.id }),
        };
        let answered = self.answered(&trigger);
        let asked: Vec<Name> = selected.iter().filter(|id| !answered.contains(*id)).cloned().collect();
        if asked.is_empty() {
            // All of them have answered, before this process or in another one.
            return self.nobody(trigger, None, Cost::Nothing, started).await;
        }
        if !self.table.calls.has(asked.len()) {
            return Ok(Cycled::Spent { trigger: trigger.id });
        }
        let window = self.clean(window).await;
        let scene = self.scene(window);
        if self.swarm.flags.on_mention {
            asked.iter().for_each(|id| self.hooks.mention(self.cycles, id, &trigger));
        }
        let spoken = Mutex::default();
        self.underway = Some(Underway { trigger, selected, asked: asked.clone(), started, spoken });
        let heard = join_all(asked.iter().map(|id| self.hear(&scene, id))).await;
        heard.into_iter().collect::<Result<(), _>>()?;
        self.conclude().await
    }

    /// Asks somebody, and keeps what comes of it.
    async fn hear(&self, scene: &Scene, id: &Name) -> Result<(), ledger::Error> {
        let spoken = self.speak(scene, id).await?;
        let participant = id.clone();
        self.emit(match &spoken.result {
            Ok(said) => {
                What::ParticipantFinished { participant, ms: millis(spoken.took), bytes: said.content.len() }
            }
            Err((status, error)) => What::ParticipantFailed { participant, status, error: error.clone() },
        });
        if let Some(underway) = &self.underway {
            underway.spoken.lock().unwrap_or_else(PoisonError::into_inner).push(spoken);
        }
        Ok(())
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
                substrate: self.about.kind,
                turns: page.turns.len(),
                ms: millis(started.elapsed()),
            });
        }
        self.pending.extend(page.turns);
        Ok(())
    }

    /// Who has answered a trigger already: before this process, or in another one.
    fn answered(&self, trigger: &Turn) -> BTreeSet<Name> {
        let before = self.resumed.as_ref().filter(|one| one.trigger == trigger.id);
        let mut answered = before.map(|one| one.answered.clone()).unwrap_or_default();
        let stamps = self.pending.iter().filter_map(|turn| Some((turn.stamp.as_ref()?, &turn.participant)));
        let answers = stamps.filter(|(stamp, by)| stamp.key == key(&trigger.id, by));
        answered.extend(answers.map(|(_, by)| by.clone()));
        answered
    }

    /// The window up to the trigger.
    pub(super) fn window(&self, trigger: &Turn) -> Vec<Turn> {
        self.before().map(|one| &one.turn).chain([trigger]).cloned().collect()
    }

    /// What stands before the trigger in the window.
    fn before(&self) -> impl Iterator<Item = &Settled> {
        let before = self.swarm.policy.window.saturating_sub(1);
        self.behind.iter().skip(self.behind.len().saturating_sub(before))
    }

    /// Turns without secrets.
    async fn clean(&self, mut window: Vec<Turn>) -> Vec<Turn> {
        let bytes = window.iter().map(|turn| turn.content.len()).sum();
        let work = move |redactor: &Redactor| {
            for turn in window.iter_mut().filter(|_| !redactor.is_empty()) {
                if let (clean, 1..) = redactor.redact(&turn.content) {
                    turn.content = clean.into();
                }
            }
            window
        };
        self.swarm.redactor.apart(bytes, work).await
    }

    fn scene(&self, window: Vec<Turn>) -> Scene {
        let mut lines: Vec<&str> = self.before().map(|one| &*one.line).collect();
        let trigger = window.last().map(|trigger| self.shown(trigger)).unwrap_or_default();
        lines.push(&trigger);
        // A line for each: easier to read than one, and cheaper than many.
        let turns = Part::new(PartKind::Turns, "", format!("[\n{}\n]", lines.join(",\n")));
        let conversation = self.about.conversation.clone();
        Scene { window, turns, conversation }
    }

    /// Settles the trigger that everybody was heard about, and appends what was said.
    async fn conclude(&mut self) -> Result<Cycled, Error> {
        let Some(trigger) = self.collect(true) else { return Ok(Cycled::Nothing) };
        // From here on everything is made good from what is in hand: the trigger is behind us.
        self.resumed = None;
        self.pending.pop_front();
        let id = trigger.id.clone();
        self.settle(trigger);
        let none = Cycled::Asked { trigger: id, appended: Vec::new(), failed: Vec::new() };
        Ok(self.finish().await?.unwrap_or(none))
    }

    /// Where a cycle did not come to its end: keeps what was said by then. The trigger, and whom nobody has heard.
    pub(super) fn break_off(&mut self) -> Option<(Name, Vec<Name>)> {
        let Underway { trigger, selected, asked, spoken, .. } = self.underway.as_ref()?;
        let (trigger, selected, mut unheard) = (trigger.id.clone(), selected.clone(), asked.clone());
        let answered = |one: &Spoken| one.result.is_ok().then(|| one.participant.clone());
        let heard =
            spoken.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(answered).collect();
        let heard: BTreeSet<Name> = heard;
        // Where turns are all that is kept, whoever takes this up could not tell that some have answered already.
        if heard.is_empty() || self.swarm.substrate.about().keeps == Keeps::Turns {
            self.underway = None;
            return Some((trigger, unheard));
        }
        self.collect(false);
        unheard.retain(|id| !heard.contains(id));
        let before = self.resumed.take().filter(|one| one.trigger == trigger).map(|one| one.answered);
        let answered = before.into_iter().flatten().chain(heard).collect();
        self.resumed =
            Some(Answering { last: trigger.clone(), trigger: trigger.clone(), selected, answered });
        Some((trigger, unheard))
    }

    /// Has what was said about the trigger appended, in the order of selection.
    fn collect(&mut self, whole: bool) -> Option<Turn> {
        let Underway { trigger, selected, asked, started, spoken } = self.underway.take()?;
        let mut spoken = spoken.into_inner().unwrap_or_else(PoisonError::into_inner);
        spoken.sort_by_key(|one| asked.iter().position(|id| *id == one.participant));
        let (mut failed, mut entries) = (Vec::new(), Vec::new());
        for one in spoken {
            entries.extend(one.entries);
            let said = match one.result {
                Ok(said) => said,
                Err((_, error)) => {
                    failed.push((one.participant, error));
                    continue;
                }
            };
            if said.posted.is_some() {
                // It stands in the conversation already, and is read from there.
                self.unwritten.extend(said.state.map(|state| (one.participant, state)));
                continue;
            }
            let stamp = Stamp {
                key: key(&trigger.id, &one.participant),
                runtime: self.swarm.runtime.clone(),
                trigger: trigger.id.clone(),
                selected: if selected.len() > 1 { selected.clone() } else { Vec::new() },
                state: said.state,
            };
            let turn = NewTurn {
                stamp: Some(stamp),
                participant: one.participant,
                content: said.content.into(),
                timestamp: rfc3339(self.swarm.clock.now_ms()),
                meta: said.meta,
            };
            self.unposted.push_back((turn, false));
        }
        let appended = Vec::new();
        self.open = Some(Open {
            trigger: trigger.clone(),
            whole,
            selected,
            failed,
            entries,
            appended,
            recorded: false,
            started,
        });
        Some(trigger)
    }

    /// Nobody answers the trigger. That is recorded now and then where to dispatch it again after a crash costs nothing,
    /// and is durable before the next trigger where it does.
    async fn nobody(
        &mut self,
        trigger: Turn,
        why: Option<String>,
        cost: Cost,
        started: Instant,
    ) -> Result<Cycled, Error> {
        // Waiting comes first: whoever is interrupted by then has settled nothing.
        let slot = match cost {
            Cost::Calls if self.is_remembered() => Some(self.records.place().await?),
            _ => None,
        };
        self.resumed = None;
        self.pending.pop_front();
        let id = trigger.id.clone();
        self.settle(trigger);
        self.passed_over += 1;
        let due =
            why.is_some() || self.passed_over >= PAGE || self.swarm.substrate.about().keeps == Keeps::Turns;
        if (due || cost == Cost::Calls) && self.is_remembered() {
            let entry = self.passed(&id, why.as_deref());
            match slot {
                None => self.record(vec![entry]).await?,
                Some(slot) => self.records.put_durably(slot, vec![entry]).await?,
            }
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
}

/// Names for a record.
pub(super) fn names(names: &[Name]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}
