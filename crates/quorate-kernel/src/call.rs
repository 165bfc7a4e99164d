//! One invocation as a future: carries out the calls, waits and records of [`Attempts`] under one deadline.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex as Shared, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use quorate_diagnostics::text::shortened;
use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json, Name, Part};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span};

use crate::answer_schema;
use crate::attempts;
use crate::attempts::{Attempts, CallReason, Cost, NextStep, millis, no_answer_within};
use crate::attempts::{MemberConfig, SharedAnswers, Substitution};
use crate::budget::{self, Budget, Exhausted, Reservation, most_tokens};
use crate::clock::Clock;
use crate::entropy::sha256_hex;
use crate::observer::{Observer, RunEvent};
use crate::ports::executor::{Admission, AttemptInfo, Failure, Invocation, Notes, Progress, Reply, Usage};
use crate::ports::ledger::{Append, Body, Durability, Entry, Fence, Ledger, LedgerError, Record};
use crate::prompt::{Layout, Prompt};
use crate::record::{Attempt, Reserved, RunIntent, Spent, Tried};
use crate::redact::Redactor;

/// How long past the deadline an executor may take to end what it started.
const GRACE: Duration = Duration::from_millis(2_500);

/// The most that one call pauses before its retries, waits that the service asks for aside.
const MAX_PAUSES: Duration = Duration::from_secs(60);

/// The length of a failure's message in the line about a wait.
const MAX_REASON_CHARS: usize = 120;

/// An invocation that ended, with the record of its last attempt still to be written.
pub(crate) struct FinishedCall {
    pub(crate) attempt: Option<Attempt>,
    pub(crate) consultation: attempts::Consultation,
}

/// What all invocations of a run share.
#[derive(Clone)]
pub(crate) struct CallContext {
    pub(crate) run: Name,
    pub(crate) layout: Layout,
    pub(crate) budget: Arc<Budget>,
    /// Whether a process that takes up the run has to know what was reserved.
    pub(crate) records_reservations: bool,
    pub(crate) redactor: Redactor,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Appends to one run, one at a time.
pub(crate) struct Recorder {
    /// Without a ledger, the fence of the run that a call is part of: its caller records it as a whole.
    ledger: Result<Arc<dyn Ledger>, Fence>,
    run: Name,
    next: Mutex<u64>,
    /// What was appended, if the driver wants to have it at the end.
    kept: Option<Shared<Vec<Entry>>>,
    /// Whether records go behind those that other processes have appended meanwhile.
    at_tail: bool,
    /// The pairs of an executor and its stand-in that the observer was told of.
    told: Shared<BTreeSet<[String; 2]>>,
}

/// How often a record is put behind what others have appended meanwhile.
const MAX_APPEND_RETRIES: u32 = 32;

impl Recorder {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, run: Name, next: u64) -> Self {
        let (kept, told) = (None, Shared::default());
        Recorder { ledger: Ok(ledger), run, next: Mutex::new(next), kept, at_tail: false, told }
    }

    /// The recorder of a call that appends nothing.
    pub(crate) fn unrecorded(fence: Fence, run: Name) -> Self {
        let (kept, told) = (None, Shared::default());
        Recorder { ledger: Err(fence), run, next: Mutex::new(0), kept, at_tail: false, told }
    }

    /// The recorder of a new run, which keeps what it appends.
    pub(crate) fn keeping(ledger: Arc<dyn Ledger>, run: Name) -> Self {
        Recorder { kept: Some(Shared::default()), ..Recorder::new(ledger, run, 0) }
    }

    /// The recorder of a question that does not depend on its stream, which several processes may ask at once: a paid
    /// answer must not be lost because another one wrote in the meantime.
    pub(crate) fn at_tail(ledger: Arc<dyn Ledger>, run: Name, next: u64) -> Self {
        Recorder { at_tail: true, ..Recorder::new(ledger, run, next) }
    }

