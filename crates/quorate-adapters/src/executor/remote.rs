//! The `remote` executor: a participant that another machine answers for, which `quorate run MANIFEST --serve PARTICIPANT`
//! runs on. This file asks and owns the messages; `remote/server.rs` answers.
//!
//! A question is sent to the participant's subject and reaches one of the processes that serve it. The serving process
//! reports every few seconds that it is at work; if it falls silent, the question is sent again. A serving process starts
//! an invocation only once, so that a lost message or a restart pays nothing twice.

pub mod server;

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, StatusCode};
use async_trait::async_trait;
use futures::StreamExt as _;
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::ports::executor::{
    About, AttemptInfo, ConfigError, Executor, Failure, Invocation, Notes, Reply, Settings, SideEffect,
};
use quorate_protocol::answers::Schema;
use quorate_protocol::{Json, Name, PartKind};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::block::Block;
use crate::nats::{ConnectError, SharedNats, token};
use crate::{block, nats};

/// The kind that a manifest names.
pub const KIND: &str = crate::optional_kinds::REMOTE;

const KEYS: &[&str] = &["name", "answer"];

/// How long the other side may be silent before the question is sent again.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to look for a process that serves a participant, and the pause between two looks.
const ABSENCE_TIMEOUT: Duration = Duration::from_secs(1);
const ABSENCE_PAUSE: Duration = Duration::from_millis(500);
/// How many failures are tried again.
const RETRIES: u32 = 2;
/// The deadline of an invocation, as that of a model.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Builds the executor from a participant's `config`.
///
/// # Errors
/// When the block has an unknown key or a value that does not fit, or no NATS servers are named.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let Config { name, answer } = Config::parse(&settings.block)?;
    let nats = nats::shared(&settings.servers).map_err(|error| ConfigError { key: None, ..error })?;
    Ok(Arc::new(Remote { nats, name, answer }))
}

/// What a participant's `config` says.
pub(crate) struct Config {
    /// The name that it is served by, where that is not its id.
    name: Option<String>,
    answer: Schema,
}

impl Config {
    pub(crate) fn parse(block: &Map<String, Json>) -> Result<Config, ConfigError> {
        let block = Block::parse(block, KEYS)?;
        let name = block.text("name")?.map(str::to_owned);
        Ok(Config { name, answer: block::parse_answer_form(block.text("answer")?)? })
    }
}

/// The subject of a participant that is served.
fn subject(nats: &SharedNats, name: &str) -> String {
    format!("q1.{}.ask.{}", token(nats.tenant()), token(name))
}

struct Remote {
    nats: Arc<SharedNats>,
    name: Option<String>,
    answer: Schema,
}

#[async_trait]
impl Executor for Remote {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: true, model: None }
    }

    fn turn_schema(&self) -> Schema {
        self.answer
    }

    fn side_effects(&self) -> Vec<SideEffect> {
        let name = self.name.as_deref().map_or_else(String::new, |name| format!(" `{name}`"));
        vec![SideEffect::new(format!(
            "send texts over the NATS servers to the process that serves the participant{name}"
        ))]
    }

    fn default_timeout(&self) -> Duration {
        TIMEOUT
    }

    fn default_retries(&self) -> u32 {
        RETRIES
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        if !matches!(invocation.answer_schema, Schema::PlainText | Schema::Turn) {
            return Err(Failure::never(
                "`remote` can only be asked for a turn, as a participant of a runtime",
            ));
        }
        let connecting = Box::pin(self.nats.client());
        let client = within(invocation.deadline, connecting).await?.map_err(|error| match error {
            ConnectError::Refused(why) => Failure::never(format!("the NATS servers cannot be used: {why}")),
            ConnectError::Absent(why) => Failure::failed(format!("the NATS servers do not answer: {why}")),
        })?;
        let name = self.name.as_deref().unwrap_or(&invocation.member);
        let subject = subject(&self.nats, name);
        let asker = entropy::hex(&entropy::bytes::<8>());
        let asked = Asking { client, subject, name, asker, invocation: &invocation };
        asked.ask().await
    }
}

