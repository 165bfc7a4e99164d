//! Conversations of agents: a runtime manifest whose participants answer each other. [`Conversation`] runs one;
//! [`SharedConversation`] serves one to several callers, and asks single participants.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::{NewTurn, Participant, Stamp};
use quorate_kernel::ports::dispatcher::StateError;
use quorate_kernel::ports::telemetry::Telemetry;
use quorate_kernel::turn::{Begin, CycleResult};
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::jobs::Waiter;
use super::service::error::{ServiceError, error_chain};
use super::service::operate::{self, DETACHED_RUNTIME_PREFIX, OperateRequest};
use super::service::runtime::conversation::{
    self as turns, AuthorRule, ConversationReader, DEFAULT_SPEAKER, TurnPage, say,
};
use super::service::runtime::drive::{Step, Until, drive};
use super::service::runtime::events::FanOut;
use super::service::runtime::{OpenRuntime, Runtime, RuntimeRequest, open};

pub use super::service::operate::{ReplyMode, Response};
pub use quorate_kernel::conversation::Turn;

/// How long participants that are still answering have to finish.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

impl Quorate {
    /// Opens a conversation: a runtime manifest, or the directory that holds it.
    ///
    /// # Errors
    /// If the manifest, the configuration or the ledger cannot be used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use async_trait::async_trait;
    /// use quorate::Quorate;
    /// use quorate::ports::executor::{About, Executor, Failure, Invocation, Reply};
    ///
    /// /// Answers everything with the same words.
    /// struct Parrot;
    ///
    /// #[async_trait]
    /// impl Executor for Parrot {
    ///     fn about(&self) -> About {
    ///         About { kind: "parrot", asks_a_model: false, model: None }
    ///     }
    ///
    ///     async fn invoke(&self, _: Invocation) -> Result<Reply, Failure> {
    ///         Ok(Reply { text: "Hello, hello!".to_owned(), ..Reply::default() })
    ///     }
    /// }
    ///
    /// std::fs::write(
    ///     dir.path().join("parrots.yaml"),
    ///     "schema: agentruntimes/v1\n\
    ///      kind: MultiAgentRuntime\n\
    ///      id: parrots\n\
    ///      participants: [{id: polly, executor: parrot, displayName: Polly}]\n\
    ///      dispatcher: {kind: round-robin}\n\
    ///      substrate: {kind: file, path: talk.txt}\n",
    /// )?;
    /// let quorate = Quorate::builder().workspace(dir.path()).executor("parrot", Parrot).build()?;
    /// let conversation = quorate.conversation("parrots.yaml").await?;
    /// conversation.say("@polly, who are you?", "ann").await?;
    /// let answers = conversation.answer().await?;
    /// assert_eq!(&*answers[0].content, "Hello, hello!");
    /// conversation.close().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn conversation(&self, manifest: impl Into<PathBuf>) -> Result<Conversation, Error> {
        let request = self.runtime_request(manifest.into())?;
        Ok(Conversation { runtime: self.open_runtime(&request)?.open_ledger().await? })
    }

    /// Opens a conversation that several callers read and extend at once: a runtime manifest, or the directory that holds
    /// it. Its substrate connects at first use; the ledger is opened only while a participant is asked.
    ///
    /// # Errors
    /// If the manifest or the configuration cannot be used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::conversation::NewMessage;
    /// use quorate::Quorate;
    ///
    /// std::fs::write(
    ///     dir.path().join("desk.yaml"),
    ///     "schema: agentruntimes/v1\n\
    ///      kind: MultiAgentRuntime\n\
    ///      id: desk\n\
    ///      participants: [{id: polly, executor: rubric, displayName: Polly}]\n\
    ///      dispatcher: {kind: round-robin}\n\
    ///      substrate: {kind: file, path: talk.txt}\n",
    /// )?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let desk = quorate.shared_conversation("desk.yaml")?;
    /// let message = NewMessage { content: "The draft is late.".to_owned(), ..NewMessage::default() };
    /// let posted = desk.post(message).await?;
    /// let page = desk.newest(10).await?;
    /// assert_eq!((&page.messages[0].id, &*page.messages[0].author_id), (&posted.id, "user"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shared_conversation(&self, manifest: impl Into<PathBuf>) -> Result<SharedConversation, Error> {
        let request = self.runtime_request(manifest.into())?;
        let runtime = self.open_runtime(&request)?;
        let reader = turns::Conversation::new(runtime.substrate.clone());
        Ok(SharedConversation { quorate: self.clone(), request, runtime, reader })
    }

    fn runtime_request(&self, manifest: PathBuf) -> Result<RuntimeRequest, ServiceError> {
        let root = self.root.as_ref().map(|root| root.dir().to_owned());
        Ok(RuntimeRequest { path: self.named_path(manifest)?, root, ..RuntimeRequest::default() })
    }

    fn open_runtime(&self, request: &RuntimeRequest) -> Result<Runtime, ServiceError> {
        open(&self.environment, &self.places, request, &self.environment.registries)
    }
}