    /// Whether a stand-in answers for an executor for the first time in this run: an outage is reported once.
    fn is_new_stand_in(&self, own: &str, by: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert([own.to_owned(), by.to_owned()])
    }

    pub(crate) fn fence(&self) -> Fence {
        match &self.ledger {
            Ok(_) if self.at_tail => Fence::default(),
            Ok(ledger) => ledger.fence(&self.run),
            Err(fence) => fence.clone(),
        }
    }

    async fn write(&self, mut append: Append) -> Result<u64, LedgerError> {
        let Ok(ledger) = &self.ledger else { return Ok(append.from) };
        let retries = if self.at_tail { MAX_APPEND_RETRIES } else { 0 };
        for _ in 0..retries {
            match ledger.append(append.clone()).await {
                Err(LedgerError::Conflict { run }) => {
                    let tail = ledger.tail(&run, 1).await?;
                    append.from = tail.last().map_or(0, |last| last.n + 1);
                }
                done => return done,
            }
        }
        ledger.append(append).await
    }

    /// Appends in a task of its own: the invocations of a run are polled by turns, so one that waited here while it
    /// held the lock could keep the driver from ever polling it again; and one that is dropped here must not leave
    /// the count behind what was written.
    pub(crate) async fn append(
        self: &Arc<Self>,
        entries: Vec<Entry>,
        bodies: Vec<Body>,
        durability: Durability,
    ) -> Result<(), LedgerError> {
        let recorder = self.clone();
        let appended = tokio::spawn(async move {
            let mut next = recorder.next.lock().await;
            let kept = recorder.kept.as_ref().map(|kept| (kept, entries.clone()));
            let append = Append { run: recorder.run.clone(), from: *next, entries, bodies, durability };
            tracing::debug!(run = %recorder.run, from = *next, records = append.entries.len(), ?durability, "append");
            *next = recorder.write(append).await?;
            if let Some((kept, entries)) = kept {
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
            }
            Ok(())
        });
        appended.await.unwrap_or_else(|error| {
            Err(LedgerError::Unavailable {
                what: "a record was not written".into(),
                source: Some(Box::new(error)),
            })
        })
    }

    /// Takes what was kept, as it would be read from the ledger. Waits for an append under way.
    pub(crate) async fn take_records(&self) -> Vec<Record> {
        let _appending = self.next.lock().await;
        let kept = self.kept.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner));
        let kept = kept.map_or_else(Vec::new, |mut kept| std::mem::take(&mut *kept));
        (0..).zip(kept).map(|(n, entry)| Record::of(n, entry)).collect()
    }
}

/// The cost of an invocation so far, for the driver, which may drop it before its end. The first call counts as made from the
/// start, since it was reserved.
#[derive(Debug, Default)]
pub(crate) struct CostTracker(Shared<BTreeMap<u32, Cost>>);

impl CostTracker {
    /// Sets what a sample has cost so far.
    pub(crate) fn set(&self, sample: Option<u32>, spent: Cost) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(sample.unwrap_or(1), spent);
    }

    /// The calls, at least one, and what is known of their cost.
    pub(crate) fn spent(&self) -> Cost {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spent = Cost::default();
        samples.values().for_each(|sample| spent.add(sample));
        Cost { calls: spent.calls.max(1), ..spent }
    }
}

