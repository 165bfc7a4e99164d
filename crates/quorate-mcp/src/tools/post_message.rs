//! `post_message`: appends to a conversation.

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::{NewTurn, Stamp, Turn};
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ServerState;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use quorate::service::operate::DETACHED_RUNTIME_PREFIX;
use quorate::service::runtime::conversation;

/// The key of a message's metadata that is Quorate's own: `{participant, post, stamp}`, as the `guilde-mcp` substrate
/// writes and reads it.
const METADATA_KEY: &str = "quorate";

pub(super) struct PostMessage;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// The conversation
    conversation_id: String,
    /// What is said
    content: String,
    /// Who says it: a participant's id or operator id, or any other name without white space; user unless said
    as_operator_id: Option<String>,
    /// A message is kept once for each key: the same one again gets the first back, and another one is refused
    idempotency_key: Option<String>,
    /// What is kept with it
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Posted {
    /// The message's id.
    id: String,
    /// When it was kept, as RFC 3339.
    timestamp: String,
    /// Whether a message with this key was there already.
    duplicate: bool,
}

impl Tool for PostMessage {
    const NAME: &'static str = "post_message";
    const TITLE: &'static str = "Post a message";
    const ABOUT: &'static str = "Appends a message to a conversation. Nobody is asked to answer by it: a runtime that \
        runs over the conversation does that, or `run_operator`.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Arguments;
    type Output = Posted;

    async fn call(served: &Arc<ServerState>, given: Arguments, _caller: &Caller) -> Result<Posted, Failure> {
        let offered = served.conversations.find(&given.conversation_id)?;
        let meta = given.metadata.unwrap_or_default();
        let beside = || meta.get(METADATA_KEY)?.get("participant")?.as_str();
        // A runtime elsewhere says for whom it posts where it has no operator for that one.
        let said = given.as_operator_id.as_deref().or_else(beside).unwrap_or(conversation::DEFAULT_SPEAKER);
        let by = offered.participant(said).map_or_else(|| Name::from(said), |one| one.id.clone());
        let stamp = stamp(&meta, given.idempotency_key)?;
        check_message(&given.content, &by)?;
        let (content, meta) = offered.runtime.redact(&given.content, meta).await;
        let answers = stamp.as_ref().is_some_and(|stamp| !stamp.trigger.is_empty());
        let turn = NewTurn {
            participant: by.clone(),
            content: content.as_str().into(),
            timestamp: rfc3339(served.environment.clock.now_ms()),
            meta,
            stamp,
        };
        let appended = offered.runtime.substrate.append(turn).await?;
        offered.conversation.notify_appended();
        let first = &appended.turn;
        let is_another = *first.content != *content || first.participant != by;
        // A runtime that answers a turn again after it was killed may say something else; its first answer holds.
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

/// What can be said, and by whom, as `quorate say` holds it.
fn check_message(content: &str, by: &str) -> Result<(), Failure> {
    if content.trim().is_empty() {
        return Err(Failure::usage("`content`: there is nothing to say", "give a text"));
    }
    if by.is_empty() || by.contains(char::is_whitespace) || by.contains(char::is_control) {
        let help = "a name has no white space and is not empty: use - or _ between words";
        return Err(Failure::usage("`asOperatorId` is no name", help));
    }
    Ok(())
}

/// A key under which something is kept once.
pub(super) fn idempotency_name(key: &str) -> Result<Name, Failure> {
    match key.is_empty() || key.contains(char::is_whitespace) {
        true => Err(Failure::usage("`idempotencyKey` is empty or has white space", "use a UUID")),
        false => Ok(key.into()),
    }
}

/// What ties a message to its key. A runtime elsewhere says beside its message which turn it answers, so that it counts
/// as a participant's here; its state and its place stay its own.
fn stamp(meta: &Map<String, Value>, key: Option<String>) -> Result<Option<Stamp>, Failure> {
    let Some(key) = key else { return Ok(None) };
    let key = idempotency_name(&key)?;
    let beside =
        meta.get(METADATA_KEY).and_then(|marks| serde_json::from_value(marks.get("stamp")?.clone()).ok());
    let beside: Option<Stamp> = beside.filter(|stamp: &Stamp| stamp.key == key);
    let (runtime, trigger, selected) = match beside {
        Some(stamp) => (format!("{DETACHED_RUNTIME_PREFIX}{}", stamp.runtime), stamp.trigger, stamp.selected),
        None => (DETACHED_RUNTIME_PREFIX.to_owned(), "".into(), Vec::new()),
    };
    Ok(Some(Stamp { key, runtime: runtime.into(), trigger, selected, state: None }))
}

/// What is shown beside a message: its author's metadata, and what ties a runtime's turn to the one that it answers. A
/// participant's state is nobody else's business.
pub(super) fn metadata(turn: &mut Turn) -> Option<Map<String, Value>> {
    let mut meta = std::mem::take(&mut turn.meta);
    // What was posted from elsewhere has beside it what its author wrote there.
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
        let elsewhere =
            json!({"key": "turn/t1/a", "runtime": "swarm", "trigger": "t1", "state": {"secret": 1}});
        let meta = object(json!({"quorate": {"participant": "a", "post": "p", "stamp": elsewhere}}));
        let stamp = stamp(&meta, Some("turn/t1/a".to_owned())).unwrap().unwrap();
        assert_eq!((&*stamp.runtime, &*stamp.trigger, stamp.state), ("mcp:swarm", "t1", None));
        let other = super::stamp(&meta, Some("k".to_owned())).unwrap().unwrap();
        assert_eq!((&*other.runtime, &*other.trigger), ("mcp:", ""));
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
        let given = json!({"quorate": {"post": "p"}, "mood": "calm"});
        let from = Stamp {
            key: "k".into(),
            runtime: "mcp:swarm".into(),
            trigger: "t1".into(),
            selected: Vec::new(),
            state: None,
        };
        assert_eq!(metadata(&mut turn(given.clone(), Some(from.clone()))), Some(object(given)));
        let own = Stamp { runtime: "swarm".into(), state: Some(Map::new()), ..from.clone() };
        let shown = Value::Object(metadata(&mut turn(json!({}), Some(own))).unwrap());
        assert_eq!(shown["quorate"]["stamp"]["trigger"], "t1");
        assert_eq!(shown["quorate"]["stamp"].get("state"), None);
        assert_eq!(metadata(&mut turn(json!({}), None)), None);
        // A participant that was asked by `run_operator` has answered, too; a person with a key has not.
        let asked = Stamp { runtime: "mcp:here".into(), ..from.clone() };
        let shown = Value::Object(metadata(&mut turn(json!({}), Some(asked))).unwrap());
        assert_eq!(shown["quorate"]["stamp"]["trigger"], "t1");
        let keyed = Stamp { runtime: "mcp:".into(), trigger: "".into(), ..from };
        assert_eq!(metadata(&mut turn(json!({}), Some(keyed))), None);
    }
}
