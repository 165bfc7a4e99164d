//! One cycle: the oldest pending turn is dispatched, and whoever is selected answers it (K2).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use quorate_protocol::{Name, Part, PartKind};
use tokio::time::Instant;

use super::dispatch::{DecisionCost, Selection};
use super::{
    ActiveCycle, CycleResult, Error, PartialAnswer, PendingCommit, READ_PAGE_TURNS, Runner, SettledTurn,
    SpeakerResult, TurnContext,
};
use crate::clock::rfc3339;
use crate::consultation::millis;
use crate::conversation::{NewTurn, Stamp, Turn, turn_key};
use crate::ports::ledger::{self, Entry};
use crate::ports::substrate::Keeps;
use crate::ports::telemetry::EventKind;
use crate::record;
use crate::redact::Redactor;

impl Runner {
    /// Settles the oldest turn that is not settled, if there is one.
    ///
    /// # Errors
    /// When substrate or ledger fail. What was said and could not be appended is kept, and appended by the next call.
    pub async fn cycle(&mut self) -> Result<CycleResult, Error> {
        let started = Instant::now();
        // The last one may have been dropped on its way, or the ledger failed.
        self.abort_cycle();
        if let Some(finished) = self.commit().await? {
            return Ok(finished);
        }
        // What is read belongs to the cycle that it begins; without anything new there is none.
        self.cycles += 1;
        self.read_new_turns(started).await?;
        let Some(trigger) = self.pending.front().cloned() else {
            self.cycles -= 1;
            return Ok(CycleResult::NoNewTurn);
        };
        self.emit(EventKind::CycleStarted { trigger: trigger.id.clone(), by: trigger.participant.clone() });
        let in_a_row = if self.is_agent_turn(&trigger) { self.agent_turns_in_a_row + 1 } else { 0 };
        let most = self.swarm.policy.max_agent_turns;
        if in_a_row >= most {
            self.emit(EventKind::GuardHit { trigger: trigger.id.clone(), turns: in_a_row });
            let turns = if in_a_row == 1 { "1 turn" } else { &format!("{in_a_row} turns") };
            let why = format!(
                "{turns} of participants without a person's between, and `maxAgentTurns` is {most}; what a person says \
                 next is answered"
            );
            return self.settle_unanswered(trigger, Some(why), DecisionCost::Nothing, started).await;
        }
        let window = self.window(&trigger);
        let selected = match self.select(&window, &trigger).await? {
            Selection::Named(selected, cost) if selected.is_empty() => {
                let cycle = self.cycles;
                if self.swarm.flags.on_idle {
                    self.hooks.idle(cycle);
                }
                let misses = self.swarm.dispatcher.near_misses(&trigger.content, &self.roster);
                let why = (!misses.is_empty()).then(|| misses.join(" "));
                return self.settle_unanswered(trigger, why, cost, started).await;
            }
            Selection::Named(selected, _) => selected,
            Selection::Undecided(why, cost) => {
                let id = trigger.id.clone();
                self.settle_unanswered(trigger, Some(why.clone()), cost, started).await?;
                return Ok(CycleResult::Undecided { trigger: id, why });
            }
            Selection::BudgetExhausted => return Ok(CycleResult::BudgetExhausted { trigger: trigger.id }),
        };
        let answered = self.already_answered(&trigger);
        let asked: Vec<Name> = selected.iter().filter(|id| !answered.contains(*id)).cloned().collect();
        if asked.is_empty() {
            // All of them have answered, before this process or in another one.
            return self.settle_unanswered(trigger, None, DecisionCost::Nothing, started).await;
        }
        if !self.call_context.calls.has_left(asked.len()) {
            return Ok(CycleResult::BudgetExhausted { trigger: trigger.id });
        }
        let window = self.redact_turns(window).await;
        let scene = self.turn_context(window);
        if self.swarm.flags.on_mention {
            asked.iter().for_each(|id| self.hooks.mention(self.cycles, id, &trigger));
        }
        let spoken = Mutex::default();
        self.active_cycle =
            Some(ActiveCycle { trigger, selected, asked: asked.clone(), started, results: spoken });
        let heard = join_all(asked.iter().map(|id| self.ask_speaker(&scene, id))).await;
        heard.into_iter().collect::<Result<(), _>>()?;
        self.finish_cycle().await
    }

