//! The pipeline of an assembly (AIP-24, "Member execution flow"): gather, invoke, persist, synthesise, lock-check, persist
//! the outcome. The four modes only decide which member to ask next and what follows; the pipeline carries out their
//! effects in one way.

mod check;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quorate_manifest::assembly::Mode as AssemblyMode;
use quorate_manifest::tree::open::sha256_hex;
use serde_json::{Map, json};

use crate::assembly::{Member, Rule, Setup};
use crate::gather::Subject;
use crate::locks::{InvalidTrait, Locks};
use crate::rules::custom::RuleRequest;
use crate::{
    AbsenceReason, ApplyRule, Command, ConsultationResult, Event, Fact, FactKind, Gather, Invoke, Json, Name,
    Part, Protocol, TimedEvent, answers,
};

/// The state machine of one assembly's run.
pub struct Assembly {
    run: Run,
    mode: Box<dyn Mode>,
    stage: Stage,
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

/// The form of every answer in a mode.
pub fn answer_schema(mode: AssemblyMode) -> answers::Schema {
    match mode {
        AssemblyMode::Advisory | AssemblyMode::Hierarchy => answers::Schema::Advice,
        AssemblyMode::Voting => answers::Schema::Ballot,
        AssemblyMode::Peer => answers::Schema::Message,
    }
}

/// The version of a mode, as `run.opened` names it.
pub fn version(mode: AssemblyMode) -> &'static str {
    match mode {
        AssemblyMode::Advisory => "advisory/4",
        AssemblyMode::Voting => "voting/8",
        AssemblyMode::Peer => "peer/8",
        AssemblyMode::Hierarchy => "hierarchy/6",
    }
}

