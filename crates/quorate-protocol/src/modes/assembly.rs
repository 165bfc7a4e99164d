//! The pipeline of an assembly (AIP-24, "Member execution flow"): gather, invoke, persist, synthesise, lock-check, persist
//! the outcome. The four modes only decide which member to ask next and what follows; the pipeline carries out their
//! effects in one way.

mod check;
mod effect;
mod mode;
mod state;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quorate_manifest::assembly::Mode as AssemblyMode;
use serde_json::{Map, json};

use super::{advisory, hierarchy, peer, voting};
use crate::assembly::Setup;
use crate::gather::Subject;
use crate::locks::{Error, Locks};
use crate::{
    AbsenceReason, Command, ConsultationResult, Event, Gather, Invoke, Json, Name, Part, Protocol,
    TimedEvent, answers,
};

pub(crate) use effect::{AskMember, Candidate, Completion, Effect, LockResult, OnHit, RunStatus, Text};
pub(crate) use mode::{Mode, ModeContext};
pub(crate) use state::RunState;

/// The state machine of one assembly's run.
pub struct Assembly {
    context: ModeContext,
    mode: Box<dyn Mode>,
    run_state: RunState,
    stage: Stage,
    /// Questions that wait for what the host gathers.
    gathering: BTreeMap<Name, AskMember>,
    /// Members that were asked and have not answered.
    outstanding: BTreeMap<Name, usize>,
    /// Candidates that the host compares by meaning.
    matching: BTreeMap<Name, Candidate>,
    /// Rules that the host applies.
    applying: BTreeSet<Name>,
    artifact: Option<Json>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unopened,
    Running,
    /// The run's budget is spent: nothing more is begun, and what is out is waited for.
    Exhausted,
    Over,
}

/// The version of a mode, as `run.opened` names it.
pub fn version(mode: AssemblyMode) -> &'static str {
    match mode {
        AssemblyMode::Advisory => "advisory/3",
        AssemblyMode::Voting => "voting/6",
        AssemblyMode::Peer => "peer/6",
        AssemblyMode::Hierarchy => "hierarchy/5",
    }
}

impl Assembly {
    /// An assembly that waits to be opened.
    ///
    /// # Errors
    /// When a locked trait is no pattern that can be matched.
    pub fn new(setup: Setup) -> Result<Self, Error> {
        let locks = Locks::compile(&setup.locked_traits, setup.match_mode)?;
        let setup = Arc::new(setup);
        let mode: Box<dyn Mode> = match setup.mode {
            AssemblyMode::Advisory => Box::new(advisory::Advisory::new(&setup)),
            AssemblyMode::Voting => Box::new(voting::Voting::new(&setup)),
            AssemblyMode::Peer => Box::new(peer::Peer::new(&setup)),
            AssemblyMode::Hierarchy => Box::new(hierarchy::Hierarchy::new(&setup)),
        };
        let indices = setup.members.iter().enumerate().map(|(index, member)| (member.id.clone(), index));
        let mode_context = ModeContext {
            member_indices: indices.collect(),
            run: "".into(),
            now_ms: 0,
            locks,
            subject: None,
            setup,
        };
        Ok(Assembly {
            run_state: RunState::new(mode_context.setup.members.len()),
            context: mode_context,
            mode,
            stage: Stage::Unopened,
            gathering: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            matching: BTreeMap::new(),
            applying: BTreeSet::new(),
            artifact: None,
        })
    }

    /// What the run came to, whole, also where the record keeps only its hash (D8). `None` before it is over.
    pub fn artifact(&self) -> Option<&Json> {
        self.artifact.as_ref()
    }

    fn open(&mut self, run: &Name, inputs: &[Part], overlays: &[Json], at_ms: i64) -> Vec<Command> {
        self.context.run = run.clone();
        let kind = crate::assembly::subject_kind(self.context.setup.mode);
        let part = inputs.iter().find(|part| part.kind == kind).cloned();
        self.context.subject = part.map(|part| Subject::new(part, overlays, at_ms));
        self.stage = Stage::Running;
        let effects = self.mode.on_opened(&self.context, &mut self.run_state);
        self.apply_effects(effects)
    }

