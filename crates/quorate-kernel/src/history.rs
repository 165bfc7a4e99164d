//! History: a run's records folded back into what a protocol was fed, what it concluded and what was spent. Resume,
//! replay and every view start here.
//! Also replay: derives the verdict again from the records, without calls (X11).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_protocol::{
    AbsenceReason, Command, ConsultationResult, Event, Json, Name, Part, PartKind, Protocol, TimedEvent,
};
use serde::Serialize;
use serde_json::Map;

use crate::attempts::{FailedAttempts, SharedAnswers};
use crate::budget::Amount;
use crate::canonical;
use crate::extensions::{self, HostCall};
use crate::ports::executor::Usage;
use crate::ports::ledger::{Kind, Record};
use crate::record::{
    self, Attempt, Compares, Consultation, Input, Match, Outcome, Override, RunEnded, RunIntent, RunOpened,
    SampledInvocation, Samples, Status,
};

/// What a run's records say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    pub run: Name,
    /// How it was started.
    pub opened: RunOpened,
    /// When it was opened.
    pub opened_ms: i64,
    /// What was fed and holds, in order: consultations, and what the host did for the protocol.
    pub fed: Vec<FedEvent>,
    /// The comparisons by meaning that asked an executor.
    pub questions: Vec<Match>,
    /// Consultations that came too late to be fed.
    pub late: Vec<Consultation>,
    /// What the attempts of each invocation without an answer say, by its id.
    pub failed: BTreeMap<Name, FailedAttempts>,
    /// The samples with an answer, of invocations without one, by the invocation's id.
    pub answered_samples: BTreeMap<Name, AnsweredSamples>,
    /// What follows from it, as recorded: kind and body.
    pub facts: Vec<(String, Map<String, Json>)>,
    /// When the outcome was recorded, if there is one.
    pub decided_ms: Option<i64>,
    /// Its last end that holds.
    pub ended: Option<RunEnded>,
    /// Whether it ended INCOMPLETE before and was taken up again.
    pub reopened: bool,
    /// People's decisions beside it, oldest first, with their times.
    pub overrides: Vec<(i64, Override)>,
    /// How many of these, the last ones, are not known to have their lines in the log.
    pub unlogged: usize,
    /// Calls made in all sessions, those under way at a crash included.
    pub calls: u32,
    /// The known cost of these calls.
    pub usage: Usage,
    /// What they count as against caps on tokens and money: where a call's usage is not known, what was reserved for it.
    pub charged: Amount,
    /// Time worked on it in all sessions.
    pub wall: Duration,
    /// When its last record was made, in milliseconds since the Unix epoch.
    last_ms: i64,
    /// The number of the next record.
    pub next: u64,
    /// What was erased of it.
    pub erased: Erased,
}

/// The attempts of samples with an answer, which is the last one, by the sample's number.
pub type AnsweredSamples = BTreeMap<u32, Vec<Attempt>>;

/// What was erased from a run; the hashes remain.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Erased {
    /// The first record without a body.
    pub first: Option<u64>,
    /// How many there are.
    pub records: u64,
    /// What is known of each invocation whose consultation was erased; its status is [`Status::Erased`].
    pub consultations: Vec<Consultation>,
}

/// Something that was fed to the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct FedEvent {
    pub stamped: TimedEvent,
    /// `None` of what the host did.
    pub consultation: Option<Consultation>,
}

/// Why records do not make a history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// There is no such run.
    #[error("run {0} does not exist")]
    Unknown(Name),
    /// The body of a record that is needed was erased.
    #[error("the body of record {run}/{n} was erased")]
    Erased { run: Name, n: u64 },
    /// A record is not as this version writes it.
    #[error("record {run}/{n} cannot be read: {what}")]
    Unreadable { run: Name, n: u64, what: &'static str },
}

/// The records that a protocol asks for.
const FACTS: [Kind; 4] = [Kind::Rule, Kind::LockCheck, Kind::Violation, Kind::Outcome];

/// A history under construction.
struct Fold {
    history: History,
    open_invocations: BTreeMap<Name, OpenInvocation>,
    /// The comparisons that have not ended, by candidate.
    open_comparisons: BTreeMap<Name, Compares>,
    has_amount_caps: bool,
    session: u32,
    session_ms: i64,
}