impl Assembly {
    /// An assembly of a mode that waits to be opened.
    ///
    /// # Errors
    /// If a locked trait is not a valid pattern.
    pub(super) fn in_mode(mode: Box<dyn Mode>, setup: Arc<Setup>) -> Result<Self, InvalidTrait> {
        let locks = Locks::compile(&setup.locked_traits, setup.match_mode)?;
        let indices = setup.members.iter().enumerate().map(|(index, member)| (member.id.clone(), index));
        let run = Run {
            member_indices: indices.collect(),
            id: "".into(),
            now_ms: 0,
            locks,
            subject: None,
            state: RunState::new(setup.members.len()),
            gathering: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            unchecked: 0,
            setup,
        };
        Ok(Assembly {
            run,
            mode,
            stage: Stage::Unopened,
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
        self.run.id = run.clone();
        let kind = crate::assembly::subject_kind(self.run.setup.mode);
        let part = inputs.iter().find(|part| part.kind == kind).cloned();
        self.run.subject = part.map(|part| Subject::new(part, overlays, at_ms));
        self.stage = Stage::Running;
        let effects = self.mode.on_opened(&mut self.run);
        self.apply_effects(effects)
    }

    fn gathered(&mut self, id: &Name, result: &Result<Arc<str>, Arc<str>>) -> Vec<Command> {
        let Some(ask) = self.run.gathering.remove(id) else { return Vec::new() };
        match result {
            Ok(text) => {
                let strategy = self.run.member(ask.member_index).strategy.clone();
                let part = Part::new(crate::PartKind::Gathered, strategy, text.clone());
                vec![Command::Invoke(self.invoke(ask, vec![part]))]
            }
            Err(why) => {
                let member = self.run.member(ask.member_index).id.clone();
                self.run
                    .state
                    .note(format!("`{member}` was not asked: nothing could be gathered for it: {why}"));
                self.run.state.mark_missing(ask.member_index);
                self.answered(ask.member_index, None)
            }
        }
    }

    /// Whether an event answers a pending request that was not cancelled.
    fn waits_for(&self, event: &Event) -> bool {
        match event {
            Event::Opened { .. } => false,
            Event::Consulted { id, .. } => self.run.outstanding.contains_key(id),
            Event::Gathered { id, .. } => self.run.gathering.contains_key(id),
            Event::Matched { candidate, .. } => self.matching.contains_key(candidate),
            Event::RuleApplied { ticket, .. } => self.applying.contains(ticket),
        }
    }

    fn consulted(&mut self, id: &Name, result: &ConsultationResult) -> Vec<Command> {
        let Some(index) = self.run.outstanding.remove(id) else { return Vec::new() };
        let answer = match result {
            ConsultationResult::Answered(answer) if answer_schema(self.run.setup.mode).accepts(answer) => {
                Some(answer)
            }
            // X5: an unreadable answer does not count as an answer, and its member counts as missing.
            ConsultationResult::Answered(_) => {
                self.run.state.mark_missing(index);
                None
            }
            ConsultationResult::Absent(why) => {
                if *why != AbsenceReason::Cancelled {
                    self.run.state.mark_missing(index);
                }
                None
            }
        };
        if self.stage == Stage::Exhausted {
            // The answer was paid for and may be reported; only what would follow from it is not started.
            self.mode.store_answer(index, answer);
            return self.finish_exhausted();
        }
        self.answered(index, answer)
    }

    /// A member that was asked has ended.
    fn answered(&mut self, index: usize, answer: Option<&Json>) -> Vec<Command> {
        self.mode.store_answer(index, answer);
        let effects = self.mode.on_answer(&mut self.run, index);
        self.apply_effects(effects)
    }

    /// X8: the outcome of a run whose budget is spent, once nothing is out any more.
    fn finish_exhausted(&mut self) -> Vec<Command> {
        for ask in std::mem::take(&mut self.run.gathering).into_values() {
            self.run.state.mark_missing(ask.member_index);
        }
        if !self.run.outstanding.is_empty() {
            return Vec::new();
        }
        let because = "the run's budget is spent before its members have answered";
        let ending = Completion::without_artifact(RunStatus::Incomplete, "budget_exhausted", because);
        let ending = self.mode.on_budget_exhausted(&mut self.run, ending);
        self.complete(ending)
    }

    /// Carries out a mode's effects, and the effects that follow from them.
    fn apply_effects(&mut self, effects: Vec<Effect>) -> Vec<Command> {
        let checks =
            |effects: &[Effect]| effects.iter().filter(|one| matches!(one, Effect::Check(_))).count();
        self.run.unchecked += checks(&effects);
        let mut queue: VecDeque<Effect> = effects.into();
        let mut commands = Vec::new();
        while let Some(effect) = queue.pop_front() {
            if self.stage == Stage::Over {
                break;
            }
            match effect {
                Effect::Ask(ask) => commands.push(self.ask(ask)),
                Effect::Cancel(id) => {
                    // A member with pending gathers is then not asked at all.
                    if self.run.gathering.remove(&id).is_none() {
                        self.run.outstanding.remove(&id);
                        commands.push(Command::Cancel(id));
                    }
                }
                Effect::Apply(apply) => {
                    self.applying.insert(apply.ticket.clone());
                    commands.push(Command::ApplyRule(apply));
                }
                Effect::Record(fact) => commands.push(Command::Record(fact)),
                Effect::Check(candidate) => match check::check_text(&mut self.run, candidate) {
                    check::CheckResult::Ended(checked) => {
                        let effects = self.checked(checked, &mut commands);
                        self.run.unchecked += checks(&effects);
                        queue.extend(effects);
                    }
                    check::CheckResult::ByMeaning { candidate, asked } => {
                        self.matching.insert(candidate.name.clone(), candidate);
                        commands.push(Command::SemanticMatch(asked));
                    }
                },
                Effect::End(ending) => commands.extend(self.complete(ending)),
            }
        }
        commands
    }

    fn ask(&mut self, ask: AskMember) -> Command {
        let member = &self.run.setup.members[ask.member_index];
        let subject = self.run.subject.as_ref();
        match subject.map(|subject| (subject, subject.gather(member))) {
            Some((subject, None)) => {
                let command = Command::Gather(Gather {
                    id: ask.id.clone(),
                    member: member.id.clone(),
                    strategy: member.strategy.clone(),
                    params: member.params.clone(),
                    subject: subject.part.clone(),
                });
                self.run.gathering.insert(ask.id.clone(), ask);
                command
            }
            Some((_, Some(parts))) => Command::Invoke(self.invoke(ask, parts)),
            None => Command::Invoke(self.invoke(ask, Vec::new())),
        }
    }

    fn invoke(&mut self, ask: AskMember, mut parts: Vec<Part>) -> Invoke {
        let member = &self.run.setup.members[ask.member_index];
        parts.extend(ask.parts);
        self.run.outstanding.insert(ask.id.clone(), ask.member_index);
        let mut marks = Map::new();
        marks.insert("mode".into(), json!(self.run.setup.mode));
        marks.insert("trigger".into(), json!(self.run.setup.request.trigger()));
        marks.insert("layer".into(), json!(member.layer));
        marks.extend(ask.extra_fields.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Invoke {
            id: ask.id,
            member: member.id.clone(),
            step: ask.step,
            parts,
            schema: answer_schema(self.run.setup.mode),
            task: ask.task,
            extra_fields: marks,
        }
    }

    fn matched(
        &mut self,
        candidate: &Name,
        result: &Result<Vec<crate::SemanticHit>, Arc<str>>,
        asked: Option<&crate::AskedModel>,
    ) -> Vec<Command> {
        let Some(candidate) = self.matching.remove(candidate) else { return Vec::new() };
        let checked = check::check_meaning(&mut self.run, &candidate, result, asked);
        let mut commands = Vec::new();
        let effects = self.checked(checked, &mut commands);
        commands.extend(self.apply_effects(effects));
        commands
    }

    /// A candidate was checked.
    fn checked(&mut self, checked: check::Checked, commands: &mut Vec<Command>) -> Vec<Effect> {
        commands.extend(checked.facts.into_iter().map(Command::Record));
        self.run.unchecked -= 1;
        self.mode.on_checked(&mut self.run, &checked.name, &checked.result)
    }

    fn complete(&mut self, ending: Completion) -> Vec<Command> {
        self.stage = Stage::Over;
        let (artifact, outcome) = self.run.state.outcome(&self.run.setup, ending);
        self.artifact = Some(artifact);
        vec![Command::Record(outcome), Command::Finish]
    }
}

impl Protocol for Assembly {
    fn advance(&mut self, stamped: &TimedEvent) -> Vec<Command> {
        self.run.now_ms = stamped.at_ms;
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
            (Event::Matched { candidate, result, asked }, _) => {
                self.matched(candidate, result, asked.as_ref())
            }
            (Event::RuleApplied { ticket, result }, _) if self.applying.remove(ticket) => {
                let result = result.as_ref().map_err(|why| &**why);
                let effects = self.mode.on_rule_result(&mut self.run, ticket, result);
                self.apply_effects(effects)
            }
            (Event::RuleApplied { .. }, _) => Vec::new(),
        }
    }

    fn version(&self) -> &'static str {
        version(self.run.setup.mode)
    }

    /// An answer that no trait touches as text may still touch one by meaning; that is compared for what an outcome would
    /// persist of it, and the `lock_check` records have the result.
    fn lock_result(&self, answer: Option<&Json>) -> Option<&'static str> {
        let compares = self.run.setup.embeds && !self.run.locks.semantic_traits().is_empty();
        Some(match answer {
            None => "unchecked",
            Some(answer) => {
                let touches = |text: &str| !self.run.locks.check(text).is_empty();
                match (answers::texts(answer).into_iter().any(touches), compares) {
                    (true, _) => "hit",
                    (false, true) => "unchecked",
                    (false, false) => "pass",
                }
            }
        })
    }
}

