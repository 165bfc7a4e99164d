//! Conversations of agents: a runtime manifest whose participants answer each other.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::{NewTurn, Participant, Stamp};
use quorate_kernel::ports::state::State;
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::ports::telemetry::Telemetry;
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::events::{Interruption, Run};
use super::runs::RunRecord;
use super::service::confined::Root;
use super::service::disk::absolute;
use super::service::operate::{self, DETACHED_RUNTIME_PREFIX};
use super::service::runtime::conversation::{self as service, Shared};
use super::service::runtime::drive::{self, Sinks};
use super::service::runtime::events::{EventFile, OpenError};
use super::service::runtime::{OpenRuntime, Runtime, open};
use super::service::talks;
use super::session::Outcome;

pub use super::service::operate::{ReplyMode, Response};
pub use super::service::runtime::RuntimeRequest as ConversationRequest;
#[cfg(feature = "nats")]
pub use super::service::runtime::ServeEvent;
pub use super::service::runtime::conversation::{
    Activity, AuthorRule, ConversationReader, DEFAULT_SPEAKER, Doing, SayRequest, TurnPage, Turns,
};
pub use super::service::runtime::drive::{
    FailedCall, InterruptedTurn, PassedTurn, RunRequest, ShownTurn, Stopped, StoppedBy, SwarmEvent,
    SwarmReport, Until,
};
pub use super::service::talks::{FailedAnswer, Next, ParticipantState, Talk, TalkState, TurnOutcome};
pub use quorate_kernel::conversation::Turn;

impl Quorate {
    /// Opens a conversation: a runtime manifest, or the directory that holds it. Its substrate connects at first use; the
    /// ledger is opened only while participants are asked.
    ///
    /// # Errors
    /// If the manifest or the configuration cannot be used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use async_trait::async_trait;
    /// use quorate::Quorate;
    /// use quorate::conversation::{RunRequest, SayRequest};
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
    /// let conversation = quorate.conversation("parrots.yaml")?;
    /// let (text, by) = ("@polly, who are you?".to_owned(), Some("ann".to_owned()));
    /// conversation.say(&SayRequest { text, by, ..SayRequest::default() }).await?;
    /// let run = conversation.run(RunRequest::default()).finish().await?;
    /// assert_eq!(run.appended[0].content, "Hello, hello!");
    /// assert_eq!(conversation.turns().newest(10).await?.turns.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn conversation(&self, request: impl Into<ConversationRequest>) -> Result<Conversation, Error> {
        let mut request = request.into();
        request.path = self.named_path(request.path)?;
        request.root = request.root.or_else(|| Some(self.root.as_ref()?.dir().to_owned()));
        self.open_conversation(request, None, Arc::default())
    }

    /// The conversations of the workspace: one for each runtime manifest below its root, by their paths.
    ///
    /// # Errors
    /// If the workspace cannot be read.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("desk.yaml"), "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: desk\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let talks = quorate.talks()?;
    /// assert_eq!((&*talks[0].manifest, talks[0].runtime.as_deref()), ("desk.yaml", Some("desk")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn talks(&self) -> Result<Vec<Talk>, Error> {
        talks::list(&self.environment, &self.talk_root()?)
    }

    /// Opens the conversation with an id of [`Quorate::talks`], or of the only runtime with that id.
    ///
    /// # Errors
    /// `quorate:conversation_unknown` if no conversation matches; else as [`Quorate::conversation`].
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// // The workspace has no runtime manifest.
    /// assert_eq!(quorate.talk("desk").unwrap_err().code(), "quorate:conversation_unknown");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn talk(&self, id: &str) -> Result<Conversation, Error> {
        let root = self.talk_root()?;
        let talk = talks::find(&self.environment, &root, id)?;
        let (path, root) = (talk.path.clone(), Some(root.dir().to_owned()));
        let request = ConversationRequest { path, root, ..ConversationRequest::default() };
        self.open_conversation(request, Some(talk), Arc::default())
    }

    fn talk_root(&self) -> Result<Root, Error> {
        self.root.clone().map_or_else(|| Root::open(self.root()), Ok)
    }

    fn open_conversation(
        &self,
        request: ConversationRequest,
        talk: Option<Talk>,
        shared: Arc<Shared>,
    ) -> Result<Conversation, Error> {
        let runtime = Arc::new(open(&self.environment, &self.places, &request)?);
        let turns = Turns::new(runtime.substrate.clone(), shared.clone());
        let talk = talk.unwrap_or_else(|| Talk {
            id: runtime.id.clone(),
            runtime: Some(runtime.id.clone()),
            manifest: request.path.display().to_string(),
            path: runtime.path.clone(),
        });
        Ok(Conversation(Arc::new(Inner { quorate: self.clone(), request, talk, runtime, shared, turns })))
    }
}