/// Asks until there is an answer or a reason why there is none. The first call is counted already; `made` says what was
/// spent, for a driver that drops this on the way. The deadline starts when the executor has admitted the invocation. `sample` is
/// the number of the sample, counted from 1; `None` where the member is asked for one answer.
pub(crate) async fn call(
    context: Arc<CallContext>,
    recorder: Arc<Recorder>,
    invoke: Invoke,
    member: MemberConfig,
    made: Arc<CostTracker>,
    sample: Option<u32>,
) -> Result<FinishedCall, LedgerError> {
    let span = of_member(&invoke, &member);
    let asking = async move {
        let (invoke, mut member, redactions) = redact_invocation(&context.redactor, invoke, member).await;
        let mut admitted = Some(admit(&context, &invoke, &member).await);
        let Prompt { text, cuts } = context.layout.prompt(&invoke, &member.context, &member.role);
        let (first_prompt, cuts): (Arc<str>, Arc<[usize]>) = (text.into(), cuts.into());
        let mut reserved = match context.reserve(&member, &invoke, &first_prompt).await {
            Ok(reserved) => Some(reserved),
            Err(why) => return Ok(FinishedCall::over_budget(&why)),
        };
        let started = Instant::now();
        let mut deadline = started + member.timeout;
        let stand_ins = member.stand_ins.clone();
        let mut stand_ins = stand_ins.iter();
        // Those of the executors before the present one.
        let mut earlier_calls = 0;
        let parts: Arc<[Part]> = invoke.parts.iter().chain(&member.context).cloned().collect();
        let schema = answer_schema::compiled(invoke.schema).schema.clone();
        let mut state = CallState {
            ask: Attempts::new(invoke.schema, member.retries),
            ended: attempts::Consultation {
                redactions,
                prompt_sha256: Some(sha256_hex(first_prompt.as_bytes())),
                ..attempts::Consultation::without_answer(AbsenceReason::Failed, Cost::default())
            },
            last_reason: String::new(),
            no_stand_in: false,
            tried: Vec::new(),
        };
        let fence = recorder.fence();
        let waited = Waited::default();
        // Before retries that nobody asked for.
        let mut paused = Duration::ZERO;
        let mut next = NextStep::Call(CallReason::First);
        let mut last: Option<Attempt> = None;
        loop {
            match next {
                NextStep::Done(result) => {
                    if !state.no_stand_in
                        && last.as_ref().is_some_and(|last| last.status != "said")
                        && matches!(result, Err(AbsenceReason::Failed | AbsenceReason::TimedOut))
                        // A question without a recording goes to other recordings only, never to a model.
                        && let Some(stand_in) = stand_ins
                            .find(|stand_in| !state.ended.recorded || stand_in.executor.recordings().is_some())
                    {
                        state.give_up_on(&member, last.as_ref());
                        // Its place in the pool is free for other members while the stand-in is asked.
                        drop(admitted.take());
                        member = member.with_stand_in(stand_in);
                        admitted = Some(admit(&context, &invoke, &member).await);
                        deadline = Instant::now() + member.timeout;
                        state.ask = Attempts::new(invoke.schema, member.retries);
                        earlier_calls = state.ended.spent.calls;
                        next = NextStep::Call(CallReason::StandIn);
                        continue;
                    }
                    if let (Ok(answer), Some(shared)) = (&result, shares(&member, sample, &CallReason::First))
                    {
                        let model = last.as_ref().and_then(|last| last.model.clone());
                        shared.keep(question(&member, &state.ended), answer, model);
                    }
                    let consultation =
                        state.into_consultation(result, &member, started.elapsed(), last.as_ref());
                    let model = consultation.model.clone().or_else(|| member.executor.about().model);
                    let status = consultation.status();
                    record_end(&Span::current(), &status, model.as_deref(), &consultation.spent.usage);
                    tracing::info!(
                        %status,
                        calls = consultation.spent.calls,
                        took_ms = consultation.spent.took.as_millis(),
                        "answered"
                    );
                    return Ok(FinishedCall { attempt: last, consultation });
                }
                NextStep::Wait { at_least_ms, spread_ms, retry } => {
                    let asked = sample
                        .map_or_else(|| invoke.id.clone(), |sample| format!("{}#{sample}", invoke.id).into());
                    let share = wait_share(
                        &context.layout.nonce,
                        &context.run,
                        &asked,
                        state.ended.spent.calls,
                        spread_ms,
                    );
                    let wait = Duration::from_millis(at_least_ms.saturating_add(share));
                    if retry.is_some() {
                        paused = paused.saturating_add(wait);
                    }
                    let until = Instant::now().checked_add(wait).filter(|_| paused <= MAX_PAUSES);
                    match until.filter(|until| *until < deadline) {
                        Some(until) => {
                            let why = state.last_reason.clone();
                            let retry = retry.map(|number| (number, member.retries));
                            tell_wait(&context, &invoke, &waited, why, wait, retry);
                            tokio::time::sleep_until(until).await;
                            next = state.ask.next_call();
                        }
                        None => next = NextStep::Done(Err(AbsenceReason::Failed)),
                    }
                }
                NextStep::Call(why) => {
                    let prompt = match &why {
                        CallReason::RePrompt(complaints) => {
                            context.layout.re_prompt(invoke.schema, &first_prompt, complaints).into()
                        }
                        _ => first_prompt.clone(),
                    };
                    let reservation = match reserved.take() {
                        Some(first) => Ok(first),
                        None => context.reserve_another(&member, &invoke, &prompt, deadline).await,
                    };
                    let reservation = match reservation {
                        Ok(reservation) => reservation,
                        Err(why) => {
                            next = NextStep::Done(Err(why));
                            continue;
                        }
                    };
                    let mut entries = Vec::new();
                    if let Some(before) = last.take() {
                        let said = before.complaints.first().unwrap_or(&before.text);
                        match state.tried.last() {
                            Some(Tried { executor: own, message, .. }) if why == CallReason::StandIn => {
                                let (who, by) = (&invoke.member, &member.executor_name);
                                if recorder.is_new_stand_in(own, by) {
                                    let line = format!("{who}: {message}; `{by}` stands in for `{own}`");
                                    context.observer.observe(RunEvent::noted(&invoke, line));
                                }
                            }
                            _ => context.observer.observe(RunEvent::retried(&invoke, said)),
                        }
                        entries.push(Entry::from_data(before, context.clock.now_ms()));
                    }
                    entries.extend(context.reservation_entry(&invoke, sample, &reservation));
                    if !entries.is_empty() {
                        // A call follows from the attempt before it and from what was reserved, so both are durable first: a
                        // budget that forgot them could be overdrawn.
                        recorder.append(entries, Vec::new(), Durability::Synced).await?;
                    }
                    state.ended.spent.calls += 1;
                    made.set(sample, state.ended.spent);
                    let notes = Notes::default();
                    let invocation = Invocation {
                        run: context.run.clone(),
                        id: invoke.id.clone(),
                        member: invoke.member.clone(),
                        step: invoke.step.clone(),
                        attempt: state.ended.spent.calls - earlier_calls,
                        sample: sample.unwrap_or(1),
                        prompt,
                        cuts: cuts.clone(),
                        parts: parts.clone(),
                        role: member.role.clone(),
                        task: invoke.task.clone(),
                        persona: member.persona.clone(),
                        answer_schema: invoke.schema,
                        json_schema: schema.clone(),
                        conversation: member.conversation.clone(),
                        nonce: context.layout.nonce.as_str().into(),
                        redactor: context.redactor.clone(),
                        fence: fence.clone(),
                        deadline,
                        notes: notes.clone(),
                        progress: progress(&context, &invoke, &waited),
                    };
                    let started = Instant::now();
                    // A panic fails only this call.
                    let span = of_attempt(state.ended.spent.calls, why.as_str(), &member);
                    span.in_scope(|| tracing::debug!("asked"));
                    let known = shares(&member, sample, &why)
                        .and_then(|shared| shared.reply(&question(&member, &state.ended), &invocation));
                    let invoked = member.executor.invoke_if_driven(invocation).instrument(span.clone());
                    let invoked = AssertUnwindSafe(invoked).catch_unwind();
                    let replied = match known {
                        Some(reply) => Ok(reply),
                        None => match tokio::time::timeout_at(deadline + GRACE, invoked).await {
                            Ok(Ok(replied)) => replied,
                            Ok(Err(_)) => Err(Failure::failed("the executor panicked")),
                            Err(_) => Err(Failure::TimedOut),
                        },
                    };
                    let stands_in = !state.tried.is_empty();
                    let mut attempt = Attempt {
                        invocation: invoke.id.clone(),
                        attempt: state.ended.spent.calls,
                        why: why.as_str().to_owned(),
                        ms: millis(started.elapsed()),
                        executor: stands_in.then(|| member.executor_name.to_string()),
                        sample,
                        prompt_sha256: sample.and(state.ended.prompt_sha256.clone()),
                        ..Attempt::default()
                    };
                    let mut noted = notes.read();
                    let newly_changed = std::mem::take(&mut noted.newly_changed);
                    let (step, usage) = state.on_reply(&context, &parts, replied, noted, &mut attempt).await;
                    made.set(sample, state.ended.spent);
                    reservation.settle(&usage);
                    record_end(&span, &attempt.status, attempt.model.as_deref(), &usage);
                    for change in newly_changed {
                        context.observer.observe(RunEvent::noted(&invoke, change));
                    }
                    span.in_scope(|| {
                        tracing::debug!(
                            status = attempt.status,
                            complaints = attempt.complaints.len(),
                            "ended"
                        )
                    });
                    next = step;
                    last = Some(attempt);
                }
            }
        }
    };
    asking.instrument(span).await
}

