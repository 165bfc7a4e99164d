//! One invocation: what is counted, recorded and kept from members over its attempts.

use std::collections::VecDeque;

use async_trait::async_trait;
use quorate_manifest::money::Money;
use quorate_protocol::PartKind;
use quorate_protocol::answers::Schema;
use serde_json::{Map, json};

use super::*;
use crate::budget::{Amount, Caps, Exhausted};
use crate::clock::System;
use crate::ports::executor::{About, CallLimit, Executor, Retry, Usage};
use crate::ports::ledger::{Kind, Record};
use crate::redact::Secrets;

const SECRET: &str = "AKIAQ3PLMK7ZXCVBN2RT";
/// What a call takes at most.
const CALL_TOKENS: u64 = 70;
const ANSWER: &str =
    r#"{"verdict": "SHIP", "reasoning": "It holds.", "revision_brief": null, "dissent_summary": null}"#;

/// Appends that were made, each with the place where it began.
#[derive(Default)]
struct MemoryLedger(Shared<Vec<(u64, Vec<Entry>)>>);

#[async_trait]
impl Ledger for MemoryLedger {
    async fn append(&self, append: Append) -> Result<u64, LedgerError> {
        let next = append.from + append.entries.len() as u64;
        self.0.lock().unwrap().push((append.from, append.entries));
        Ok(next)
    }

    async fn records(&self, _: &Name) -> Result<Vec<Record>, LedgerError> {
        Ok(Vec::new())
    }

    async fn tail(&self, _: &Name, _: u32) -> Result<Vec<Record>, LedgerError> {
        Ok(Vec::new())
    }

    async fn body(&self, _: &str) -> Result<Option<Arc<str>>, LedgerError> {
        Ok(None)
    }
}

/// Says what it was given to say, and keeps what it was asked.
struct ScriptedExecutor {
    answers: Shared<VecDeque<Result<Reply, Failure>>>,
    asked: Shared<Vec<Invocation>>,
    last_words: Option<&'static str>,
    takes: Duration,
}

#[async_trait]
impl Executor for ScriptedExecutor {
    fn about(&self) -> About {
        About { kind: "says", asks_a_model: false, model: None }
    }

    fn call_limit(&self, _: u64, _: Schema) -> Option<CallLimit> {
        Some(CallLimit { tokens: CALL_TOKENS, money: Some(Money::ZERO) })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        invocation.notes.note(|noted| noted.last_words = self.last_words.map(str::to_owned));
        self.asked.lock().unwrap().push(invocation);
        tokio::time::sleep(self.takes).await;
        self.answers.lock().unwrap().pop_front().unwrap_or(Err(Failure::TimedOut))
    }
}

fn reply(text: &str) -> Result<Reply, Failure> {
    let usage = Usage { tokens_in: Some(10), ..Usage::default() };
    Ok(Reply { text: text.to_owned(), usage, ..Reply::default() })
}

/// The result of an invocation and what was recorded.
struct CallRecord {
    asked: FinishedCall,
    prompts: Vec<Invocation>,
    kept: Vec<(u64, Vec<Entry>)>,
    next: u64,
    made: Cost,
    events: Vec<RunEvent>,
}

/// Options of the call; by default nothing is redacted, nothing is retried, and the budget suffices.
struct Options {
    retries: u32,
    timeout: Duration,
    cap: Option<u32>,
    token_cap: Option<u64>,
    records_reservations: bool,
    secret: &'static str,
    last_words: Option<&'static str>,
    /// How long each call takes.
    takes: Duration,
}

const PLAIN: Options = Options {
    retries: 0,
    timeout: Duration::from_secs(60),
    cap: None,
    token_cap: None,
    records_reservations: true,
    secret: "nothing",
    last_words: None,
    takes: Duration::ZERO,
};

