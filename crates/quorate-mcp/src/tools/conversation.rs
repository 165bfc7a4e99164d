//! The tools on conversations: `post_message` appends to one, `get_messages` reads one and waits for new messages,
//! `run_operator` asks one participant to answer the newest message, `kv_get` and `kv_set` read and replace an entry of the
//! state store.

use std::sync::Arc;
use std::time::Duration;

use quorate::service::jobs::Reporter;
use quorate::service::jobs::{JobStatus, Residue};
use quorate::service::operate::{self, DETACHED_RUNTIME_PREFIX, ReplyMode};
use quorate::service::runtime::conversation::{self, AuthorRule};
use quorate::service::time_text::Whole;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::{NewTurn, Stamp, Turn};
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{MAX_WAIT_MS, Wait};
use crate::ServerState;
use crate::conversations::{Caller, OfferedConversation, external_id};
use crate::failure::Failure;
use crate::tool::{Effect, Tool};

/// The key of a message's metadata that is Quorate's own: `{participant, post, stamp}`, as the `guilde-mcp` substrate
/// writes and reads it.
const METADATA_KEY: &str = "quorate";

pub(super) struct PostMessage;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PostArguments {
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

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Posted {
    /// The message's id.
    id: String,
    /// When it was stored, as RFC 3339.
    timestamp: String,
    /// Whether a message with this key existed before.
    duplicate: bool,
}

impl Tool for PostMessage {
    const NAME: &'static str = "post_message";
    const TITLE: &'static str = "Post a message";
    const ABOUT: &'static str = "Appends a message to a conversation. No participant is asked to answer: a runtime that \
        runs over the conversation does that, or `run_operator`.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = PostArguments;
    type Output = Posted;