/// An open conversation. [`Conversation::close`] seals and closes its ledger.
pub struct Conversation {
    runtime: OpenRuntime,
}

impl Conversation {
    /// Adds a turn under the name of a person, without white space. No participant answers before
    /// [`Conversation::answer`].
    ///
    /// # Errors
    /// If the text is empty, the name is a participant's, or the substrate rejects the turn.
    pub async fn say(&self, text: &str, by: &str) -> Result<Turn, Error> {
        Ok(say(&self.runtime.runtime, text, by, AuthorRule::PeopleOnly).await?)
    }

    /// Lets participants answer until no turn is unanswered, and returns what they wrote.
    ///
    /// # Errors
    /// If another process runs the conversation, or substrate or ledger fail. Answers given until then are recorded.
    pub async fn answer(&self) -> Result<Vec<Turn>, Error> {
        let (mut runner, _guard) = self.runtime.runner(Begin::First, Arc::new(FanOut::default())).await?;
        let mut replies = Vec::new();
        let driven = drive(&mut runner, Until::Idle, self.runtime.runtime.wall, |step| {
            if let Step::Cycled(CycleResult::Asked { appended, .. }) = step {
                replies.extend(appended);
            }
        })
        .await;
        let closed = runner.close(SHUTDOWN_TIMEOUT).await.map_err(ServiceError::from);
        driven?;
        closed?;
        Ok(replies)
    }

    /// The last `limit` turns, or all of them.
    ///
    /// # Errors
    /// If the substrate fails.
    pub async fn turns(&self, last: Option<usize>) -> Result<Vec<Turn>, Error> {
        Ok(ConversationReader::new(&self.runtime.runtime).last(last).await?)
    }

    /// Seals the ledger if it has new records, and closes it.
    pub async fn close(self) {
        self.runtime.seal().await;
        self.runtime.close().await;
    }
}

/// The key of a message's metadata that is Quorate's own: `{participant, post, stamp}`, as the `guilde-mcp` substrate
/// writes and reads it.
const METADATA_KEY: &str = "quorate";

/// The `meta` key of a participant that names its operator, as in the `guilde-mcp` substrate.
const OPERATOR_ID_KEY: &str = "operatorId";

/// A conversation that several callers read and extend at once.
pub struct SharedConversation {
    quorate: Quorate,
    request: RuntimeRequest,
    runtime: Runtime,
    reader: turns::Conversation,
}

/// A message to post.
#[derive(Debug, Clone, Default)]
pub struct NewMessage {
    /// Must not be empty.
    pub content: String,
    /// A participant's operator id, or the name of a person; by default the participant that the metadata names, else
    /// `user`.
    pub author: Option<String>,
    /// A message is stored once for each key.
    pub key: Option<Name>,
    /// The author's metadata. Its entry `quorate` names the turn that a runtime's message answers.
    pub metadata: Map<String, Value>,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Posted", description = "")]
pub struct PostedMessage {
    /// The message's id.
    pub id: String,
    /// When it was stored, as RFC 3339.
    pub timestamp: String,
    /// Whether a message with this key existed before.
    pub duplicate: bool,
}

/// The messages of a read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Messages", description = "")]
pub struct MessagePage {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// Whether there are more: newer ones with after, else older ones.
    pub has_more: bool,
    /// Whether the message of after or before exists; true without them.
    pub known: bool,
}

/// A message as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "")]
pub struct Message {
    /// Assigned by the substrate.
    #[schemars(description = "")]
    pub id: String,
    /// A participant's operator id or id, or any other name.
    pub author_id: String,
    /// A participant's display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author_name: Option<String>,
    /// The text, verbatim.
    #[schemars(description = "")]
    pub content: String,
    /// RFC 3339.
    pub timestamp: String,
    /// The author's metadata. `quorate` ties a runtime's turn to the one that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl SharedConversation {
    /// The ids of the conversation: the manifest's, and the substrate's if it has one.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        [Some(self.runtime.id.clone()), self.runtime.substrate.about().conversation].into_iter().flatten()
    }

