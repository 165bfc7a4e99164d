//! One invocation, from prompt to consultation, without I/O (X4): attempts, one re-prompt, retries of
//! failures with backoff, one deadline. The caller makes the calls and keeps the time.
//! Also the records of an invocation (D7), and the config of a member.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_manifest::money::Money;
use quorate_protocol::answers::Schema;
use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json, Name, Part};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, json};

use crate::answer;
use crate::conversation::ConversationContext;
use crate::ports::executor::{About, Executor, Failure, Invocation, Reply, Retry, Usage};
use crate::record::{self, Spent, Status};

/// The longest first pause before a retry; it doubles.
const FIRST_BACKOFF_MS: u64 = 250;
const MAX_BACKOFF_MS: u64 = 8_000;

/// How often an invocation waits at the service's request without taking a retry. Without a cap a service that always asks
/// for a second would be asked until the deadline.
const MAX_WAITS: u32 = 20;

/// The caller's next step.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep {
    /// Reserve a call and make it.
    Call(CallReason),
    /// Wait, then [`Attempts::next_call`]: `at_least_ms`, and a part of `spread_ms` that the caller chooses evenly, so
    /// that members that failed together do not all ask again together. `retry` is the number of the retry that follows;
    /// `None` where the other side asked for the wait.
    Wait {
        at_least_ms: u64,
        spread_ms: u64,
        retry: Option<u32>,
    },
    Done(Result<Json, AbsenceReason>),
}

/// Why a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallReason {
    /// It is the first.
    First,
    /// The call before failed.
    Retry,
    /// The service asked for a wait before the call is made again.
    Wait,
    /// The service of the executor before failed.
    StandIn,
    /// The answer before did not fit; these are the complaints to quote.
    RePrompt(Vec<String>),
}

impl CallReason {
    /// The word in the attempt's record.
    pub fn as_str(&self) -> &'static str {
        match self {
            CallReason::First => "first",
            CallReason::Retry => "retry",
            CallReason::Wait => "wait",
            CallReason::StandIn => "stand-in",
            CallReason::RePrompt(_) => "re-prompt",
        }
    }
}

/// The state of one invocation.
#[derive(Debug)]
pub struct Attempts {
    schema: Schema,
    retries: u32,
    retries_made: u32,
    waits_left: u32,
    may_re_prompt: bool,
    why: CallReason,
    backoff_ms: u64,
}

impl Attempts {
    /// An invocation that may retry this many failures.
    pub fn new(schema: Schema, retries: u32) -> Self {
        Attempts {
            schema,
            retries,
            retries_made: 0,
            waits_left: MAX_WAITS,
            may_re_prompt: true,
            why: CallReason::First,
            backoff_ms: FIRST_BACKOFF_MS,
        }
    }

    /// What to do first, and after a wait.
    pub fn next_call(&self) -> NextStep {
        NextStep::Call(self.why.clone())
    }

    /// Whether the answer, if one came, needed a re-prompt.
    pub fn was_repaired(&self) -> bool {
        !self.may_re_prompt
    }

    /// Takes how the attempt ended, as what was said or as a failure, and says what is next, with the complaints about what was
    /// said. `material` is what the member was shown.
    pub fn record_result(
        &mut self,
        how: Result<&str, &Failure>,
        material: &[&str],
    ) -> (NextStep, Vec<String>) {
        let retry = match how {
            Ok(text) => {
                return match answer::extract(self.schema, text, material) {
                    Ok(answer) => (NextStep::Done(Ok(answer)), Vec::new()),
                    Err(complaints) if self.may_re_prompt => {
                        self.may_re_prompt = false;
                        self.why = CallReason::RePrompt(complaints.clone());
                        (self.next_call(), complaints)
                    }
                    Err(complaints) => (NextStep::Done(Err(AbsenceReason::SchemaFailed)), complaints),
                };
            }
            Err(Failure::TimedOut) => return (NextStep::Done(Err(AbsenceReason::TimedOut)), Vec::new()),
            Err(Failure::Failed { retry, .. }) => *retry,
        };
        let Some(wait) = self.take_repeat(retry) else {
            return (NextStep::Done(Err(AbsenceReason::Failed)), Vec::new());
        };
        if !matches!(self.why, CallReason::RePrompt(_)) {
            let is_asked_for = matches!(wait, NextStep::Wait { retry: None, .. });
            self.why = if is_asked_for { CallReason::Wait } else { CallReason::Retry };
        }
        (wait, Vec::new())
    }

