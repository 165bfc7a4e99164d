//! The driver runs a protocol against the world, so that a resume asks nothing twice (X7). It feeds events, appends what
//! follows, syncs before commands and when a model's answer is recorded, and performs the commands.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, Aborted};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use quorate_protocol::{
    AbsenceReason, Command, ConsultationResult, Fact, FactKind, Invoke, Json, Name, Part, Protocol,
    TimedEvent, event,
};
use serde_json::Map;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::attempts::{Consultation, Cost, MemberConfig, object};
use crate::budget::{Amount, Budget, Caps};
use crate::call::{CallContext, CostTracker, FinishedCall, Recorder};
use crate::clock::Clock;
use crate::extensions::{self, Extensions, HostCall, HostCallResult};
use crate::history::{AnsweredSamples, History};
use crate::observer::{Observer, RunEvent};
use crate::ports::ledger::{Body, Durability, Entry, Kind, Ledger, LedgerError, Record};
use crate::prompt::Layout;
use crate::record::{self, RunIntent, RunOpened, SampledInvocation, Status};
use crate::redact::Redactor;
use crate::{canonical, entropy, history, samples};

/// The configuration of one run: protocol, members, limits and ports.
pub struct RunConfig {
    pub run: Name,
    /// The seed from which the prompts' nonce is derived.
    pub seed: [u8; 32],
    /// The state machine that decides who is asked next.
    pub protocol: Box<dyn Protocol>,
    /// Member configs by member id.
    pub members: BTreeMap<Name, MemberConfig>,
    /// Limits on calls, tokens and money.
    pub caps: Caps,
    /// How long the run may be worked on; `None` means no limit.
    pub wall: Option<Duration>,
    /// Removes secrets before anything is recorded.
    pub redactor: Redactor,
    /// Rules and gather strategies of the embedding program, and what compares meanings.
    pub extensions: Extensions,
    /// Where records are appended.
    pub ledger: Arc<dyn Ledger>,
    /// The source of recorded timestamps.
    pub clock: Arc<dyn Clock>,
    pub observer: Arc<dyn Observer>,
}

/// How a run starts.
#[derive(Debug, Clone)]
pub struct Opening {
    pub opened: RunOpened,
    /// What is deliberated on, redacted.
    pub inputs: Vec<Part>,
}

/// Why a run stopped without an outcome. What was recorded stays, and the run can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The facts derived from the recorded events differ from the recorded facts.
    #[error("replay mismatch: {kind} record of run {run}")]
    ReplayMismatch {
        run: Name,
        /// The kind of record.
        kind: String,
    },
    /// The run stalled: no pending invocations and no outcome.
    #[error("run {0} stalled: no pending invocations and no outcome")]
    Stalled(Name),
    /// The protocol asked a member without a config.
    #[error("no executor configured for member `{member}` of run {run}")]
    NoExecutor { run: Name, member: Name },
}

impl RunConfig {
    /// Opens the run and drives it to its end. Returns the run's records, as the ledger has them.
    ///
    /// # Errors
    /// See [`DriverError`].
    #[crate::boxed]
    pub async fn open(self, opening: Opening) -> Result<Vec<Record>, DriverError> {
        let span = self.span();
        self.open_in_span(opening).instrument(span).await
    }

    async fn open_in_span(mut self, opening: Opening) -> Result<Vec<Record>, DriverError> {
        tracing::info!("opened");
        let at_ms = self.clock.now_ms();
        let bodies = opening.inputs.iter().map(body).collect();
        let event = history::opened_event(self.run.clone(), &opening.opened, opening.inputs);
        let commands = self.protocol.advance(&TimedEvent { at_ms, event });
        let entry = Entry::of(&opening.opened, at_ms);
        let recorder = Arc::new(Recorder::keeping(self.ledger.clone(), self.run.clone()));
        let mut session = RunLoop::new(self, recorder.clone(), EarlierSessions::default());
        let step = Step { entries: vec![entry], bodies, commands, ..Step::default() };
        session.append_and_perform(at_ms, step).await?;
        session.run().await?;
        Ok(recorder.take_records().await)
    }

