//! A run in progress, from its records alone, so that every process that reads the ledger sees the same: the questions
//! to each member, their state, and the spent budget. A watcher reads new records when a commit event arrives, and at
//! an interval.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Kind, Ledger as _, Record};
use quorate_kernel::record::{Attempt, Consultation, Outcome, Override, RunIntent, RunOpened, Status};
use quorate_ledger::store::lease::Driver;
use quorate_manifest::money::Money;
use quorate_manifest::timestamp;
use quorate_protocol::modes::council::ADJUDICATOR;
use quorate_protocol::{Json, Name};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Map;

use super::commit_events::CommitEventReader;
use super::error::Error;
use super::report::deliberator_ids;
use super::session::LedgerSession;
use super::{budget, run_opened};
use crate::jobs::Progress;
use crate::view::wording::{list, step};
use crate::view::{Doc, Text, Tone};

/// A run as it goes on
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Live {
    /// The run's id
    pub run: String,
    /// The verdict or outcome; null while nothing is decided
    pub verdict: Option<String>,
    /// Whether no record follows
    pub ended: bool,
    /// Which process works on it
    pub state: LiveState,
    /// The steps, in order
    pub steps: Vec<String>,
    /// Members and their questions, in the order of the roster
    pub members: Vec<LiveMember>,
    /// How many questions were asked
    pub asked: usize,
    /// How many of them have ended, with an answer or without one
    pub done: usize,
    /// Amounts that the run has taken so far; null where unknown
    pub spent: Amounts,
    /// What the run may take at most; null where it has no cap
    pub budget: Amounts,
    /// The job of this server that holds the run; null if it holds none
    pub job: Option<String>,
}

/// Which process works on a run
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LiveState {
    /// This server
    Here,
    /// Another process of this machine
    Elsewhere,
    /// A process of another machine
    Remote,
    /// None, although the run has not ended: its process was stopped, and `resume` continues it
    Interrupted,
    /// Unknown: the run was recorded in another ledger, which alone can continue it
    Imported,
    /// None: the run has ended
    Ended,
}

impl LiveState {
    /// The word of the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            LiveState::Here => "here",
            LiveState::Elsewhere => "elsewhere",
            LiveState::Remote => "remote",
            LiveState::Interrupted => "interrupted",
            LiveState::Imported => "imported",
            LiveState::Ended => "ended",
        }
    }

    /// Whether a process works on the run.
    pub fn is_driven(self) -> bool {
        matches!(self, LiveState::Here | LiveState::Elsewhere | LiveState::Remote)
    }

    /// In a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            LiveState::Here => "this server works on it",
            LiveState::Elsewhere => "another process of this machine works on it",
            LiveState::Remote => "a process of another machine works on it",
            LiveState::Interrupted => "it was interrupted, and no process works on it",
            LiveState::Imported => "it was recorded in another ledger, which alone can continue it",
            LiveState::Ended => "it has ended",
        }
    }
}

/// The process that works on a run that has not ended. Call it before reading the run's records: otherwise a run whose
/// last record is appended in between would look interrupted.
///
/// # Errors
/// If the ledger does not answer.
pub(crate) async fn driver(session: &LedgerSession, run: &Name) -> Result<LiveState, Error> {
    Ok(match session.store.driver(run).await? {
        Some(Driver::Local) => LiveState::Elsewhere,
        Some(Driver::Remote) => LiveState::Remote,
        None if session.store.is_imported(run).await? => LiveState::Imported,
        None => LiveState::Interrupted,
    })
}

/// A record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ShownRecord")]
pub struct RunRecord {
    /// Its number in the run, from 0
    pub n: u64,
    /// What it is: `run.opened`, `consultation`, `outcome`, …
    pub kind: String,
    /// When it happened, RFC 3339 in UTC
    pub at: String,
    /// What it says; null where it was erased
    pub data: Option<Map<String, Json>>,
}

impl From<&Record> for RunRecord {
    fn from(record: &Record) -> Self {
        RunRecord {
            n: record.n,
            kind: record.kind.clone(),
            at: timestamp::format(record.at_ms),
            data: record.data.clone(),
        }
    }
}