/// The answers that a member's first call may take from another run, and that its answer is added to.
fn shares<'m>(member: &'m MemberConfig, sample: Option<u32>, why: &CallReason) -> Option<&'m SharedAnswers> {
    member.shared.as_deref().filter(|_| sample.is_none() && *why == CallReason::First)
}

/// What its first prompt asks a member.
fn question(member: &MemberConfig, ended: &attempts::Consultation) -> attempts::Question {
    let prompt = ended.prompt_sha256.clone().unwrap_or_default();
    (member.executor_name.to_string(), prompt)
}

impl FinishedCall {
    /// A question that was not asked, since the budget has no room for it.
    pub(crate) fn over_budget(why: &Exhausted) -> Self {
        let unasked = attempts::Consultation::without_answer(AbsenceReason::RunOverBudget, Cost::default());
        // The number of calls says itself why none is left.
        let message = (!matches!(why, Exhausted::Calls { .. })).then(|| why.to_string());
        let consultation = attempts::Consultation { message, ..unasked };
        FinishedCall { attempt: None, consultation }
    }
}

impl CallContext {
    /// Reserves what a call with this prompt may take.
    async fn reserve(
        &self,
        member: &MemberConfig,
        invoke: &Invoke,
        prompt: &str,
    ) -> Result<Reservation, Exhausted> {
        let limit = self
            .budget
            .caps()
            .has_amounts()
            .then(|| budget::call_limit(&*member.executor, most_tokens(prompt), invoke.schema))
            .flatten();
        self.budget.reserve(limit).await
    }

