//! One cycle: the oldest pending turn is dispatched, and the selected participants answer it (K2).
//! Also the selection of speakers (K6), the length of a chain of triggers (K11, K12), and the forecast of who would answer.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use quorate_protocol::{AbsenceReason, ConsultationResult, Json, Name, Part, PartKind};
use tokio::time::Instant;

use super::phase::{Asking, Author, Effect, Phase, PhaseInput};
use super::speak::TurnQuestion;
use super::{CycleResult, Policy, READ_PAGE_TURNS, Runner, SettledTurn, TurnError, is_agent_turn};
use crate::attempts::{MemberConfig, millis};
use crate::budget::{self, Amount, most_tokens};
use crate::call::{CallContext, Recorder};
use crate::clock::rfc3339;
use crate::conversation::{Capabilities, Participant, Turn, turn_key};
use crate::ports::dispatcher::{Ask, Dispatcher, Input, Question, Unanswered};
use crate::ports::ledger::{Entry, LedgerError, Record};
use crate::ports::substrate::Keeps;
use crate::ports::telemetry::EventKind;
use crate::record::Status;
use crate::redact::Redactor;
use crate::{record, single_call};

impl Runner {
    /// Settles the oldest turn that is not settled, if there is one. Unfinished work of an earlier call that was dropped or
    /// failed comes first.
    ///
    /// # Errors
    /// When substrate or ledger fail. What was said and could not be appended is kept, and appended by the next call.
    #[crate::boxed]
    pub async fn cycle(&mut self) -> Result<CycleResult, TurnError> {
        self.start().await?;
        self.interrupt();
        match self.finish().await? {
            Some(finished) => Ok(finished),
            None => self.begin().await,
        }
    }