/// Records of a run, in order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Records")]
pub struct RunRecords {
    /// At most 1000 records, in order
    pub records: Vec<RunRecord>,
    /// The `after` that gives the next ones, if there are more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// The most records that are read at once.
const MAX_RECORDS: usize = 1_000;

/// The records of a run after the one with a number.
///
/// # Errors
/// If there is no such run, or the ledger does not answer.
pub(crate) async fn records(
    session: &LedgerSession,
    prefix: &str,
    after: Option<u64>,
) -> Result<RunRecords, Error> {
    let all = session.store.records(&session.find_run(prefix).await?.run).await?;
    let wanted = all.iter().filter(|record| after.is_none_or(|after| record.n > after));
    let records: Vec<RunRecord> = wanted.take(MAX_RECORDS).map(RunRecord::from).collect();
    let last = records.last().map(|record| record.n);
    let next = last.filter(|last| all.last().is_some_and(|record| record.n > *last));
    Ok(RunRecords { records, next })
}

/// The current state of the run that an id, a prefix of one or `latest` names.
///
/// # Errors
/// If there is no such run, or the ledger does not answer.
pub(crate) async fn load(session: &LedgerSession, prefix: &str) -> Result<Live, Error> {
    let run = session.find_run(prefix).await?.run;
    let driver = driver(session, &run).await?;
    let records = session.store.records(&run).await?;
    live(&run, &records.into_iter().map(Arc::new).collect::<Vec<_>>(), driver)
}

/// Calls, tokens and money; null where unknown or without a cap
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Amounts {
    /// Number of calls
    pub calls: Option<u32>,
    /// Number of tokens, read and written
    pub tokens: Option<u64>,
    /// An amount in US dollars, for example 0.25
    pub usd: Option<String>,
}

/// A member and its questions
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveMember {
    /// The member's id
    pub member: String,
    /// Questions to the member, in order
    pub questions: Vec<Question>,
}

/// A question to a member
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Question {
    /// The step that asks it, such as r1
    pub step: String,
    /// How far the question is
    pub state: QuestionState,
    /// Why it is asked again, or why there is no answer
    pub why: Option<String>,
    /// How many attempts have ended
    pub attempts: u32,
    /// The bytes of the answer so far, of a member that streams to this server
    pub bytes: Option<u64>,
    /// When it was asked, RFC 3339 in UTC; null before
    pub since: Option<String>,
    /// The limit of an answer that is open, in milliseconds, of a member that this server asks
    pub limit_ms: Option<u64>,
    /// How long it took, in milliseconds; null before its end
    pub took_ms: Option<u64>,
}

/// How far a question is
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuestionState {
    /// It is asked in a later step
    #[default]
    Waiting,
    /// It was asked, and no attempt has failed
    Asked,
    /// An attempt gave no usable answer, and another follows
    Retrying,
    /// It has a usable answer
    Answered,
    /// It ended without an answer
    Missing,
}

/// The known state of a question, by its invocation.
struct Asked {
    member: String,
    question: Question,
    /// When it was asked, in milliseconds since the Unix epoch.
    asked_ms: i64,
}

/// A run from all its records so far. `driver` is the result of [`driver`].
///
/// # Errors
/// If a record cannot be read.
pub(crate) fn live(run: &Name, records: &[Arc<Record>], driver: LiveState) -> Result<Live, Error> {
    let owned = records.iter().map(|record| Record::clone(record)).collect();
    let history = History::from_remaining_records(run, owned)?;
    let mut asked: Vec<(Name, Asked)> = Vec::new();
    for record in records {
        fold(record, &mut asked);
    }
    let decided = history.outcome().and_then(|outcome| outcome.word().map(str::to_owned));
    let ended = history.ended.is_some();
    let (roster, planned) = roster(&history);
    let mut steps: Vec<String> = Vec::new();
    let all = asked.iter().map(|(_, asked)| &asked.question.step).chain(planned.iter().map(|(_, step)| step));
    for step in all {
        if !steps.contains(step) {
            steps.push(step.clone());
        }
    }
    let (count, done) = (asked.len(), asked.iter().filter(|(_, asked)| asked.is_done()).count());
    let mut members: Vec<LiveMember> =
        roster.into_iter().map(|member| LiveMember { member, questions: Vec::new() }).collect();
    for (_, asked) in asked {
        match members.iter_mut().find(|known| known.member == asked.member) {
            Some(known) => known.questions.push(asked.question),
            None => members.push(LiveMember { member: asked.member, questions: vec![asked.question] }),
        }
    }
    // A decided run asks no further questions.
    for (member, step) in planned.into_iter().filter(|_| decided.is_none()) {
        let Some(known) = members.iter_mut().find(|known| known.member == member) else { continue };
        if !known.questions.iter().any(|question| question.step == step) {
            known.questions.push(Question { step, ..Question::default() });
        }
    }
    let caps = budget::recorded(&history.opened);
    let tokens = history
        .usage
        .tokens_in
        .zip(history.usage.tokens_out)
        .map(|(read, written)| read.saturating_add(written));
    let usd = |money: Option<Money>| money.map(Money::amount);
    Ok(Live {
        run: run.to_string(),
        verdict: decided,
        ended,
        state: if ended { LiveState::Ended } else { driver },
        steps,
        members,
        asked: count,
        done,
        spent: Amounts { calls: Some(history.calls), tokens, usd: usd(history.usage.money) },
        budget: Amounts { calls: caps.calls, tokens: caps.tokens, usd: usd(caps.money) },
        job: None,
    })
}

impl Live {
    /// Adds the state that only the process that holds the run has.
    #[must_use]
    pub fn with_job(mut self, job: &str, progress: &Progress) -> Live {
        self.job = Some(job.to_owned());
        if !self.ended {
            self.state = LiveState::Here;
        }
        for member in &mut self.members {
            for question in &mut member.questions {
                let is_open = matches!(question.state, QuestionState::Asked | QuestionState::Retrying);
                let of = |all: &[(String, String, u64)]| {
                    let found = all.iter().find(|(id, at, _)| *id == member.member && *at == question.step);
                    found.map(|(.., number)| *number).filter(|_| is_open)
                };
                (question.bytes, question.limit_ms) = (of(&progress.writing), of(&progress.limits));
            }
        }
        self
    }
}

impl Asked {
    fn is_done(&self) -> bool {
        matches!(self.question.state, QuestionState::Answered | QuestionState::Missing)
    }
}

fn fold(record: &Record, asked: &mut Vec<(Name, Asked)>) {
    if let Ok(Some(intent)) = record.read::<RunIntent>() {
        asked.retain(|(id, _)| !intent.supersedes.contains(id));
        for id in intent.invocations {
            let (step, member) = step_and_member(&id);
            let since = Some(timestamp::format(record.at_ms));
            let question = Question { step, since, state: QuestionState::Asked, ..Question::default() };
            asked.retain(|(known, _)| *known != id);
            asked.push((id, Asked { member, question, asked_ms: record.at_ms }));
        }
    } else if let Ok(Some(attempt)) = record.read::<Attempt>() {
        let Some((_, asked)) = asked.iter_mut().find(|(id, _)| *id == attempt.invocation) else { return };
        asked.question.attempts = asked.question.attempts.max(attempt.attempt);
        let failed = attempt.status != "said";
        if failed || !attempt.complaints.is_empty() {
            let complaint = attempt.complaints.into_iter().next();
            asked.question.state = QuestionState::Retrying;
            asked.question.why = complaint.or(Some(attempt.text).filter(|text| failed && !text.is_empty()));
        }
    } else if let Ok(Some(ended)) = record.read::<Consultation>() {
        consulted(ended, record.at_ms, asked);
    }
}

fn consulted(ended: Consultation, at_ms: i64, asked: &mut Vec<(Name, Asked)>) {
    let why = (ended.status != Status::Answered).then(|| {
        let status = ended.status.as_str().replace('_', " ");
        let text = ended.text.filter(|text| !text.trim().is_empty());
        text.map_or(status.clone(), |text| format!("{status}: {text}"))
    });
    let state = if why.is_none() { QuestionState::Answered } else { QuestionState::Missing };
    let (step, attempts) = (ended.step.to_string(), ended.attempts);
    let question = Question { step, state, why, attempts, ..Question::default() };
    let mut known = Asked { member: ended.member.to_string(), question, asked_ms: at_ms };
    match asked.iter_mut().find(|(id, _)| *id == ended.invocation) {
        Some((_, asked)) => {
            known.asked_ms = asked.asked_ms;
            known.question.since = asked.question.since.take();
            known.question.took_ms = at_ms.checked_sub(asked.asked_ms).and_then(|ms| ms.try_into().ok());
            *asked = known;
        }
        None => asked.push((ended.invocation, known)),
    }
}

/// An invocation's id is its step and its member; a step's only invocation is named after the step.
fn step_and_member(id: &str) -> (String, String) {
    match id.split_once('/') {
        Some((step, member)) => (step.to_owned(), member.to_owned()),
        None if id == "adjudicate" => (id.to_owned(), ADJUDICATOR.to_owned()),
        None => (id.to_owned(), id.to_owned()),
    }
}

/// The members, and the questions that are known from the start, each with its step.
fn roster(history: &History) -> (Vec<String>, Vec<(String, String)>) {
    if run_opened::is_assembly(history) {
        let setup = run_opened::assembly_setup(history);
        let members = setup.iter().flat_map(|setup| &setup.members);
        return (members.map(|member| member.id.to_string()).collect(), Vec::new());
    }
    let deliberators: Vec<String> = deliberator_ids(history).map(str::to_owned).collect();
    let rounds: &[&str] = if history.opened.setup["rounds"] == "one" { &["r1"] } else { &["r1", "r2"] };
    let of_round = |step: &&str| {
        let step = (*step).to_owned();
        deliberators.iter().map(move |id| (id.clone(), step.clone())).collect::<Vec<_>>()
    };
    let planned = rounds.iter().flat_map(of_round);
    let last = (ADJUDICATOR.to_owned(), "adjudicate".to_owned());
    let planned = planned.chain([last]).collect();
    (deliberators.iter().cloned().chain([ADJUDICATOR.to_owned()]).collect(), planned)
}

/// The interval of reads if no events of other processes arrive.
const POLL: Duration = Duration::from_millis(500);
/// The maximum number of records in one read.
const PAGE: u32 = 500;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WatchEvent {
    /// The run's id.
    pub run: Name,
    /// The subject of the run.
    pub subject: String,
    /// The number of its record.
    pub n: u64,
    /// RFC 3339 in UTC.
    pub at: String,
    /// The event.
    #[serde(flatten)]
    pub what: WatchEventKind,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum WatchEventKind {
    /// The run is recorded.
    Opened,
    /// Members are asked.
    Asked {
        /// Their invocations, such as `r1/skeptic`.
        asked: Vec<String>,
    },
    /// An invocation ended.
    Answered {
        /// Its id.
        invocation: String,
        /// The reason for a missing answer.
        missing: Option<String>,
    },
    /// The verdict or outcome is recorded.
    Decided {
        /// Its word.
        outcome: String,
    },
    /// A person decided otherwise.
    Overridden {
        /// The person's verdict.
        outcome: String,
    },
    /// No record follows.
    Ended,
}

/// Follows one run, or all.
pub struct Watcher {
    session: Arc<LedgerSession>,
    /// The run; `None` for all.
    run: Option<Name>,
    /// The position in the ledger up to which records were read.
    place: u64,
    /// The number of the next record of the one run.
    next: u64,
    subjects: BTreeMap<Name, String>,
    events: VecDeque<WatchEvent>,
    committed: CommitEventReader,
}

impl Watcher {
    /// Follows the run that is named from its beginning; without a name all runs from now on.
    ///
    /// # Errors
    /// If there is no such run, or the ledger does not answer.
    pub async fn new(session: Arc<LedgerSession>, prefix: Option<&str>) -> Result<Self, Error> {
        let run = match prefix {
            Some(prefix) => Some(session.find_run(prefix).await?.run),
            None => None,
        };
        let committed = session.environment.commit_events.reader(POLL);
        let place = session.store.last_place().await?;
        let (subjects, events) = (BTreeMap::new(), VecDeque::new());
        let mut watcher = Watcher { session, run: run.clone(), place, next: 0, subjects, events, committed };
        if let Some(run) = run {
            for record in watcher.session.store.records(&run).await? {
                watcher.take(&run, &record).await?;
                watcher.next = record.n + 1;
            }
        }
        Ok(watcher)
    }

    /// The next event; waits for it.
    ///
    /// # Errors
    /// If the ledger does not answer.
    pub async fn next(&mut self) -> Result<WatchEvent, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let records = self.session.store.records_behind(self.place, PAGE).await?;
            if records.is_empty() {
                self.committed.wait(self.run.as_ref()).await;
            }
            for (place, run, record) in records {
                // A record that was appended while the run was read from its beginning arrives twice.
                let is_new = self.run.as_ref().is_none_or(|watched| *watched == run && record.n >= self.next);
                if is_new {
                    self.take(&run, &record).await?;
                }
                self.place = place;
            }
        }
    }