impl History {
    /// Folds all records of a run.
    ///
    /// # Errors
    /// If the run has no records, a needed body was erased, or a record is malformed.
    pub fn from_records(run: &Name, records: Vec<Record>) -> Result<History, HistoryError> {
        let history = History::from_remaining_records(run, records)?;
        history.ensure_not_erased()?;
        Ok(history)
    }

    /// Refuses where something was erased.
    ///
    /// # Errors
    /// [`HistoryError::Erased`].
    pub fn ensure_not_erased(&self) -> Result<(), HistoryError> {
        match self.erased.first {
            Some(n) => Err(HistoryError::Erased { run: self.run.clone(), n }),
            None => Ok(()),
        }
    }

    /// Folds what is left of a run's records: enough to show what it came to, and not to derive that again. Calls and
    /// times are those that are still known of.
    ///
    /// # Errors
    /// If the run has no records, the body of the first was erased, or a record is malformed.
    pub fn from_remaining_records(run: &Name, records: Vec<Record>) -> Result<History, HistoryError> {
        let mut records = records.into_iter();
        let first = records.next().ok_or_else(|| HistoryError::Unknown(run.clone()))?;
        let unreadable = |n, what| HistoryError::Unreadable { run: run.clone(), n, what };
        if !first.is(Kind::RunOpened) {
            return Err(unreadable(first.n, "a run starts with run.opened"));
        }
        let opened = first.read().map_err(|_| unreadable(first.n, "it is not how a run is opened"))?;
        let opened: RunOpened =
            opened.ok_or_else(|| HistoryError::Erased { run: run.clone(), n: first.n })?;
        let mut fold = Fold {
            open_invocations: BTreeMap::new(),
            open_comparisons: BTreeMap::new(),
            has_amount_caps: opened.max_tokens.is_some() || opened.max_money.is_some(),
            session: 0,
            session_ms: first.at_ms,
            history: History {
                run: run.clone(),
                opened,
                opened_ms: first.at_ms,
                last_ms: first.at_ms,
                next: first.n + 1,
                ..History::default()
            },
        };
        for record in records {
            fold.history.next = record.n + 1;
            match record.data {
                Some(data) => {
                    fold.record(&record.kind, record.at_ms, data)
                        .map_err(|what| unreadable(record.n, what))?;
                }
                None => {
                    let history = &mut fold.history;
                    history.erased.first.get_or_insert(record.n);
                    history.erased.records += 1;
                    history.last_ms = record.at_ms.max(history.last_ms);
                }
            }
        }
        Ok(fold.finish())
    }

    /// Adds the record of its end, which was appended just now.
    pub fn end(&mut self, ended: RunEnded, at_ms: i64) {
        self.wall += Duration::from_millis(u64::try_from(at_ms - self.last_ms).unwrap_or(0));
        self.last_ms = at_ms;
        self.ended = Some(ended);
        self.next += 1;
    }

    /// All consultations: those that were fed, in order, then those that came too late, then what is known
    /// of those that were erased.
    pub fn consultations(&self) -> impl Iterator<Item = &Consultation> {
        let there = self.fed.iter().filter_map(|fed| fed.consultation.as_ref()).chain(&self.late);
        there.chain(&self.erased.consultations)
    }