/// A run as its mode sees it: the setup, and what has accumulated.
pub(crate) struct Run {
    pub(crate) setup: Arc<Setup>,
    /// The index of a member in the roster.
    pub(crate) member_indices: BTreeMap<Name, usize>,
    pub(crate) id: Name,
    /// The time of the event that is taken, in milliseconds since the Unix epoch.
    pub(crate) now_ms: i64,
    pub(crate) locks: Locks,
    /// What has accumulated so far.
    pub(crate) state: RunState,
    subject: Option<Subject>,
    /// Questions that wait for what the host gathers.
    gathering: BTreeMap<Name, AskMember>,
    /// Members that were asked and have not answered.
    outstanding: BTreeMap<Name, usize>,
    /// How many candidates the mode has had checked without a result so far.
    unchecked: usize,
}

impl Run {
    /// Whether every member that was asked has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.outstanding.is_empty() && self.gathering.is_empty()
    }

    /// Whether every candidate was checked against the locks.
    pub(crate) fn all_checked(&self) -> bool {
        self.unchecked == 0
    }

    pub(crate) fn member(&self, index: usize) -> &Member {
        &self.setup.members[index]
    }

    pub(crate) fn subject_text(&self) -> &str {
        self.subject.as_ref().map_or("", |subject| &subject.part.text)
    }
}