    /// Takes one wait that the other side asked for, or one retry, and gives the wait before the next call; `None` if the
    /// failure is not tried again.
    fn take_repeat(&mut self, retry: Retry) -> Option<NextStep> {
        let asked = match retry {
            Retry::Never => return None,
            Retry::Soon => Duration::ZERO,
            Retry::After(wait) => wait,
        };
        let at_least_ms = u64::try_from(asked.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
        let spread_ms = self.backoff_ms;
        if asked.is_zero() {
            self.backoff_ms = (spread_ms * 2).min(MAX_BACKOFF_MS);
        } else if self.waits_left > 0 {
            self.waits_left -= 1;
            return Some(NextStep::Wait { at_least_ms, spread_ms, retry: None });
        }
        if self.retries_made == self.retries {
            return None;
        }
        self.retries_made += 1;
        Some(NextStep::Wait { at_least_ms, spread_ms, retry: Some(self.retries_made) })
    }
}

/// What an invocation cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
#[serde(into = "Spent")]
#[schemars(with = "Spent", rename = "spent", extend("required" = ["calls", "ms"]))]
pub struct Cost {
    /// Calls made, re-prompts and retries included.
    pub calls: u32,
    /// Tokens, where the executor knows.
    pub usage: Usage,
    /// From question to end.
    pub took: Duration,
}

impl Cost {
    /// Adds the calls and the usage of another sample, which was asked at the same time.
    pub fn add(&mut self, other: &Cost) {
        self.calls = self.calls.saturating_add(other.calls);
        self.usage.add(other.usage);
    }

    pub fn recorded(&self) -> Spent {
        let (calls, ms) = (Some(self.calls.into()), Some(millis(self.took)));
        Spent { calls, ms, ..Spent::from(&self.usage) }
    }
}

impl From<Cost> for Spent {
    fn from(cost: Cost) -> Spent {
        cost.recorded()
    }
}

/// An invocation that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Consultation {
    /// The answer, or the reason for its absence.
    pub result: ConsultationResult,
    /// The reason for a missing output, as a message for users.
    pub message: Option<String>,
    /// Whether the answer needed a re-prompt.
    pub repaired: bool,
    /// SHA-256 of the first prompt; `None` if no call was made.
    pub prompt_sha256: Option<String>,
    /// The model that said it answered.
    pub model: Option<String>,
    /// The version of the program that was asked.
    pub version: Option<String>,
    /// The tools that the program refused its model in any attempt.
    pub refused_tools: Vec<String>,
    pub spent: Cost,
    /// How many secrets were taken out.
    pub redactions: usize,
    /// Whether the answer came from a recording of an earlier question of the same content, or is missing there: no executor
    /// was called.
    pub recorded: bool,
    /// The turn, where the other side has put what was said into the conversation itself.
    pub posted: Option<Name>,
    /// What is known of the attempts.
    pub attempts: FailedAttempts,
    /// How the samples of the answer differ, where it has several.
    pub samples: Option<record::Samples>,
    /// The executor that was asked last, where it stands in for the member's own.
    pub stand_in: Option<Substitution>,
    /// The probability of each option, where a decision model answered.
    pub probabilities: Option<BTreeMap<String, f64>>,
}

impl Consultation {
    /// An invocation without a call, or one that was cancelled.
    pub fn without_answer(why: AbsenceReason, spent: Cost) -> Self {
        Consultation {
            result: ConsultationResult::Absent(why),
            message: None,
            repaired: false,
            prompt_sha256: None,
            model: None,
            version: None,
            refused_tools: Vec::new(),
            spent,
            redactions: 0,
            recorded: false,
            posted: None,
            attempts: FailedAttempts::default(),
            samples: None,
            stand_in: None,
            probabilities: None,
        }
    }

    pub fn status(&self) -> Status {
        Status::of(&self.result)
    }