    /// Asks somebody, and keeps what comes of it.
    async fn ask_speaker(&self, scene: &TurnContext, id: &Name) -> Result<(), ledger::Error> {
        let spoken = self.speak(scene, id).await?;
        let participant = id.clone();
        self.emit(match &spoken.result {
            Ok(said) => EventKind::ParticipantFinished {
                participant,
                ms: millis(spoken.took),
                bytes: said.content.len(),
            },
            Err((status, error)) => {
                EventKind::ParticipantFailed { participant, status: status.clone(), error: error.clone() }
            }
        });
        if let Some(underway) = &self.active_cycle {
            underway.results.lock().unwrap_or_else(PoisonError::into_inner).push(spoken);
        }
        Ok(())
    }

    /// Reads new turns, where none are pending.
    async fn read_new_turns(&mut self, started: Instant) -> Result<(), Error> {
        // The next page is read when the last turn of this one is up, so that answers to it are known.
        if self.pending.len() > 1 {
            return Ok(());
        }
        let page = self.swarm.substrate.read(self.last_read.as_ref(), READ_PAGE_TURNS).await?;
        if !page.known {
            // Somebody has cut, restored or replaced the conversation under us.
            return self.resync().await;
        }
        if let Some(last) = page.turns.last() {
            self.last_read = Some(last.id.clone());
            self.emit(EventKind::SubstrateRead {
                substrate: self.about.kind,
                turns: page.turns.len(),
                ms: millis(started.elapsed()),
            });
        }
        self.pending.extend(page.turns);
        Ok(())
    }

    /// Who has answered a trigger already: before this process, or in another one.
    fn already_answered(&self, trigger: &Turn) -> BTreeSet<Name> {
        let before = self.resumed.as_ref().filter(|one| one.trigger == trigger.id);
        let mut answered = before.map(|one| one.answered.clone()).unwrap_or_default();
        let stamps = self.pending.iter().filter_map(|turn| Some((turn.stamp.as_ref()?, &turn.participant)));
        let answers = stamps.filter(|(stamp, by)| stamp.key == turn_key(&trigger.id, by));
        answered.extend(answers.map(|(_, by)| by.clone()));
        answered
    }

    /// The window up to the trigger.
    pub(super) fn window(&self, trigger: &Turn) -> Vec<Turn> {
        self.settled_window().map(|one| &one.turn).chain([trigger]).cloned().collect()
    }

    /// What stands before the trigger in the window.
    fn settled_window(&self) -> impl Iterator<Item = &SettledTurn> {
        let before = self.swarm.policy.window.saturating_sub(1);
        self.settled.iter().skip(self.settled.len().saturating_sub(before))
    }

    async fn redact_turns(&self, mut window: Vec<Turn>) -> Vec<Turn> {
        let bytes = window.iter().map(|turn| turn.content.len()).sum();
        let work = move |redactor: &Redactor| {
            for turn in window.iter_mut().filter(|_| !redactor.is_empty()) {
                if let (clean, 1..) = redactor.redact(&turn.content) {
                    turn.content = clean.into();
                }
            }
            window
        };
        self.swarm.redactor.run_blocking_if_large(bytes, work).await
    }

    fn turn_context(&self, window: Vec<Turn>) -> TurnContext {
        let mut lines: Vec<&str> = self.settled_window().map(|one| &*one.line).collect();
        let trigger = window.last().map(|trigger| self.prompt_line(trigger)).unwrap_or_default();
        lines.push(&trigger);
        // A line for each: easier to read than one, and cheaper than many.
        let turns = Part::new(PartKind::Turns, "", format!("[\n{}\n]", lines.join(",\n")));
        let conversation = self.about.conversation.clone();
        TurnContext { window, turns, conversation }
    }