async fn came(answers: Vec<Result<Reply, Failure>>, how: Options) -> CallRecord {
    let executor = Arc::new(ScriptedExecutor {
        answers: Shared::new(answers.into()),
        asked: Shared::default(),
        last_words: how.last_words,
        takes: how.takes,
    });
    let caps = Caps { calls: how.cap, tokens: how.token_cap, ..Caps::default() };
    let ledger = Arc::new(MemoryLedger::default());
    let text = |label: &str| -> Arc<str> { format!("{label} {}", how.secret).into() };
    let events = Arc::new(Events::default());
    let call_context = CallContext {
        budget: Arc::new(Budget::new(caps, 1, Amount::default())),
        records_reservations: how.records_reservations,
        ..context(events.clone())
    };
    let invoke = Invoke {
        id: "adjudicate".into(),
        member: "adjudicator".into(),
        step: "adjudicate".into(),
        parts: vec![Part::new(PartKind::Artifact, "a.md", "A text.")],
        schema: Schema::Adjudication,
        task: text("Judge it."),
        extra_fields: Map::new(),
    };
    let config = MemberConfig {
        executor: executor.clone(),
        executor_name: "says".into(),
        timeout: how.timeout,
        retries: how.retries,
        stand_ins: Arc::default(),
        samples: 1,
        role: text("You judge."),
        persona: Some(Arc::new(json!({"body": text("Ada.")}))),
        context: ["one", "two"].map(|doc| Part::new(PartKind::Context, &*text(doc), text("It says"))).into(),
        weight: None,
        extra_fields: Map::new(),
        conversation: None,
        shared: None,
    };
    let recorder = Arc::new(Recorder::new(ledger.clone(), "rtest".into(), 5));
    let made = Arc::new(CostTracker::default());
    let asked =
        call(Arc::new(call_context), recorder.clone(), invoke, config, made.clone(), None).await.unwrap();
    let prompts = std::mem::take(&mut *executor.asked.lock().unwrap());
    let kept = std::mem::take(&mut *ledger.0.lock().unwrap());
    let next = *recorder.next.lock().await;
    let events = std::mem::take(&mut *events.0.lock().unwrap());
    CallRecord { asked, prompts, kept, next, made: made.spent(), events }
}

fn context(observer: Arc<dyn Observer>) -> CallContext {
    CallContext {
        run: "rtest".into(),
        layout: Layout { nonce: "n0nce".to_owned() },
        budget: Arc::new(Budget::new(Caps::default(), 1, Amount::default())),
        records_reservations: true,
        redactor: Redactor::from_secrets(&Secrets { builtin: true, ..Secrets::default() }).unwrap(),
        observer,
        clock: Arc::new(System),
    }
}

#[tokio::test]
async fn an_answer_at_once_costs_one_call_and_is_not_repaired() {
    let came = came(vec![reply(ANSWER)], PLAIN).await;
    assert!(matches!(came.asked.consultation.result, ConsultationResult::Answered(_)));
    assert!(!came.asked.consultation.repaired);
    assert_eq!((came.asked.consultation.spent.calls, came.made.calls, came.next), (1, 1, 5));
    assert_eq!(came.asked.consultation.spent.usage.tokens_in, Some(10));
    assert_eq!((came.asked.consultation.redactions, &came.asked.consultation.message), (0, &None));
    assert_eq!(
        came.asked.attempt.map(|attempt| (attempt.attempt, attempt.why, attempt.status)),
        Some((1, "first".to_owned(), "said".to_owned()))
    );
}

