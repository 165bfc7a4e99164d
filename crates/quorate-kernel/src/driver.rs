//! The driver: runs a protocol against the world (SEMANTICS X7). It feeds events, appends what follows, syncs when,
//! and only when, commands follow, and then performs them.

mod call;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, Aborted};
use futures::{FutureExt as _, StreamExt as _};
use futures::stream::FuturesUnordered;
use quorate_protocol::{Absent, Command, Event, Fact, FactKind, Invoke, Json, Name, Part, Protocol, Stamped};
use serde_json::{Map, json};
use tokio::time::Instant;

use crate::budget::{Calls, Caps};
use crate::clock::Clock;
use crate::consultation::{self, Ended, Spent, object};
use crate::entropy;
use crate::history::History;
use crate::hosted::{Done, Errand, Hosted};
use crate::observe::Observer;
use crate::ports::ledger::{self, Body, Durability, Entry, Kind, Ledger};
use crate::prompt::Layout;
use crate::redact::Redactor;
use crate::replay::canonical;
use crate::seat::Seat;
use call::{Asked, Recorder, Table};

/// A deliberation that is about to be held.
pub struct Convening {
    /// The run.
    pub run: Name,
    /// Its seed, from which the nonce of its prompts follows.
    pub seed: [u8; 32],
    /// Who is asked next and what follows.
    pub protocol: Box<dyn Protocol>,
    /// Who sits where, by member id.
    pub seats: BTreeMap<Name, Seat>,
    /// What it may cost.
    pub caps: Caps,
    /// What must not be recorded.
    pub redactor: Redactor,
    /// What only the host can do.
    pub hosted: Hosted,
    /// Where it is recorded.
    pub ledger: Arc<dyn Ledger>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
}

/// How a run starts.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The body of `run.opened`.
    pub data: Map<String, Json>,
    /// What is deliberated on, redacted.
    pub inputs: Vec<Part>,
    /// Earlier verdicts, newest first.
    pub priors: Vec<Json>,
    /// The texts of the overlays that are active, the weightiest first.
    pub overlays: Vec<Json>,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Concluded {
    /// The body of the outcome.
    pub outcome: Map<String, Json>,
    /// The number of the run's next record.
    pub next: u64,
}

/// Why a run stopped without an outcome. What was recorded stays, and the run can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    /// What follows from the recorded events is not what was recorded.
    #[error("the recorded {kind} of run {run} does not follow from its recorded events")]
    Diverged {
        /// The run.
        run: Name,
        /// The kind of record.
        kind: String,
    },
    /// The protocol waits for nobody and does not finish.
    #[error("run {0} waits for nobody and does not finish")]
    Stalled(Name),
    /// The protocol asked somebody who has no seat.
    #[error("run {run} asks `{member}`, who has no seat")]
    NoSeat {
        /// The run.
        run: Name,
        /// Who was asked.
        member: Name,
    },
}

impl Convening {
    /// Opens the run and drives it to its end.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn open(mut self, opening: Opening) -> Result<Concluded, Error> {
        let at_ms = self.clock.now_ms();
        let bodies = opening.inputs.iter().map(body).collect();
        let event = Event::Opened {
            run: self.run.clone(),
            inputs: opening.inputs,
            priors: opening.priors,
            overlays: opening.overlays,
        };
        let commands = self.protocol.advance(&Stamped { at_ms, event });
        let entry = Entry { kind: Kind::RunOpened, at_ms, data: opening.data };
        let mut session = Session::new(self, 0, 0, Duration::ZERO);
        session.follow(at_ms, vec![entry], bodies, commands, Intent::default()).await?;
        session.run().await
    }

    /// Goes on with a run: feeds what is recorded and asks only for what is not. `superseded` is what
    /// [`History::reopen`] took back.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::Diverged`] when the recorded facts do not follow from the recorded events.
    pub async fn resume(
        mut self,
        history: &History,
        inputs: Vec<Part>,
        superseded: Vec<Name>,
    ) -> Result<Concluded, Error> {
        let at_ms = self.clock.now_ms();
        let mut waiting: BTreeMap<Name, Command> = BTreeMap::new();
        let mut facts: VecDeque<Fact> = VecDeque::new();
        let mut finished = false;
        for stamped in history.events(inputs) {
            if let Some(key) = answers(&stamped.event) {
                waiting.remove(&key);
            }
            for command in self.protocol.advance(&stamped) {
                match command {
                    Command::Cancel(id) => drop(waiting.remove(&id)),
                    Command::Record(fact) => facts.push_back(fact),
                    Command::Finish => finished = true,
                    command => drop(waiting.insert(key_of(&command), command)),
                }
            }
        }
        self.same_facts(history, &mut facts)?;
        let mut commands: Vec<Command> = waiting.into_values().collect();
        commands.extend(facts.into_iter().map(Command::Record));
        commands.extend(finished.then_some(Command::Finish));
        let intent = Intent { resumes: true, supersedes: superseded };
        let mut session = Session::new(self, history.next, history.calls, history.wall);
        session.outcome = history.outcome().cloned();
        session.follow(at_ms, Vec::new(), Vec::new(), commands, intent).await?;
        session.run().await
    }

    /// Takes off the facts that are recorded already and holds them against the record.
    fn same_facts(&self, history: &History, facts: &mut VecDeque<Fact>) -> Result<(), Error> {
        for (kind, data) in &history.facts {
            let same = facts.pop_front().filter(|fact| {
                fact.kind.as_str() == kind && canonical(&object(fact.data.clone())) == canonical(data)
            });
            if same.is_none() {
                return Err(Error::Diverged { run: self.run.clone(), kind: kind.clone() });
            }
        }
        Ok(())
    }
}