    /// The outcome that holds, if there is one.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome_data().map(|data| record::read(data).unwrap_or_default())
    }

    /// Shares the answers of the run. A stand-in's answer is not the executor's, and one of several samples is not shared.
    pub fn share_with(&self, answers: &SharedAnswers) {
        for fed in &self.fed {
            let (Some(consultation), Event::Consulted { result: ConsultationResult::Answered(answer), .. }) =
                (&fed.consultation, &fed.stamped.event)
            else {
                continue;
            };
            if let (Some(prompt), None, None) =
                (&consultation.prompt_sha256, &consultation.stand_in_for, &consultation.samples)
            {
                let question = (consultation.executor.clone(), prompt.clone());
                answers.keep(question, answer, consultation.model.clone());
            }
        }
    }

    /// The recorded data of the outcome that holds.
    pub fn outcome_data(&self) -> Option<&Map<String, Json>> {
        self.facts.iter().rev().find(|(kind, _)| kind == Kind::Outcome.as_str()).map(|(_, data)| data)
    }

    /// The material of the deliberation: kind, name, and the hash of the stored text.
    pub fn inputs(&self) -> Vec<(PartKind, String, String)> {
        let read =
            |input: &Input| Some((PartKind::subject(&input.kind)?, input.name.clone(), input.sha256.clone()));
        self.opened.inputs.iter().filter_map(read).collect()
    }

    /// The first event, given the texts of the inputs.
    pub fn opening(&self, inputs: Vec<Part>) -> TimedEvent {
        let event = opened_event(self.run.clone(), &self.opened, inputs);
        TimedEvent { at_ms: self.opened_ms, event }
    }

    /// Everything that was fed, given the texts of the inputs.
    pub fn events(&self, inputs: Vec<Part>) -> impl Iterator<Item = TimedEvent> {
        std::iter::once(self.opening(inputs)).chain(self.fed.iter().map(|fed| fed.stamped.clone()))
    }

    /// Whether a consultation gave no output, so that it can be asked for again.
    fn unanswered_id(stamped: &TimedEvent) -> Option<&Name> {
        match &stamped.event {
            Event::Consulted { id, result: ConsultationResult::Absent(_) } => Some(id),
            _ => None,
        }
    }

    /// Drops the events that must be asked for again, so that a run without a decision can continue. These are, in the last
    /// step with a member without output, those members' consultations, all failed host calls, and every later event that
    /// depends on them, which a fresh `protocol` determines. Returns the dropped ids; empty when nothing is missing.
    pub fn reopen(&mut self, inputs: Vec<Part>, protocol: &mut dyn Protocol) -> Vec<Name> {
        let last = self.fed.iter().rev().find_map(|fed| Self::unanswered_id(&fed.stamped));
        let step = last.map(|last| step_of_id(last).to_owned());
        if step.is_none() && !self.fed.iter().any(|fed| is_host_failure(&fed.stamped)) {
            return Vec::new();
        }
        let mut taken = Vec::new();
        let mut wanted: BTreeSet<Name> = BTreeSet::new();
        wanted.extend(command_keys(protocol.advance(&self.opening(inputs))));
        for fed in std::mem::take(&mut self.fed) {
            let id = event_key(&fed.stamped);
            let absent =
                Self::unanswered_id(&fed.stamped).is_some_and(|id| Some(step_of_id(id)) == step.as_deref());
            let again = absent || is_host_failure(&fed.stamped);
            if again || !wanted.contains(&id) {
                taken.push(id);
            } else {
                wanted.extend(command_keys(protocol.advance(&fed.stamped)));
                self.fed.push(fed);
            }
        }
        self.late.clear();
        self.facts.clear();
        self.decided_ms = None;
        self.ended = None;
        taken
    }
}

/// The event that opens a run, the same before its lists are recorded and after.
pub(crate) fn opened_event(run: Name, opened: &RunOpened, inputs: Vec<Part>) -> Event {
    let normal =
        |items: &Option<Vec<Json>>| items.iter().flatten().cloned().map(canonical::normalize).collect();
    Event::Opened { run, inputs, priors: normal(&opened.priors), overlays: normal(&opened.overlays) }
}

/// The event of a record, the same before it is recorded and after; `None` if the record feeds no event.
pub(crate) fn event_from_record(kind: &str, data: &Map<String, Json>) -> Option<Event> {
    match kind == Kind::Consultation.as_str() {
        true => record::read::<Consultation>(data).ok()?.event(),
        false => extensions::to_event(kind, data),
    }
}

/// Whether a host call failed.
fn is_host_failure(stamped: &TimedEvent) -> bool {
    match &stamped.event {
        Event::Gathered { result, .. } => result.is_err(),
        Event::Matched { result, .. } => result.is_err(),
        Event::RuleApplied { result, .. } => result.is_err(),
        Event::Opened { .. } | Event::Consulted { .. } => false,
    }
}

/// The keys of what commands ask for.
fn command_keys(commands: Vec<Command>) -> impl Iterator<Item = Name> {
    commands.into_iter().filter_map(|command| match command {
        Command::Invoke(invoke) => Some(invoke.id),
        command => HostCall::from_command(command).map(|host_call| host_call.key()),
    })
}

impl Fold {
    /// Counts the invocations and comparisons that have not ended.
    fn finish(mut self) -> History {
        if self.history.erased.records > 0 {
            self.history.erased.consultations =
                self.open_invocations.keys().map(erased_consultation).collect();
        }
        for begun in std::mem::take(&mut self.open_invocations).into_values() {
            self.count_unfinished(begun);
        }
        for begun in std::mem::take(&mut self.open_comparisons).into_values() {
            self.count_open_comparison(&begun);
        }
        self.add_session_time();
        self.history
    }

