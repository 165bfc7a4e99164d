//! Answers for one participant: takes questions, has the participant's executor answer them, and sends the answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::{Client, Message as Received, Subject};
use futures::StreamExt as _;
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::conversation::{ConversationContext, Participant, Turn};
use quorate_kernel::ports::executor::{
    AttemptInfo, ConfigError, Failure, Invocation, Notes, Progress, Reply, Retry,
};
use quorate_kernel::ports::ledger::Fence;
use quorate_kernel::redact::Redactor;
use quorate_protocol::answers::Schema;
use quorate_protocol::{Json, Name, Part, PartKind};
use serde::Deserialize;
use serde_json::Map;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::{Answer, Config, Message, Question, VERSION, subject, write};
use crate::nats::SharedNats;

/// How often the asking side is told that the answer is being worked on.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// How long an answer is kept in case the question is sent again, and how many are kept.
const KEEP: Duration = Duration::from_secs(600);
const MAX_KEPT: usize = 256;
/// How many questions may be worked on at once; executors have limits of their own below that.
const MAX_AT_WORK: usize = 64;
/// How many processes may wait for one answer: more than one only after restarts of the asking side.
const MAX_LISTENERS: usize = 16;
/// The pause after which a refused asker asks again.
const BUSY_PAUSE: Duration = Duration::from_secs(2);
/// The processes that serve a participant share its questions by this name.
const QUEUE_GROUP: &str = "q1";

/// A participant that is served.
pub struct Served {
    pub participant: Participant,
    /// Its executor on this machine; not `remote`.
    pub member: MemberConfig,
    /// The participant's `config` in the manifest.
    pub config: Map<String, Json>,
    pub redactor: Redactor,
}

/// An event while a participant is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeEvent {
    /// It listens.
    Ready {
        /// The NATS subject of its questions.
        subject: String,
    },
    /// A question has arrived, and its executor is asked.
    Asked {
        /// The invocation's id, as the asking side names it.
        id: Name,
    },
    /// An answer was sent.
    Ended {
        /// The invocation's id, as the asking side names it.
        id: Name,
        /// Why its executor gave no answer.
        failure: Option<String>,
    },
}

/// Why it is not served, or not any more.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServeError(String);

/// Serves a participant until the connection is closed for good.
///
/// # Errors
/// If the servers cannot be used.
pub async fn serve(
    nats: &SharedNats,
    served: Served,
    tell: UnboundedSender<ServeEvent>,
) -> Result<(), ServeError> {
    let refused = |error: &dyn std::fmt::Display| ServeError(error.to_string());
    let client = nats.client().await.map_err(|error| refused(&error))?;
    let name = Config::parse(&served.config).map_err(|error: ConfigError| refused(&error))?.name;
    let subject = subject(nats, name.as_deref().unwrap_or(&served.participant.id));
    let withdrawals = client.new_inbox();
    let mut withdrawn =
        client.subscribe(format!("{withdrawals}.*")).await.map_err(|error| refused(&error))?;
    let questions = client.queue_subscribe(subject.clone(), QUEUE_GROUP.to_owned()).await;
    let mut questions = questions.map_err(|error| refused(&error))?;
    // Both subscriptions are active on the server before the caller learns of them.
    client.flush().await.map_err(|error| refused(&error))?;
    // The receiver may be gone; questions are answered all the same.
    let _ = tell.send(ServeEvent::Ready { subject });
    let mut server =
        Server { client, served: Arc::new(served), withdrawals, jobs: HashMap::new(), calls: JoinSet::new() };
    let mut heartbeat = interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = tokio::select! {
            question = questions.next() => match question {
                Some(question) => server.take(question).await,
                None => return Ok(()),
            },
            Some(ended) = server.calls.join_next_with_id() => server.end(ended).await,
            Some(message) = withdrawn.next() => {
                server.withdraw(&message);
                None
            }
            _ = heartbeat.tick() => {
                server.beat().await;
                None
            }
        };
        if let Some(event) = event {
            let _ = tell.send(event);
        }
    }
}

/// One invocation, by run, id and content.
type Key = (Name, Name, String);

struct Server {
    client: Client,
    served: Arc<Served>,
    /// What the subjects begin with on which questions are withdrawn.
    withdrawals: String,
    jobs: HashMap<Key, Job>,
    calls: JoinSet<Answer>,
}

struct Job {
    attempt: u32,
    /// The subjects that the answer is sent to, by the asking process's name.
    listeners: HashMap<String, Subject>,
    state: State,
}

enum State {
    AtWork { call: Id, abort: AbortHandle, bytes: Arc<AtomicUsize> },
    Answered { at: Instant, message: Vec<u8> },
}

impl Server {
    /// Answers a question, or tells the asker that it is being worked on.
    async fn take(&mut self, received: Received) -> Option<ServeEvent> {
        let reply = received.reply?;
        let (message, event) = self
            .begin(&received.payload, &reply)
            .unwrap_or_else(|refused| (write(&Message::Answered(Box::new(Answer::refusal(refused)))), None));
        self.send(&reply, message).await;
        event
    }