    /// Settles the trigger that everybody was heard about, and appends what was said.
    async fn finish_cycle(&mut self) -> Result<CycleResult, Error> {
        let Some(trigger) = self.collect_responses(true) else { return Ok(CycleResult::NoNewTurn) };
        // From here on everything is made good from what is in hand: the trigger is behind us.
        self.resumed = None;
        self.pending.pop_front();
        let id = trigger.id.clone();
        self.settle(trigger);
        let none = CycleResult::Asked { trigger: id, appended: Vec::new(), failed: Vec::new() };
        Ok(self.commit().await?.unwrap_or(none))
    }

    /// Where a cycle did not come to its end: keeps what was said by then. The trigger, and whom nobody has heard.
    pub(super) fn abort_cycle(&mut self) -> Option<(Name, Vec<Name>)> {
        let ActiveCycle { trigger, selected, asked, results: spoken, .. } = self.active_cycle.as_ref()?;
        let (trigger, selected, mut unheard) = (trigger.id.clone(), selected.clone(), asked.clone());
        let answered = |one: &SpeakerResult| one.result.is_ok().then(|| one.participant.clone());
        let heard =
            spoken.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(answered).collect();
        let heard: BTreeSet<Name> = heard;
        // Where turns are all that is kept, whoever takes this up could not tell that some have answered already.
        if heard.is_empty() || self.swarm.substrate.about().keeps == Keeps::Turns {
            self.active_cycle = None;
            return Some((trigger, unheard));
        }
        self.collect_responses(false);
        unheard.retain(|id| !heard.contains(id));
        let before = self.resumed.take().filter(|one| one.trigger == trigger).map(|one| one.answered);
        let answered = before.into_iter().flatten().chain(heard).collect();
        self.resumed =
            Some(PartialAnswer { last: trigger.clone(), trigger: trigger.clone(), selected, answered });
        Some((trigger, unheard))
    }

    /// Has what was said about the trigger appended, in the order of selection.
    fn collect_responses(&mut self, whole: bool) -> Option<Turn> {
        let ActiveCycle { trigger, selected, asked, started, results: spoken } = self.active_cycle.take()?;
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
                self.unsaved_states.extend(said.state.map(|state| (one.participant, state)));
                continue;
            }
            let stamp = Stamp {
                key: turn_key(&trigger.id, &one.participant),
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
            self.unappended.push_back((turn, false));
        }
        let appended = Vec::new();
        self.pending_commit = Some(PendingCommit {
            trigger: trigger.clone(),
            is_complete: whole,
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
    async fn settle_unanswered(
        &mut self,
        trigger: Turn,
        why: Option<String>,
        cost: DecisionCost,
        started: Instant,
    ) -> Result<CycleResult, Error> {
        // Waiting comes first: whoever is interrupted by then has settled nothing.
        let slot = match cost {
            DecisionCost::Calls if self.needs_no_state_recovery() => Some(self.records.reserve().await?),
            _ => None,
        };
        self.resumed = None;
        self.pending.pop_front();
        let id = trigger.id.clone();
        self.settle(trigger);
        self.unrecorded_idle_turns += 1;
        let due = why.is_some()
            || self.unrecorded_idle_turns >= READ_PAGE_TURNS
            || self.swarm.substrate.about().keeps == Keeps::Turns;
        if (due || cost == DecisionCost::Calls) && self.needs_no_state_recovery() {
            let entry = self.unanswered_entry(&id, why.as_deref());
            match slot {
                None => self.record(vec![entry]).await?,
                Some(slot) => self.records.put_durably(slot, vec![entry]).await?,
            }
        }
        self.emit(EventKind::CycleIdle { trigger: id.clone() });
        self.emit(EventKind::CycleFinished { appended: 0, failed: 0, ms: millis(started.elapsed()) });
        Ok(CycleResult::Idle { trigger: id, why })
    }

    /// The record of turns that nobody answers, up to this one.
    pub(super) fn unanswered_entry(&mut self, id: &Name, why: Option<&str>) -> Entry {
        self.unrecorded_idle_turns = 0;
        let data = record::Turn {
            trigger: Some(id.clone()),
            selected: Some(Vec::new()),
            why: Some(why.map(str::to_owned)),
            cursor: Some(id.clone()),
            ..record::Turn::default()
        };
        Entry::of(&data, self.swarm.clock.now_ms())
    }
}