/// Waits, but not longer than an invocation may take.
async fn within<T>(deadline: Instant, work: impl Future<Output = T>) -> Result<T, Failure> {
    timeout_at(deadline, work).await.map_err(|_| Failure::TimedOut)
}

/// One question under way.
struct Asking<'a> {
    client: Client,
    subject: String,
    name: &'a str,
    /// A random name.
    asker: String,
    invocation: &'a Invocation,
}

/// The result of sending a question.
enum Sent {
    Answered(Result<Reply, Failure>),
    /// No process serves the participant now.
    Unserved,
    /// Nothing was heard for too long.
    Silent,
}

impl Asking<'_> {
    async fn ask(&self) -> Result<Reply, Failure> {
        let mut unserved_since = None;
        let mut was_served = false;
        loop {
            match within(self.invocation.deadline, self.send()).await?? {
                Sent::Answered(answer) => return answer,
                Sent::Silent => was_served = true,
                Sent::Unserved => {
                    let since = *unserved_since.get_or_insert_with(Instant::now);
                    // One that has begun may come back, as after a restart, and answers what it was asked.
                    if !was_served && since.elapsed() >= ABSENCE_TIMEOUT {
                        return Err(Failure::failed(format!(
                            "no machine serves `{}`: run the manifest with `--serve` on the machine that answers for it",
                            self.name
                        )));
                    }
                    within(self.invocation.deadline, sleep_until(Instant::now() + ABSENCE_PAUSE)).await?;
                }
            }
        }
    }

    /// Sends the question and listens.
    async fn send(&self) -> Result<Sent, Failure> {
        let invocation = self.invocation;
        let unsent =
            |error: &dyn std::fmt::Display| Failure::failed(format!("the question cannot be sent: {error}"));
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(|error| unsent(&error))?;
        let payload = write(&Question::of(invocation, &self.asker));
        let limit = self.client.server_info().max_payload;
        if payload.len() > limit {
            return Err(Failure::never(format!(
                "the question has {} bytes, and the NATS servers take {limit}: raise their `max_payload`, or make `window` of \
                 the dispatcher smaller",
                payload.len()
            )));
        }
        let sent = self.client.publish_with_reply(self.subject.clone(), inbox, payload.into()).await;
        sent.map_err(|error| unsent(&error))?;
        let mut withdrawal = Withdrawal { client: self.client.clone(), asker: self.asker.clone(), to: None };
        loop {
            let Ok(message) = timeout_at(Instant::now() + SILENCE_TIMEOUT, answers.next()).await else {
                withdrawal.to = None;
                return Ok(Sent::Silent);
            };
            let Some(message) = message else { return Ok(Sent::Silent) };
            if message.status == Some(StatusCode::NO_RESPONDERS) {
                return Ok(Sent::Unserved);
            }
            // A message in another form is ignored: the answer may still come.
            match serde_json::from_slice(&message.payload) {
                Err(_) => {}
                Ok(Message::AtWork { bytes, withdraw }) => {
                    invocation.progress.wrote(bytes);
                    withdrawal.to = Some(withdraw);
                }
                Ok(Message::Answered(answer)) => {
                    withdrawal.to = None;
                    return Ok(Sent::Answered(answer.note(&invocation.notes)));
                }
            }
        }
    }
}

/// Tells the other side that its answer is not wanted any more, if it is dropped before that came.
struct Withdrawal {
    client: Client,
    asker: String,
    to: Option<String>,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        let (Some(to), Ok(runtime)) = (self.to.take(), tokio::runtime::Handle::try_current()) else { return };
        let (client, asker) = (self.client.clone(), std::mem::take(&mut self.asker));
        runtime.spawn(async move {
            // Where it is lost, the other side works until its deadline.
            let _ = client.publish(to, asker.into()).await;
            let _ = client.flush().await;
        });
    }
}