    /// The warnings of the manifest and of the configuration.
    pub fn report(&self) -> &Report {
        &self.runtime.report
    }

    /// The participants, in the manifest's order.
    pub fn participants(&self) -> &[Participant] {
        &self.runtime.participants
    }

    /// The participant with this id or this operator.
    pub fn participant(&self, id: &str) -> Option<&Participant> {
        let all = || self.participants().iter();
        all()
            .find(|participant| participant.meta_text(OPERATOR_ID_KEY) == Some(id))
            .or_else(|| all().find(|participant| *participant.id == *id))
    }

    /// A participant's id for clients: its operator's id, if it has one.
    pub fn client_id(participant: &Participant) -> &str {
        participant.meta_text(OPERATOR_ID_KEY).unwrap_or(&participant.id)
    }

    /// The author under whom a message will be stored.
    pub fn author(&self, message: &NewMessage) -> Name {
        let speaker = message.speaker();
        self.participant(speaker).map_or_else(|| Name::from(speaker), |participant| participant.id.clone())
    }

    /// Appends a message. No participant is asked to answer.
    ///
    /// # Errors
    /// If the text is empty, the key belongs to another message, the author is a participant without an operator, or the
    /// substrate refuses the message or fails.
    #[crate::boxed]
    pub async fn post(&self, message: NewMessage) -> Result<PostedMessage, Error> {
        let author = self.author(&message);
        turns::check_message(&message.content, &author)?;
        // The manifest says that the operator posts from elsewhere, and a runtime elsewhere says what it answers.
        let is_operator = *author != *message.speaker();
        let mut stamp = message.stamp();
        let answers = stamp.as_ref().is_some_and(|stamp| !stamp.trigger.is_empty());
        if !answers && !is_operator {
            let origin = turns::author_origin(&self.runtime, &author, AuthorRule::PeopleOnly)?;
            let own = origin.map(turns::origin_stamp);
            stamp = match (stamp, own) {
                (Some(stamp), Some(own)) => Some(Stamp { origin: own.origin, ..stamp }),
                (stamp, own) => stamp.or(own),
            };
        }
        let (content, meta) = self.runtime.redact(&message.content, message.metadata).await;
        let turn = NewTurn {
            participant: author.clone(),
            content: content.as_str().into(),
            timestamp: rfc3339(self.quorate.now_ms()),
            meta,
            stamp,
        };
        let appended = self.runtime.substrate.append(turn).await.map_err(ServiceError::from)?;
        self.reader.notify_appended();
        let first = &appended.turn;
        let is_another = *first.content != *content || first.participant != author;
        // A runtime that answers a turn again after a crash may have another text; its first answer counts.
        if !appended.fresh && !answers && is_another {
            let key = first.stamp.as_ref().map_or("", |stamp| &stamp.key);
            let body =
                Body::new(format!("the message `{}` has the key `{key}`, and it is another one", first.id));
            let help = "give each message a key of its own; nothing was posted";
            return Err(Error::new(ErrorKind::Configuration, codes::KEY_TAKEN, body.help(help)));
        }
        Ok(PostedMessage {
            id: appended.turn.id.to_string(),
            timestamp: appended.turn.timestamp.to_string(),
            duplicate: !appended.fresh,
        })
    }

    /// The newest messages.
    ///
    /// # Errors
    /// If the substrate fails, or a message was altered.
    pub async fn newest(&self, limit: usize) -> Result<MessagePage, Error> {
        self.page(self.reader.newest(limit).await.map_err(ServiceError::from)?)
    }

