//! One cycle: the oldest pending turn is dispatched, and the selected participants answer it (K2).

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use quorate_protocol::{Name, Part, PartKind};
use tokio::time::Instant;

use super::dispatch::{DecisionCost, Selection};
use super::forecast::{Forecast, select_without_asking};
use super::phase::{Asking, Author, Effect, Input, Phase};
use super::speak::TurnQuestion;
use super::{CycleResult, Error, READ_PAGE_TURNS, Runner, SettledTurn, is_agent_turn};
use crate::budget::tokens::most_tokens;
use crate::budget::{self, Amount};
use crate::clock::rfc3339;
use crate::consultation::millis;
use crate::conversation::{Turn, turn_key};
use crate::ports::ledger::{self, Entry};
use crate::ports::substrate::Keeps;
use crate::ports::telemetry::EventKind;
use crate::record::{self, Status};
use crate::redact::Redactor;

impl Runner {
    /// Settles the oldest turn that is not settled, if there is one. What an earlier call has left in hand, since it was
    /// dropped or failed, comes first.
    ///
    /// # Errors
    /// When substrate or ledger fail. What was said and could not be appended is kept, and appended by the next call.
    #[crate::boxed]
    pub async fn cycle(&mut self) -> Result<CycleResult, Error> {
        self.start().await?;
        self.interrupt();
        match self.finish().await? {
            Some(finished) => Ok(finished),
            None => self.begin().await,
        }
    }

    /// Dispatches the oldest pending turn, and has it answered.
    async fn begin(&mut self) -> Result<CycleResult, Error> {
        let started = Instant::now();
        // A read belongs to the cycle that it begins; without a new turn no cycle begins.
        self.cycles += 1;
        self.read_new_turns(started).await?;
        let Some(trigger) = self.pending.front().cloned() else {
            self.cycles -= 1;
            return Ok(CycleResult::NoNewTurn);
        };
        self.emit(EventKind::CycleStarted { trigger: trigger.id.clone(), by: trigger.participant.clone() });
        let chain = self.chains.length(&self.roster, &trigger);
        let window = self.window(&trigger);
        if self.is_guarded(&window, chain).await {
            let (id, most) = (trigger.id.clone(), self.swarm.policy.max_agent_turns);
            self.emit(EventKind::GuardHit { trigger: id.clone(), turns: chain });
            let turns =
                if chain == 1 { "1 participant's turn" } else { &format!("{chain} participants' turns") };
            let why = format!(
                "it ends a chain of {turns} since a person's, and `maxAgentTurns` is {most}; a person's next turn is \
                 answered"
            );
            self.settle_unanswered(trigger, Some(why.clone()), DecisionCost::Nothing, started).await?;
            return Ok(CycleResult::Guarded { trigger: id, why });
        }
        let selected = match self.select(&window, &trigger, chain).await? {
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
            let id = trigger.id.clone();
            self.settle_unanswered(trigger, None, DecisionCost::Nothing, started).await?;
            return Ok(CycleResult::Idle { trigger: id, is_unaddressed: false, why: None });
        }
        if !self.call_context.budget.has_left(asked.len(), self.least_needed(&window, &asked)) {
            return Ok(CycleResult::BudgetExhausted { trigger: trigger.id });
        }
        let window = self.redact_turns(window).await;
        if self.swarm.flags.on_mention {
            asked.iter().for_each(|id| self.hooks.mention(self.cycles, id, &trigger));
        }
        let question = Arc::new(self.question(window, &asked));
        let results = Vec::new();
        self.apply(Input::Dispatched(Asking {
            trigger,
            chain,
            selected,
            asked: asked.clone(),
            started,
            results,
        }));
        self.ask(&question, asked).await?;
        self.apply(Input::AllHeard(self.author()));
        self.commit().await
    }

    /// Whether the chain of triggers is too long, and a participant would answer. A dispatcher that has to ask an executor
    /// is not asked, since a loop must not cost calls: its trigger counts as one that a participant would answer.
    async fn is_guarded(&self, window: &[Turn], chain: usize) -> bool {
        if chain < self.swarm.policy.max_agent_turns {
            return false;
        }
        let (dispatcher, capabilities) = (&*self.swarm.dispatcher, &self.about.capabilities);
        let selected =
            select_without_asking(dispatcher, &self.roster, capabilities, self.swarm.policy, window, chain)
                .await;
        selected != Forecast::Speakers(Vec::new())
    }

    /// What the questions to these participants take by the window alone. Each is reserved with its whole prompt later.
    fn least_needed(&self, window: &[Turn], asked: &[Name]) -> Amount {
        let tokens = window.iter().map(|turn| most_tokens(&turn.content)).sum();
        let speakers = self.swarm.speakers.iter().filter(|one| asked.contains(&one.participant.id));
        let mut needed = Amount::default();
        for executor in speakers.map(|one| &*one.member.executor) {
            let limit = budget::call_limit(executor, tokens, executor.turn_schema());
            needed.add(limit.map_or_else(Amount::default, |limit| Amount {
                tokens: limit.tokens,
                usd_nanos: limit.usd_nanos.unwrap_or(0),
            }));
        }
        needed
    }