    /// Begins to work on a question, unless it is being worked on, or was answered. Returns the message to the asker.
    fn begin(&mut self, payload: &[u8], reply: &Subject) -> Result<(Vec<u8>, Option<ServeEvent>), Failure> {
        let busy = |why: &str| Failure::Failed { message: why.to_owned(), retry: Retry::After(BUSY_PAUSE) };
        let question: Question = serde_json::from_slice(payload)
            .map_err(|error| Failure::never(format!("the question cannot be read: {error}")))?;
        if question.v != VERSION {
            return Err(Failure::never(format!(
                "the question has version {}, and this machine reads version {VERSION}",
                question.v
            )));
        }
        let Some(schema) = question.schema() else {
            return Err(Failure::never("the question asks for an unknown form"));
        };
        if !question.has_valid_nonce() {
            return Err(Failure::never("the question has an invalid nonce"));
        }
        self.forget_old();
        let key = (question.run.clone(), question.id.clone(), question.content_sha256());
        if let Some(job) = self.jobs.get_mut(&key) {
            match &job.state {
                State::AtWork { .. } if job.listeners.len() >= MAX_LISTENERS => {
                    return Err(busy("too many wait for the answer to this question"));
                }
                State::AtWork { call, bytes, .. } => {
                    let message = at_work(&self.withdrawals, *call, bytes);
                    job.listeners.insert(question.asker, reply.clone());
                    return Ok((message, None));
                }
                // A later attempt follows an answer that could not be used.
                State::Answered { message, .. } if question.attempt <= job.attempt => {
                    return Ok((message.clone(), None));
                }
                State::Answered { .. } => {}
            }
        }
        if self.calls.len() >= MAX_AT_WORK {
            return Err(busy("the machine that serves the participant has no room for more questions"));
        }
        let bytes = Arc::<AtomicUsize>::default();
        let attempt = question.attempt;
        let listeners = HashMap::from([(question.asker.clone(), reply.clone())]);
        let abort = self.calls.spawn(answer(self.served.clone(), question, schema, bytes.clone()));
        let call = abort.id();
        let message = at_work(&self.withdrawals, call, &bytes);
        let event = ServeEvent::Asked { id: key.1.clone() };
        self.jobs.insert(key, Job { attempt, listeners, state: State::AtWork { call, abort, bytes } });
        Ok((message, Some(event)))
    }

    /// Ends the work on a question, unless other askers wait for its answer.
    fn withdraw(&mut self, message: &Received) {
        let asker = str::from_utf8(&message.payload).unwrap_or_default();
        self.jobs.retain(|_, job| match &job.state {
            State::AtWork { call, abort, .. }
                if *message.subject == withdrawal(&self.withdrawals, *call)
                    && job.listeners.remove(asker).is_some()
                    && job.listeners.is_empty() =>
            {
                abort.abort();
                false
            }
            _ => true,
        });
    }

    /// Sends the answer to every process that waits for it.
    async fn end(&mut self, ended: Result<(Id, Answer), JoinError>) -> Option<ServeEvent> {
        let (call, answer) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let failure = Failure::failed(format!("its executor failed: {error}"));
                (error.id(), Answer::refusal(failure))
            }
        };
        // A call that was withdrawn has no job any more.
        let is_it = |job: &Job| matches!(&job.state, State::AtWork { call: of, .. } if *of == call);
        let key = self.jobs.iter().find(|(_, job)| is_it(job)).map(|(key, _)| key.clone())?;
        let mut job = self.jobs.remove(&key)?;
        let failure_of = |answer: &Answer| answer.result.as_ref().err().map(ToString::to_string);
        let mut failure = failure_of(&answer);
        let mut message = write(&Message::Answered(Box::new(answer)));
        let limit = self.client.server_info().max_payload;
        if message.len() > limit {
            let why = format!("the answer has {} bytes, and the NATS servers take {limit}", message.len());
            let refused = Answer::refusal(Failure::never(why));
            failure = failure_of(&refused);
            message = write(&Message::Answered(Box::new(refused)));
        }
        for listener in std::mem::take(&mut job.listeners).into_values() {
            self.send(&listener, message.clone()).await;
        }
        // A failure is not kept: the next attempt may succeed.
        if failure.is_none() {
            job.state = State::Answered { at: Instant::now(), message };
            self.jobs.insert(key.clone(), job);
        }
        Some(ServeEvent::Ended { id: key.1, failure })
    }

    /// Tells every waiting process that its question is being worked on.
    async fn beat(&mut self) {
        let mut messages = Vec::new();
        for job in self.jobs.values() {
            if let State::AtWork { call, bytes, .. } = &job.state {
                let message = at_work(&self.withdrawals, *call, bytes);
                messages.extend(job.listeners.values().map(|listener| (listener.clone(), message.clone())));
            }
        }
        for (listener, message) in messages {
            self.send(&listener, message).await;
        }
    }

    /// Forgets answers that were kept for long enough, and the oldest if there are many.
    fn forget_old(&mut self) {
        let at = |job: &Job| match job.state {
            State::Answered { at, .. } => Some(at),
            State::AtWork { .. } => None,
        };
        self.jobs.retain(|_, job| at(job).is_none_or(|at| at.elapsed() < KEEP));
        let mut kept: Vec<Instant> = self.jobs.values().filter_map(at).collect();
        if kept.len() >= MAX_KEPT {
            kept.sort();
            let newest = kept[kept.len() - MAX_KEPT];
            self.jobs.retain(|_, job| at(job).is_none_or(|at| at > newest));
        }
    }

    async fn send(&self, to: &Subject, message: Vec<u8>) {
        // The asker repeats its question if this message is lost.
        let _ = self.client.publish(to.clone(), message.into()).await;
    }
}