/// The key of a command that an event answers.
pub(crate) fn answers(event: &Event) -> Option<Name> {
    match event {
        Event::Opened { .. } => None,
        Event::Consulted { id, .. } => Some(id.clone()),
        Event::Gathered { id, .. } => Some(format!("gather {id}").into()),
        Event::Matched { candidate, .. } => Some(format!("match {candidate}").into()),
        Event::Ruled { ticket, .. } => Some(format!("apply {ticket}").into()),
    }
}

fn key_of(command: &Command) -> Name {
    match command {
        Command::Invoke(invoke) => invoke.id.clone(),
        command => Errand::of(command.clone()).map_or_else(|| "".into(), |errand| errand.key()),
    }
}

fn body(part: &Part) -> Body {
    Body { sha256: entropy::sha256_hex(part.text.as_bytes()), text: part.text.clone() }
}

/// What a `run.intent` says besides whom it is about to ask.
#[derive(Debug, Default)]
struct Intent {
    resumes: bool,
    supersedes: Vec<Name>,
}

/// An invocation under way.
struct UnderWay {
    invoke: Invoke,
    abort: AbortHandle,
    /// The calls made so far; at least one counts, since it was reserved.
    made: Arc<AtomicU32>,
}

impl UnderWay {
    /// Ends it, and says what it cost as far as that is known.
    fn drop_it(self) -> (Invoke, Spent) {
        self.abort.abort();
        let calls = self.made.load(Ordering::Relaxed).max(1);
        (self.invoke, Spent { calls, ..Spent::default() })
    }
}

/// How much is recorded in one append.
const AT_ONCE: usize = 1_024;

/// Something that ended.
enum Happened {
    Asked(Invoke, Asked),
    Done(Done),
}

/// One process's work on a run.
struct Session {
    convening: Convening,
    recorder: Arc<Recorder>,
    table: Arc<Table>,
    wall: Option<Instant>,
    under_way: BTreeMap<Name, UnderWay>,
    /// What the host is doing for the protocol.
    errands: BTreeMap<Name, Errand>,
    hosted: Arc<Hosted>,
    calls: FuturesUnordered<Abortable<call::Future>>,
    /// Invocations that nobody is asked for any more.
    denied: VecDeque<(Invoke, Spent)>,
    outcome: Option<Map<String, Json>>,
    finished: bool,
}

impl Session {
    fn new(convening: Convening, next: u64, calls: u32, wall: Duration) -> Self {
        let table = Table {
            run: convening.run.clone(),
            layout: Layout { nonce: entropy::nonce(&convening.seed) },
            calls: Calls::new(convening.caps.calls, calls),
            redactor: convening.redactor.clone(),
            observer: convening.observer.clone(),
            clock: convening.clock.clone(),
        };
        Session {
            recorder: Arc::new(Recorder::new(convening.ledger.clone(), convening.run.clone(), next)),
            table: Arc::new(table),
            wall: convening.caps.wall.map(|cap| Instant::now() + cap.saturating_sub(wall)),
            under_way: BTreeMap::new(),
            errands: BTreeMap::new(),
            hosted: Arc::new(convening.hosted.clone()),
            calls: FuturesUnordered::new(),
            denied: VecDeque::new(),
            outcome: None,
            finished: false,
            convening,
        }
    }

    async fn run(mut self) -> Result<Concluded, Error> {
        while !self.finished {
            let happened = self.next().await?;
            self.take(happened).await?;
        }
        let outcome = self.outcome.ok_or_else(|| Error::Stalled(self.convening.run.clone()))?;
        Ok(Concluded { outcome, next: self.recorder.next().await })
    }