    /// The executor that was asked last: the member's own, or the one that stands in for it.
    pub fn asked_last<'c>(&'c self, own: (&'c str, &'c About)) -> (&'c str, &'c About) {
        self.stand_in.as_ref().map_or(own, |stand_in| (&*stand_in.executor_name, &stand_in.about))
    }

    pub fn into_record(
        self,
        invoke: &Invoke,
        executor: &str,
        about: &About,
        weight: Option<f64>,
    ) -> record::Consultation {
        let status = self.status();
        let (stand_in_for, tried) = match &self.stand_in {
            Some(stand_in) => (Some(executor.to_owned()), stand_in.tried.clone()),
            None => (None, Vec::new()),
        };
        let (executor, about) = self.asked_last((executor, about));
        let (executor, about) = (executor.to_owned(), about.clone());
        let asks_a_model = stand_in_for.is_some().then_some(about.asks_a_model);
        let (answer, text, scope) = match self.result {
            ConsultationResult::Answered(answer) => (Some(answer), None, None),
            ConsultationResult::Absent(why) => {
                let scope = (why == AbsenceReason::RunOverBudget).then(|| "run".to_owned());
                (None, self.message, scope)
            }
        };
        let requested_model =
            about.model.clone().filter(|asked| self.model.as_ref().is_some_and(|model| model != asked));
        let mut more = Map::new();
        more.insert("woven".to_owned(), Json::Array(Vec::new()));
        more.extend(weight.map(|weight| ("weight".to_owned(), json!(weight))));
        more.extend(invoke.extra_fields.clone());
        record::Consultation {
            invocation: invoke.id.clone(),
            member: invoke.member.clone(),
            step: invoke.step.clone(),
            status,
            attempts: self.spent.calls,
            repaired: self.repaired,
            executor,
            kind: about.kind.to_string(),
            stand_in_for,
            asks_a_model,
            tried,
            spent: self.spent.recorded(),
            redactions: self.redactions as u64,
            prompt_sha256: self.prompt_sha256,
            model: self.model.or_else(|| about.model.clone()),
            requested_model,
            version: self.version,
            refused_tools: self.refused_tools,
            recorded: self.recorded,
            samples: self.samples,
            probabilities: self.probabilities,
            answer,
            text,
            scope,
            more,
        }
    }
}

/// The details of an invocation without an answer that only its attempts have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailedAttempts {
    /// Calls after the first that repeat one that failed. Re-prompts do not count, nor do calls after a wait that the service
    /// asked for.
    pub retries: u32,
    /// The HTTP status of the last response, if it is an error.
    pub http_status: Option<u16>,
    /// What the member said last, if it said something.
    pub said: Option<String>,
}

impl FailedAttempts {
    pub(crate) fn add(&mut self, attempt: &record::Attempt) {
        // A sample's answer is recorded as an attempt as well, and has not failed.
        if !attempt.is_answer() {
            self.retries += u32::from(attempt.why == CallReason::Retry.as_str());
            self.http_status = attempt.http_status;
            self.said = (attempt.status == "said").then(|| attempt.text.clone());
        }
    }
}

/// Why a member that was asked until its deadline has no answer, with the table that sets the deadline.
pub fn no_answer_within(timeout: Duration, executor: &str) -> String {
    let is_key = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let setting = match is_key(executor) {
        true => format!("timeout of [executors.{executor}]"),
        false => format!("timeout of executor `{executor}`"),
    };
    format!("no answer within {} s ({setting})", timeout.as_secs())
}

/// A duration in whole milliseconds.
pub fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// The object of a `json!({…})`.
pub fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(object) => object,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

/// An executor that answers in place of others whose services failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Substitution {
    /// The name that it goes by.
    pub executor_name: Arc<str>,
    pub about: About,
    /// The executors before it, in the order in which they were asked.
    pub tried: Vec<record::Tried>,
}

/// An executor that is asked after the services of the executors before it have failed.
#[derive(Clone)]
pub struct StandIn {
    pub executor: Arc<dyn Executor>,
    /// The name that the executor goes by.
    pub executor_name: Arc<str>,
    /// One deadline spans all its attempts; it starts when the executor is first asked.
    pub timeout: Duration,
    /// How many failures are tried again.
    pub retries: u32,
}