/// One way of deciding together.
pub(crate) trait Mode: Send {
    /// The run is opened.
    fn on_opened(&mut self, run: &mut Run) -> Vec<Effect>;

    /// Stores the answer of a member that was asked; `None` where it gave none. Nothing follows from it yet.
    fn store_answer(&mut self, index: usize, answer: Option<&Json>);

    /// A member that was asked ended; its answer, if any, is stored.
    fn on_answer(&mut self, run: &mut Run, index: usize) -> Vec<Effect>;

    /// A custom rule was applied.
    fn on_rule_result(&mut self, run: &mut Run, ticket: &str, result: Result<&Json, &str>) -> Vec<Effect>;

    /// A candidate was checked against the locks.
    fn on_checked(&mut self, run: &mut Run, candidate: &Name, result: &LockResult) -> Vec<Effect>;

    /// The run's budget is spent before the mode has a result: completes the outcome with what is known, and marks
    /// the members that it would still have asked as missing (X8, X12).
    fn on_budget_exhausted(&mut self, run: &mut Run, ending: Completion) -> Completion;
}

/// An effect that a mode requests; effects are carried out in order.
pub(crate) enum Effect {
    /// Gather for a member and ask it.
    Ask(AskMember),
    /// Cancel an invocation.
    Cancel(Name),
    /// Apply a custom rule.
    Apply(ApplyRule),
    /// Check a candidate outcome against the locks.
    Check(Candidate),
    Record(Fact),
    /// End the run. Nothing after it is done.
    End(Completion),
}

impl Effect {
    /// Has the host apply a rule.
    pub(crate) fn apply(ticket: impl Into<Name>, kind: &Name, input: RuleRequest) -> Vec<Effect> {
        vec![Effect::Apply(ApplyRule { ticket: ticket.into(), kind: kind.clone(), input })]
    }
}

/// Something that may become part of an outcome.
pub(crate) struct Candidate {
    /// Its name in records: `fragment/<member>`, `decision`, `rationale/<member>`, `message/<round>/<member>`,
    /// `node/<member>`.
    pub(crate) name: Name,
    pub(crate) texts: Vec<Text>,
    pub(crate) on_hit: OnHit,
}

/// What a locked trait in one of a candidate's texts does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnHit {
    /// The whole candidate is dropped.
    Drop,
    /// The touched text alone is withheld, so every text is checked in every way (V6).
    Withhold,
}

/// The result of checking a candidate against the locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockResult {
    Pass,
    /// Each text that touches a trait, by its index in the candidate, with the trait.
    Hit(Vec<(usize, String)>),
    /// The host could not compare the texts by meaning (L4).
    Unchecked,
}

impl LockResult {
    pub(crate) fn is_clean(&self) -> bool {
        *self == LockResult::Pass
    }