    /// Adds the time from the begin of the session to its last record.
    fn add_session_time(&mut self) {
        let worked = self.history.last_ms - self.session_ms;
        self.history.wall += Duration::from_millis(u64::try_from(worked).unwrap_or(0));
    }

    fn record(&mut self, kind: &str, at_ms: i64, data: Map<String, Json>) -> Result<(), &'static str> {
        if kind == Kind::RunIntent.as_str() {
            self.intent(at_ms, record::read(&data).map_err(|_| "an intent names invocations")?);
        } else if kind == Kind::Attempt.as_str() {
            let attempt = record::read::<Attempt>(&data).ok();
            let attempt = attempt.filter(|attempt| !attempt.invocation.is_empty());
            let attempt = attempt.ok_or("an attempt names its invocation")?;
            let begun = self.open_invocations.entry(attempt.invocation.clone()).or_default();
            begun.attempts += 1;
            begun.failed.add(&attempt);
            let usage = attempt.spent.clone().unwrap_or_default().usage();
            begun.usage.add(usage);
            let reserved = begun.reserved.remove(&attempt.sample.unwrap_or(1)).unwrap_or_default();
            begun.charged.add(Amount::settled(reserved, &usage));
            if let Some(sample) = attempt.sample {
                let (invocation, is_answer) = (attempt.invocation.clone(), attempt.is_answer());
                let attempts = begun.samples_under_way.entry(sample).or_default();
                attempts.push(attempt);
                if is_answer {
                    begun.answered_samples += 1;
                    let answered = self.history.answered_samples.entry(invocation).or_default();
                    answered.insert(sample, std::mem::take(attempts));
                }
            }
        } else if kind == Kind::Consultation.as_str() {
            const UNREADABLE: &str = "a consultation has invocation, status and answer";
            let ended: Consultation = record::read(&data).map_err(|_| UNREADABLE)?;
            let open_invocation = self.open_invocations.remove(&ended.invocation);
            let failed = open_invocation.as_ref().filter(|_| ended.answer.is_none());
            match failed.map(|begun| begun.failed.clone()) {
                Some(failed) => drop(self.history.failed.insert(ended.invocation.clone(), failed)),
                None => drop(self.history.failed.remove(&ended.invocation)),
            }
            // Samples that all answered and contradict each other are asked again.
            let are_complete = |samples: &Samples| samples.answered == samples.asked;
            if ended.answer.is_some() || ended.samples.as_ref().is_some_and(are_complete) {
                self.history.answered_samples.remove(&ended.invocation);
            }
            let calls = ended.spent.calls.unwrap_or(0);
            // No call was left this time: those in flight when an earlier process died still count.
            match open_invocation {
                // Where amounts are capped, no call is under way before something is reserved for it. A resume may have
                // capped them first: what it began itself, and ended without a call, it did not call.
                Some(before)
                    if calls == 0
                        && !before.is_under_way()
                        && (self.has_amount_caps || before.session == self.session) => {}
                Some(before) if calls == 0 => self.count_unfinished(before),
                Some(before) => self.history.charged.add(before.charged()),
                None => self.history.charged.add(Amount::settled(Amount::default(), &ended.spent.usage())),
            }
            self.add_calls(calls);
            self.history.usage.add(ended.spent.usage());
            if ended.status == Status::Late {
                self.history.late.push(ended);
            } else {
                let event = ended.event().ok_or(UNREADABLE)?;
                self.history
                    .fed
                    .push(FedEvent { stamped: TimedEvent { at_ms, event }, consultation: Some(ended) });
            }
        } else if let Some(event) = extensions::to_event(kind, &data) {
            if let Event::Matched { candidate, .. } = &event {
                self.count_comparison(candidate, &data);
            }
            self.history.fed.push(FedEvent { stamped: TimedEvent { at_ms, event }, consultation: None });
        } else if FACTS.iter().any(|fact| fact.as_str() == kind) {
            if kind == Kind::Outcome.as_str() {
                self.history.decided_ms = Some(at_ms);
            }
            self.history.facts.push((kind.to_owned(), data));
        } else if kind == Kind::RunEnded.as_str() {
            self.history.ended = Some(record::read(&data).map_err(|_| "its data is not the end of a run")?);
            self.history.unlogged = 0;
            if !self.history.overrides.is_empty() {
                return Ok(());
            }
        } else if kind == Kind::Override.as_str() {
            // A person's decision comes at any later time; it is not work on the run, nor is what follows from it.
            let decision: Override = record::read(&data).map_err(|_| "its data is not a decision")?;
            self.history.unlogged = if decision.is_unlogged() { self.history.unlogged + 1 } else { 0 };
            self.history.overrides.push((at_ms, decision));
            return Ok(());
        } else if kind == Kind::Keyring.as_str() {
            // Neither is a key that came later.
            return Ok(());
        }
        self.history.last_ms = at_ms.max(self.history.last_ms);
        Ok(())
    }

    fn intent(&mut self, at_ms: i64, intent: RunIntent) {
        if intent.resumes {
            self.add_session_time();
            self.session += 1;
            self.session_ms = at_ms;
            self.history.last_ms = at_ms;
        }
        if !intent.supersedes.is_empty() {
            self.history.fed.retain(|fed| !intent.supersedes.contains(&event_key(&fed.stamped)));
            self.history.facts.clear();
            self.history.decided_ms = None;
            self.history.ended = None;
            self.history.reopened = true;
        }
        for reserved in &intent.reserved {
            let open = self.open_invocations.entry(reserved.invocation.clone()).or_default();
            open.reserved.insert(reserved.sample.unwrap_or(1), reserved.most);
        }
        for begun in intent.compares {
            // Begun again without having ended: its requests may have been paid for.
            if let Some(before) = self.open_comparisons.insert(begun.candidate.clone(), begun) {
                self.count_open_comparison(&before);
            }
        }
        for id in intent.invocations {
            // Asked for again without having ended: what was under way then may have been paid for.
            let begun = OpenInvocation { session: self.session, ..OpenInvocation::default() };
            if let Some(before) = self.open_invocations.insert(id, begun) {
                self.count_unfinished(before);
            }
        }
        for SampledInvocation { invocation, samples } in intent.samples {
            self.open_invocations.entry(invocation).or_default().samples = Some(samples);
        }
    }

    /// Counts what a comparison took that ended; one that was dropped on its way counts with all that was reserved.
    fn count_comparison(&mut self, candidate: &Name, data: &Map<String, Json>) {
        let begun = self.open_comparisons.remove(candidate);
        let (most_calls, reserved) = begun.map_or_else(Default::default, |begun| (begun.calls, begun.most));
        let compared: Match = record::read(data).unwrap_or_default();
        let spent = compared.spent.clone().unwrap_or_default();
        let usage = spent.usage();
        // Questions count in the calls of a run, and requests of an embedder do not. A comparison that was dropped on its way
        // has no way.
        let calls = match compared.way {
            Some(_) => spent.calls.unwrap_or_default(),
            None => most_calls,
        };
        self.add_calls(calls);
        // Where nothing was capped, what was spent counts against a cap that is set later.
        let settled = || Amount::settled(reserved, &usage);
        self.history.charged.add(compared.charged.unwrap_or_else(settled));
        self.history.usage.add(usage);
        self.history.questions.extend(compared.way.is_some().then_some(compared));
    }

    /// Counts a comparison that a process left without its end.
    fn count_open_comparison(&mut self, begun: &Compares) {
        self.add_calls(begun.calls);
        self.history.charged.add(begun.most);
    }

    fn add_calls(&mut self, calls: u64) {
        self.history.calls = self.history.calls.saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
    }

    /// Counts an invocation that a process left without a consultation: its attempts, and those that were under way, one for
    /// each sample without an answer.
    fn count_unfinished(&mut self, begun: OpenInvocation) {
        let under_way = begun.samples.map_or(1, |samples| samples.saturating_sub(begun.answered_samples));
        self.history.calls = self.history.calls.saturating_add(begun.attempts.saturating_add(under_way));
        self.history.usage.add(begun.usage);
        self.history.charged.add(begun.charged());
    }
}

