//! The pipeline of an assembly (AIP-24, "Member execution flow"): gather, invoke, persist, synthesise, lock-check,
//! persist the outcome. There is one, and four modes that say whom to ask next and what follows; what they want is
//! done here in the same way for all.

mod book;
mod check;
mod want;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quorate_manifest::assembly::Mode as Word;
use serde_json::{Map, json};

use super::{advisory, hierarchy, peer, voting};
use crate::assembly::{Member, Setup};
use crate::gather::Subject;
use crate::locks::{Invalid, Locks};
use crate::{
    Absent, Command, Consultation, Event, Gather, Invoke, Json, Name, Part, Protocol, Stamped, answers,
};

pub(crate) use book::Book;
pub(crate) use check::{Candidate, Text};
pub(crate) use want::{Ask, Ending, Stand, Want};

/// What a mode knows of the run, whatever has happened so far.
pub(crate) struct Case {
    pub(crate) setup: Arc<Setup>,
    /// The seat of a member: its place in the roster.
    pub(crate) seats: BTreeMap<Name, usize>,
    pub(crate) run: Name,
    /// The time of the event that is taken, in milliseconds since the Unix epoch.
    pub(crate) now_ms: i64,
    pub(crate) locks: Locks,
    subject: Option<Subject>,
}

impl Case {
    pub(crate) fn member(&self, seat: usize) -> &Member {
        &self.setup.members[seat]
    }

    /// Whether anything is locked.
    pub(crate) fn has_locks(&self) -> bool {
        !self.locks.is_empty()
    }

    pub(crate) fn subject_text(&self) -> &str {
        self.subject.as_ref().map_or("", |subject| &subject.part.text)
    }
}

/// One way of deciding together.
pub(crate) trait Mode: Send {
    /// The run is opened.
    fn open(&mut self, case: &Case, book: &mut Book) -> Vec<Want>;

    /// Stores the answer of a member that was asked; `None` where it gave none. Nothing follows from it yet.
    fn store(&mut self, seat: usize, answer: Option<&Json>);

    /// A member that was asked ended: with an answer, or without.
    fn heard(&mut self, case: &Case, book: &mut Book, seat: usize, answer: Option<&Json>) -> Vec<Want>;

    /// A rule of the host's own was applied.
    fn ruled(&mut self, case: &Case, book: &mut Book, ticket: &str, result: Result<&Json, &str>)
    -> Vec<Want>;

    /// A candidate was held against the locks.
    fn checked(&mut self, case: &Case, book: &mut Book, candidate: &Name, clean: bool) -> Vec<Want>;

    /// The run's budget is spent before the mode has come to anything: completes the outcome with what is known, and books
    /// as missing whom the mode would still have asked (X8, X12).
    fn cut_short(&mut self, case: &Case, book: &mut Book, ending: Ending) -> Ending;
}

/// The state machine of one assembly's run.
pub struct Assembly {
    case: Case,
    mode: Box<dyn Mode>,
    book: Book,
    stage: Stage,
    /// Questions that wait for what the host gathers.
    gathering: BTreeMap<Name, Ask>,
    /// Whoever was asked and has not ended.
    out: BTreeMap<Name, usize>,
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
pub fn version(mode: Word) -> &'static str {
    match mode {
        Word::Advisory => "advisory/2",
        Word::Voting => "voting/3",
        Word::Peer => "peer/3",
        Word::Hierarchy => "hierarchy/3",
    }
}