/// A member that can be asked.
#[derive(Clone)]
pub struct MemberConfig {
    pub executor: Arc<dyn Executor>,
    /// The name that the executor goes by.
    pub executor_name: Arc<str>,
    /// One deadline spans all attempts of an invocation.
    pub timeout: Duration,
    /// How many failures are tried again.
    pub retries: u32,
    /// The executors that stand in for it, in the order in which they are asked.
    pub stand_ins: Arc<[StandIn]>,
    /// How many times it is asked for each answer; 1 for one answer.
    pub samples: u32,
    /// The member's role prompt.
    pub role: Arc<str>,
    /// The member's persona: the merged frontmatter, with its body as `body`.
    pub persona: Option<Arc<Json>>,
    /// Documents that its answers are based on.
    pub context: Vec<Part>,
    /// Recorded with its consultations.
    pub weight: Option<f64>,
    /// Further data for the records of its consultations, for example what was woven into its role.
    pub extra_fields: Map<String, Json>,
    /// The conversation, where it is asked for a turn in one.
    pub conversation: Option<Arc<ConversationContext>>,
    /// The answers that its run shares with others, if it shares any.
    pub shared: Option<Arc<SharedAnswers>>,
}

impl MemberConfig {
    /// The same member, asked through a stand-in.
    #[must_use]
    pub(crate) fn with_stand_in(self, stand_in: &StandIn) -> Self {
        let StandIn { executor, executor_name, timeout, retries } = stand_in.clone();
        MemberConfig { executor, executor_name, timeout, retries, ..self }
    }

    /// Whether the member's executor or one of its stand-ins asks a model.
    pub(crate) fn may_ask_a_model(&self) -> bool {
        self.executors().any(|(executor, _)| executor.about().asks_a_model)
    }

    /// The member's own executor, then its stand-ins, with their names.
    pub fn executors(&self) -> impl Iterator<Item = (&dyn Executor, &Arc<str>)> {
        let stand_ins = self.stand_ins.iter().map(|one| (&*one.executor, &one.executor_name));
        std::iter::once((&*self.executor, &self.executor_name)).chain(stand_ins)
    }
}

/// The name of an executor, and the hash of a prompt.
pub(crate) type Question = (String, String);

/// Answers that runs share: a question that another run has put to the same executor in the same words is not asked again. The
/// words are the whole prompt, so runs share an answer only if they have the same seed, from which the prompt's nonce follows.
#[derive(Debug, Default)]
pub struct SharedAnswers(Mutex<BTreeMap<Question, (Json, Option<String>)>>);

