//! One question outside of any run or turn cycle: asked through the executor port like every other, with the same attempts,
//! re-prompt, deadline, budget and redaction, and recorded in a stream of the ledger. The caller names the stream and
//! handles the answer.
//! Also the probe: a harmless question for any executor, for `doctor` and the conformance suite.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::answers::Schema;
use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json, Name, Part, PartKind};

use crate::attempts::{Consultation, Cost, MemberConfig};
use crate::budget::{Amount, Budget, Caps};
use crate::call::{self, CallContext, FinishedCall, Recorder};
use crate::clock::Clock;
use crate::entropy;
use crate::observer::{Observer, RunEvent};
use crate::ports::dispatcher::Question;
use crate::ports::executor::{Executor, Invocation, Notes, Progress};
use crate::ports::ledger::{Durability, Entry, Fence, Ledger, LedgerError};
use crate::prompt::Layout;
use crate::redact::Redactor;

/// Asks single questions.
pub struct SingleCall {
    /// Where attempts and consultations are recorded.
    pub stream: Name,
    /// Where the stream is.
    pub ledger: Arc<dyn Ledger>,
    /// The source of recorded timestamps.
    pub clock: Arc<dyn Clock>,
    /// Removes secrets before anything is shown or recorded.
    pub redactor: Redactor,
    /// The caps on one question.
    pub caps: Caps,
    pub observer: Arc<dyn Observer>,
}

/// A question that has its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The answer, which has the form that was asked for.
    pub answer: Json,
    /// The executor that gave it.
    pub call_info: CallInfo,
}

/// The executor that was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct CallInfo {
    /// The name that the executor goes by.
    pub executor: Arc<str>,
    pub kind: &'static str,
    /// Whether a model is behind it.
    pub asks_a_model: bool,
    /// The model: what says that it answered, else what the settings name.
    pub model: Option<String>,
    /// SHA-256 of the first prompt; `None` if no call was made.
    pub prompt_sha256: Option<String>,
    pub spent: Cost,
    /// The probability of each option, where a decision model answered; of a yes-or-no question that of `yes` alone.
    pub probabilities: Option<BTreeMap<String, f64>>,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SingleCallError {
    /// No answer. Recorded as a consultation without output.
    #[error("{}", .message.as_deref().unwrap_or_else(|| .absent.status()))]
    Unanswered {
        /// The result.
        absent: AbsenceReason,
        /// Why, where more is known.
        message: Option<String>,
        call_info: Box<CallInfo>,
    },
    /// The ledger refused or failed. An answer may have been paid for and is not recorded.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl SingleCall {
    /// Asks an executor, and returns when the result is durable in the ledger. `id` names the invocation; the part
    /// before its slash is the step, for example `reflect/alice`. The question supplies the role prompt. Parts are
    /// redacted before they are shown.
    ///
    /// # Errors
    /// See [`SingleCallError`].
    #[crate::boxed]
    pub async fn ask(
        &self,
        id: &Name,
        member: &Name,
        config: &MemberConfig,
        question: Question,
    ) -> Result<Answer, SingleCallError> {
        let tail = self.ledger.tail(&self.stream, 1).await?;
        let next = tail.last().map_or(0, |last| last.n + 1);
        let recorder = Arc::new(Recorder::at_tail(self.ledger.clone(), self.stream.clone(), next));
        let call_context = Arc::new(CallContext {
            run: self.stream.clone(),
            layout: Layout { nonce: entropy::nonce(&entropy::bytes()) },
            budget: Arc::new(Budget::new(self.caps, 0, Amount::default())),
            records_reservations: false,
            redactor: self.redactor.clone(),
            observer: self.observer.clone(),
            clock: self.clock.clone(),
        });
        let step = id.split_once('/').map_or(&**id, |(step, _)| step);
        let (mut invoke, config) = prepare(id, member, step, question, config);
        // The call redacts the rest.
        let (parts, taken_out) = redact_parts(&self.redactor, std::mem::take(&mut invoke.parts)).await;
        invoke.parts = parts;
        let about = config.executor.about();
        let (name, weight) = (config.executor_name.clone(), config.weight);
        self.observer.observe(RunEvent::asked(&invoke, config.timeout));
        let mut finished = run_call(&call_context, &recorder, invoke.clone(), config).await?;
        finished.consultation.redactions += taken_out;
        let (status, took) = (finished.consultation.status(), finished.consultation.spent.took);
        let answer = match &finished.consultation.result {
            ConsultationResult::Answered(answer) => Some(answer),
            ConsultationResult::Absent(_) => None,
        };
        self.observer.observe(RunEvent::answered(&invoke, status, took, answer));
        let at_ms = self.clock.now_ms();
        let mut entries: Vec<_> =
            finished.attempt.into_iter().map(|attempt| Entry::from_data(attempt, at_ms)).collect();
        let ended = finished.consultation.clone().into_record(&invoke, &name, &about, weight);
        entries.push(Entry::from_data(ended, at_ms));
        recorder.append(entries, Vec::new(), Durability::Synced).await?;
        let (executor, about) = finished.consultation.asked_last((&name, &about));
        let (name, about) = (Arc::from(executor), about.clone());
        let Consultation { result, message, prompt_sha256, model, spent, probabilities, .. } =
            finished.consultation;
        let call_info = CallInfo {
            executor: name,
            kind: about.kind,
            asks_a_model: about.asks_a_model,
            model: model.or(about.model),
            prompt_sha256,
            spent,
            probabilities,
        };
        match result {
            ConsultationResult::Answered(answer) => Ok(Answer { answer, call_info }),
            ConsultationResult::Absent(absent) => {
                Err(SingleCallError::Unanswered { absent, message, call_info: Box::new(call_info) })
            }
        }
    }
}

