//! One process's work on a run: what is under way, what happens, and what follows from it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, Aborted};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use quorate_protocol::{AbsenceReason, Command, Fact, FactKind, Invoke, Json, Name, TimedEvent, event};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{Concluded, Convening, Error};
use crate::budget::Calls;
use crate::call::{self, Asked, Made, Recorder, Table};
use crate::consultation::{self, Ended, Spent, object};
use crate::entropy;
use crate::history;
use crate::hosted::{Done, Errand, Hosted};
use crate::ports::ledger::{self, Body, Durability, Entry, Kind};
use crate::prompt::Layout;
use crate::seat::Seat;

/// What a `run.intent` says besides whom it is about to ask.
#[derive(Debug, Default)]
pub(super) struct Intent {
    pub(super) resumes: bool,
    pub(super) supersedes: Vec<Name>,
}

/// An invocation under way.
struct UnderWay {
    invoke: Invoke,
    abort: AbortHandle,
    made: Arc<Made>,
}

impl UnderWay {
    /// Ends it, and says what it cost as far as that is known.
    fn drop_it(self) -> (Invoke, Spent) {
        self.abort.abort();
        let spent = self.spent();
        (self.invoke, spent)
    }

    fn spent(&self) -> Spent {
        self.made.spent()
    }
}

/// How long the ledger may take once the run's time is spent: what follows from that is still to be recorded.
const LEDGER_GRACE: Duration = Duration::from_secs(10);

/// How much is recorded in one append.
const AT_ONCE: usize = 1_024;

/// Something that ended.
enum Happened {
    Asked(Invoke, Box<Asked>),
    Done(Done),
}

/// One process's work on a run.
pub(super) struct Session {
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
    pub(super) outcome: Option<Map<String, Json>>,
    finished: bool,
}