/// The consultation that an invocation's id implies, if its body was erased.
fn erased_consultation(id: &Name) -> Consultation {
    Consultation {
        invocation: id.clone(),
        step: step_of_id(id).into(),
        member: id.split_once('/').map_or_else(|| id.clone(), |(_, member)| member.into()),
        status: Status::Erased,
        ..Consultation::default()
    }
}

/// The key that identifies an event within its run.
fn event_key(stamped: &TimedEvent) -> Name {
    answered_key(&stamped.event).unwrap_or_default()
}

/// The key of a command that an event answers.
pub(crate) fn answered_key(event: &Event) -> Option<Name> {
    match event {
        Event::Opened { .. } => None,
        Event::Consulted { id, .. } => Some(id.clone()),
        Event::Gathered { id, .. } => Some(format!("gather {id}").into()),
        Event::Matched { candidate, .. } => Some(format!("match {candidate}").into()),
        Event::RuleApplied { ticket, .. } => Some(format!("apply {ticket}").into()),
    }
}

/// The step of an invocation: the part of its id before the slash.
fn step_of_id(id: &str) -> &str {
    id.split_once('/').map_or(id, |(step, _)| step)
}

/// The status word of the consultation of an invocation, for views.
pub fn status_word(result: &ConsultationResult) -> &'static str {
    match result {
        ConsultationResult::Answered(_) => "answered",
        ConsultationResult::Absent(why) => AbsenceReason::status(*why),
    }
}