    /// Resumes a run: feeds the recorded events and asks only for the missing ones. `superseded` is what
    /// [`History::reopen`] took back.
    ///
    /// # Errors
    /// See [`DriverError`]; [`DriverError::ReplayMismatch`] when the recorded facts do not follow from the recorded events.
    #[crate::boxed]
    pub async fn resume(
        self,
        history: &History,
        inputs: Vec<Part>,
        superseded: Vec<Name>,
    ) -> Result<(), DriverError> {
        let span = self.span();
        self.resume_in_span(history, inputs, superseded).instrument(span).await
    }

    fn span(&self) -> tracing::Span {
        tracing::info_span!("run", run = %self.run, protocol = self.protocol.version())
    }

    async fn resume_in_span(
        mut self,
        history: &History,
        inputs: Vec<Part>,
        superseded: Vec<Name>,
    ) -> Result<(), DriverError> {
        tracing::info!(calls = history.calls, "resumed");
        let at_ms = self.clock.now_ms();
        let mut waiting: BTreeMap<Name, Command> = BTreeMap::new();
        let mut facts: VecDeque<Fact> = VecDeque::new();
        let mut finished = false;
        for stamped in history.events(inputs) {
            if let Some(key) = history::answered_key(&stamped.event) {
                waiting.remove(&key);
            }
            for command in self.protocol.advance(&stamped) {
                match command {
                    Command::Cancel(id) => drop(waiting.remove(&id)),
                    Command::Record(fact) => facts.push_back(fact),
                    Command::Finish => finished = true,
                    command => drop(waiting.insert(command_key(&command), command)),
                }
            }
        }
        self.check_recorded_facts(history, &mut facts)?;
        let mut commands: Vec<Command> = waiting.into_values().collect();
        commands.extend(facts.into_iter().map(Command::Record));
        commands.extend(finished.then_some(Command::Finish));
        let intent = RunIntent { resumes: true, supersedes: superseded, ..RunIntent::default() };
        let before = EarlierSessions { calls: history.calls, charged: history.charged, wall: history.wall };
        let recorder = Recorder::new(self.ledger.clone(), self.run.clone(), history.next);
        let mut session = RunLoop::new(self, Arc::new(recorder), before);
        session.outcome = history.outcome_data().cloned();
        session.answered_samples = history.answered_samples.clone();
        session.append_and_perform(at_ms, Step { commands, intent, ..Step::default() }).await?;
        session.run().await
    }

    /// Removes the facts that are recorded already and compares them with the record.
    fn check_recorded_facts(&self, history: &History, facts: &mut VecDeque<Fact>) -> Result<(), DriverError> {
        for (kind, data) in &history.facts {
            let same = facts.pop_front().filter(|fact| {
                fact.kind.as_str() == kind
                    && canonical::object(&object(fact.data.clone())) == canonical::object(data)
            });
            if same.is_none() {
                return Err(DriverError::ReplayMismatch { run: self.run.clone(), kind: kind.clone() });
            }
        }
        Ok(())
    }
}

fn command_key(command: &Command) -> Name {
    match command {
        Command::Invoke(invoke) => invoke.id.clone(),
        command => {
            HostCall::from_command(command.clone()).map_or_else(|| "".into(), |host_call| host_call.key())
        }
    }
}

fn body(part: &Part) -> Body {
    Body { sha256: entropy::sha256_hex(part.text.as_bytes()), text: part.text.clone() }
}

/// An invocation under way.
struct ActiveCall {
    invoke: Invoke,
    abort: AbortHandle,
    cost_tracker: Arc<CostTracker>,
}

impl ActiveCall {
    /// Ends it, and returns its cost as far as known.
    fn abort(self) -> (Invoke, Cost) {
        self.abort.abort();
        let spent = self.spent();
        (self.invoke, spent)
    }

    fn spent(&self) -> Cost {
        self.cost_tracker.spent()
    }
}

/// An invocation that the end of the run's time ended.
fn out_of_time(spent: Cost) -> Box<FinishedCall> {
    let consultation = Consultation::without_answer(AbsenceReason::RunOverBudget, spent);
    Box::new(FinishedCall { attempt: None, consultation })
}