#[tokio::test]
async fn an_attempt_is_durable_before_the_next_and_all_are_counted() {
    let came = came(vec![reply("no"), reply(ANSWER)], PLAIN).await;
    assert!(came.asked.consultation.repaired);
    // One record, at the place that was next; the last attempt's is left to the driver.
    let (from, entries) = &came.kept[0];
    assert_eq!((came.kept.len(), *from, entries.len(), came.next), (1, 5, 1, 6));
    assert_eq!(entries[0].kind, Kind::Attempt);
    assert_eq!(came.prompts.iter().map(|prompt| prompt.attempt).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((came.asked.consultation.spent.calls, came.made.calls), (2, 2));
    assert_eq!(
        (came.made.usage.tokens_in, came.asked.consultation.spent.usage.tokens_in),
        (Some(20), Some(20))
    );
    assert_ne!(came.prompts[0].prompt, came.prompts[1].prompt);
}

#[test]
fn a_call_counts_as_made_from_the_start() {
    assert_eq!(CostTracker::default().spent().calls, 1);
}

#[tokio::test]
async fn without_a_call_left_it_is_not_asked_again() {
    let came = came(vec![reply("no"), reply(ANSWER)], Options { cap: Some(1), ..PLAIN }).await;
    assert_eq!((came.prompts.len(), came.made.calls), (1, 1));
    assert!(matches!(came.asked.consultation.result, ConsultationResult::Absent(_)));
    assert!(came.asked.consultation.message.is_some());
}

fn failed(retry: Retry) -> Result<Reply, Failure> {
    Err(Failure::Failed { message: "no network".to_owned(), retry })
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_after_a_wait_and_not_past_the_deadline() {
    let answers = || vec![failed(Retry::Soon), failed(Retry::Soon), reply(ANSWER)];
    let patient = came(answers(), Options { retries: 2, ..PLAIN }).await;
    assert_eq!(patient.prompts.len(), 3);
    assert_eq!(patient.prompts[0].prompt, patient.prompts[1].prompt);
    let waited = patient.asked.consultation.spent.took;
    assert!((1..=750).contains(&waited.as_millis()), "{waited:?}");
    let again = came(answers(), Options { retries: 2, ..PLAIN }).await;
    assert_eq!(again.asked.consultation.spent.took, waited, "the waits follow from the run");
    let short = Options { retries: 2, timeout: Duration::from_millis(5), ..PLAIN };
    let hurried = came(answers(), short).await;
    assert_eq!(hurried.prompts.len(), 1);
    assert_eq!(hurried.asked.consultation.message.as_deref(), Some("no network"));
}

#[tokio::test(start_paused = true)]
async fn it_waits_as_long_as_the_other_side_asks_where_there_is_time() {
    let later = |pause| vec![failed(Retry::After(pause)), reply(ANSWER)];
    let patient = came(later(Duration::from_secs(30)), Options { retries: 1, ..PLAIN }).await;
    let waited = patient.asked.consultation.spent.took;
    assert!((30_000..=30_250).contains(&waited.as_millis()), "{waited:?}");
    for pause in [Duration::from_secs(60), Duration::MAX] {
        let late = came(later(pause), Options { retries: 1, ..PLAIN }).await;
        assert_eq!((late.prompts.len(), late.asked.consultation.spent.took.as_millis()), (1, 0));
        assert!(matches!(late.asked.consultation.result, ConsultationResult::Absent(AbsenceReason::Failed)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_would_repeat_ends_the_invocation() {
    let refused = came(vec![failed(Retry::Never), reply(ANSWER)], Options { retries: 3, ..PLAIN }).await;
    assert_eq!((refused.prompts.len(), refused.asked.consultation.spent.took.as_millis()), (1, 0));
    assert_eq!(refused.asked.consultation.message.as_deref(), Some("no network"));
}

#[test]
fn the_share_of_a_wait_is_spread_evenly() {
    let drawn = |nonce: &str, id: &str, call| wait_share(nonce, &"r1".into(), &id.into(), call, 9);
    let mut counts = [0; 10];
    for at in 0..1_000 {
        counts[usize::try_from(drawn("n", &format!("r1/m{at}"), 1)).unwrap()] += 1;
    }
    assert!(counts.iter().all(|count| (50..=150).contains(count)), "{counts:?}");
    assert_eq!(wait_share("n", &"r1".into(), &"r1/m".into(), 1, 0), 0);
}

#[tokio::test]
async fn who_is_late_is_quoted() {
    let came =
        came(vec![Err(Failure::TimedOut)], Options { last_words: Some("429: slow down"), ..PLAIN }).await;
    let message = came.asked.consultation.message.unwrap_or_default();
    assert!(
        message.contains("no answer before the deadline") && message.contains("429: slow down"),
        "{message}"
    );
}

#[tokio::test]
async fn secrets_are_redacted_in_prompts_and_answers() {
    let said = format!(
        "{{\"verdict\": \"SHIP\", \"reasoning\": \"{SECRET} and {SECRET}\", \"revision_brief\": null, \"dissent_summary\": null}}"
    );
    let came = came(vec![reply(&said)], Options { secret: SECRET, ..PLAIN }).await;
    let [asked] = &came.prompts[..] else { panic!("one question") };
    let shown = format!("{}{}{:?}{:?}", asked.prompt, asked.role, asked.persona, asked.parts);
    assert!(!shown.contains(SECRET), "{shown}");
    // Task, role, persona, two documents and their names; and twice in the answer.
    assert_eq!(came.asked.consultation.redactions, 9);
    assert!(!came.asked.attempt.is_some_and(|attempt| attempt.text.contains(SECRET)));
}

#[tokio::test]
async fn secrets_in_what_an_executor_says_of_itself_are_redacted_and_counted() {
    let reply = Reply { model: Some(SECRET.to_owned()), ..reply(ANSWER).unwrap() };
    let came = came(vec![Ok(reply)], PLAIN).await;
    assert!(came.asked.consultation.model.is_some_and(|model| !model.contains(SECRET)));
    assert_eq!(came.asked.consultation.redactions, 1);
}

#[tokio::test(start_paused = true)]
async fn an_executor_has_a_moment_past_the_deadline_to_end() {
    let timeout = Duration::from_secs(1);
    let late = |by| Options { timeout, takes: timeout + by, ..PLAIN };
    let in_time = came(vec![reply(ANSWER)], late(GRACE - Duration::from_millis(1))).await;
    assert!(matches!(in_time.asked.consultation.result, ConsultationResult::Answered(_)));
    let late = came(vec![reply(ANSWER)], late(GRACE + Duration::from_millis(1))).await;
    assert!(matches!(late.asked.consultation.result, ConsultationResult::Absent(AbsenceReason::TimedOut)));
    assert_eq!(late.asked.consultation.spent.took, timeout + GRACE);
}

#[tokio::test]
async fn what_a_call_may_take_is_durable_before_it_where_amounts_are_capped() {
    let capped = Options { token_cap: Some(1_000), ..PLAIN };
    let came = |how| came(vec![reply(ANSWER)], how);
    let [(5, entries)] = &came(capped).await.kept[..] else { panic!("one append before the call") };
    let [entry] = &entries[..] else { panic!("one record") };
    assert_eq!(entry.kind, Kind::RunIntent);
    let text = serde_json::to_string(&entry.data).unwrap();
    assert!(text.contains("adjudicate") && text.contains(&CALL_TOKENS.to_string()), "{text}");
    let capped = Options { token_cap: Some(1_000), records_reservations: false, ..PLAIN };
    assert!(came(capped).await.kept.is_empty(), "no process takes up this run");
}

#[tokio::test]
async fn a_call_over_the_cap_is_not_made_and_says_why() {
    let capped = Options { token_cap: Some(CALL_TOKENS - 1), ..PLAIN };
    let came = came(vec![reply(ANSWER)], capped).await;
    assert!(came.prompts.is_empty() && came.kept.is_empty() && came.asked.attempt.is_none());
    let consultation = came.asked.consultation;
    assert!(matches!(consultation.result, ConsultationResult::Absent(AbsenceReason::RunOverBudget)));
    assert!(consultation.message.is_some_and(|message| message.contains("budget.tokens")));
    // The number of calls is its own reason.
    assert_eq!(FinishedCall::over_budget(&Exhausted::Calls { cap: 3 }).consultation.message, None);
}

/// Keeps what it is told.
#[derive(Default)]
struct Events(Shared<Vec<RunEvent>>);

impl Observer for Events {
    fn observe(&self, event: RunEvent) {
        self.0.lock().unwrap().push(event);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_in_is_told_at_intervals() {
    let observer = Arc::new(Events::default());
    let invoke = Invoke {
        id: "r1/a".into(),
        member: "a".into(),
        step: "r1".into(),
        parts: Vec::new(),
        schema: Schema::PlainText,
        task: "Say it.".into(),
        extra_fields: Map::new(),
    };
    let progress = progress(&Arc::new(context(observer.clone())), &invoke, &Waited::default());
    for pause_ms in [0, 199, 1, 0, 200] {
        tokio::time::advance(Duration::from_millis(pause_ms)).await;
        progress.wrote(10);
    }
    let bytes = |event: &RunEvent| match event {
        RunEvent::Writing { bytes, .. } => Some(*bytes),
        _ => None,
    };
    let written: Vec<usize> =
        observer.0.lock().unwrap().drain(..).filter_map(|event| bytes(&event)).collect();
    assert_eq!(written, [10, 30, 50]);
    // A wait before the call is sent: only one that a person would notice, and without secrets.
    progress.waits("the service", Duration::from_secs(2));
    progress.waits(&format!("pool `{SECRET}`"), Duration::from_secs(8));
    let [RunEvent::Waiting { member, why, wait, retry: None, .. }] = &observer.0.lock().unwrap()[..] else {
        panic!("one wait")
    };
    assert_eq!((&**member, wait.as_secs(), why.contains(SECRET)), ("a", 8, false));
}

/// The reason for a wait, its seconds, and the retry.
type Wait = (String, u64, Option<(u32, u32)>);

/// The waits that an observer is told of.
fn waits(events: &[RunEvent]) -> Vec<Wait> {
    let wait = |event: &RunEvent| match event {
        RunEvent::Waiting { why, wait, retry, .. } => Some((why.clone(), wait.as_secs(), *retry)),
        _ => None,
    };
    events.iter().filter_map(wait).collect()
}

// X4
#[tokio::test(start_paused = true)]
async fn waits_over_two_seconds_are_reported_and_retries_are_counted() {
    let asked = |seconds| failed(Retry::After(Duration::from_secs(seconds)));
    // The service asks for waits; a wait of no time takes a retry.
    let answers = vec![asked(1), asked(8), asked(0), asked(3), reply(ANSWER)];
    let patient = came(answers, Options { retries: 1, ..PLAIN }).await;
    assert!(matches!(patient.asked.consultation.result, ConsultationResult::Answered(_)));
    let why = || "no network".to_owned();
    assert_eq!(waits(&patient.events), [(why(), 8, None), (why(), 3, None)]);
    assert_eq!(patient.asked.consultation.attempts.retries, 1, "a wait that the service asks for is none");
    // Short waits are reported once, when they add up.
    let slow = came(vec![asked(1), asked(1), asked(1), asked(1), reply(ANSWER)], PLAIN).await;
    assert_eq!(waits(&slow.events), [(why(), 1, None)]);
    let none = came(vec![asked(0), reply(ANSWER)], PLAIN).await;
    assert_eq!((none.prompts.len(), none.events.len()), (1, 0), "no retries, one call");
}

#[tokio::test(start_paused = true)]
async fn a_long_pause_before_a_retry_says_which_of_how_many() {
    let options = Options { retries: 40, timeout: Duration::from_secs(900), ..PLAIN };
    let came = came(std::iter::repeat_with(|| failed(Retry::Soon)).take(50).collect(), options).await;
    assert!((10..41).contains(&came.prompts.len()), "a minute of pauses ends it: {}", came.prompts.len());
    let waits = waits(&came.events);
    // The first one may be short: it is long with those before it.
    assert!(
        waits.len() > 1 && waits[1..].iter().all(|(_, seconds, _)| (2..=8).contains(seconds)),
        "{waits:?}"
    );
    let retries: Vec<_> = waits.into_iter().filter_map(|(.., retry)| retry).collect();
    assert!(
        retries.is_sorted() && retries.iter().all(|(number, of)| *of == 40 && *number <= 40),
        "{retries:?}"
    );
}