impl Session {
    pub(super) fn new(convening: Convening, next: u64, calls: u32, wall: Duration) -> Self {
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

    pub(super) async fn run(mut self) -> Result<Concluded, Error> {
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
                let ended = Ended::without_answer(AbsenceReason::RunOverBudget, spent);
                happened.push(Happened::Asked(invoke, Box::new(Asked { attempt: None, ended })));
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
                    happened.push(Happened::Asked(under_way.invoke, asked));
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
        errands.map(|errand| Happened::Done(errand.failed(event::TIME_EXHAUSTED))).collect()
    }

    /// Feeds what happened, and does what follows from it.
    async fn take(&mut self, happened: Vec<Happened>) -> Result<(), Error> {
        let at_ms = self.convening.clock.now_ms();
        let (mut entries, mut commands) = (Vec::new(), Vec::new());
        let mut cancelled: BTreeSet<Name> = BTreeSet::new();
        for one in happened {
            let entry = match one {
                Happened::Done(Done { kind, data }) => Entry { kind, at_ms, data },
                Happened::Asked(invoke, asked) => {
                    let late = cancelled.contains(&invoke.id);
                    entries.extend(asked.attempt.iter().map(|attempt| attempt.entry(at_ms)));
                    self.record(&invoke, &asked, late, at_ms)?
                }
            };
            // X10: what is fed is read from the record, as it will be on resume and on replay.
            let event = history::event_of(entry.kind.as_str(), &entry.data);
            entries.push(entry);
            let Some(event) = event else { continue };
            let follow = self.convening.protocol.advance(&TimedEvent { at_ms, event });
            cancelled.extend(follow.iter().filter_map(|command| match command {
                Command::Cancel(id) => Some(id.clone()),
                _ => None,
            }));
            commands.extend(follow);
        }
        self.follow(at_ms, entries, Vec::new(), commands, Intent::default()).await
    }

    /// The record of an invocation that ended; one that was taken back meanwhile is late.
    fn record(&self, invoke: &Invoke, asked: &Asked, late: bool, at_ms: i64) -> Result<Entry, Error> {
        let seat = self.seat(&invoke.member)?;
        let about = seat.executor.about();
        let mut entry = asked.ended.entry(invoke, &seat.executor_name, &about, seat.weight, at_ms);
        entry.data.extend(seat.marks.clone());
        if late {
            entry.data.insert("status".into(), json!(consultation::LATE));
        }
        let status = if late { consultation::LATE } else { asked.ended.status() };
        self.convening.observer.ended(&invoke.id, status, asked.ended.spent.took);
        Ok(entry)
    }

    /// Appends the entries with whatever follows from them, as durable as the commands need it, then performs.
    pub(super) async fn follow(
        &mut self,
        at_ms: i64,
        mut entries: Vec<Entry>,
        bodies: Vec<Body>,
        commands: Vec<Command>,
        intent: Intent,
    ) -> Result<(), Error> {
        let durability = if commands.is_empty() { Durability::Written } else { Durability::Synced };
        let (mut invokes, mut errands) = (Vec::<Invoke>::new(), Vec::new());
        let mut taken_back: Vec<UnderWay> = Vec::new();
        for command in commands {
            match command {
                Command::Invoke(invoke) => invokes.push(invoke),
                Command::Cancel(id) => {
                    // Who was to be asked in the same step is not asked at all.
                    invokes.retain(|invoke| invoke.id != id);
                    if let Some(under_way) = self.under_way.remove(&id) {
                        // Recorded with the decision that it follows from: a process that dies has both or neither.
                        entries.push(self.cancelled(&under_way, at_ms)?);
                        taken_back.push(under_way);
                    }
                }
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
        self.append(entries, bodies, durability).await?;
        if opens || intent.resumes {
            self.convening.observer.opened(&self.convening.run);
        }
        for under_way in taken_back {
            let (invoke, _) = under_way.drop_it();
            self.convening.observer.ended(&invoke.id, AbsenceReason::Cancelled.status(), Duration::ZERO);
        }
        for errand in errands {
            self.send(errand);
        }
        for invoke in granted {
            self.ask(invoke)?;
        }
        Ok(())
    }

    /// Appends. Once the run's time is spent, a ledger that says nothing is not waited for much longer.
    async fn append(
        &mut self,
        entries: Vec<Entry>,
        bodies: Vec<Body>,
        durability: Durability,
    ) -> Result<(), Error> {
        let appended = self.recorder.append(entries, bodies, durability);
        let Some(wall) = self.wall else { return Ok(appended.await?) };
        match tokio::time::timeout_at(wall.max(Instant::now()) + LEDGER_GRACE, appended).await {
            Ok(appended) => Ok(appended?),
            Err(_) => {
                let (run, grace) = (self.convening.run.clone(), LEDGER_GRACE.as_secs());
                let what = format!(
                    "cannot tell whether the ledger took the last records of run {run}: its time (`budget.wall`) is \
                     spent, and the ledger did not answer within {grace} s after that"
                );
                Err(ledger::Error::InDoubt { run, what }.into())
            }
        }
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
        let made: Arc<Made> = Arc::default();
        let call =
            call::call(self.table.clone(), self.recorder.clone(), invoke.clone(), seat, Arc::clone(&made));
        let (abort, registration) = AbortHandle::new_pair();
        self.calls.push(Abortable::new(Box::pin(call), registration));
        self.under_way.insert(invoke.id.clone(), UnderWay { invoke, abort, made });
        Ok(())
    }

    /// The record of a question that is taken back.
    fn cancelled(&self, under_way: &UnderWay, at_ms: i64) -> Result<Entry, Error> {
        let seat = self.seat(&under_way.invoke.member)?;
        let ended = Ended::without_answer(AbsenceReason::Cancelled, under_way.spent());
        let (name, about) = (&seat.executor_name, seat.executor.about());
        let mut entry = ended.entry(&under_way.invoke, name, &about, seat.weight, at_ms);
        entry.data.extend(seat.marks.clone());
        Ok(entry)
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