    /// Asks the chosen participants at once, and keeps the result of each.
    async fn ask(&mut self, question: &Arc<TurnQuestion>, asked: Vec<Name>) -> Result<(), ledger::Error> {
        let calls = asked.into_iter().map(|id| question.clone().ask(id));
        let mut calls: FuturesUnordered<_> = calls.collect();
        let mut failed = Ok(());
        while let Some(heard) = calls.next().await {
            match heard {
                Ok(result) => {
                    self.emit(result.event());
                    self.apply(Input::Heard(result));
                }
                // The others are paid for, too.
                Err(error) => failed = Err(error),
            }
        }
        failed
    }

    /// Does what follows from an event of the cycle.
    pub(super) fn apply(&mut self, input: Input) {
        let (phase, effects) = std::mem::take(&mut self.phase).step(input);
        self.phase = phase;
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Settle(trigger) => {
                self.resumed = None;
                self.pending.pop_front();
                self.settle_new(trigger);
            }
            Effect::Resume(mut partial) => {
                let before = self.resumed.take().filter(|before| before.trigger == partial.trigger);
                partial.answered.extend(before.into_iter().flat_map(|before| before.answered));
                self.resumed = Some(partial);
            }
            Effect::Remember(participant, state) => {
                self.unsaved_states.insert(participant, state);
            }
            Effect::KeepChain { answer, length } => {
                if self.about.keeps == Keeps::Turns {
                    self.chains.keep(answer, length);
                }
            }
            Effect::Announce { participant, turn } => {
                self.emit(EventKind::SubstrateAppended { turn: turn.id.clone(), participant });
                if self.swarm.flags.on_turn_end {
                    self.hooks.turn_end(self.cycles, &turn);
                }
            }
            Effect::AnnounceFailure { participant, error } => {
                self.emit(EventKind::ParticipantFailed { participant, status: Status::Failed, error });
            }
        }
    }

    fn author(&self) -> Author {
        Author { runtime: self.swarm.runtime.clone(), now: rfc3339(self.swarm.clock.now_ms()) }
    }

    /// Where participants are being asked: keeps what was said by then. Gives the trigger, and who has not answered it.
    pub(super) fn interrupt(&mut self) -> Option<(Name, Vec<Name>)> {
        let Phase::Asking(asking) = &self.phase else { return None };
        // A substrate that keeps no stamps does not show the next process who has answered already.
        let may_resume = self.swarm.substrate.about().keeps != Keeps::Turns;
        let unanswered = if may_resume { asking.unanswered() } else { asking.asked.clone() };
        let left = (asking.trigger.id.clone(), unanswered);
        self.apply(Input::Interrupted { author: self.author(), may_resume });
        Some(left)
    }

    /// Reads new turns, where none are pending.
    async fn read_new_turns(&mut self, started: Instant) -> Result<(), Error> {
        // The next page is read when the last turn of this one is up, so that answers to it are known.
        if self.pending.len() > 1 {
            return Ok(());
        }
        let mut page = self.swarm.substrate.read(self.last_read.as_ref(), READ_PAGE_TURNS).await?;
        if !page.known {
            // The conversation was truncated, restored or replaced by another process.
            return self.resync().await;
        }
        self.check_turns(&mut page.turns)?;
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

    /// What is before the trigger in the window.
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

    /// What all who are asked about a trigger share.
    fn question(&self, window: Vec<Turn>, asked: &[Name]) -> TurnQuestion {
        let mut lines: Vec<&str> = self.settled_window().map(|one| &*one.line).collect();
        let trigger = window.last().map(|trigger| self.prompt_line(trigger)).unwrap_or_default();
        lines.push(&trigger);
        let states = self.unsaved_states.iter().filter(|(id, _)| asked.contains(id));
        TurnQuestion {
            swarm: self.swarm.clone(),
            call_context: self.call_context.clone(),
            recorder: self.records.recorder(),
            cycle: self.cycles,
            // A line for each: easier to read than one, and cheaper than many.
            turns: Part::new(PartKind::Turns, "", format!("[\n{}\n]", lines.join(",\n"))),
            window,
            conversation: self.about.conversation.clone(),
            unsaved_states: states.map(|(id, state)| (id.clone(), state.clone())).collect(),
        }
    }

    /// No participant answers the trigger. That is recorded now and then where to dispatch it again after a crash costs nothing,
    /// and is durable before the next trigger where it does.
    async fn settle_unanswered(
        &mut self,
        trigger: Turn,
        why: Option<String>,
        cost: DecisionCost,
        started: Instant,
    ) -> Result<CycleResult, Error> {
        // Wait first: an interrupt during the wait must leave the trigger unsettled.
        let slot = match cost {
            DecisionCost::Calls if self.needs_no_state_recovery() => Some(self.records.reserve().await?),
            _ => None,
        };
        self.resumed = None;
        self.pending.pop_front();
        let (id, is_unaddressed) = (trigger.id.clone(), !is_agent_turn(&self.roster, &trigger));
        self.settle_new(trigger);
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
        Ok(CycleResult::Idle { trigger: id, is_unaddressed, why })
    }

    /// The record of turns that no participant answers, up to this one.
    pub(super) fn unanswered_entry(&mut self, id: &Name, why: Option<&str>) -> Entry {
        self.unrecorded_idle_turns = 0;
        let data = record::Turn {
            trigger: Some(id.clone()),
            selected: Some(Vec::new()),
            why: Some(why.map(str::to_owned)),
            cursor: Some(id.clone()),
            settled: Some(std::mem::take(&mut self.unrecorded_settled)),
            position: self.position,
            ..record::Turn::default()
        };
        Entry::of(&data, self.swarm.clock.now_ms())
    }
}