/// A conversation that several callers read and extend at once. Cloning it is cheap.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// use quorate::Quorate;
/// use quorate::conversation::{NewMessage, SayRequest};
///
/// # let manifest = "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: desk\nsubstrate: {kind: file, path: desk.txt}\n\
/// #     participants: [{id: skeptic, executor: rubric}]\ndispatcher: {kind: mention}\n";
/// # std::fs::write(dir.path().join("desk.yaml"), manifest)?;
/// let quorate = Quorate::builder().workspace(dir.path()).build()?;
/// let desk = quorate.conversation("desk.yaml")?;
/// desk.say(&SayRequest { text: "The meeting moved.".to_owned(), ..SayRequest::default() }).await?;
/// let (content, author) = ("Noted.".to_owned(), Some("bo".to_owned()));
/// desk.post(NewMessage { content, author, ..NewMessage::default() }).await?;
/// let page = desk.messages(desk.turns().newest(10).await?)?;
/// assert_eq!((&*page.messages[0].author_id, &*page.messages[1].author_id), ("user", "bo"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Conversation(Arc<Inner>);

struct Inner {
    quorate: Quorate,
    request: ConversationRequest,
    talk: Talk,
    runtime: Arc<Runtime>,
    shared: Arc<Shared>,
    turns: Turns,
}

/// The key of a message's metadata that is Quorate's own: `{participant, post, stamp}`, as the `guilde-mcp` substrate
/// writes and reads it.
const METADATA_KEY: &str = "quorate";

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

impl Conversation {
    /// Its place in the workspace.
    pub fn talk(&self) -> &Talk {
        &self.0.talk
    }