    /// Reserves another call of an invocation, in the time that the invocation has.
    async fn reserve_another(
        &self,
        member: &MemberConfig,
        invoke: &Invoke,
        prompt: &str,
        deadline: Instant,
    ) -> Result<Reservation, AbsenceReason> {
        let reserved = async {
            self.budget.reserve_call()?;
            self.reserve(member, invoke, prompt).await
        };
        match tokio::time::timeout_at(deadline, reserved).await {
            Ok(reserved) => reserved.map_err(|_| AbsenceReason::RunOverBudget),
            Err(_) => Err(AbsenceReason::TimedOut),
        }
    }

    /// The record of a reservation, where a process that takes up the run needs it.
    fn reservation_entry(
        &self,
        invoke: &Invoke,
        sample: Option<u32>,
        reservation: &Reservation,
    ) -> Option<Entry> {
        (self.records_reservations && self.budget.caps().has_amounts()).then(|| {
            let most = reservation.amount();
            let reserved = vec![Reserved { invocation: invoke.id.clone(), sample, most }];
            Entry::of(&RunIntent { reserved, ..RunIntent::default() }, self.clock.now_ms())
        })
    }
}

/// Tells the observer of an attempt's answer as it comes in, at intervals that a display can show.
fn progress(context: &Arc<CallContext>, invoke: &Invoke, waited: &Waited) -> Progress {
    const INTERVAL: Duration = Duration::from_millis(200);
    let observer = Arc::clone(&context.observer);
    let (invocation, member) = (invoke.id.clone(), invoke.member.clone());
    let (waiting, waited, context) = (invoke.clone(), Arc::clone(waited), Arc::clone(context));
    let so_far: Shared<(usize, Option<Instant>)> = Shared::default();
    Progress::new(move |bytes| {
        let mut so_far = so_far.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.0 = so_far.0.saturating_add(bytes);
        let now = Instant::now();
        if so_far.1.is_none_or(|last| now.duration_since(last) >= INTERVAL) {
            so_far.1 = Some(now);
            let (invocation, member) = (invocation.clone(), member.clone());
            observer.observe(RunEvent::Writing { invocation, member, bytes: so_far.0 });
        }
    })
    .with_waits(move |why, wait| {
        let (why, _) = context.redactor.redact(why);
        tell_wait(&context, &waiting, &waited, why, wait, None);
    })
}