impl Assembly {
    /// An assembly that waits to be opened.
    ///
    /// # Errors
    /// When a locked trait is no pattern that can be matched.
    pub fn new(setup: Setup) -> Result<Self, Invalid> {
        let locks = Locks::compile(&setup.locked_traits, setup.match_mode)?;
        let setup = Arc::new(setup);
        let mode: Box<dyn Mode> = match setup.mode {
            Word::Advisory => Box::new(advisory::Advisory::new(&setup)),
            Word::Voting => Box::new(voting::Voting::new(&setup)),
            Word::Peer => Box::new(peer::Peer::new(&setup)),
            Word::Hierarchy => Box::new(hierarchy::Hierarchy::new(&setup)),
        };
        let seats = setup.members.iter().enumerate().map(|(seat, member)| (member.id.clone(), seat));
        let case = Case { seats: seats.collect(), run: "".into(), now_ms: 0, locks, subject: None, setup };
        Ok(Assembly {
            book: Book::new(case.setup.members.len()),
            case,
            mode,
            stage: Stage::Unopened,
            gathering: BTreeMap::new(),
            out: BTreeMap::new(),
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
        self.case.run = run.clone();
        let kind = crate::assembly::subject(self.case.setup.mode);
        let part = inputs.iter().find(|part| part.kind == kind).cloned();
        self.case.subject = part.map(|part| Subject::new(part, overlays, at_ms));
        self.stage = Stage::Running;
        let wants = self.mode.open(&self.case, &mut self.book);
        self.follow(wants)
    }

    fn gathered(&mut self, id: &Name, result: &Result<Arc<str>, Arc<str>>) -> Vec<Command> {
        let Some(ask) = self.gathering.remove(id) else { return Vec::new() };
        match result {
            Ok(text) => {
                let strategy = self.case.member(ask.seat).strategy.clone();
                let part = Part::new(crate::PartKind::Gathered, strategy, text.clone());
                vec![Command::Invoke(self.invoke(ask, vec![part]))]
            }
            Err(why) => {
                let member = self.case.member(ask.seat).id.clone();
                self.book.note(format!("`{member}` was not asked: nothing could be gathered for it: {why}"));
                self.book.missing(ask.seat);
                let wants = self.mode.heard(&self.case, &mut self.book, ask.seat, None);
                self.follow(wants)
            }
        }
    }

    /// Whether an event answers something that was asked for and not taken back.
    fn waits_for(&self, event: &Event) -> bool {
        match event {
            Event::Opened { .. } => false,
            Event::Consulted { id, .. } => self.out.contains_key(id),
            Event::Gathered { id, .. } => self.gathering.contains_key(id),
            Event::Matched { candidate, .. } => self.matching.contains_key(candidate),
            Event::Ruled { ticket, .. } => self.applying.contains(ticket),
        }
    }

    fn consulted(&mut self, id: &Name, result: &Consultation) -> Vec<Command> {
        let Some(seat) = self.out.remove(id) else { return Vec::new() };
        let answer = match result {
            Consultation::Answered(answer) if self.schema().reads(answer) => Some(answer),
            // X5: an answer that cannot be read is none, and whoever gave it is missing like anybody else.
            Consultation::Answered(_) => {
                self.book.missing(seat);
                None
            }
            Consultation::Absent(why) => {
                if *why != Absent::Cancelled {
                    self.book.missing(seat);
                }
                None
            }
        };
        if self.stage == Stage::Exhausted {
            // It was paid for, and it may be what somebody has to be told of: only what would follow from it is not begun.
            self.mode.store(seat, answer);
            return self.exhausted();
        }
        let wants = self.mode.heard(&self.case, &mut self.book, seat, answer);
        self.follow(wants)
    }

    /// X8: the outcome of a run whose budget is spent, once nothing is out any more.
    fn exhausted(&mut self) -> Vec<Command> {
        for ask in std::mem::take(&mut self.gathering).into_values() {
            self.book.missing(ask.seat);
        }
        if !self.out.is_empty() {
            return Vec::new();
        }
        let because = "the run's budget is spent before its members have answered";
        let ending = Ending::without_artifact(Stand::Incomplete, "budget_exhausted", because);
        let ending = self.mode.cut_short(&self.case, &mut self.book, ending);
        self.end(ending)
    }

    /// Does what a mode wants, and what it wants because of that.
    fn follow(&mut self, wants: Vec<Want>) -> Vec<Command> {
        let mut queue: VecDeque<Want> = wants.into();
        let mut commands = Vec::new();
        while let Some(want) = queue.pop_front() {
            if self.stage == Stage::Over {
                break;
            }
            match want {
                Want::Ask(ask) => commands.push(self.ask(ask)),
                Want::Cancel(id) => {
                    // Whom something is still gathered for is then not asked at all.
                    if self.gathering.remove(&id).is_none() {
                        self.out.remove(&id);
                        commands.push(Command::Cancel(id));
                    }
                }
                Want::Apply(apply) => {
                    self.applying.insert(apply.ticket.clone());
                    commands.push(Command::Apply(apply));
                }
                Want::Record(fact) => commands.push(Command::Record(fact)),
                Want::Check(candidate) => match check::by_text(&self.case, &mut self.book, candidate) {
                    check::Checked::Ended { name, clean, facts } => {
                        commands.extend(facts.into_iter().map(Command::Record));
                        queue.extend(self.mode.checked(&self.case, &mut self.book, &name, clean));
                    }
                    check::Checked::ByMeaning { candidate, asked } => {
                        self.matching.insert(candidate.name.clone(), candidate);
                        commands.push(Command::Match(asked));
                    }
                },
                Want::End(ending) => commands.extend(self.end(ending)),
            }
        }
        commands
    }

    fn ask(&mut self, ask: Ask) -> Command {
        let member = &self.case.setup.members[ask.seat];
        let subject = self.case.subject.as_ref();
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

    fn invoke(&mut self, ask: Ask, mut parts: Vec<Part>) -> Invoke {
        let member = &self.case.setup.members[ask.seat];
        parts.extend(ask.parts);
        self.out.insert(ask.id.clone(), ask.seat);
        let mut marks = Map::new();
        marks.insert("mode".into(), json!(self.case.setup.mode));
        marks.insert("layer".into(), json!(member.layer));
        marks.extend(ask.marks.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Invoke {
            id: ask.id,
            member: member.id.clone(),
            step: ask.step,
            parts,
            schema: self.schema(),
            task: ask.task,
            marks,
        }
    }

    /// The form of every answer of the mode.
    fn schema(&self) -> answers::Schema {
        match self.case.setup.mode {
            Word::Advisory | Word::Hierarchy => answers::Schema::Advice,
            Word::Voting => answers::Schema::Ballot,
            Word::Peer => answers::Schema::Message,
        }
    }

    fn matched(&mut self, candidate: &Name, result: &Result<Vec<crate::Near>, Arc<str>>) -> Vec<Command> {
        let Some(candidate) = self.matching.remove(candidate) else { return Vec::new() };
        let (name, clean, facts) = check::by_meaning(&self.case, &mut self.book, &candidate, result);
        let mut commands: Vec<Command> = facts.into_iter().map(Command::Record).collect();
        let wants = self.mode.checked(&self.case, &mut self.book, &name, clean);
        commands.extend(self.follow(wants));
        commands
    }

    fn ruled(&mut self, ticket: &Name, result: &Result<Json, Arc<str>>) -> Vec<Command> {
        if !self.applying.remove(ticket) {
            return Vec::new();
        }
        let result = result.as_ref().map_err(|why| &**why);
        let wants = self.mode.ruled(&self.case, &mut self.book, ticket, result);
        self.follow(wants)
    }

    fn end(&mut self, ending: Ending) -> Vec<Command> {
        self.stage = Stage::Over;
        let (artifact, outcome) = self.book.outcome(&self.case.setup, ending);
        self.artifact = Some(artifact);
        vec![Command::Record(outcome), Command::Finish]
    }
}

impl Protocol for Assembly {
    fn advance(&mut self, stamped: &Stamped) -> Vec<Command> {
        self.case.now_ms = stamped.at_ms;
        if self.stage == Stage::Running && self.waits_for(&stamped.event) && stamped.event.is_over_budget() {
            self.stage = Stage::Exhausted;
        }
        match (&stamped.event, self.stage) {
            (Event::Opened { run, inputs, overlays, .. }, Stage::Unopened) => {
                self.open(run, inputs, overlays, stamped.at_ms)
            }
            (Event::Opened { .. }, _) | (_, Stage::Unopened | Stage::Over) => Vec::new(),
            (Event::Consulted { id, result }, _) => self.consulted(id, result),
            (_, Stage::Exhausted) => self.exhausted(),
            (Event::Gathered { id, result }, _) => self.gathered(id, result),
            (Event::Matched { candidate, result }, _) => self.matched(candidate, result),
            (Event::Ruled { ticket, result }, _) => self.ruled(ticket, result),
        }
    }

    fn version(&self) -> &'static str {
        version(self.case.setup.mode)
    }
}