/// The recorded attempts of an invocation that has no consultation yet.
#[derive(Default)]
struct OpenInvocation {
    attempts: u32,
    usage: Usage,
    charged: Amount,
    /// For the calls under way, by sample.
    reserved: BTreeMap<u32, Amount>,
    /// How many samples were about to be asked, where it has several.
    samples: Option<u32>,
    answered_samples: u32,
    /// The attempts of samples without an answer.
    samples_under_way: BTreeMap<u32, Vec<Attempt>>,
    /// The session that began it.
    session: u32,
    failed: FailedAttempts,
}

impl OpenInvocation {
    fn is_under_way(&self) -> bool {
        self.attempts > 0 || !self.reserved.is_empty()
    }

    /// The calls of the invocation, including one that was dropped before its end.
    fn charged(&self) -> Amount {
        let mut charged = self.charged;
        self.reserved.values().for_each(|reserved| charged.add(*reserved));
        charged
    }
}

/// Where a replay differs from what was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The kind of record.
    pub kind: String,
    /// What was recorded; `None` where the replay says more.
    pub recorded: Option<Json>,
    /// What follows now; `None` where it says less.
    pub replayed: Option<Json>,
}

/// What a replay gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayResult {
    /// The facts that follow, in order.
    pub facts: Vec<(String, Map<String, Json>)>,
    /// Whether the protocol finished.
    pub finished: bool,
    /// Where they differ from the recorded ones; empty when they are identical.
    pub differences: Vec<Difference>,
}

/// Feeds a run's events to a fresh protocol and compares what it concludes with what was recorded, as canonical JSON.
pub fn replay(history: &History, inputs: Vec<Part>, protocol: &mut dyn Protocol) -> ReplayResult {
    let mut facts = Vec::new();
    let mut finished = false;
    for stamped in history.events(inputs) {
        for command in protocol.advance(&stamped) {
            match command {
                Command::Record(fact) => {
                    facts.push((fact.kind.as_str().to_owned(), crate::attempts::object(fact.data)))
                }
                Command::Finish => finished = true,
                Command::Gather(_)
                | Command::Invoke(_)
                | Command::Cancel(_)
                | Command::SemanticMatch(_)
                | Command::ApplyRule(_) => {}
            }
        }
    }
    ReplayResult { differences: differences(&history.facts, &facts), facts, finished }
}

type Facts = [(String, Map<String, Json>)];

fn differences(recorded: &Facts, replayed: &Facts) -> Vec<Difference> {
    let length = recorded.len().max(replayed.len());
    let differ = |at: usize| {
        let (a, b) = (recorded.get(at), replayed.get(at));
        if let (Some(a), Some(b)) = (a, b)
            && a.0 == b.0
            && canonical::object(&a.1) == canonical::object(&b.1)
        {
            return None;
        }
        let kind = a.or(b).map(|(kind, _)| kind.clone()).unwrap_or_default();
        let body =
            |one: Option<&(String, Map<String, Json>)>| one.map(|(_, data)| Json::Object(data.clone()));
        Some(Difference { kind, recorded: body(a), replayed: body(b) })
    };
    (0..length).filter_map(differ).collect()
}