/// The version of both forms; a question of another version is refused.
const VERSION: u32 = 1;

/// A question.
#[derive(Serialize, Deserialize)]
struct Question {
    v: u32,
    run: Name,
    id: Name,
    step: Name,
    attempt: u32,
    /// A name of the asking process: it counts once, however often it sends the question.
    asker: String,
    prompt: Arc<str>,
    cuts: Vec<usize>,
    /// `text` or `json`.
    answer: String,
    nonce: Arc<str>,
    /// How long the answer is waited for.
    wait_ms: u64,
    /// The last turns of the conversation, and what the participant remembers.
    turns: Option<Arc<str>>,
    state: Option<Arc<str>>,
    role: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
}

impl Question {
    fn of(invocation: &Invocation, asker: &str) -> Question {
        let part = |kind: PartKind| {
            invocation.parts.iter().find(|part| part.kind == kind).map(|part| part.text.clone())
        };
        let left = invocation.deadline.saturating_duration_since(Instant::now());
        Question {
            v: VERSION,
            run: invocation.run.clone(),
            // The other side answers equal questions with one answer.
            id: match invocation.sample {
                0 | 1 => invocation.id.clone(),
                sample => format!("{}#{sample}", invocation.id).into(),
            },
            step: invocation.step.clone(),
            attempt: invocation.attempt,
            asker: asker.to_owned(),
            prompt: invocation.prompt.clone(),
            cuts: invocation.cuts.to_vec(),
            answer: block::answer_form_name(invocation.answer_schema).to_owned(),
            nonce: invocation.nonce.clone(),
            wait_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            turns: part(PartKind::Turns),
            state: part(PartKind::State),
            role: invocation.role.clone(),
            external_id: invocation.conversation.as_ref().and_then(|context| context.external_id.clone()),
        }
    }

    fn schema(&self) -> Option<Schema> {
        block::parse_answer_form(Some(&self.answer)).ok()
    }

    fn turns(&self) -> &str {
        self.turns.as_deref().unwrap_or("[]")
    }

    fn state(&self) -> &str {
        self.state.as_deref().unwrap_or("{}")
    }

    /// Whether the nonce is one that Quorate makes: 16 hexadecimal digits, which say nothing to a model.
    fn has_valid_nonce(&self) -> bool {
        self.nonce.len() == 16 && self.nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// The SHA-256 of all that is asked, without the nonce, which a restart of the asking side changes. An answer is given
    /// again for the same content alone, so that no other client can have it prepared by a question of its own.
    fn content_sha256(&self) -> String {
        let parts = [&*self.prompt, &*self.role, self.turns(), self.state(), &*self.answer];
        sha256_hex(parts.map(|part| part.replace(&*self.nonce, "")).join("\0").as_bytes())
    }
}

/// What comes back.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Message {
    /// The executor is at work, and received `bytes` bytes of the answer since the last message. The asker sends to
    /// `withdraw` to stop waiting.
    AtWork {
        bytes: usize,
        withdraw: String,
    },
    Answered(Box<Answer>),
}

/// The bytes of a question or a message.
fn write(value: &impl Serialize) -> Vec<u8> {
    // Its keys are texts and its numbers finite, so that writing cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}

/// How it ended, and what is known of the call.
#[derive(Serialize, Deserialize)]
struct Answer {
    result: Result<Reply, Failure>,
    #[serde(default)]
    info: AttemptInfo,
}

impl Answer {
    /// An answer without a call.
    fn refusal(failure: Failure) -> Answer {
        Answer { result: Err(failure), info: AttemptInfo::default() }
    }

    /// The result, with what is known of the call noted.
    fn note(self, notes: &Notes) -> Result<Reply, Failure> {
        let AttemptInfo { usage, model, version, last_words, no_stand_in, refused_tools, .. } = self.info;
        notes.note(|info| {
            let before = std::mem::take(info);
            *info = AttemptInfo { usage, model, version, last_words, no_stand_in, refused_tools, ..before };
        });
        self.result
    }
}