fn withdrawal(prefix: &str, call: Id) -> String {
    format!("{prefix}.{call}")
}

fn at_work(withdrawals: &str, call: Id, bytes: &AtomicUsize) -> Vec<u8> {
    let bytes = bytes.swap(0, Ordering::Relaxed);
    write(&Message::AtWork { bytes, withdraw: withdrawal(withdrawals, call) })
}

/// Has the participant's executor answer.
async fn answer(served: Arc<Served>, question: Question, schema: Schema, bytes: Arc<AtomicUsize>) -> Answer {
    let notes = Notes::default();
    let wait = Duration::from_millis(question.wait_ms).min(served.member.timeout);
    let deadline = Instant::now() + wait;
    let result = match invocation(&served, &question, schema, deadline, notes.clone(), bytes) {
        Ok(invocation) => ask(&served, invocation, deadline).await,
        Err(why) => Err(Failure::never(why)),
    };
    // The asker learns of the call, and nothing of this machine's services.
    let AttemptInfo { usage, model, version, last_words, no_stand_in, refused_tools, .. } = notes.read();
    let known = AttemptInfo {
        usage,
        model,
        version,
        last_words,
        no_stand_in,
        refused_tools,
        ..AttemptInfo::default()
    };
    Answer { result, info: known }
}

async fn ask(served: &Served, invocation: Invocation, deadline: Instant) -> Result<Reply, Failure> {
    let asked = async {
        let _admission = served.member.executor.admit().await;
        served.member.executor.invoke(invocation).await
    };
    timeout_at(deadline, asked).await.unwrap_or(Err(Failure::TimedOut))
}

/// The invocation of the executor. Role, prompt, turns and state are the asking side's; the tools are those of the manifest
/// here.
fn invocation(
    served: &Served,
    question: &Question,
    schema: Schema,
    deadline: Instant,
    notes: Notes,
    bytes: Arc<AtomicUsize>,
) -> Result<Invocation, String> {
    #[derive(Deserialize)]
    struct Said {
        id: Name,
        participant: Name,
        at: Arc<str>,
        content: Arc<str>,
    }
    let unread =
        |what: &str, error: serde_json::Error| format!("the question's {what} cannot be read: {error}");
    let said: Vec<Said> = serde_json::from_str(question.turns()).map_err(|error| unread("turns", error))?;
    let turn = |Said { id, participant, at, content }| Turn {
        id,
        participant,
        timestamp: at,
        content,
        meta: Map::new(),
        stamp: None,
    };
    let state: Map<String, Json> =
        serde_json::from_str(question.state()).map_err(|error| unread("state", error))?;
    let prompt = question.prompt.clone();
    // Executors slice the prompt at the cuts, so an invalid one would panic.
    let mut last = 0;
    let is_cut = |cut: &usize| {
        let fits = *cut >= last && prompt.is_char_boundary(*cut);
        last = last.max(*cut);
        fits
    };
    let cuts: Vec<usize> = question.cuts.iter().copied().filter(is_cut).collect();
    let mut parts = vec![Part::new(PartKind::Turns, "", question.turns())];
    if !state.is_empty() {
        parts.push(Part::new(PartKind::State, "", question.state()));
    }
    Ok(Invocation {
        run: question.run.clone(),
        id: question.id.clone(),
        member: served.participant.id.clone(),
        step: question.step.clone(),
        attempt: question.attempt,
        sample: 1,
        prompt: prompt.clone(),
        cuts: cuts.into(),
        parts: parts.into(),
        role: question.role.clone(),
        task: "".into(),
        persona: None,
        answer_schema: schema,
        json_schema: Arc::new(schema.json_schema()),
        conversation: Some(Arc::new(ConversationContext {
            participant: served.participant.clone(),
            recent: said.into_iter().map(turn).collect(),
            state,
            external_id: question.external_id.clone(),
        })),
        nonce: question.nonce.clone(),
        redactor: served.redactor.clone(),
        fence: Fence::default(),
        deadline,
        notes,
        progress: Progress::new(move |more| {
            bytes.fetch_add(more, Ordering::Relaxed);
        }),
    })
}