    /// The text at an index, or a placeholder for it if it touches a trait.
    pub(crate) fn visible_text(&self, index: usize, text: &str) -> String {
        match self {
            LockResult::Pass => text.to_owned(),
            LockResult::Unchecked => "withheld: the locked traits could not be checked".to_owned(),
            LockResult::Hit(hits) => {
                let touched =
                    hits.iter().filter(|(at, _)| *at == index).map(|(_, locked)| format!("`{locked}`"));
                let traits: Vec<String> = touched.collect::<BTreeSet<_>>().into_iter().collect();
                match traits.is_empty() {
                    true => text.to_owned(),
                    false => format!("withheld: touches {}", traits.join(", ")),
                }
            }
        }
    }
}

/// One text of a candidate.
pub(crate) struct Text {
    /// The author of the words; `None` if the program wrote them.
    pub(crate) member: Option<Name>,
    /// The invocation that the words come from.
    pub(crate) invocation: Option<Name>,
    /// The kind: `fragment`, `decision`, `rationale`, `message`, `concern`, `evidence`, `suggestion`.
    pub(crate) kind: &'static str,
    pub(crate) text: Arc<str>,
}

impl Text {
    /// A text of a member's answer.
    pub(crate) fn of_member(member: &Name, invocation: Name, kind: &'static str, text: &str) -> Self {
        Text { member: Some(member.clone()), invocation: Some(invocation), kind, text: text.into() }
    }

    /// A text that no member wrote.
    pub(crate) fn of_program(kind: &'static str, text: &str) -> Self {
        Text { member: None, invocation: None, kind, text: text.into() }
    }
}

/// A question to a member.
pub(crate) struct AskMember {
    pub(crate) id: Name,
    pub(crate) step: Name,
    pub(crate) member_index: usize,
    /// The material apart from the gathered material.
    pub(crate) parts: Vec<Part>,
    pub(crate) task: Arc<str>,
    /// The fields of its consultation's record, apart from mode and layer.
    pub(crate) extra_fields: Vec<(&'static str, Json)>,
}

/// The step of advice and votes, and the prefix of their invocation ids.
const ASK: &str = "ask";

/// The invocation of a member that is asked once.
pub(crate) fn ask_id(member: &str) -> Name {
    format!("{ASK}/{member}").into()
}

impl AskMember {
    /// The question to a member that is asked once and is shown the gathered material alone.
    pub(crate) fn once(member: &Member, index: usize, task: &str, fields: Vec<(&'static str, Json)>) -> Self {
        let (id, step) = (ask_id(&member.id), ASK.into());
        AskMember {
            id,
            step,
            member_index: index,
            parts: Vec::new(),
            task: task.into(),
            extra_fields: fields,
        }
    }
}

/// How a run completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunStatus {
    Done,
    Refused,
    Incomplete,
}

/// The completion of a run.
pub(crate) struct Completion {
    pub(crate) status: RunStatus,
    /// The word for it: `pass`, `fail`, `done`, `refused`, `incomplete`.
    pub(crate) result: &'static str,
    /// A stable word for the reason, where there is one.
    pub(crate) code: Option<&'static str>,
    /// Why, in a sentence.
    pub(crate) reason: Option<String>,
    /// What was made, by its name in the outcome: `fragments`, `decision`, `messages`, `rollup`.
    pub(crate) artifact: Map<String, Json>,
    /// Further fields of the outcome.
    pub(crate) extra: Map<String, Json>,
}

quorate_manifest::words!(RunStatus { Done = "done", Refused = "refused", Incomplete = "incomplete" });

impl Completion {
    /// A completion with a result.
    pub(crate) fn done() -> Self {
        Completion {
            status: RunStatus::Done,
            result: RunStatus::Done.as_str(),
            code: None,
            reason: None,
            artifact: Map::new(),
            extra: Map::new(),
        }
    }