/// How long the ledger may take once the run's time is spent: what follows from that is still to be recorded.
const LEDGER_GRACE: Duration = Duration::from_secs(10);

/// How much is recorded in one append.
const MAX_ENTRIES_PER_APPEND: usize = 1_024;

/// What ended, with its key.
type KeyedEnd = Result<(Name, End), LedgerError>;
/// Something under way.
type EndFuture = Pin<Box<dyn Future<Output = KeyedEnd> + Send>>;

/// Something that was under way and ended.
enum End {
    Call(Invoke, Box<FinishedCall>),
    HostCall(Box<HostCallResult>),
}

/// What is recorded at once, and what follows from it.
#[derive(Default)]
struct Step {
    entries: Vec<Entry>,
    bodies: Vec<Body>,
    commands: Vec<Command>,
    intent: RunIntent,
    /// Whether an answer of a model is in it, which is not to be asked for and paid twice: it is synced.
    was_paid: bool,
}

/// What earlier sessions of a run took.
#[derive(Default)]
struct EarlierSessions {
    calls: u32,
    charged: Amount,
    wall: Duration,
}

/// One process's work on a run.
struct RunLoop {
    config: RunConfig,
    recorder: Arc<Recorder>,
    call_context: Arc<CallContext>,
    deadline: Option<Instant>,
    active_calls: BTreeMap<Name, ActiveCall>,
    /// The host's pending calls for the protocol.
    host_calls: BTreeMap<Name, HostCall>,
    /// The samples that earlier sessions recorded, of invocations without an answer.
    answered_samples: BTreeMap<Name, AnsweredSamples>,
    extensions: Arc<Extensions>,
    futures: FuturesUnordered<Abortable<EndFuture>>,
    /// Invocations that were cancelled.
    over_budget: Vec<End>,
    /// The members with several samples that the observer was told of.
    told_samples: BTreeSet<Name>,
    outcome: Option<Map<String, Json>>,
    finished: bool,
}

impl RunLoop {
    fn new(config: RunConfig, recorder: Arc<Recorder>, before: EarlierSessions) -> Self {
        let call_context = CallContext {
            run: config.run.clone(),
            layout: Layout { nonce: entropy::nonce(&config.seed) },
            budget: Arc::new(Budget::new(config.caps, before.calls, before.charged)),
            records_reservations: true,
            redactor: config.redactor.clone(),
            observer: config.observer.clone(),
            clock: config.clock.clone(),
        };
        RunLoop {
            recorder,
            call_context: Arc::new(call_context),
            deadline: config.wall.map(|cap| Instant::now() + cap.saturating_sub(before.wall)),
            active_calls: BTreeMap::new(),
            host_calls: BTreeMap::new(),
            answered_samples: BTreeMap::new(),
            extensions: Arc::new(config.extensions.clone()),
            futures: FuturesUnordered::new(),
            over_budget: Vec::new(),
            told_samples: BTreeSet::new(),
            outcome: None,
            finished: false,
            config,
        }
    }

    async fn run(mut self) -> Result<(), DriverError> {
        while !self.finished {
            let events = self.next_events().await?;
            self.handle_events(events).await?;
        }
        let outcome = self.outcome.ok_or_else(|| DriverError::Stalled(self.config.run.clone()))?;
        tracing::info!(verdict = record::verdict(&outcome), "ended");
        Ok(())
    }