/// Parts without secrets, and how many there were.
pub(crate) async fn redact_parts(redactor: &Redactor, mut parts: Vec<Part>) -> (Vec<Part>, usize) {
    let bytes = parts.iter().map(|part| part.text.len()).sum();
    let work = move |redactor: &Redactor| {
        let count = redact_parts_now(redactor, &mut parts);
        (parts, count)
    };
    redactor.run_blocking_if_large(bytes, work).await
}

/// Takes the secrets out of parts, and says how many there were. A part that is JSON is redacted as it reads, so that it
/// stays JSON.
fn redact_parts_now(redactor: &Redactor, parts: &mut [Part]) -> usize {
    let mut count = 0;
    for part in parts.iter_mut().filter(|_| !redactor.is_empty()) {
        let (text, in_text) = match serde_json::from_str(&part.text) {
            Ok(value) => {
                let (clean, found) = redactor.redact_json(value);
                (if found > 0 { clean.to_string() } else { part.text.to_string() }, found)
            }
            Err(_) => redactor.redact(&part.text),
        };
        let (name, in_name) = redactor.redact(&part.name);
        count += in_text + in_name;
        (part.text, part.name) = (text.into(), name.into());
    }
    count
}

/// A question as an invocation, and the member config for it.
pub(crate) fn prepare(
    id: &Name,
    member: &Name,
    step: &str,
    question: Question,
    config: &MemberConfig,
) -> (Invoke, MemberConfig) {
    let invoke = Invoke {
        id: id.clone(),
        member: member.clone(),
        step: step.into(),
        parts: question.parts,
        schema: question.answer_schema,
        task: question.task.into(),
        extra_fields: config.extra_fields.clone(),
    };
    (invoke, MemberConfig { role: question.role.into(), ..config.clone() })
}

/// Puts a question, if there is a call left for it. Attempts before the last are recorded; the last one and the
/// consultation are the caller's to record.
///
/// # Errors
/// When the ledger fails.
pub(crate) async fn run_call(
    call_context: &Arc<CallContext>,
    recorder: &Arc<Recorder>,
    invoke: Invoke,
    config: MemberConfig,
) -> Result<FinishedCall, LedgerError> {
    if let Err(why) = call_context.budget.reserve_call() {
        return Ok(FinishedCall::over_budget(&why));
    }
    call::call(call_context.clone(), recorder.clone(), invoke, config, Arc::default(), None).await
}

/// The form that the answer has to have.
pub const PROBE_SCHEMA: Schema = Schema::FirstAnswer;

const SPECIMEN: &str = "The meeting of the desk moved to Tuesday at ten, since the hall is closed on Monday. Please tell the \
                        others, and bring the list that we sent you.";
const PROBE_ROLE: &str = "# Skeptic\n\nSay whether anything in the text should stop it from going out.";

/// The form in which an executor is probed: a deliberator's answer, or yes or no if the executor cannot deliberate.
pub fn probe_schema(executor: &dyn Executor) -> Schema {
    executor.refuses(PROBE_SCHEMA).map_or(PROBE_SCHEMA, |_| Schema::Predicate)
}

/// A harmless question for any executor, to be answered within `timeout`.
pub fn probe_question(timeout: Duration) -> Invocation {
    probe_question_in(PROBE_SCHEMA, timeout)
}

/// The question in one of the forms of [`probe_schema`].
pub fn probe_question_in(schema: Schema, timeout: Duration) -> Invocation {
    let (role, task) = match schema {
        Schema::Predicate => ("", "The condition: the text says that the meeting moved to another day."),
        _ => (PROBE_ROLE, "Say what you think of the text."),
    };
    let invoke = Invoke {
        id: "r1/skeptic".into(),
        member: "skeptic".into(),
        step: "r1".into(),
        parts: vec![Part::new(PartKind::Artifact, "specimen.md", SPECIMEN)],
        schema,
        task: task.into(),
        extra_fields: serde_json::Map::new(),
    };
    let layout = Layout { nonce: entropy::nonce(&entropy::bytes()) };
    let prompt = layout.prompt(&invoke, &[], role);
    Invocation {
        nonce: layout.nonce.into(),
        redactor: Redactor::default(),
        fence: Fence::default(),
        run: "probe".into(),
        prompt: prompt.text.into(),
        cuts: prompt.cuts.into(),
        id: invoke.id,
        member: invoke.member,
        step: invoke.step,
        attempt: 1,
        sample: 1,
        parts: invoke.parts.into(),
        role: role.into(),
        task: invoke.task,
        persona: None,
        answer_schema: invoke.schema,
        json_schema: Arc::new(invoke.schema.json_schema()),
        conversation: None,
        deadline: tokio::time::Instant::now() + timeout,
        notes: Notes::default(),
        progress: Progress::default(),
    }
}