    /// A completion without a result, with the reason.
    pub(crate) fn without_artifact(stand: RunStatus, code: &'static str, because: impl Into<String>) -> Self {
        Completion {
            status: stand,
            result: stand.as_str(),
            code: Some(code),
            reason: Some(because.into()),
            ..Completion::done()
        }
    }
}

/// What accumulates on the way to an outcome.
pub(crate) struct RunState {
    missing: Vec<bool>,
    notes: Vec<String>,
    rules: Vec<Json>,
    violations: usize,
}

impl RunState {
    pub(crate) fn new(members: usize) -> Self {
        RunState { missing: vec![false; members], notes: Vec::new(), rules: Vec::new(), violations: 0 }
    }

    /// A member gave no output: it was asked, or the run's budget was spent before it could be.
    pub(crate) fn mark_missing(&mut self, index: usize) {
        self.missing[index] = true;
    }

    /// Whether a member lacks output.
    pub(crate) fn is_missing(&self, index: usize) -> bool {
        self.missing[index]
    }

    /// A note for the reader of the outcome.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// A note that a custom rule failed.
    pub(crate) fn note_failed_rule(&mut self, rule: &str, why: &str) {
        self.note(format!("rule `{rule}` could not be applied: {why}"));
    }

    pub(crate) fn count_violation(&mut self) {
        self.violations += 1;
    }

    /// A rule was applied: the record of it.
    pub(crate) fn record_rule(&mut self, rule: &Rule, fired: bool, members: &[Name], also: Json) -> Effect {
        let members: Vec<&str> = members.iter().map(|member| &**member).collect();
        let mut entry = json!({"id": &*rule.id, "kind": &*rule.kind, "fired": fired, "members": members});
        if let (Json::Object(entry), Json::Object(also)) = (&mut entry, also) {
            entry.extend(also);
        }
        self.rules.push(entry.clone());
        Effect::Record(Fact { kind: FactKind::Rule, data: entry })
    }

    /// Drops intermediate results of rules: they are applied again, to more answers.
    pub(crate) fn forget_rules(&mut self) {
        self.rules.clear();
    }

    /// The whole artifact, and the outcome's record, which contains it only if outcomes are kept (D8).
    pub(crate) fn outcome(&self, setup: &Setup, ending: Completion) -> (Json, Fact) {
        let missing = setup.members.iter().zip(&self.missing).filter(|(_, missing)| **missing);
        let missing: Vec<&str> = missing.map(|(member, _)| &*member.id).collect();
        let partial = !missing.is_empty();
        let mut outcome = Map::new();
        let mut put = |key: &str, value: Json| outcome.insert(key.to_owned(), value);
        put("verdict", json!(ending.result));
        put("stand", json!(ending.status.as_str()));
        put("kind", json!(artifact_kind(setup)));
        put("assembly", json!(&*setup.assembly));
        put("mode", json!(setup.mode));
        if let Some(code) = ending.code {
            put("code", json!(code));
        }
        if let Some(because) = ending.reason {
            put("because", json!(because));
        }
        put("partial", json!(partial));
        put("missing", json!(missing));
        put("rules", json!(self.rules));
        put("violations", json!(self.violations));
        put("notes", json!(self.notes));
        if !setup.refs.is_empty() {
            put("refs", Json::Object(setup.refs.clone()));
        }
        outcome.extend(ending.extra);
        let artifact = Json::Object(ending.artifact);
        if setup.overlays.enabled {
            outcome.extend(artifact.as_object().cloned().unwrap_or_default());
        } else {
            let hash = sha256_hex(artifact.to_string().as_bytes());
            outcome.insert("artifact_sha256".to_owned(), json!(hash));
        }
        (artifact, Fact { kind: FactKind::Outcome, data: Json::Object(outcome) })
    }
}

/// The name of the mode's outcome.
fn artifact_kind(setup: &Setup) -> &'static str {
    use quorate_manifest::assembly::Mode;
    match setup.mode {
        Mode::Advisory => "guidance",
        Mode::Voting => "decision",
        Mode::Peer => "log",
        Mode::Hierarchy => "rollup",
    }
}