    /// What happened next, with everything that has happened by then: one append is enough for it all.
    async fn next(&mut self) -> Result<Vec<Happened>, Error> {
        let mut happened = Vec::new();
        while happened.is_empty() {
            while let Some((invoke, spent)) = self.denied.pop_front() {
                let ended = Ended::without_answer(Absent::RunOverBudget, spent);
                happened.push(Happened::Asked(invoke, Asked { attempt: None, ended }));
            }
            if !happened.is_empty() {
                break;
            }
            if self.calls.is_empty() {
                return Err(Error::Stalled(self.convening.run.clone()));
            }
            let wall = self.wall;
            let over = async move {
                match wall {
                    Some(wall) => tokio::time::sleep_until(wall).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                ended = self.calls.next() => self.ended(ended, &mut happened)?,
                () = over => happened.extend(self.give_up()),
            }
            while happened.len() < AT_ONCE
                && let Some(ended @ Some(_)) = self.calls.next().now_or_never()
            {
                self.ended(ended, &mut happened)?;
            }
        }
        Ok(happened)
    }

    /// A call or an errand ended, if it was not dropped.
    fn ended(
        &mut self,
        ended: Option<Result<Result<call::Ended, ledger::Error>, Aborted>>,
        happened: &mut Vec<Happened>,
    ) -> Result<(), Error> {
        let Some(Ok(ended)) = ended else { return Ok(()) };
        match ended? {
            call::Ended::Call(id, asked) => {
                if let Some(under_way) = self.under_way.remove(&id) {
                    happened.push(Happened::Asked(under_way.invoke, *asked));
                }
            }
            call::Ended::Errand(key, done) => {
                if self.errands.remove(&key).is_some() {
                    happened.push(Happened::Done(*done));
                }
            }
        }
        Ok(())
    }

    /// The wall budget is spent: everything under way is dropped, which ends it.
    fn give_up(&mut self) -> Vec<Happened> {
        self.denied.extend(std::mem::take(&mut self.under_way).into_values().map(UnderWay::drop_it));
        self.calls.clear();
        let errands = std::mem::take(&mut self.errands).into_values();
        errands.map(|errand| Happened::Done(errand.failed("the run's time is spent"))).collect()
    }

    /// Feeds what happened, and does what follows from it.
    async fn take(&mut self, happened: Vec<Happened>) -> Result<(), Error> {
        let at_ms = self.convening.clock.now_ms();
        let (mut entries, mut commands) = (Vec::new(), Vec::new());
        let mut cancelled: BTreeSet<Name> = BTreeSet::new();
        for one in happened {
            let event = match one {
                Happened::Done(Done { event, kind, data }) => {
                    entries.push(Entry { kind, at_ms, data });
                    event
                }
                Happened::Asked(invoke, asked) => {
                    let late = cancelled.contains(&invoke.id);
                    self.record(&invoke, &asked, late, at_ms, &mut entries)?;
                    if late {
                        continue;
                    }
                    Event::Consulted { id: invoke.id, result: asked.ended.result }
                }
            };
            let follow = self.convening.protocol.advance(&Stamped { at_ms, event });
            cancelled.extend(follow.iter().filter_map(|command| match command {
                Command::Cancel(id) => Some(id.clone()),
                _ => None,
            }));
            commands.extend(follow);
        }
        self.follow(at_ms, entries, Vec::new(), commands, Intent::default()).await
    }

    /// The records of an invocation that ended; one that was taken back meanwhile is late.
    fn record(
        &self,
        invoke: &Invoke,
        asked: &Asked,
        late: bool,
        at_ms: i64,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let seat = self.seat(&invoke.member)?;
        let about = seat.executor.about();
        entries.extend(asked.attempt.iter().map(|attempt| attempt.entry(at_ms)));
        let mut entry = asked.ended.entry(invoke, &seat.executor_name, &about, seat.weight, at_ms);
        if late {
            entry.data.insert("status".into(), json!(consultation::LATE));
        }
        let status = if late { consultation::LATE } else { asked.ended.status() };
        self.convening.observer.ended(&invoke.id, status, asked.ended.spent.took);
        entries.push(entry);
        Ok(())
    }

    /// Appends the entries with whatever follows from them, as durable as the commands need it, then performs.
    async fn follow(
        &mut self,
        at_ms: i64,
        mut entries: Vec<Entry>,
        bodies: Vec<Body>,
        commands: Vec<Command>,
        intent: Intent,
    ) -> Result<(), Error> {
        let durability = if commands.is_empty() { Durability::Written } else { Durability::Synced };
        let (mut invokes, mut cancels, mut errands) = (Vec::new(), Vec::new(), Vec::new());
        for command in commands {
            match command {
                Command::Invoke(invoke) => invokes.push(invoke),
                Command::Cancel(id) => cancels.push(id),
                Command::Record(fact) => entries.push(self.fact(fact, at_ms)),
                Command::Finish => self.finished = true,
                command => errands.extend(Errand::of(command)),
            }
        }
        let granted = self.grant(invokes);
        if !granted.is_empty() || intent.resumes {
            entries.push(intent_entry(&granted, &intent, at_ms));
        }
        let opens = entries.first().is_some_and(|entry| entry.kind == Kind::RunOpened);
        self.recorder.append(entries, bodies, durability).await?;
        if opens || intent.resumes {
            self.convening.observer.opened(&self.convening.run);
        }
        for id in cancels {
            self.cancel(&id).await?;
        }
        for errand in errands {
            self.send(errand);
        }
        for invoke in granted {
            self.ask(invoke)?;
        }
        Ok(())
    }

    /// Sends the host on an errand.
    fn send(&mut self, errand: Errand) {
        let key = errand.key();
        let (run, redactor) = (self.convening.run.clone(), self.convening.redactor.clone());
        let done = self.hosted.clone().run(run, errand.clone(), redactor);
        let ends = key.clone();
        let errand_ends = async move { Ok(call::Ended::Errand(ends, Box::new(done.await))) };
        let (_, registration) = AbortHandle::new_pair();
        self.calls.push(Abortable::new(Box::pin(errand_ends), registration));
        self.errands.insert(key, errand);
    }

    fn fact(&mut self, fact: Fact, at_ms: i64) -> Entry {
        let data = object(fact.data);
        let kind = match fact.kind {
            FactKind::Rule => Kind::Rule,
            FactKind::LockCheck => Kind::LockCheck,
            FactKind::Violation => Kind::Violation,
            FactKind::Outcome => {
                self.outcome = Some(data.clone());
                Kind::Outcome
            }
        };
        Entry { kind, at_ms, data }
    }

    /// Reserves a call for each, as far as the budget goes.
    fn grant(&mut self, invokes: Vec<Invoke>) -> Vec<Invoke> {
        let in_time = self.wall.is_none_or(|wall| Instant::now() < wall);
        let mut granted = Vec::new();
        for invoke in invokes {
            if in_time && self.table.calls.reserve() {
                granted.push(invoke);
            } else {
                self.denied.push_back((invoke, Spent::default()));
            }
        }
        granted
    }

    fn ask(&mut self, invoke: Invoke) -> Result<(), Error> {
        let seat = self.seat(&invoke.member)?.clone();
        self.convening.observer.asked(&invoke.id, &invoke.member, &invoke.step);
        let made = Arc::default();
        let call =
            call::call(self.table.clone(), self.recorder.clone(), invoke.clone(), seat, Arc::clone(&made));
        let (abort, registration) = AbortHandle::new_pair();
        self.calls.push(Abortable::new(Box::pin(call), registration));
        self.under_way.insert(invoke.id.clone(), UnderWay { invoke, abort, made });
        Ok(())
    }

    async fn cancel(&mut self, id: &Name) -> Result<(), Error> {
        let Some(under_way) = self.under_way.remove(id) else { return Ok(()) };
        let (invoke, spent) = under_way.drop_it();
        let seat = self.seat(&invoke.member)?;
        let about = seat.executor.about();
        let ended = Ended::without_answer(Absent::Cancelled, spent);
        let entry =
            ended.entry(&invoke, &seat.executor_name, &about, seat.weight, self.convening.clock.now_ms());
        self.convening.observer.ended(id, ended.status(), Duration::ZERO);
        self.recorder.append(vec![entry], Vec::new(), Durability::Written).await?;
        Ok(())
    }

    fn seat(&self, member: &Name) -> Result<&Seat, Error> {
        let seat = self.convening.seats.get(member);
        seat.ok_or_else(|| Error::NoSeat { run: self.convening.run.clone(), member: member.clone() })
    }
}

fn intent_entry(granted: &[Invoke], intent: &Intent, at_ms: i64) -> Entry {
    let ids: Vec<&str> = granted.iter().map(|invoke| &*invoke.id).collect();
    let mut data = object(json!({"invocations": ids}));
    if intent.resumes {
        data.insert("resumes".into(), json!(true));
    }
    if !intent.supersedes.is_empty() {
        let ids: Vec<&str> = intent.supersedes.iter().map(|id| &**id).collect();
        data.insert("supersedes".into(), json!(ids));
    }
    Entry { kind: Kind::RunIntent, at_ms, data }
}