    /// Dispatches the oldest pending turn and collects the answers.
    async fn begin(&mut self) -> Result<CycleResult, TurnError> {
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
                self.last_window = window;
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
        self.apply(PhaseInput::Dispatched(Asking {
            trigger,
            chain,
            selected,
            asked: asked.clone(),
            started,
            results,
        }));
        self.ask(&question, asked).await?;
        self.apply(PhaseInput::AllHeard(self.author()));
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
                money: limit.money.unwrap_or_default(),
            }));
        }
        needed
    }

    /// Asks the chosen participants at once, and keeps the result of each.
    async fn ask(&mut self, question: &Arc<TurnQuestion>, asked: Vec<Name>) -> Result<(), LedgerError> {
        let calls = asked.into_iter().map(|id| question.clone().ask(id));
        let mut calls: FuturesUnordered<_> = calls.collect();
        let mut failed = Ok(());
        while let Some(heard) = calls.next().await {
            match heard {
                Ok(result) => {
                    self.emit(result.event());
                    self.apply(PhaseInput::Heard(result));
                }
                // The other answers are paid for as well.
                Err(error) => failed = Err(error),
            }
        }
        failed
    }

    /// Does what follows from an event of the cycle.
    pub(super) fn apply(&mut self, input: PhaseInput) {
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

    /// While participants are being asked: keeps the answers received so far. Returns the trigger and the participants that
    /// have not answered it.
    pub(super) fn interrupt(&mut self) -> Option<(Name, Vec<Name>)> {
        let Phase::Asking(asking) = &self.phase else { return None };
        // A substrate that keeps no stamps does not show the next process who has answered already.
        let may_resume = self.swarm.substrate.about().keeps != Keeps::Turns;
        let unanswered = if may_resume { asking.unanswered() } else { asking.asked.clone() };
        let left = (asking.trigger.id.clone(), unanswered);
        self.apply(PhaseInput::Interrupted { author: self.author(), may_resume });
        Some(left)
    }

    /// Reads new turns, where none are pending.
    async fn read_new_turns(&mut self, started: Instant) -> Result<(), TurnError> {
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

    /// The window up to the trigger. After a trigger that no participant answers it is the window before, one turn further.
    fn window(&mut self, trigger: &Turn) -> Vec<Turn> {
        let mut window = std::mem::take(&mut self.last_window);
        let before = self.settled.back().map(|settled| &settled.turn.id);
        if window.is_empty() || window.last().map(|last| &last.id) != before {
            window = self.settled_window().map(|settled| settled.turn.clone()).collect();
        }
        window.push(trigger.clone());
        window.drain(..window.len().saturating_sub(self.swarm.policy.window.max(1)));
        window
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

    /// The shared material of all participants that are asked about a trigger.
    fn question(&self, window: Vec<Turn>, asked: &[Name]) -> TurnQuestion {
        let settled = self.settled_window();
        let mut lines: Vec<&str> = settled
            .map(|settled| settled.line.get_or_init(|| self.prompt_line(&settled.turn)).as_str())
            .collect();
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
    ) -> Result<CycleResult, TurnError> {
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

/// The lengths of chains, in the order of the conversation.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// The length at the turn that was settled last.
    last: usize,
    /// The lengths of answers that the substrate keeps without stamps, until they are settled.
    unstamped: HashMap<Name, usize>,
}

impl Chains {
    /// The length at the turn after the settled ones.
    pub(super) fn length(&self, roster: &[Participant], turn: &Turn) -> usize {
        if !is_agent_turn(roster, turn) {
            return 0;
        }
        let stamped = turn.stamp.as_ref().map(|stamp| stamp.chain).filter(|chain| *chain > 0);
        stamped.or_else(|| self.unstamped.get(&turn.id).copied()).unwrap_or(self.last + 1)
    }

    pub(super) fn settle(&mut self, roster: &[Participant], turn: &Turn) {
        self.last = self.length(roster, turn);
        self.unstamped.remove(&turn.id);
    }

    /// Keeps the length at an answer without a stamp.
    pub(super) fn keep(&mut self, answer: Name, length: usize) {
        self.unstamped.insert(answer, length);
    }

    /// Reads the lengths from the records of answers. A chain that began before the first record is shorter here.
    pub(super) fn of_records(roster: &[Participant], records: &[Record]) -> Chains {
        let mut chains = Chains::default();
        for record in records {
            let Ok(Some(record::Turn { trigger: Some(trigger), by, appended: Some(appended), .. })) =
                record.read()
            else {
                continue;
            };
            let is_persons = by.is_some_and(|by| !roster.iter().any(|one| one.id == by));
            let before = if is_persons { 0 } else { chains.unstamped.get(&trigger).copied().unwrap_or(0) };
            for answer in appended {
                chains.keep(answer.turn, before + 1);
            }
        }
        chains
    }
}

/// The result of a dispatch.
pub(super) enum Selection {
    /// The selected participants, in order.
    Named(Vec<Name>, DecisionCost),
    /// The dispatcher failed, with the reason.
    Undecided(String, DecisionCost),
    /// It needed an executor, and no call is left.
    BudgetExhausted,
}

/// The cost of a decision: whether it may be repeated after a crash, or has to be durable before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecisionCost {
    Nothing,
    /// An executor was asked, for example a model.
    Calls,
}

impl Runner {
    /// Who is to answer a trigger.
    ///
    /// # Errors
    /// If the ledger fails while the dispatcher asks an executor.
    pub(super) async fn select(
        &self,
        window: &[Turn],
        trigger: &Turn,
        chain: usize,
    ) -> Result<Selection, LedgerError> {
        let before = self.resumed.as_ref().filter(|one| one.trigger == trigger.id);
        if let Some(before) = before.filter(|one| !one.selected.is_empty()) {
            return Ok(Selection::Named(before.selected.clone(), DecisionCost::Nothing));
        }
        let started = Instant::now();
        let asking = DispatcherAsk {
            call_context: self.call_context.clone(),
            recorder: self.records.recorder(),
            id: format!("dispatch/{}", trigger.id).into(),
            failed: Mutex::default(),
            spent: AtomicBool::new(false),
            asked: AtomicBool::new(false),
        };
        let capabilities = &self.about.capabilities;
        let input = Input { window, chain, participants: &self.roster, capabilities, ask: &asking };
        let dispatcher = self.swarm.dispatcher.kind();
        let named = self.swarm.dispatcher.select(input).await;
        if let Some(error) = asking.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let cost = if asking.asked.into_inner() { DecisionCost::Calls } else { DecisionCost::Nothing };
        Ok(match named {
            Err(_) if asking.spent.into_inner() => Selection::BudgetExhausted,
            Ok(named) => {
                let selected = permitted(named, &self.roster, self.swarm.policy, trigger);
                let ms = millis(started.elapsed());
                self.emit(EventKind::DispatchDecided { dispatcher, selected: selected.clone(), ms });
                Selection::Named(selected, cost)
            }
            Err(error) => {
                let error = self.swarm.redactor.redact(&error.to_string()).0;
                self.emit(EventKind::DispatchFailed { dispatcher, error: error.clone() });
                Selection::Undecided(error, cost)
            }
        })
    }
}

/// The participants that a dispatcher names and that may answer the trigger, each once.
pub(super) fn permitted(
    named: Vec<Name>,
    roster: &[Participant],
    policy: Policy,
    trigger: &Turn,
) -> Vec<Name> {
    let mut selected: Vec<Name> = Vec::new();
    for id in named {
        let known = roster.iter().any(|one| one.id == id);
        let may = policy.reentry || id != trigger.participant;
        if known && may && !selected.contains(&id) {
            selected.push(id);
        }
    }
    selected
}

/// Asks for a dispatcher, as members are asked.
struct DispatcherAsk {
    call_context: Arc<CallContext>,
    recorder: Arc<Recorder>,
    id: Name,
    /// What the ledger failed with.
    failed: Mutex<Option<LedgerError>>,
    /// Whether the budget had no call left.
    spent: AtomicBool,
    /// Whether an executor was asked.
    asked: AtomicBool,
}

#[async_trait]
impl Ask for DispatcherAsk {
    async fn ask(&self, config: &MemberConfig, question: Question) -> Result<Json, Unanswered> {
        let (mut invoke, config) =
            single_call::prepare(&self.id, &"dispatcher".into(), "dispatch", question, config);
        invoke.parts =
            single_call::redact_parts(&self.call_context.redactor, std::mem::take(&mut invoke.parts)).await.0;
        match single_call::run_call(&self.call_context, &self.recorder, invoke, config).await {
            Ok(asked) => {
                self.asked.fetch_or(asked.consultation.spent.calls > 0, Ordering::Relaxed);
                match asked.consultation.result {
                    ConsultationResult::Answered(answer) => Ok(answer),
                    ConsultationResult::Absent(absent) => {
                        // After a first call the executor has been asked; only its answer is missing.
                        let spent =
                            absent == AbsenceReason::RunOverBudget && asked.consultation.spent.calls == 0;
                        self.spent.fetch_or(spent, Ordering::Relaxed);
                        Err(Unanswered { absent, why: asked.consultation.message })
                    }
                }
            }
            Err(error) => {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(AbsenceReason::Failed.into())
            }
        }
    }
}

/// Who would answer a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast {
    /// These participants, in this order; none where the dispatcher selects no participant.
    Speakers(Vec<Name>),
    /// No participant, since so many participants' turns lead to it from a person's.
    GuardHit { turns: usize },
    /// The dispatcher asks an executor first.
    NeedsExecutor,
    /// The dispatcher fails, with the reason.
    Undecided(String),
}

/// Who would answer the last turn of a window.
/// `records` are the last ones of the conversation, for substrates that keep no stamps.
#[crate::boxed]
pub async fn forecast(
    dispatcher: &dyn Dispatcher,
    roster: &[Participant],
    capabilities: &Capabilities,
    policy: Policy,
    window: &[Turn],
    records: &[Record],
) -> Forecast {
    let Some((trigger, before)) = window.split_last() else { return Forecast::Speakers(Vec::new()) };
    let mut chains = Chains::of_records(roster, records);
    before.iter().for_each(|turn| chains.settle(roster, turn));
    let chain = chains.length(roster, trigger);
    let from = window.len().saturating_sub(policy.window.max(1));
    let selected =
        select_without_asking(dispatcher, roster, capabilities, policy, &window[from..], chain).await;
    match chain >= policy.max_agent_turns && selected != Forecast::Speakers(Vec::new()) {
        true => Forecast::GuardHit { turns: chain },
        false => selected,
    }
}

/// The selection for the last turn of a window, without the guard.
pub(super) async fn select_without_asking(
    dispatcher: &dyn Dispatcher,
    roster: &[Participant],
    capabilities: &Capabilities,
    policy: Policy,
    window: &[Turn],
    chain: usize,
) -> Forecast {
    let Some(trigger) = window.last() else { return Forecast::Speakers(Vec::new()) };
    let asking = AskNothing::default();
    let input = Input { window, chain, participants: roster, capabilities, ask: &asking };
    let named = dispatcher.select(input).await;
    match named {
        _ if asking.was_asked.load(Ordering::Relaxed) => Forecast::NeedsExecutor,
        Ok(named) => Forecast::Speakers(permitted(named, roster, policy, trigger)),
        Err(error) => Forecast::Undecided(error.to_string()),
    }
}

/// Answers nothing, and notes that it was asked.
#[derive(Default)]
struct AskNothing {
    was_asked: AtomicBool,
}

#[async_trait]
impl Ask for AskNothing {
    async fn ask(&self, _: &MemberConfig, _: Question) -> Result<Json, Unanswered> {
        self.was_asked.store(true, Ordering::Relaxed);
        Err(AbsenceReason::Cancelled.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Map;

    use super::*;
    use crate::ports::dispatcher::DispatchError;

    /// Names everybody in every case.
    struct Everybody;

    #[async_trait]
    impl Dispatcher for Everybody {
        fn kind(&self) -> &'static str {
            "everybody"
        }

        async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, DispatchError> {
            Ok(input.participants.iter().map(|participant| participant.id.clone()).collect())
        }
    }

    fn turn(by: &str) -> Turn {
        Turn {
            id: "t".into(),
            participant: by.into(),
            timestamp: Arc::from(""),
            content: Arc::from("x"),
            meta: Map::new(),
            stamp: None,
        }
    }

    #[tokio::test]
    async fn the_author_and_a_long_row_of_participants_are_left_out() {
        let named = |id: &str| Participant { id: id.into(), ..Participant::default() };
        let roster = [named("ada"), named("bo")];
        let policy = Policy { max_agent_turns: 2, ..Policy::default() };
        let capabilities = Capabilities::new();
        let ask =
            async |window: &[Turn]| forecast(&Everybody, &roster, &capabilities, policy, window, &[]).await;
        assert_eq!(ask(&[]).await, Forecast::Speakers(Vec::new()));
        assert_eq!(ask(&[turn("user")]).await, Forecast::Speakers(vec!["ada".into(), "bo".into()]));
        assert_eq!(ask(&[turn("user"), turn("ada")]).await, Forecast::Speakers(vec!["bo".into()]));
        assert_eq!(ask(&[turn("user"), turn("ada"), turn("bo")]).await, Forecast::GuardHit { turns: 2 });
    }
}