    async fn take(&mut self, run: &Name, record: &Record) -> Result<(), Error> {
        let Some(what) = what(record) else { return Ok(()) };
        if let Ok(Some(opened)) = record.read::<RunOpened>() {
            self.subjects.insert(run.clone(), opened.subject.unwrap_or_default());
        }
        let subject = match self.subjects.get(run) {
            Some(subject) => subject.clone(),
            None => {
                let found = self.session.find_run(run).await?.subject;
                self.subjects.insert(run.clone(), found.clone());
                found
            }
        };
        if what == WatchEventKind::Ended {
            self.subjects.remove(run);
        }
        self.events.push_back(WatchEvent {
            run: run.clone(),
            subject,
            n: record.n,
            at: timestamp::format(record.at_ms),
            what,
        });
        Ok(())
    }
}

/// The event of a run's record; `None` for kinds that watchers need not see.
fn what(record: &Record) -> Option<WatchEventKind> {
    if let Ok(Some(_)) = record.read::<RunOpened>() {
        return Some(WatchEventKind::Opened);
    }
    if let Ok(Some(intent)) = record.read::<RunIntent>() {
        let asked: Vec<String> = intent.invocations.iter().map(ToString::to_string).collect();
        return (!asked.is_empty()).then_some(WatchEventKind::Asked { asked });
    }
    if let Ok(Some(ended)) = record.read::<Consultation>() {
        let missing = (ended.status != Status::Answered).then(|| ended.status.as_str().replace('_', " "));
        return Some(WatchEventKind::Answered { invocation: ended.invocation.to_string(), missing });
    }
    if let Ok(Some(outcome)) = record.read::<Outcome>() {
        return outcome.word().map(|word| WatchEventKind::Decided { outcome: word.to_owned() });
    }
    if let Ok(Some(decision)) = record.read::<Override>() {
        return Some(WatchEventKind::Overridden { outcome: decision.verdict });
    }
    record.is(Kind::RunEnded).then_some(WatchEventKind::Ended)
}

