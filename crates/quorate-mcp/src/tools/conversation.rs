//! The tools on conversations: `post_message` appends to one, `get_messages` reads one and waits for new messages,
//! `run_operator` asks one participant to answer the newest message, `kv_get` and `kv_set` read and replace an entry of the
//! state store.

use std::sync::Arc;
use std::time::Duration;

use quorate::conversation::{MessagePage, NewMessage, PostedMessage, ReplyMode};
use quorate::input::Whole;
use quorate::jobs::{JobStatus, Reporter, Residue};
use quorate::{Conversation, Name};
use quorate_diagnostics::{Body, codes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{MAX_WAIT_MS, Wait};
use crate::ServerState;
use crate::conversations::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PostMessage {
    /// The conversation
    conversation_id: String,
    /// The text
    content: String,
    /// The author: a participant's operator id, or the name of a person, without white space; default user
    as_operator_id: Option<String>,
    /// A message is stored once for each key: the same message again returns the first, another one is refused
    idempotency_key: Option<String>,
    /// Metadata to store with it
    metadata: Option<Map<String, Value>>,
}

impl Tool for PostMessage {
    const NAME: &'static str = "post_message";
    const TITLE: &'static str = "Post a message";
    const ABOUT: &'static str = "Appends a message to a conversation. No participant is asked to answer: a runtime that \
        runs over the conversation does that, or `run_operator`.";
    const EFFECT: Effect = Effect::Adds;
    type Output = PostedMessage;

    async fn call(self, server: &Arc<ServerState>, _: &Caller) -> Result<PostedMessage, Failure> {
        let entry = server.conversations.find(&self.conversation_id)?;
        let message = NewMessage {
            content: self.content,
            author: self.as_operator_id,
            key: self.idempotency_key.as_deref().map(idempotency_name).transpose()?,
            metadata: self.metadata.unwrap_or_default(),
        };
        check_message(&message.content, &entry.author(&message))?;
        Ok(entry.post(message).await?)
    }
}

/// Checks content and author, by the rules of `quorate say`.
fn check_message(content: &str, by: &str) -> Result<(), Failure> {
    if content.trim().is_empty() {
        return Err(Failure::usage("`content` is empty", "give a text"));
    }
    if by.is_empty() || by.contains(char::is_whitespace) || by.contains(char::is_control) {
        let help = "use a name without white space, with - or _ between words";
        return Err(Failure::usage("`asOperatorId` is not a name", help));
    }
    Ok(())
}

/// Checks an idempotency key.
pub(super) fn idempotency_name(key: &str) -> Result<Name, Failure> {
    match key.is_empty() || key.contains(char::is_whitespace) {
        true => Err(Failure::usage("`idempotencyKey` is empty or has white space", "use a UUID")),
        false => Ok(key.into()),
    }
}

/// The number of messages: default and maximum.
const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetMessages {
    /// The conversation
    conversation_id: String,
    /// The most messages; default 50
    limit: Option<Whole<1, MAX_LIMIT>>,
    /// Only messages newer than this id; if it does not exist, the first ones, with known: false
    after: Option<String>,
    /// Only messages older than this id: the nearest ones
    before: Option<String>,
    /// How long to wait if there is no message, in milliseconds; at most 50000
    wait_ms: Option<Whole<0, MAX_WAIT_MS>>,
}

impl Tool for GetMessages {
    const NAME: &'static str = "get_messages";
    const TITLE: &'static str = "Read a conversation";
    const ABOUT: &'static str = "The newest messages of a conversation, oldest first; with `after` what is newer than a \
        message, with `waitMs` once there is something; with `before` what is older.";
    const EFFECT: Effect = Effect::Reads;
    type Output = MessagePage;

    async fn call(self, server: &Arc<ServerState>, caller: &Caller) -> Result<MessagePage, Failure> {
        let entry = server.conversations.find(&self.conversation_id)?;
        let limit = self.limit.map_or(DEFAULT_LIMIT, Whole::get) as usize;
        let wait = Duration::from_millis(self.wait_ms.map_or(0, Whole::get));
        let (after, before) = (self.after.map(Name::from), self.before.map(Name::from));
        let page = match (after, before) {
            (Some(_), Some(_)) => {
                return Err(Failure::malformed("there are both `after` and `before`", "leave one out"));
            }
            (None, Some(before)) => entry.turns().before(&before, limit).await?,
            (after, None) => entry.turns().wait_for_turns(after.as_ref(), limit, wait, caller).await?,
        };
        Ok(entry.messages(page)?)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KvGet {
    /// The entry: a participant's id, or any other text
    key: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Entry {
    /// The entry; {} if there is none.
    value: Map<String, Value>,
}

impl Tool for KvGet {
    const NAME: &'static str = "kv_get";
    const TITLE: &'static str = "Read state";
    const ABOUT: &'static str =
        "An entry of the state store of the first manifest: what a participant remembers.";
    const EFFECT: Effect = Effect::Reads;
    type Output = Entry;

    async fn call(self, server: &Arc<ServerState>, _: &Caller) -> Result<Entry, Failure> {
        Ok(Entry { value: server.conversations.first()?.state(&self.key).await? })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KvSet {
    /// The entry: a participant's id, or any other text
    key: String,
    /// The new value, which replaces the whole entry
    value: Map<String, Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Done {}

impl Tool for KvSet {
    const NAME: &'static str = "kv_set";
    const TITLE: &'static str = "Write state";
    const ABOUT: &'static str = "Replaces an entry of the state store of the first manifest.";
    const EFFECT: Effect = Effect::Replaces;
    type Output = Done;

    async fn call(self, server: &Arc<ServerState>, _: &Caller) -> Result<Done, Failure> {
        server.conversations.first()?.set_state(&self.key, &self.value).await?;
        Ok(Done {})
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunOperator {
    /// The conversation
    conversation_id: String,
    /// The participant: its id, or its operator id
    operator_id: String,
    /// Whether to append the reply to the conversation; if not, it is only returned
    #[serde(default)]
    post_reply: bool,
    /// With postReply: the reply is stored once for each key
    idempotency_key: Option<String>,
    /// How long to wait, in milliseconds: default 20000, at most 50000
    #[serde(default)]
    wait_ms: Wait,
}

/// The reply.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Said {
    /// The text.
    text: String,
    /// The id of the posted message.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
}

impl Tool for RunOperator {
    const NAME: &'static str = "run_operator";
    const TITLE: &'static str = "Have a participant answer";
    const ABOUT: &'static str = "Has one participant answer the newest message of a conversation, once, whoever else \
        would. The result is {text, messageId}. A job: without a result after `waitMs`, go on with `job_poll`.";
    const EFFECT: Effect = Effect::Adds;
    const IS_LONG: bool = true;
    type Output = JobStatus;

    async fn call(self, server: &Arc<ServerState>, caller: &Caller) -> Result<JobStatus, Failure> {
        let entry = server.conversations.find(&self.conversation_id)?.clone();
        let participant = entry.participant(&self.operator_id).ok_or_else(|| {
            let known: Vec<&str> = entry.participants().iter().map(Conversation::client_id).collect();
            let body = Body::new(format!("unknown participant `{}`", self.operator_id));
            let help = format!("the participants are {}", known.join(", "));
            Failure::new(codes::PARTICIPANT_UNKNOWN, body.help(help))
        })?;
        let participant = participant.id.clone();
        let reply = match (self.post_reply, self.idempotency_key) {
            (true, key) => ReplyMode::Post(key.map(|key| idempotency_name(&key)).transpose()?),
            // Without a posted reply there is nothing that could exist twice.
            (false, _) => ReplyMode::ReturnOnly,
        };
        let work = |reporter: Arc<Reporter<Failure>>| async move {
            let Some(reply) = entry.operate(&participant, reply, reporter).await? else {
                return Err(Failure::usage(
                    "the conversation has no message yet",
                    "post one with `post_message`",
                ));
            };
            let reply = Said { text: reply.text, message_id: reply.turn.map(|turn| turn.to_string()) };
            Ok(serde_json::to_value(reply).expect("texts are JSON"))
        };
        server.jobs.start(self.wait_ms.duration(caller), caller, Residue::Nothing, work).await
    }
}