    fn gathered(&mut self, id: &Name, result: &Result<Arc<str>, Arc<str>>) -> Vec<Command> {
        let Some(ask) = self.gathering.remove(id) else { return Vec::new() };
        match result {
            Ok(text) => {
                let strategy = self.context.member(ask.member_index).strategy.clone();
                let part = Part::new(crate::PartKind::Gathered, strategy, text.clone());
                vec![Command::Invoke(self.invoke(ask, vec![part]))]
            }
            Err(why) => {
                let member = self.context.member(ask.member_index).id.clone();
                self.run_state
                    .note(format!("`{member}` was not asked: nothing could be gathered for it: {why}"));
                self.run_state.mark_missing(ask.member_index);
                let effects = self.mode.on_answer(&self.context, &mut self.run_state, ask.member_index, None);
                self.apply_effects(effects)
            }
        }
    }

    /// Whether an event answers something that was asked for and not taken back.
    fn waits_for(&self, event: &Event) -> bool {
        match event {
            Event::Opened { .. } => false,
            Event::Consulted { id, .. } => self.outstanding.contains_key(id),
            Event::Gathered { id, .. } => self.gathering.contains_key(id),
            Event::Matched { candidate, .. } => self.matching.contains_key(candidate),
            Event::RuleApplied { ticket, .. } => self.applying.contains(ticket),
        }
    }

    fn consulted(&mut self, id: &Name, result: &ConsultationResult) -> Vec<Command> {
        let Some(index) = self.outstanding.remove(id) else { return Vec::new() };
        let answer = match result {
            ConsultationResult::Answered(answer) if self.schema().accepts(answer) => Some(answer),
            // X5: an unreadable answer is no answer, and its member counts as missing.
            ConsultationResult::Answered(_) => {
                self.run_state.mark_missing(index);
                None
            }
            ConsultationResult::Absent(why) => {
                if *why != AbsenceReason::Cancelled {
                    self.run_state.mark_missing(index);
                }
                None
            }
        };
        if self.stage == Stage::Exhausted {
            // The answer was paid for and may be reported; only what would follow from it is not started.
            self.mode.store_answer(index, answer);
            return self.finish_exhausted();
        }
        let effects = self.mode.on_answer(&self.context, &mut self.run_state, index, answer);
        self.apply_effects(effects)
    }

    /// X8: the outcome of a run whose budget is spent, once nothing is out any more.
    fn finish_exhausted(&mut self) -> Vec<Command> {
        for ask in std::mem::take(&mut self.gathering).into_values() {
            self.run_state.mark_missing(ask.member_index);
        }
        if !self.outstanding.is_empty() {
            return Vec::new();
        }
        let because = "the run's budget is spent before its members have answered";
        let ending = Completion::without_artifact(RunStatus::Incomplete, "budget_exhausted", because);
        let ending = self.mode.on_budget_exhausted(&self.context, &mut self.run_state, ending);
        self.complete(ending)
    }

    /// Carries out a mode's effects, and the effects that follow from them.
    fn apply_effects(&mut self, effects: Vec<Effect>) -> Vec<Command> {
        let mut queue: VecDeque<Effect> = effects.into();
        let mut commands = Vec::new();
        while let Some(effect) = queue.pop_front() {
            if self.stage == Stage::Over {
                break;
            }
            match effect {
                Effect::Ask(ask) => commands.push(self.ask(ask)),
                Effect::Cancel(id) => {
                    // Whom something is still gathered for is then not asked at all.
                    if self.gathering.remove(&id).is_none() {
                        self.outstanding.remove(&id);
                        commands.push(Command::Cancel(id));
                    }
                }
                Effect::Apply(apply) => {
                    self.applying.insert(apply.ticket.clone());
                    commands.push(Command::ApplyRule(apply));
                }
                Effect::Record(fact) => commands.push(Command::Record(fact)),
                Effect::Check(candidate) => {
                    match check::check_text(&self.context, &mut self.run_state, candidate) {
                        check::CheckResult::Ended { name, result, facts } => {
                            commands.extend(facts.into_iter().map(Command::Record));
                            queue.extend(self.mode.on_checked(
                                &self.context,
                                &mut self.run_state,
                                &name,
                                &result,
                            ));
                        }
                        check::CheckResult::ByMeaning { candidate, asked } => {
                            self.matching.insert(candidate.name.clone(), candidate);
                            commands.push(Command::SemanticMatch(asked));
                        }
                    }
                }
                Effect::End(ending) => commands.extend(self.complete(ending)),
            }
        }
        commands
    }

    fn ask(&mut self, ask: AskMember) -> Command {
        let member = &self.context.setup.members[ask.member_index];
        let subject = self.context.subject.as_ref();
        match subject.map(|subject| (subject, subject.gather(member))) {
            Some((subject, None)) => {
                let command = Command::Gather(Gather {
                    id: ask.id.clone(),
                    member: member.id.clone(),
                    strategy: member.strategy.clone(),
                    params: member.params.clone(),
                    subject: subject.part.clone(),
                });
                self.gathering.insert(ask.id.clone(), ask);
                command
            }
            Some((_, Some(parts))) => Command::Invoke(self.invoke(ask, parts)),
            None => Command::Invoke(self.invoke(ask, Vec::new())),
        }
    }