    /// The messages right before one.
    ///
    /// # Errors
    /// As [`newest`](Self::newest).
    pub async fn before(&self, message: &str, limit: usize) -> Result<MessagePage, Error> {
        self.page(self.reader.before(&message.into(), limit).await.map_err(ServiceError::from)?)
    }

    /// The messages after one, as soon as there are any; empty if none arrive within `wait`, or if the waiter cancels.
    /// Without a message to start from, the newest; if that message does not exist, the first ones.
    ///
    /// # Errors
    /// As [`newest`](Self::newest).
    pub async fn wait_for_messages(
        &self,
        after: Option<&str>,
        limit: usize,
        wait: Duration,
        waiter: &impl Waiter,
    ) -> Result<MessagePage, Error> {
        let after = after.map(Name::from);
        let page = self.reader.wait_for_turns(after.as_ref(), limit, wait, waiter).await;
        self.page(page.map_err(ServiceError::from)?)
    }

    /// The page for clients, who must not get an altered turn as its author's words.
    fn page(&self, page: TurnPage) -> Result<MessagePage, Error> {
        self.runtime.ensure_proven(&page.turns)?;
        let messages = page.turns.into_iter().map(|turn| self.message(turn)).collect();
        Ok(MessagePage { messages, has_more: page.more, known: page.known })
    }

    fn message(&self, mut turn: Turn) -> Message {
        let author = self.participants().iter().find(|participant| participant.id == turn.participant);
        let metadata = client_metadata(&mut turn);
        Message {
            id: turn.id.to_string(),
            author_id: author.map_or(&*turn.participant, Self::client_id).to_owned(),
            author_name: author.map(|participant| participant.display_name.clone()),
            content: turn.content.to_string(),
            timestamp: turn.timestamp.to_string(),
            metadata,
        }
    }

    /// Has one participant answer the newest message once, whomever the dispatcher would choose. The manifest is read
    /// again, and the ledger is sealed and closed at the end. `None` if the conversation has no message.
    ///
    /// # Errors
    /// If the participant gives no answer, or manifest, substrate or ledger cannot be used.
    #[crate::boxed]
    pub async fn operate(
        &self,
        participant: &str,
        reply: ReplyMode,
        telemetry: Arc<dyn Telemetry>,
    ) -> Result<Option<Response>, Error> {
        let newest = self.reader.newest_id().await.map_err(ServiceError::from)?;
        let Some(newest) = newest else { return Ok(None) };
        let runtime = self.quorate.open_runtime(&self.request)?.open_ledger().await?;
        let request = OperateRequest {
            participant: participant.into(),
            substrate: self.runtime.substrate.clone(),
            state: self.runtime.state.clone(),
            newest,
            reply,
        };
        let response = operate::operate(&runtime, request, telemetry).await;
        runtime.seal().await;
        runtime.close().await;
        self.reader.notify_appended();
        Ok(Some(response?))
    }

    /// An entry of the manifest's state store, such as a participant's memory; empty if it does not exist.
    ///
    /// # Errors
    /// If the store fails.
    #[crate::boxed]
    pub async fn state(&self, key: &str) -> Result<Map<String, Value>, Error> {
        self.runtime.state.read(key).await.map_err(state_unreadable)
    }

    /// Replaces an entry of the state store.
    ///
    /// # Errors
    /// If the store fails.
    #[crate::boxed]
    pub async fn set_state(&self, key: &str, value: &Map<String, Value>) -> Result<(), Error> {
        self.runtime.state.write(key, value).await.map_err(state_unreadable)
    }
}

impl std::fmt::Debug for SharedConversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedConversation").field("id", &self.runtime.id).finish_non_exhaustive()
    }
}

fn state_unreadable(error: StateError) -> Error {
    Error::new(ErrorKind::Configuration, codes::STATE_UNREADABLE, Body::new(error_chain(&error)))
}

impl NewMessage {
    /// The named author. The metadata of another runtime names the participant if that has no operator.
    fn speaker(&self) -> &str {
        let participant = || self.metadata.get(METADATA_KEY)?.get("participant")?.as_str();
        self.author.as_deref().or_else(participant).unwrap_or(DEFAULT_SPEAKER)
    }

