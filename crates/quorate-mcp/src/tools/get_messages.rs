//! `get_messages`: reads a conversation, and waits for what comes.

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::MAX_WAIT_MS;
use super::post_message::metadata;
use crate::ServerState;
use crate::caller::Caller;
use crate::conversations::{OfferedConversation, external_id};
use crate::failure::Failure;
use crate::tool::{Effect, Tool};
use crate::whole::Whole;

/// How many messages are given unless said, and at most.
const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 500;

pub(super) struct GetMessages;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// The conversation
    conversation_id: String,
    /// How many at most; 50 unless said
    limit: Option<Whole<1, MAX_LIMIT>>,
    /// Only messages newer than the one of this id; one that is not there gives the first ones, with known: false
    after: Option<String>,
    /// Only messages older than the one of this id: the nearest
    before: Option<String>,
    /// How long to wait for the first one where there is none, in milliseconds; 50000 at most
    wait_ms: Option<Whole<0, MAX_WAIT_MS>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Messages {
    /// Oldest first.
    messages: Vec<Message>,
    /// Whether there are more: newer ones with after, else older ones.
    has_more: bool,
    /// Whether the message of after or before is there; true without them.
    known: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    /// Its id.
    id: String,
    /// Who said it: a participant's operator id or id, or any other name.
    author_id: String,
    /// What a participant is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    author_name: Option<String>,
    /// What was said.
    content: String,
    /// When, as RFC 3339.
    timestamp: String,
    /// What its author added. `quorate` is what ties a runtime's turn to the one that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
}

impl Tool for GetMessages {
    const NAME: &'static str = "get_messages";
    const TITLE: &'static str = "Read a conversation";
    const ABOUT: &'static str = "The newest messages of a conversation, oldest first; with `after` what is newer than a \
        message, with `waitMs` once there is something; with `before` what is older.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = Arguments;
    type Output = Messages;

    async fn call(served: &Arc<ServerState>, given: Arguments, caller: &Caller) -> Result<Messages, Failure> {
        let offered = served.conversations.find(&given.conversation_id)?;
        let limit = given.limit.map_or(DEFAULT_LIMIT, Whole::get) as usize;
        let wait = Duration::from_millis(given.wait_ms.map_or(0, Whole::get));
        let conversation = &offered.conversation;
        let found = match (given.after, given.before) {
            (Some(_), Some(_)) => {
                return Err(Failure::malformed("there are both `after` and `before`", "leave one out"));
            }
            (None, Some(before)) => conversation.before(&Name::from(before), limit).await?,
            (after, None) => {
                let after = after.map(Name::from);
                conversation.wait_for_turns(after.as_ref(), limit, wait, caller).await?
            }
        };
        let messages = found.turns.into_iter().map(|turn| message(offered, turn)).collect();
        Ok(Messages { messages, has_more: found.more, known: found.known })
    }
}

fn message(offered: &OfferedConversation, mut turn: Turn) -> Message {
    let author = offered.runtime.participants.iter().find(|one| one.id == turn.participant);
    let metadata = metadata(&mut turn);
    Message {
        id: turn.id.to_string(),
        author_id: author.map_or(&*turn.participant, |one| external_id(one)).to_owned(),
        author_name: author.map(|one| one.display_name.clone()),
        content: turn.content.to_string(),
        timestamp: turn.timestamp.to_string(),
        metadata,
    }
}