    /// Waits for the next event and returns it with all further events that are ready, so that one append covers them.
    async fn next_events(&mut self) -> Result<Vec<End>, DriverError> {
        let mut events = Vec::new();
        while events.is_empty() {
            events.append(&mut self.over_budget);
            if !events.is_empty() {
                break;
            }
            if self.futures.is_empty() {
                return Err(DriverError::Stalled(self.config.run.clone()));
            }
            let deadline = self.deadline;
            let over = async move {
                match deadline {
                    Some(wall) => tokio::time::sleep_until(wall).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                ended = self.futures.next() => self.collect_ended(ended, &mut events)?,
                () = over => events.extend(self.abort_all()),
            }
            while events.len() < MAX_ENTRIES_PER_APPEND
                && let Some(ended @ Some(_)) = self.futures.next().now_or_never()
            {
                self.collect_ended(ended, &mut events)?;
            }
        }
        Ok(events)
    }

    /// The end of a call or a host call; `None` if it was dropped.
    fn collect_ended(
        &mut self,
        ended: Option<Result<KeyedEnd, Aborted>>,
        happened: &mut Vec<End>,
    ) -> Result<(), DriverError> {
        let Some(Ok(ended)) = ended else { return Ok(()) };
        let (key, end) = ended?;
        let was_under_way = match &end {
            End::Call(..) => self.active_calls.remove(&key).is_some(),
            End::HostCall(_) => self.host_calls.remove(&key).is_some(),
        };
        happened.extend(was_under_way.then_some(end));
        Ok(())
    }

    /// The wall budget is spent: everything under way is dropped, which ends it.
    fn abort_all(&mut self) -> Vec<End> {
        let aborted = std::mem::take(&mut self.active_calls).into_values().map(ActiveCall::abort);
        self.over_budget.extend(aborted.map(|(invoke, spent)| End::Call(invoke, out_of_time(spent))));
        self.futures.clear();
        let host_calls = std::mem::take(&mut self.host_calls).into_values();
        host_calls.map(|host_call| End::HostCall(Box::new(host_call.failed(event::TIME_EXHAUSTED)))).collect()
    }

    /// Feeds what happened, and does what follows from it.
    async fn handle_events(&mut self, happened: Vec<End>) -> Result<(), DriverError> {
        let at_ms = self.config.clock.now_ms();
        let (mut entries, mut commands, mut was_paid) = (Vec::new(), Vec::new(), false);
        let mut cancelled: BTreeSet<Name> = BTreeSet::new();
        for one in happened {
            // The event is read from the record, as on resume and on replay (X10).
            let event = match one {
                End::HostCall(done) => {
                    let HostCallResult { kind, data } = *done;
                    let event = extensions::to_event(kind.as_str(), &data);
                    entries.push(Entry { kind, at_ms, data });
                    event
                }
                End::Call(invoke, asked) => {
                    let late = cancelled.contains(&invoke.id);
                    was_paid |= self.member_config(&invoke.member)?.may_ask_a_model();
                    entries.extend(asked.attempt.map(|attempt| Entry::from_data(attempt, at_ms)));
                    let consultation = self.consultation_record(&invoke, asked.consultation, late)?;
                    let event = consultation.event();
                    let entry = Entry::from_data(consultation, at_ms);
                    debug_assert_eq!(event, history::event_from_record(entry.kind.as_str(), &entry.data));
                    entries.push(entry);
                    event
                }
            };
            let Some(event) = event else { continue };
            let follow = self.config.protocol.advance(&TimedEvent { at_ms, event });
            cancelled.extend(follow.iter().filter_map(|command| match command {
                Command::Cancel(id) => Some(id.clone()),
                _ => None,
            }));
            commands.extend(follow);
        }
        self.append_and_perform(at_ms, Step { entries, commands, was_paid, ..Step::default() }).await
    }

    /// The record of an invocation that ended; one that was cancelled meanwhile is late.
    fn consultation_record(
        &self,
        invoke: &Invoke,
        ended: Consultation,
        late: bool,
    ) -> Result<record::Consultation, DriverError> {
        let took = ended.spent.took;
        let mut data = self.recorded(ended, invoke)?;
        if late {
            data.status = Status::Late;
        }
        self.config.observer.observe(RunEvent::answered(
            invoke,
            data.status.clone(),
            took,
            data.answer.as_ref(),
        ));
        Ok(data)
    }

    /// Appends the entries and what follows from them, syncs if the commands need it, then performs the commands.
    async fn append_and_perform(&mut self, at_ms: i64, step: Step) -> Result<(), DriverError> {
        let Step { mut entries, bodies, commands, mut intent, was_paid } = step;
        let durability =
            if commands.is_empty() && !was_paid { Durability::Written } else { Durability::Synced };
        let (mut invokes, mut host_calls) = (Vec::<Invoke>::new(), Vec::new());
        let mut taken_back: Vec<ActiveCall> = Vec::new();
        for command in commands {
            match command {
                Command::Invoke(invoke) => invokes.push(invoke),
                Command::Cancel(id) => {
                    // An invocation of the same step has not started yet.
                    invokes.retain(|invoke| invoke.id != id);
                    if let Some(under_way) = self.active_calls.remove(&id) {
                        // Recorded with the decision that it follows from: a process that dies has both or neither.
                        entries.push(self.cancelled_entry(&under_way, at_ms)?);
                        taken_back.push(under_way);
                    }
                }
                Command::Record(fact) => entries.push(self.fact_entry(fact, at_ms)),
                Command::Finish => self.finished = true,
                command => host_calls.extend(HostCall::from_command(command)),
            }
        }
        let granted = self.reserve_calls(invokes);
        let has_caps = self.call_context.budget.caps().has_amounts();
        let limits = host_calls.iter().filter_map(|call| self.extensions.comparison_limit(call, has_caps));
        intent.compares = limits.collect();
        if !granted.is_empty() || !intent.compares.is_empty() || intent.resumes {
            intent.invocations = granted.iter().map(|invoke| invoke.id.clone()).collect();
            intent.samples = granted.iter().filter_map(|invoke| self.sampled(invoke)).collect();
            entries.push(Entry::of(&intent, at_ms));
        }
        let opens = entries.first().is_some_and(|entry| entry.kind == Kind::RunOpened);
        self.append(entries, bodies, durability).await?;
        if opens || intent.resumes {
            self.config.observer.observe(RunEvent::Opened { run: self.config.run.clone() });
        }
        let sampled = granted.iter().filter_map(|invoke| {
            let samples = self.config.members.get(&invoke.member)?.samples;
            (samples > 1 && self.told_samples.insert(invoke.member.clone()))
                .then(|| (invoke.member.clone(), samples))
        });
        let members: Vec<_> = sampled.collect();
        if !members.is_empty() {
            self.config.observer.observe(RunEvent::Sampled { members });
        }
        for under_way in taken_back {
            let (invoke, _) = under_way.abort();
            let cancelled = RunEvent::answered(&invoke, Status::Cancelled, Duration::ZERO, None);
            self.config.observer.observe(cancelled);
        }
        for host_call in host_calls {
            self.start_host_call(host_call);
        }
        for invoke in granted {
            self.start_call(invoke)?;
        }
        let (calls, money) = self.call_context.budget.spent();
        self.config.observer.observe(RunEvent::Spent { calls, money, caps: self.config.caps });
        Ok(())
    }

    /// Appends. Once the run's time is spent, a ledger that says nothing is not waited for much longer.
    async fn append(
        &mut self,
        entries: Vec<Entry>,
        bodies: Vec<Body>,
        durability: Durability,
    ) -> Result<(), DriverError> {
        let appended = self.recorder.append(entries, bodies, durability);
        let Some(wall) = self.deadline else { return Ok(appended.await?) };
        match tokio::time::timeout_at(wall.max(Instant::now()) + LEDGER_GRACE, appended).await {
            Ok(appended) => Ok(appended?),
            Err(_) => {
                let (run, grace) = (self.config.run.clone(), LEDGER_GRACE.as_secs());
                let what = format!(
                    "cannot tell whether the ledger took the last records of run {run}: its time (`budget.wall`) is \
                     spent, and the ledger did not answer within {grace} s after that"
                );
                Err(LedgerError::InDoubt { run, what }.into())
            }
        }
    }

    /// Starts a host call.
    fn start_host_call(&mut self, host_call: HostCall) {
        let key = host_call.key();
        let (context, fence) = (Arc::clone(&self.call_context), self.recorder.fence());
        let done = self.extensions.clone().run(host_call.clone(), context, fence);
        let ends = key.clone();
        let ended = async move { Ok((ends, End::HostCall(Box::new(done.await)))) };
        let (_, registration) = AbortHandle::new_pair();
        self.futures.push(Abortable::new(Box::pin(ended), registration));
        self.host_calls.insert(key, host_call);
    }

    fn fact_entry(&mut self, fact: Fact, at_ms: i64) -> Entry {
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

    /// Reserves a call for each, as far as the budget goes. One with recorded samples reserves its calls itself, if it needs any.
    fn reserve_calls(&mut self, invokes: Vec<Invoke>) -> Vec<Invoke> {
        let in_time = self.deadline.is_none_or(|wall| Instant::now() < wall);
        let mut granted = Vec::new();
        for invoke in invokes {
            let is_recorded =
                self.answered_samples.contains_key(&invoke.id) && self.sampled(&invoke).is_some();
            let ended = match in_time {
                true if is_recorded => Ok(()),
                true => {
                    self.call_context.budget.reserve_call().map_err(|why| FinishedCall::over_budget(&why))
                }
                false => Err(*out_of_time(Cost::default())),
            };
            match ended {
                Ok(()) => granted.push(invoke),
                Err(ended) => self.over_budget.push(End::Call(invoke, Box::new(ended))),
            }
        }
        granted
    }

    /// The samples of an invocation; `None` if its member is asked once.
    fn sampled(&self, invoke: &Invoke) -> Option<SampledInvocation> {
        let samples = samples::count(self.config.members.get(&invoke.member)?, invoke.schema);
        let answered = self.answered_samples.get(&invoke.id).map_or(0, BTreeMap::len);
        let samples = (samples > 1).then(|| samples.saturating_sub(u32::try_from(answered).unwrap_or(0)))?;
        Some(SampledInvocation { invocation: invoke.id.clone(), samples })
    }

    fn start_call(&mut self, invoke: Invoke) -> Result<(), DriverError> {
        let config = self.member_config(&invoke.member)?.clone();
        self.config.observer.observe(RunEvent::asked(&invoke, config.timeout));
        let cost_tracker: Arc<CostTracker> = Arc::default();
        let (context, recorder) = (self.call_context.clone(), self.recorder.clone());
        let (asked, spent) = (invoke.clone(), cost_tracker.clone());
        let answered = self.answered_samples.remove(&invoke.id).unwrap_or_default();
        // The call is made inside, since its future is large and would be copied from here.
        let call = async move {
            let ended = samples::call(context, recorder, asked.clone(), config, spent, answered).await?;
            Ok((asked.id.clone(), End::Call(asked, Box::new(ended))))
        };
        let (abort, registration) = AbortHandle::new_pair();
        self.futures.push(Abortable::new(Box::pin(call), registration));
        self.active_calls.insert(invoke.id.clone(), ActiveCall { invoke, abort, cost_tracker });
        Ok(())
    }

    /// The record of a cancelled invocation.
    fn cancelled_entry(&self, under_way: &ActiveCall, at_ms: i64) -> Result<Entry, DriverError> {
        let ended = Consultation::without_answer(AbsenceReason::Cancelled, under_way.spent());
        Ok(Entry::from_data(self.recorded(ended, &under_way.invoke)?, at_ms))
    }

    fn recorded(&self, ended: Consultation, invoke: &Invoke) -> Result<record::Consultation, DriverError> {
        let config = self.member_config(&invoke.member)?;
        let about = config.executor.about();
        let answer = match &ended.result {
            ConsultationResult::Answered(answer) => Some(answer),
            ConsultationResult::Absent(_) => None,
        };
        let lock = self.config.protocol.lock_result(answer);
        let mut data = ended.into_record(invoke, &config.executor_name, &about, config.weight);
        data.more.extend(lock.map(|result| ("lock".to_owned(), Json::from(result))));
        data.more.extend(config.extra_fields.iter().map(|(key, value)| (key.clone(), value.clone())));
        Ok(data)
    }

    fn member_config(&self, member: &Name) -> Result<&MemberConfig, DriverError> {
        let config = self.config.members.get(member);
        config.ok_or_else(|| DriverError::NoExecutor { run: self.config.run.clone(), member: member.clone() })
    }
}