/// The shortest prefix of an id that is shown.
pub(super) const SHORT: usize = 7;

impl WatchEvent {
    /// A line on the event; with `named` it starts with the run and its subject.
    pub fn doc(&self, named: bool) -> Doc {
        let word = |word: &str| Text::toned(Tone::of_word(word), word);
        let what = match &self.what {
            WatchEventKind::Opened => format!("opened: {}", self.subject).into(),
            WatchEventKind::Asked { asked } => asked_members(asked).into(),
            WatchEventKind::Answered { invocation, missing: None } => {
                format!("{} has answered", member(invocation)).into()
            }
            WatchEventKind::Answered { invocation, missing: Some(why) } => {
                let missing = Text::toned(Tone::Absent, format!("gave no answer: {why}"));
                Text::from(format!("{} ", member(invocation))).and(missing)
            }
            WatchEventKind::Decided { outcome } => word(outcome),
            WatchEventKind::Overridden { outcome } => Text::from("a person decided ").and(word(outcome)),
            WatchEventKind::Ended => Text::faint("ended"),
        };
        let run = self.run.get(..SHORT).unwrap_or(&self.run);
        let mut line = Text::faint(self.at.get(11..19).unwrap_or(&self.at)).and("  ");
        if named {
            line = line.and(run).and("  ");
        }
        if named && self.what != WatchEventKind::Opened {
            line = line.and(&self.subject).and("  ");
        }
        let mut doc = Doc::new();
        doc.line(line.and(what));
        doc
    }
}

/// The members asked in a step.
fn asked_members(invocations: &[String]) -> String {
    let word = invocations.first().map_or("", |id| id.split('/').next().unwrap_or(id));
    let members: Vec<&str> = invocations.iter().map(|id| member(id)).collect();
    format!("{}: {} asked", step(word), list(&members))
}

fn member(invocation: &str) -> &str {
    let name = invocation.split_once('/').map_or(invocation, |(_, member)| member);
    if name == "adjudicate" { ADJUDICATOR } else { name }
}