    /// The ids of the conversation: the manifest's, and the substrate's if it has one.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        [Some(self.0.runtime.id.clone()), self.0.runtime.substrate.about().conversation].into_iter().flatten()
    }

    /// The runtime's id.
    pub fn id(&self) -> &str {
        &self.0.runtime.id
    }

    /// The warnings of the manifest and of the configuration.
    pub fn report(&self) -> &Report {
        &self.0.runtime.report
    }

    /// The budget of a run, unless its request has another.
    pub fn caps(&self) -> Caps {
        self.0.runtime.caps
    }

    /// The substrate that keeps the turns.
    pub fn substrate(&self) -> &Arc<dyn Substrate> {
        &self.0.runtime.substrate
    }

    /// The store of participants' states.
    pub fn states(&self) -> &Arc<dyn State> {
        &self.0.runtime.state
    }

    /// The participants, in the manifest's order.
    pub fn participants(&self) -> &[Participant] {
        &self.0.runtime.participants
    }

    /// The participant with this id or this operator.
    pub fn participant(&self, id: &str) -> Option<&Participant> {
        let all = || self.participants().iter();
        all()
            .find(|participant| participant.operator() == Some(id))
            .or_else(|| all().find(|participant| *participant.id == *id))
    }

    /// A participant's id for clients: its operator's id, if it has one.
    pub fn client_id(participant: &Participant) -> &str {
        participant.operator().unwrap_or(&participant.id)
    }

    /// The author under whom a message will be stored.
    pub fn author(&self, message: &NewMessage) -> Name {
        let speaker = message.speaker();
        self.participant(speaker).map_or_else(|| Name::from(speaker), |participant| participant.id.clone())
    }

    /// The same conversation by the manifest's present content.
    ///
    /// # Errors
    /// As [`Quorate::conversation`].
    pub fn reopened(&self) -> Result<Conversation, Error> {
        let Inner { quorate, request, talk, shared, .. } = &*self.0;
        quorate.open_conversation(request.clone(), Some(talk.clone()), shared.clone())
    }

    /// Refuses a conversation that only the process that runs it can read.
    ///
    /// # Errors
    /// `quorate:conversation_not_shared`.
    pub fn ensure_shared(&self) -> Result<(), Error> {
        service::check_shared(&self.0.runtime, service::READ_RECORDS)
    }

    /// Refuses a conversation whose database does not exist yet: reading it would create the database.
    ///
    /// # Errors
    /// `quorate:conversation_unknown`.
    pub fn ensure_begun(&self) -> Result<(), Error> {
        let Some(missing) = self.0.runtime.missing_databases.first() else { return Ok(()) };
        let message = format!("the database {} of `{}` does not exist yet", missing.display(), self.id());
        let help = "run `quorate say MANIFEST TEXT` or `quorate run MANIFEST` to begin the conversation";
        Err(Error::new(ErrorKind::NotFound, codes::CONVERSATION_UNKNOWN, Body::new(message).help(help)))
    }

    /// Refuses a conversation that differs from the ledger.
    ///
    /// # Errors
    /// `quorate:conversation_altered`, and if conversation or ledger cannot be read.
    #[crate::boxed]
    pub async fn ensure_unaltered(&self) -> Result<(), Error> {
        let altered = self.0.runtime.find_alterations().await?;
        match altered.has_refusals() {
            true => Err(Error::from_report(ErrorKind::Refused, altered)),
            false => Ok(()),
        }
    }

    /// The turns, for concurrent readers.
    pub fn turns(&self) -> &Turns {
        &self.0.turns
    }

    /// Reads the turns from the first one on.
    ///
    /// # Errors
    /// If the ledger, which may know the authors of turns, cannot be read.
    pub async fn reader(&self) -> Result<ConversationReader, Error> {
        ConversationReader::with_authors(&self.0.runtime).await
    }

    /// The recorded attempts, consultations and turns; empty if it never ran.
    ///
    /// # Errors
    /// If the ledger cannot be opened or read.
    pub async fn records(&self) -> Result<Vec<RunRecord>, Error> {
        Ok(self.0.runtime.records(None).await?.iter().map(RunRecord::from).collect())
    }

    /// A turn for display, without the secrets of this workspace, which another program may have written.
    pub fn shown(&self, turn: &Turn) -> ShownTurn {
        let shown = ShownTurn::of(turn);
        ShownTurn { content: self.0.runtime.shown(&shown.content), ..shown }
    }

    /// The activity of this process in the conversation.
    pub fn activity(&self) -> watch::Receiver<Activity> {
        self.0.shared.subscribe()
    }

    /// How the conversation stands: its participants, the outcomes of turns, and who answers next.
    ///
    /// # Errors
    /// If the substrate or the ledger fails, or only the process that runs the conversation can read it.
    #[crate::boxed]
    pub async fn status(&self) -> Result<TalkState, Error> {
        let Inner { talk, runtime, shared, turns, .. } = &*self.0;
        let activity = shared.subscribe().borrow().clone();
        talks::load_state(talk, runtime, turns, activity).await
    }

    /// Appends a turn of a person. No participant answers before [`Conversation::run`].
    ///
    /// # Errors
    /// If the text is empty, the name is a participant's, or the substrate rejects the turn.
    pub async fn say(&self, request: &SayRequest) -> Result<Turn, Error> {
        let turn = service::say(&self.0.runtime, request).await?;
        self.0.shared.notify_appended();
        Ok(turn)
    }

    /// Suggestions for mentions in a text that match no participant.
    pub fn near_misses(&self, text: &str) -> Vec<String> {
        self.0.runtime.probable_addressees(text)
    }

    /// Lets participants answer. The stream has each turn and each step; a run of the same conversation in this process
    /// waits for the one before it. [`Run::interrupt`] ends it: pending members are stopped, and the next run asks them
    /// again.
    ///
    /// # Errors
    /// If another process runs the conversation, an executor is not trusted or not installed, or substrate or ledger fail.
    /// Answers given until then are recorded.
    pub fn run(&self, request: RunRequest) -> Run<Outcome<SwarmReport>, SwarmEvent> {
        let conversation = self.clone();
        Run::with_events(move |stream, interruption| async move {
            conversation.run_in_ledger(request, stream, interruption).await
        })
    }

    async fn run_in_ledger(
        self,
        request: RunRequest,
        stream: UnboundedSender<SwarmEvent>,
        interruption: Interruption,
    ) -> Result<Outcome<SwarmReport>, Error> {
        let Inner { runtime, shared, .. } = &*self.0;
        let file = request.events.as_deref().map(|path| self.open_events(path, &stream)).transpose()?;
        let sinks = Arc::new(Sinks { stream, shared: shared.clone(), file });
        let ready = OpenRuntime::open(runtime).await?;
        sinks.send(SwarmEvent::Warned(ready.report.clone()));
        let result = drive::run(&ready, &request, &sinks, &interruption).await;
        if result.as_ref().is_err_and(Error::is_ledger_unavailable) {
            ready.store.interrupt();
        }
        if sinks.file.as_ref().is_some_and(|file| !file.close()) {
            let notice = "the last events could not be written: the reader does not read".to_owned();
            sinks.send(SwarmEvent::EventsEnded(notice));
        }
        let warnings = ready.seal().await;
        ready.close().await;
        Outcome::of(result, warnings)
    }

    fn open_events(&self, path: &Path, stream: &UnboundedSender<SwarmEvent>) -> Result<EventFile, Error> {
        let Inner { quorate, runtime, .. } = &*self.0;
        runtime.guard.ensure_free(&quorate.environment, path)?;
        let (file, stream) = (path.display().to_string(), stream.clone());
        let ended = move |error: &std::io::Error| {
            let notice = format!("cannot write events to {file}: {error}; the run continues without them");
            let _ = stream.send(SwarmEvent::EventsEnded(notice));
        };
        EventFile::open(&absolute(&quorate.environment.directory, path), ended).map_err(|unusable| {
            let (class, help) = match unusable {
                OpenError::NotAnEventFile => {
                    (ErrorKind::InvalidRequest, "name a new file, or one that `--events` has written")
                }
                OpenError::Io(_) => (ErrorKind::Configuration, "name a file that can be written"),
            };
            let body = Body::new(format!("cannot write events to {}: {unusable}", path.display()));
            Error::new(class, codes::EVENTS_UNWRITABLE, body.help(help))
        })
    }

    /// Answers for a participant of a conversation that another machine runs, until the stream is dropped.
    ///
    /// # Errors
    /// If the participant is unknown, its executor is remote, not trusted or not installed, or the NATS servers cannot be
    /// used.
    #[cfg(feature = "nats")]
    pub fn serve(&self, participant: &str) -> Run<(), ServeEvent> {
        let (runtime, participant) = (self.0.runtime.clone(), participant.to_owned());
        Run::with_events(move |tell, _| async move { runtime.serve_participant(&participant, tell).await })
    }

    /// Appends a message of a client. No participant is asked to answer.
    ///
    /// # Errors
    /// If the text is empty, the key belongs to another message, the author is a participant without an operator, or the
    /// substrate refuses the message or fails.
    #[crate::boxed]
    pub async fn post(&self, message: NewMessage) -> Result<PostedMessage, Error> {
        let author = self.author(&message);
        service::check_message(&message.content, &author)?;
        // The manifest says that the operator posts from elsewhere, and a runtime elsewhere says what it answers.
        let is_operator = *author != *message.speaker();
        let mut stamp = message.stamp();
        let answers = stamp.as_ref().is_some_and(|stamp| !stamp.trigger.is_empty());
        if !answers && !is_operator {
            let origin = service::author_origin(&self.0.runtime, &author, AuthorRule::PeopleOnly)?;
            let own = origin.map(service::origin_stamp);
            stamp = match (stamp, own) {
                (Some(stamp), Some(own)) => Some(Stamp { origin: own.origin, ..stamp }),
                (stamp, own) => stamp.or(own),
            };
        }
        let (content, meta) = self.0.runtime.redact(&message.content, message.metadata).await;
        let turn = NewTurn {
            participant: author.clone(),
            content: content.as_str().into(),
            timestamp: rfc3339(self.0.quorate.now_ms()),
            meta,
            stamp,
        };
        let appended = self.0.runtime.substrate.append(turn).await?;
        self.0.shared.notify_appended();
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

    /// A page for clients, who must not get an altered turn as its author's words.
    ///
    /// # Errors
    /// If a turn was altered.
    pub fn messages(&self, page: TurnPage) -> Result<MessagePage, Error> {
        self.0.runtime.ensure_proven(&page.turns)?;
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
        let Some(newest) = self.turns().newest_id().await? else { return Ok(None) };
        let ready = OpenRuntime::open(&self.reopened()?.0.runtime).await?;
        let response =
            operate::operate(&ready, &self.0.runtime, participant.into(), newest, reply, telemetry).await;
        ready.seal().await;
        ready.close().await;
        self.0.shared.notify_appended();
        Ok(Some(response?))
    }

    /// What a participant remembers; empty if it has no state.
    ///
    /// # Errors
    /// If the participant is unknown, or the store fails.
    #[crate::boxed]
    pub async fn participant_state(&self, participant: &str) -> Result<Map<String, Value>, Error> {
        service::state(&self.0.runtime, participant).await
    }

    /// An entry of the manifest's state store, such as a participant's memory; empty if it does not exist.
    ///
    /// # Errors
    /// If the store fails.
    #[crate::boxed]
    pub async fn state(&self, key: &str) -> Result<Map<String, Value>, Error> {
        self.0.runtime.state.read(key).await.map_err(service::state_unreadable)
    }

    /// Replaces an entry of the state store.
    ///
    /// # Errors
    /// If the store fails.
    #[crate::boxed]
    pub async fn set_state(&self, key: &str, value: &Map<String, Value>) -> Result<(), Error> {
        self.0.runtime.state.write(key, value).await.map_err(service::state_unreadable)
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation").field("id", &self.0.runtime.id).finish_non_exhaustive()
    }
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