    /// Ties the message to its key. The metadata of another runtime names the turn that its message answers, so that it
    /// counts as a participant's turn here; the runtime's state is not copied.
    fn stamp(&self) -> Option<Stamp> {
        let key = self.key.clone()?;
        let remote = self
            .metadata
            .get(METADATA_KEY)
            .and_then(|marks| serde_json::from_value(marks.get("stamp")?.clone()).ok());
        let remote: Option<Stamp> = remote.filter(|stamp: &Stamp| stamp.key == key);
        Some(match remote {
            Some(stamp) => {
                let runtime = format!("{DETACHED_RUNTIME_PREFIX}{}", stamp.runtime).into();
                Stamp { runtime, state: None, ..stamp }
            }
            None => Stamp { key, runtime: DETACHED_RUNTIME_PREFIX.into(), ..Stamp::default() },
        })
    }
}

/// The metadata that readers see: the author's, and the stamp that ties a runtime's turn to the one that it answers,
/// without the participant's state.
fn client_metadata(turn: &mut Turn) -> Option<Map<String, Value>> {
    let mut meta = std::mem::take(&mut turn.meta);
    // A message posted by another client carries that client's own metadata.
    let own =
        |stamp: &Stamp| !stamp.runtime.starts_with(DETACHED_RUNTIME_PREFIX) || !stamp.trigger.is_empty();
    let stamp = turn.stamp.take().filter(|stamp| own(stamp) && !meta.contains_key(METADATA_KEY));
    if let Some(stamp) = stamp {
        let stamp = Stamp { state: None, ..stamp };
        meta.insert(
            METADATA_KEY.to_owned(),
            json!({"participant": &*turn.participant, "post": &*stamp.key, "stamp": stamp}),
        );
    }
    (!meta.is_empty()).then_some(meta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_stamp_from_elsewhere_is_never_taken_for_our_own() {
        let elsewhere = json!({"key": "turn/t1/a", "runtime": "swarm", "trigger": "t1", "chain": 3, "state": {"secret": 1}});
        let metadata = object(json!({"quorate": {"participant": "a", "post": "p", "stamp": elsewhere}}));
        let mut message = NewMessage { metadata, key: Some("turn/t1/a".into()), ..NewMessage::default() };
        let stamp = message.stamp().unwrap();
        assert_eq!(
            (&*stamp.runtime, &*stamp.trigger, stamp.chain, stamp.state),
            ("mcp:swarm", "t1", 3, None)
        );
        message.key = Some("k".into());
        let unrelated = message.stamp().unwrap();
        assert_eq!((&*unrelated.runtime, &*unrelated.trigger), ("mcp:", ""));
        message.key = None;
        assert!(message.stamp().is_none());
    }

    #[test]
    fn what_was_given_comes_back_and_states_do_not() {
        let turn = |meta, stamp| Turn {
            id: "t2".into(),
            participant: "a".into(),
            timestamp: "2026-05-18T18:23:11.504Z".into(),
            content: "hello".into(),
            meta: object(meta),
            stamp,
        };
        let metadata_in = json!({"quorate": {"post": "p"}, "mood": "calm"});
        let stamp =
            Stamp { key: "k".into(), runtime: "mcp:swarm".into(), trigger: "t1".into(), ..Stamp::default() };
        assert_eq!(
            client_metadata(&mut turn(metadata_in.clone(), Some(stamp.clone()))),
            Some(object(metadata_in))
        );
        let own = Stamp { runtime: "swarm".into(), state: Some(Map::new()), ..stamp.clone() };
        let visible = Value::Object(client_metadata(&mut turn(json!({}), Some(own))).unwrap());
        assert_eq!(visible["quorate"]["stamp"]["trigger"], "t1");
        assert_eq!(visible["quorate"]["stamp"].get("state"), None);
        assert_eq!(client_metadata(&mut turn(json!({}), None)), None);
        // A participant that `run_operator` asked has answered; a person who posts with a key has not.
        let asked = Stamp { runtime: "mcp:here".into(), ..stamp.clone() };
        let visible = Value::Object(client_metadata(&mut turn(json!({}), Some(asked))).unwrap());
        assert_eq!(visible["quorate"]["stamp"]["trigger"], "t1");
        let keyed = Stamp { runtime: "mcp:".into(), trigger: "".into(), ..stamp };
        assert_eq!(client_metadata(&mut turn(json!({}), Some(keyed))), None);
    }
}