/// How long an invocation has waited, in all.
type Waited = Arc<Shared<Duration>>;

/// Waits for a place at the member's executor, and reports a wait.
async fn admit(context: &CallContext, invoke: &Invoke, member: &MemberConfig) -> Admission {
    let mut place = std::pin::pin!(member.executor.admit());
    tokio::select! {
        biased;
        admission = &mut place => return admission,
        () = std::future::ready(()) => {}
    }
    context.observer.observe(RunEvent::Queued { invocation: invoke.id.clone() });
    let admission = place.await;
    context.observer.observe(RunEvent::Admitted { invocation: invoke.id.clone() });
    admission
}

/// Reports a wait of more than two seconds to the observer, alone or added to shorter ones before it.
fn tell_wait(
    context: &CallContext,
    invoke: &Invoke,
    waited: &Waited,
    why: String,
    wait: Duration,
    retry: Option<(u32, u32)>,
) {
    const SHORTEST: Duration = Duration::from_secs(2);
    let mut waited = waited.lock().unwrap_or_else(PoisonError::into_inner);
    let before = *waited;
    *waited = before.saturating_add(wait);
    if wait > SHORTEST || (before <= SHORTEST && *waited > SHORTEST) {
        tracing::info!(%why, wait_ms = wait.as_millis(), "waits");
        context.observer.observe(RunEvent::waiting(invoke, why, wait, retry));
    }
}

/// How much of a spread of milliseconds, 0 to all of it, is waited before the call that follows this one. It follows from
/// the run's seed, so that a run that is repeated waits the same.
fn wait_share(nonce: &str, run: &Name, id: &Name, call: u32, spread_ms: u64) -> u64 {
    let hash = sha256_hex(format!("{nonce}\0{run}\0{id}\0{call}").as_bytes());
    let drawn = u64::from_str_radix(&hash[..15], 16).expect("a hash is hexadecimal");
    drawn % spread_ms.saturating_add(1)
}

/// Redacts what a member is told beside the material, which is redacted already. Returns how many secrets there were.
pub(crate) async fn redact_invocation(
    redactor: &Redactor,
    mut invoke: Invoke,
    mut member: MemberConfig,
) -> (Invoke, MemberConfig, usize) {
    let bytes = member.context.iter().map(|part| part.text.len()).sum::<usize>()
        + member.role.len()
        + invoke.task.len();
    let work = move |redactor: &Redactor| {
        let count = redact_invocation_now(redactor, &mut invoke, &mut member);
        (invoke, member, count)
    };
    redactor.run_blocking_if_large(bytes, work).await
}

