//! One question outside any run or turn cycle: asked through the executor port like every other, with the same attempts,
//! re-prompt, deadline, budget and redaction, and recorded in a stream of the ledger. What the stream is, and what
//! follows from the answer, is the business of whoever asks.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json, Name, Part};

use crate::budget::Calls;
use crate::call::{self, Asked, Recorder, Table};
use crate::clock::Clock;
use crate::consultation::{Ended, Spent};
use crate::entropy;
use crate::observe::Observer;
use crate::ports::dispatcher::Question;
use crate::ports::ledger::{self, Append, Durability, Ledger, Record};
use crate::prompt::Layout;
use crate::redact::Redactor;
use crate::seat::Seat;

/// How often a record is put behind what others have appended meanwhile.
const MOVED: u32 = 32;

/// Somebody who asks single questions.
pub struct Alone {
    /// Where attempts and consultations are recorded.
    pub stream: Name,
    /// Where the stream is.
    pub ledger: Arc<dyn Ledger>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What must not be shown or recorded.
    pub redactor: Redactor,
    /// The calls that one question may cost, re-prompts and retries included; `None` is no cap.
    pub calls: Option<u32>,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
}

/// A question that has its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The answer, which has the form that was asked for.
    pub answer: Json,
    /// Where it is from.
    pub source: Source,
}

/// Who was asked, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The name that the executor goes by.
    pub executor: Arc<str>,
    /// Its kind.
    pub kind: &'static str,
    /// Whether a model is behind it.
    pub asks_a_model: bool,
    /// The model: what says that it answered, else what the settings name.
    pub model: Option<String>,
    /// SHA-256 of the first prompt; `None` where nobody was asked.
    pub prompt_sha256: Option<String>,
    /// What it cost.
    pub spent: Spent,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Nobody gave one. It is recorded as a consultation without output.
    #[error("{}", .message.as_deref().unwrap_or_else(|| .absent.status()))]
    Unanswered {
        /// What came of it.
        absent: AbsenceReason,
        /// Why, where more is known.
        message: Option<String>,
        /// Who was asked.
        asked: Box<Source>,
    },
    /// The ledger refused or failed. An answer may have been paid for and is not recorded.
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
}

impl Alone {
    /// Asks a seat, and returns when what came of it is recorded and safe. `id` names the invocation, and what stands
    /// before its slash the step, for example `reflect/alice`. The seat is told to be what the question says. Parts are
    /// redacted before they are shown.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn ask(
        &self,
        id: &Name,
        member: &Name,
        seat: &Seat,
        question: Question,
    ) -> Result<Answered, Failed> {
        let tail = self.ledger.tail(&self.stream, 1).await?;
        let next = tail.last().map_or(0, |last| last.n + 1);
        let ledger: Arc<dyn Ledger> = Arc::new(Behind(self.ledger.clone()));
        let recorder = Arc::new(Recorder::new(ledger, self.stream.clone(), next));
        let table = Arc::new(Table {
            run: self.stream.clone(),
            layout: Layout { nonce: entropy::nonce(&entropy::bytes()) },
            calls: Calls::new(self.calls, 0),
            redactor: self.redactor.clone(),
            observer: self.observer.clone(),
            clock: self.clock.clone(),
        });
        let step = id.split_once('/').map_or(&**id, |(step, _)| step);
        let (mut invoke, mut seat) = posed(id, member, step, question, seat);
        let (parts, in_parts) = cleaned(&self.redactor, std::mem::take(&mut invoke.parts)).await;
        let (context, in_context) = cleaned(&self.redactor, std::mem::take(&mut seat.context)).await;
        (invoke.parts, seat.context) = (parts, context);
        let taken_out = in_parts + in_context;
        let about = seat.executor.about();
        let (name, weight) = (seat.executor_name.clone(), seat.weight);
        self.observer.asked(id, member, step);
        let mut asked = put(&table, &recorder, invoke.clone(), seat).await?;
        asked.ended.redactions += taken_out;
        self.observer.ended(id, asked.ended.status(), asked.ended.spent.took);
        let at_ms = self.clock.now_ms();
        let mut entries: Vec<_> = asked.attempt.iter().map(|attempt| attempt.entry(at_ms)).collect();
        entries.push(asked.ended.entry(&invoke, &name, &about, weight, at_ms));
        recorder.append(entries, Vec::new(), Durability::Synced).await?;
        let Ended { result, message, prompt_sha256, model, spent, .. } = asked.ended;
        let source = Source {
            executor: name,
            kind: about.kind,
            asks_a_model: about.asks_a_model,
            model: model.or(about.model),
            prompt_sha256,
            spent,
        };
        match result {
            ConsultationResult::Answered(answer) => Ok(Answered { answer, source }),
            ConsultationResult::Absent(absent) => {
                Err(Failed::Unanswered { absent, message, asked: Box::new(source) })
            }
        }
    }
}