impl SharedAnswers {
    pub(crate) fn keep(&self, question: Question, answer: &Json, model: Option<String>) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.entry(question).or_insert_with(|| (answer.clone(), model));
    }

    /// The reply to a question that was answered, noted as recorded and without a price.
    pub(crate) fn reply(&self, question: &Question, invocation: &Invocation) -> Option<Reply> {
        let (answer, model) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(question)?.clone();
        let nothing = Some(0);
        let usage =
            Usage { tokens_in: nothing, tokens_out: nothing, money: Some(Money::ZERO), ..Usage::default() };
        invocation.notes.note(|noted| {
            noted.recorded = true;
            noted.usage = Some(usage);
        });
        Some(Reply { text: answer.to_string(), model, usage, posted: None })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FINE: &str = r#"{"would_block": false}"#;

    fn said(text: &str) -> Result<&str, &'static Failure> {
        Ok(text)
    }

    fn failed(retry: Retry) -> Failure {
        Failure::failed("").with_retry(retry)
    }

    #[test]
    fn one_re_prompt_and_no_second() {
        // X4
        let mut ask = Attempts::new(Schema::FirstAnswer, 0);
        assert!(matches!(ask.record_result(said("no json"), &[]).0, NextStep::Call(CallReason::RePrompt(_))));
        assert!(ask.was_repaired());
        assert_eq!(
            ask.record_result(said("still none"), &[]).0,
            NextStep::Done(Err(AbsenceReason::SchemaFailed))
        );
        let mut ask = Attempts::new(Schema::FirstAnswer, 0);
        ask.record_result(said("no json"), &[]);
        assert!(matches!(ask.record_result(said(FINE), &[]).0, NextStep::Done(Ok(_))));
    }

    #[test]
    fn failures_are_retried_and_timeouts_are_not() {
        // X4
        let mut ask = Attempts::new(Schema::FirstAnswer, 2);
        let mut fail = |retry| ask.record_result(Err(&failed(retry)), &[]).0;
        assert_eq!(fail(Retry::Soon), NextStep::Wait { at_least_ms: 0, spread_ms: 250, retry: Some(1) });
        let asked = Duration::from_micros(3_000_001);
        assert_eq!(
            fail(Retry::After(asked)),
            NextStep::Wait { at_least_ms: 3_001, spread_ms: 500, retry: None }
        );
        assert_eq!(ask.next_call(), NextStep::Call(CallReason::Wait), "it is not counted as a retry");
        let mut fail = |retry| ask.record_result(Err(&failed(retry)), &[]).0;
        // The wait that was asked for took none of the two retries, and a wait of zero is not counted.
        let no_wait = Retry::After(Duration::ZERO);
        assert_eq!(fail(no_wait), NextStep::Wait { at_least_ms: 0, spread_ms: 500, retry: Some(2) });
        assert_eq!(fail(no_wait), NextStep::Done(Err(AbsenceReason::Failed)));
        assert_eq!(fail(Retry::Soon), NextStep::Done(Err(AbsenceReason::Failed)));
        assert_eq!(ask.next_call(), NextStep::Call(CallReason::Retry));
        let mut ask = Attempts::new(Schema::FirstAnswer, 5);
        assert_eq!(
            ask.record_result(Err(&Failure::TimedOut), &[]).0,
            NextStep::Done(Err(AbsenceReason::TimedOut))
        );
    }

    #[test]
    fn waits_that_are_asked_for_have_a_cap_of_their_own() {
        let mut ask = Attempts::new(Schema::FirstAnswer, 0);
        let limited = failed(Retry::After(Duration::from_millis(10)));
        for _ in 0..MAX_WAITS {
            assert!(matches!(
                ask.record_result(Err(&limited), &[]).0,
                NextStep::Wait { at_least_ms: 10, .. }
            ));
        }
        assert_eq!(ask.record_result(Err(&limited), &[]).0, NextStep::Done(Err(AbsenceReason::Failed)));
        // Beyond the cap a wait takes a retry.
        let mut ask = Attempts::new(Schema::FirstAnswer, 1);
        for _ in 0..=MAX_WAITS {
            assert!(matches!(ask.record_result(Err(&limited), &[]).0, NextStep::Wait { .. }));
        }
        assert_eq!(ask.record_result(Err(&limited), &[]).0, NextStep::Done(Err(AbsenceReason::Failed)));
    }

    #[test]
    fn a_failure_that_would_repeat_is_not_retried() {
        let mut ask = Attempts::new(Schema::FirstAnswer, 5);
        let refused = failed(Retry::Never);
        assert_eq!(ask.record_result(Err(&refused), &[]).0, NextStep::Done(Err(AbsenceReason::Failed)));
    }

    #[test]
    fn the_pause_grows_up_to_a_limit() {
        let mut ask = Attempts::new(Schema::FirstAnswer, 100);
        let fail = |ask: &mut Attempts| ask.record_result(Err(&failed(Retry::Soon)), &[]).0;
        let last = (0..100).map(|_| fail(&mut ask)).last();
        assert_eq!(last, Some(NextStep::Wait { at_least_ms: 0, spread_ms: 8_000, retry: Some(100) }));
    }

    #[test]
    fn a_retry_after_a_re_prompt_still_quotes_the_complaints() {
        let mut ask = Attempts::new(Schema::FirstAnswer, 1);
        ask.record_result(said("no json"), &[]);
        ask.record_result(Err(&failed(Retry::Soon)), &[]);
        assert!(
            matches!(ask.next_call(), NextStep::Call(CallReason::RePrompt(complaints)) if !complaints.is_empty())
        );
    }
}