fn redact_invocation_now(redactor: &Redactor, invoke: &mut Invoke, member: &mut MemberConfig) -> usize {
    let mut count = 0;
    for text in [&mut invoke.task, &mut member.role] {
        count += redact_text(redactor, text);
    }
    for part in &mut member.context {
        count += redact_text(redactor, &mut part.text) + redact_text(redactor, &mut part.name);
    }
    if let Some(persona) = &mut member.persona
        && let (clean, found @ 1..) = redactor.redact_json(Json::clone(persona))
    {
        *persona = Arc::new(clean);
        count += found;
    }
    count
}

fn redact_text(redactor: &Redactor, text: &mut Arc<str>) -> usize {
    let (clean, found) = redactor.redact(text);
    if found > 0 {
        *text = clean.into();
    }
    found
}

/// The message of an attempt that timed out, with the last lines that the member printed.
fn timeout_message(last_words: String) -> String {
    format!("no answer before the deadline; its last lines on stderr: {last_words}")
}

/// Why an executor gave no answer. An attempt that timed out may have no message of its own.
pub(crate) fn reason(message: &str, member: &MemberConfig) -> String {
    match message {
        "" => no_answer_within(member.timeout, &member.executor_name),
        message => message.to_owned(),
    }
}

/// What accumulates over the attempts of one invocation.
struct CallState {
    ask: Attempts,
    /// The consultation so far, without its result.
    ended: attempts::Consultation,
    /// Why the last attempt failed, in a few words: the HTTP status, or the beginning of the message.
    last_reason: String,
    /// Whether an attempt ruled out every stand-in.
    no_stand_in: bool,
    /// The executors whose services failed.
    tried: Vec<Tried>,
}

impl CallState {
    /// Completes the record of an attempt. Returns the next step and the attempt's cost.
    async fn on_reply(
        &mut self,
        context: &CallContext,
        parts: &[Part],
        replied: Result<Reply, Failure>,
        noted: AttemptInfo,
        attempt: &mut Attempt,
    ) -> (NextStep, Usage) {
        self.no_stand_in |= noted.no_stand_in;
        let ended = &mut self.ended;
        ended.recorded = noted.recorded;
        ended.probabilities = noted.probabilities;
        let (usage, model) = match &replied {
            Ok(reply) => (noted.usage.unwrap_or(reply.usage), reply.model.clone().or(noted.model)),
            Err(_) => (noted.usage.unwrap_or_default(), noted.model),
        };
        let mut clean = |text: String| {
            let (text, found) = context.redactor.redact(&text);
            ended.redactions += found;
            text
        };
        (attempt.model, attempt.version) = (model.map(&mut clean), noted.version.map(&mut clean));
        for tool in noted.refused_tools.into_iter().map(&mut clean) {
            if !ended.refused_tools.contains(&tool) {
                ended.refused_tools.push(tool);
            }
        }
        ended.spent.usage.add(usage);
        ended.model = attempt.model.clone().or(ended.model.take());
        ended.version = attempt.version.clone().or(ended.version.take());
        let (status, raw) = match &replied {
            Ok(reply) => {
                ended.posted = reply.posted.clone().or(ended.posted.take());
                ("said", reply.text.clone())
            }
            Err(Failure::TimedOut) => ("timed_out", noted.last_words.map_or(String::new(), timeout_message)),
            Err(Failure::Failed { message, .. }) => ("failed", message.clone()),
        };
        let (text, redacted) = context
            .redactor
            .run_blocking_if_large(raw.len(), move |redactor| redactor.redact_output(&raw))
            .await;
        ended.redactions += redacted;
        let shown: Vec<&str> = parts.iter().map(|part| &*part.text).collect();
        let (next, complaints) = self.ask.record_result(replied.as_ref().map(|_| &*text), &shown);
        self.last_reason = match (noted.http_status, noted.host) {
            (Some(status), Some(host)) => format!("HTTP {status} from {host}"),
            (Some(status), None) => format!("HTTP {status}"),
            (None, _) => shortened(&text, MAX_REASON_CHARS),
        };
        (attempt.status, attempt.text, attempt.complaints) = (status.to_owned(), text, complaints);
        attempt.spent = Some(Spent::from(&usage)).filter(|spent| *spent != Spent::default());
        attempt.recorded = noted.recorded;
        (attempt.http_status, attempt.requests) = (noted.http_status, noted.requests);
        attempt.changed = noted.changed;
        ended.attempts.add(attempt);
        (next, usage)
    }