    fn invoke(&mut self, ask: AskMember, mut parts: Vec<Part>) -> Invoke {
        let member = &self.context.setup.members[ask.member_index];
        parts.extend(ask.parts);
        self.outstanding.insert(ask.id.clone(), ask.member_index);
        let mut marks = Map::new();
        marks.insert("mode".into(), json!(self.context.setup.mode));
        marks.insert("trigger".into(), json!(self.context.setup.request.trigger()));
        marks.insert("layer".into(), json!(member.layer));
        marks.extend(ask.extra_fields.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Invoke {
            id: ask.id,
            member: member.id.clone(),
            step: ask.step,
            parts,
            schema: self.schema(),
            task: ask.task,
            extra_fields: marks,
        }
    }

    /// The form of every answer of the mode.
    fn schema(&self) -> answers::Schema {
        match self.context.setup.mode {
            AssemblyMode::Advisory | AssemblyMode::Hierarchy => answers::Schema::Advice,
            AssemblyMode::Voting => answers::Schema::Ballot,
            AssemblyMode::Peer => answers::Schema::Message,
        }
    }

    fn matched(
        &mut self,
        candidate: &Name,
        result: &Result<Vec<crate::SemanticHit>, Arc<str>>,
    ) -> Vec<Command> {
        let Some(candidate) = self.matching.remove(candidate) else { return Vec::new() };
        let (name, result, facts) =
            check::check_meaning(&self.context, &mut self.run_state, &candidate, result);
        let mut commands: Vec<Command> = facts.into_iter().map(Command::Record).collect();
        let effects = self.mode.on_checked(&self.context, &mut self.run_state, &name, &result);
        commands.extend(self.apply_effects(effects));
        commands
    }

    fn ruled(&mut self, ticket: &Name, result: &Result<Json, Arc<str>>) -> Vec<Command> {
        if !self.applying.remove(ticket) {
            return Vec::new();
        }
        let result = result.as_ref().map_err(|why| &**why);
        let effects = self.mode.on_rule_result(&self.context, &mut self.run_state, ticket, result);
        self.apply_effects(effects)
    }

    fn complete(&mut self, ending: Completion) -> Vec<Command> {
        self.stage = Stage::Over;
        let (artifact, outcome) = self.run_state.outcome(&self.context.setup, ending);
        self.artifact = Some(artifact);
        vec![Command::Record(outcome), Command::Finish]
    }
}

impl Protocol for Assembly {
    fn advance(&mut self, stamped: &TimedEvent) -> Vec<Command> {
        self.context.now_ms = stamped.at_ms;
        if self.stage == Stage::Running && self.waits_for(&stamped.event) && stamped.event.is_over_budget() {
            self.stage = Stage::Exhausted;
        }
        match (&stamped.event, self.stage) {
            (Event::Opened { run, inputs, overlays, .. }, Stage::Unopened) => {
                self.open(run, inputs, overlays, stamped.at_ms)
            }
            (Event::Opened { .. }, _) | (_, Stage::Unopened | Stage::Over) => Vec::new(),
            (Event::Consulted { id, result }, _) => self.consulted(id, result),
            (_, Stage::Exhausted) => self.finish_exhausted(),
            (Event::Gathered { id, result }, _) => self.gathered(id, result),
            (Event::Matched { candidate, result }, _) => self.matched(candidate, result),
            (Event::RuleApplied { ticket, result }, _) => self.ruled(ticket, result),
        }
    }

    fn version(&self) -> &'static str {
        version(self.context.setup.mode)
    }

    /// An answer that no trait touches as text may still touch one by meaning; that is compared for what an outcome would
    /// persist of it, and the `lock_check` records have the result.
    fn lock_result(&self, answer: Option<&Json>) -> Option<&'static str> {
        let compares = self.context.setup.embeds && !self.context.locks.semantic_traits().is_empty();
        Some(match answer {
            None => "unchecked",
            Some(answer) => {
                let touches = |text: &str| !self.context.locks.check(text).is_empty();
                match (answers::texts(answer).into_iter().any(touches), compares) {
                    (true, _) => "hit",
                    (false, true) => "unchecked",
                    (false, false) => "pass",
                }
            }
        })
    }
}