    async fn call(
        server: &Arc<ServerState>,
        arguments: PostArguments,
        _: &Caller,
    ) -> Result<Posted, Failure> {
        let entry = server.conversations.find(&arguments.conversation_id)?;
        let meta = arguments.metadata.unwrap_or_default();
        let metadata_participant = || meta.get(METADATA_KEY)?.get("participant")?.as_str();
        // The metadata of another runtime names the participant if that has no operator.
        let speaker = arguments
            .as_operator_id
            .as_deref()
            .or_else(metadata_participant)
            .unwrap_or(conversation::DEFAULT_SPEAKER);
        let author = entry
            .participant(speaker)
            .map_or_else(|| Name::from(speaker), |participant| participant.id.clone());
        let mut stamp = stamp(&meta, arguments.idempotency_key)?;
        check_message(&arguments.content, &author)?;
        let answers = stamp.as_ref().is_some_and(|stamp| !stamp.trigger.is_empty());
        // The manifest says that the operator posts from elsewhere, and a runtime elsewhere says what it answers.
        let is_operator = *author != *speaker;
        if !answers && !is_operator {
            let origin = conversation::author_origin(&entry.runtime, &author, AuthorRule::PeopleOnly)?;
            let own = origin.map(conversation::origin_stamp);
            stamp = match (stamp, own) {
                (Some(stamp), Some(own)) => Some(Stamp { origin: own.origin, ..stamp }),
                (stamp, own) => stamp.or(own),
            };
        }
        let (content, meta) = entry.runtime.redact(&arguments.content, meta).await;
        let turn = NewTurn {
            participant: author.clone(),
            content: content.as_str().into(),
            timestamp: rfc3339(server.environment.clock.now_ms()),
            meta,
            stamp,
        };
        let appended = entry.runtime.substrate.append(turn).await?;
        entry.conversation.notify_appended();
        let first = &appended.turn;
        let is_another = *first.content != *content || first.participant != author;
        // A runtime that answers a turn again after a crash may have another text; its first answer counts.
        if !appended.fresh && !answers && is_another {
            let key = first.stamp.as_ref().map_or("", |stamp| &stamp.key);
            let body =
                Body::new(format!("the message `{}` has the key `{key}`, and it is another one", first.id));
            let help = "give each message a key of its own; nothing was posted";
            return Err(Failure::new(codes::KEY_TAKEN, body.help(help)));
        }
        Ok(Posted {
            id: appended.turn.id.to_string(),
            timestamp: appended.turn.timestamp.to_string(),
            duplicate: !appended.fresh,
        })
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

/// Ties a message to its key. The metadata of another runtime names the turn that its message answers, so that it counts
/// as a participant's turn here; the runtime's state is not copied.
fn stamp(meta: &Map<String, Value>, key: Option<String>) -> Result<Option<Stamp>, Failure> {
    let Some(key) = key else { return Ok(None) };
    let key = idempotency_name(&key)?;
    let remote =
        meta.get(METADATA_KEY).and_then(|marks| serde_json::from_value(marks.get("stamp")?.clone()).ok());
    let remote: Option<Stamp> = remote.filter(|stamp: &Stamp| stamp.key == key);
    Ok(Some(match remote {
        Some(stamp) => {
            let runtime = format!("{DETACHED_RUNTIME_PREFIX}{}", stamp.runtime).into();
            Stamp { runtime, state: None, ..stamp }
        }
        None => Stamp { key, runtime: DETACHED_RUNTIME_PREFIX.into(), ..Stamp::default() },
    }))
}

/// The metadata that readers see: the author's, and the stamp that ties a runtime's turn to the one that it answers,
/// without the participant's state.
pub(super) fn metadata(turn: &mut Turn) -> Option<Map<String, Value>> {
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

/// The number of messages: default and maximum.
const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 500;

pub(super) struct GetMessages;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetArguments {
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

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Messages {
    /// Oldest first.
    messages: Vec<Message>,
    /// Whether there are more: newer ones with after, else older ones.
    has_more: bool,
    /// Whether the message of after or before exists; true without them.
    known: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    id: String,
    /// A participant's operator id or id, or any other name.
    author_id: String,
    /// A participant's display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    author_name: Option<String>,
    content: String,
    /// RFC 3339.
    timestamp: String,
    /// The author's metadata. `quorate` ties a runtime's turn to the one that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
}

impl Tool for GetMessages {
    const NAME: &'static str = "get_messages";
    const TITLE: &'static str = "Read a conversation";
    const ABOUT: &'static str = "The newest messages of a conversation, oldest first; with `after` what is newer than a \
        message, with `waitMs` once there is something; with `before` what is older.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = GetArguments;
    type Output = Messages;

    async fn call(
        server: &Arc<ServerState>,
        arguments: GetArguments,
        caller: &Caller,
    ) -> Result<Messages, Failure> {
        let entry = server.conversations.find(&arguments.conversation_id)?;
        let limit = arguments.limit.map_or(DEFAULT_LIMIT, Whole::get) as usize;
        let wait = Duration::from_millis(arguments.wait_ms.map_or(0, Whole::get));
        let conversation = &entry.conversation;
        let page = match (arguments.after, arguments.before) {
            (Some(_), Some(_)) => {
                return Err(Failure::malformed("there are both `after` and `before`", "leave one out"));
            }
            (None, Some(before)) => conversation.before(&Name::from(before), limit).await?,
            (after, None) => {
                let after = after.map(Name::from);
                conversation.wait_for_turns(after.as_ref(), limit, wait, caller).await?
            }
        };
        entry.runtime.ensure_proven(&page.turns)?;
        let messages = page.turns.into_iter().map(|turn| message(entry, turn)).collect();
        Ok(Messages { messages, has_more: page.more, known: page.known })
    }
}

fn message(entry: &OfferedConversation, mut turn: Turn) -> Message {
    let author = entry.runtime.participants.iter().find(|participant| participant.id == turn.participant);
    let metadata = metadata(&mut turn);
    Message {
        id: turn.id.to_string(),
        author_id: author.map_or(&*turn.participant, |participant| external_id(participant)).to_owned(),
        author_name: author.map(|participant| participant.display_name.clone()),
        content: turn.content.to_string(),
        timestamp: turn.timestamp.to_string(),
        metadata,
    }
}

pub(super) struct KvGet;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadStateArguments {
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
    type Arguments = ReadStateArguments;
    type Output = Entry;

    async fn call(
        server: &Arc<ServerState>,
        arguments: ReadStateArguments,
        _: &Caller,
    ) -> Result<Entry, Failure> {
        let state = &server.conversations.first()?.runtime.state;
        Ok(Entry { value: state.read(&arguments.key).await? })
    }
}

pub(super) struct KvSet;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteStateArguments {
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
    type Arguments = WriteStateArguments;
    type Output = Done;

    async fn call(
        server: &Arc<ServerState>,
        arguments: WriteStateArguments,
        _: &Caller,
    ) -> Result<Done, Failure> {
        server.conversations.first()?.runtime.state.write(&arguments.key, &arguments.value).await?;
        Ok(Done {})
    }
}

pub(super) struct RunOperator;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OperatorArguments {
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
    type Arguments = OperatorArguments;
    type Output = JobStatus;

    async fn call(
        server: &Arc<ServerState>,
        arguments: OperatorArguments,
        caller: &Caller,
    ) -> Result<JobStatus, Failure> {
        let entry = server.conversations.find(&arguments.conversation_id)?.clone();
        let participant = entry.participant(&arguments.operator_id).ok_or_else(|| {
            let known: Vec<&str> = entry.runtime.participants.iter().map(external_id).collect();
            let body = Body::new(format!("unknown participant `{}`", arguments.operator_id));
            let help = format!("the participants are {}", known.join(", "));
            Failure::new(codes::PARTICIPANT_UNKNOWN, body.help(help))
        })?;
        let participant = participant.id.clone();
        let reply = match (arguments.post_reply, arguments.idempotency_key) {
            (true, key) => ReplyMode::Post(key.map(|key| idempotency_name(&key)).transpose()?),
            // Without a posted reply there is nothing that could exist twice.
            (false, _) => ReplyMode::ReturnOnly,
        };
        let work = |reporter: Arc<Reporter<Failure>>| async move {
            let Some(newest) = entry.conversation.newest_id().await? else {
                return Err(Failure::usage(
                    "the conversation has no message yet",
                    "post one with `post_message`",
                ));
            };
            let runtime = entry.reopen().await?;
            let request = operate::OperateRequest {
                participant,
                substrate: entry.runtime.substrate.clone(),
                state: entry.runtime.state.clone(),
                newest,
                reply,
            };
            let reply = operate::operate(&runtime, request, reporter).await;
            runtime.seal().await;
            runtime.close().await;
            entry.conversation.notify_appended();
            let reply = reply?;
            let reply = Said { text: reply.text, message_id: reply.turn.map(|turn| turn.to_string()) };
            Ok(serde_json::to_value(reply).expect("texts are JSON"))
        };
        server.jobs.start(arguments.wait_ms.duration(), caller, Residue::Nothing, work).await
    }
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
        let meta = object(json!({"quorate": {"participant": "a", "post": "p", "stamp": elsewhere}}));
        let stamp = stamp(&meta, Some("turn/t1/a".to_owned())).unwrap().unwrap();
        assert_eq!(
            (&*stamp.runtime, &*stamp.trigger, stamp.chain, stamp.state),
            ("mcp:swarm", "t1", 3, None)
        );
        let unrelated = super::stamp(&meta, Some("k".to_owned())).unwrap().unwrap();
        assert_eq!((&*unrelated.runtime, &*unrelated.trigger), ("mcp:", ""));
        assert!(super::stamp(&meta, None).unwrap().is_none());
        assert!(super::stamp(&meta, Some("a b".to_owned())).is_err());
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
        assert_eq!(metadata(&mut turn(metadata_in.clone(), Some(stamp.clone()))), Some(object(metadata_in)));
        let own = Stamp { runtime: "swarm".into(), state: Some(Map::new()), ..stamp.clone() };
        let visible = Value::Object(metadata(&mut turn(json!({}), Some(own))).unwrap());
        assert_eq!(visible["quorate"]["stamp"]["trigger"], "t1");
        assert_eq!(visible["quorate"]["stamp"].get("state"), None);
        assert_eq!(metadata(&mut turn(json!({}), None)), None);
        // A participant that `run_operator` asked has answered; a person who posts with a key has not.
        let asked = Stamp { runtime: "mcp:here".into(), ..stamp.clone() };
        let visible = Value::Object(metadata(&mut turn(json!({}), Some(asked))).unwrap());
        assert_eq!(visible["quorate"]["stamp"]["trigger"], "t1");
        let keyed = Stamp { runtime: "mcp:".into(), trigger: "".into(), ..stamp };
        assert_eq!(metadata(&mut turn(json!({}), Some(keyed))), None);
    }
}