    /// Records why the member's present executor gave no answer, and clears its state.
    fn give_up_on(&mut self, member: &MemberConfig, last: Option<&Attempt>) {
        let last = last.filter(|last| self.is_by(member, last));
        self.tried.push(Tried {
            executor: member.executor_name.to_string(),
            message: reason(last.map_or("", |last| &last.text), member),
            http: last.and_then(|last| last.http_status),
        });
        (self.ended.model, self.ended.version) = (None, None);
        self.ended.refused_tools.clear();
    }

    /// Whether an attempt is one of the member's present executor.
    fn is_by(&self, member: &MemberConfig, attempt: &Attempt) -> bool {
        self.tried.is_empty() || attempt.executor.as_deref() == Some(&*member.executor_name)
    }

    fn into_consultation(
        self,
        result: Result<Json, AbsenceReason>,
        member: &MemberConfig,
        took: Duration,
        last: Option<&Attempt>,
    ) -> attempts::Consultation {
        let message = last.filter(|_| result.is_err()).map(|last| {
            let message = match last.complaints.is_empty() {
                true => last.text.clone(),
                false => last.complaints.join("; "),
            };
            if self.tried.is_empty() {
                return message;
            }
            let message = match self.is_by(member, last) {
                true => reason(&message, member),
                false => "not asked".to_owned(),
            };
            let before = self.tried.iter().map(|tried| format!("`{}`: {}", tried.executor, tried.message));
            let all = before.chain([format!("`{}`: {message}", member.executor_name)]);
            all.collect::<Vec<_>>().join("; ")
        });
        let stand_in = (!self.tried.is_empty()).then(|| Substitution {
            executor_name: member.executor_name.clone(),
            about: member.executor.about(),
            tried: self.tried,
        });
        attempts::Consultation {
            repaired: result.is_ok() && self.ask.was_repaired(),
            result: result.map_or_else(ConsultationResult::Absent, ConsultationResult::Answered),
            message: message.filter(|text| !text.is_empty()),
            spent: Cost { took, ..self.ended.spent },
            stand_in,
            ..self.ended
        }
    }
}

/// That of a question to a member, with all its attempts.
fn of_member(invoke: &Invoke, member: &MemberConfig) -> Span {
    tracing::info_span!(
        "member",
        invocation = %invoke.id,
        member = %invoke.member,
        step = %invoke.step,
        executor = %member.executor_name,
        model = Empty,
        status = Empty,
        tokens_in = Empty,
        tokens_out = Empty,
    )
}

/// That of one attempt.
fn of_attempt(number: u32, why: &str, member: &MemberConfig) -> Span {
    tracing::debug_span!(
        "attempt",
        attempt = number,
        why,
        executor = %member.executor_name,
        requested_model = member.executor.about().model,
        model = Empty,
        status = Empty,
        tokens_in = Empty,
        tokens_out = Empty,
    )
}

/// Notes how it ended: the model that answered, where known, and the tokens that were counted.
fn record_end(span: &Span, status: &dyn Display, model: Option<&str>, usage: &Usage) {
    span.record("status", display(status))
        .record("model", model)
        .record("tokens_in", usage.tokens_in)
        .record("tokens_out", usage.tokens_out);
}

#[cfg(test)]
mod tests;