/// Parts without secrets, and how many there were.
pub(crate) async fn cleaned(redactor: &Redactor, mut parts: Vec<Part>) -> (Vec<Part>, usize) {
    let bytes = parts.iter().map(|part| part.text.len()).sum();
    let work = move |redactor: &Redactor| {
        let count = clean(redactor, &mut parts);
        (parts, count)
    };
    redactor.apart(bytes, work).await
}

/// Takes the secrets out of parts, and says how many there were. A part that is JSON is redacted as it reads, so that it
/// stays JSON.
fn clean(redactor: &Redactor, parts: &mut [Part]) -> usize {
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

/// A question as an invocation, and the seat as it is told to be for it.
pub(crate) fn posed(id: &Name, member: &Name, step: &str, question: Question, seat: &Seat) -> (Invoke, Seat) {
    let invoke = Invoke {
        id: id.clone(),
        member: member.clone(),
        step: step.into(),
        parts: question.parts,
        schema: question.form,
        task: question.task.into(),
        extra_fields: seat.marks.clone(),
    };
    (invoke, Seat { role: question.role.into(), ..seat.clone() })
}

/// Puts a question, if there is a call left for it. Attempts before the last are recorded; the last one and the
/// consultation are the caller's to record.
///
/// # Errors
/// When the ledger fails.
pub(crate) async fn put(
    table: &Arc<Table>,
    recorder: &Arc<Recorder>,
    invoke: Invoke,
    seat: Seat,
) -> Result<Asked, ledger::Error> {
    let nobody = |why| Asked { attempt: None, ended: Ended::without_answer(why, Spent::default()) };
    if !table.calls.reserve() {
        return Ok(nobody(AbsenceReason::RunOverBudget));
    }
    Ok(match call::call(table.clone(), recorder.clone(), invoke, seat, Arc::default()).await? {
        call::Ended::Call(_, asked) => *asked,
        call::Ended::Errand(..) => nobody(AbsenceReason::Failed),
    })
}

/// A ledger in which a record is put behind whatever others have appended: what is asked here follows from nothing else
/// in the stream, and an answer that was paid for is not lost because somebody wrote in the meantime.
struct Behind(Arc<dyn Ledger>);

#[async_trait]
impl Ledger for Behind {
    async fn append(&self, mut append: Append) -> Result<u64, ledger::Error> {
        for _ in 0..MOVED {
            match self.0.append(append.clone()).await {
                Err(ledger::Error::Moved { run }) => {
                    let tail = self.0.tail(&run, 1).await?;
                    append.from = tail.last().map_or(0, |last| last.n + 1);
                }
                done => return done,
            }
        }
        self.0.append(append).await
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, ledger::Error> {
        self.0.records(run).await
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, ledger::Error> {
        self.0.tail(run, count).await
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, ledger::Error> {
        self.0.body(sha256).await
    }
}
