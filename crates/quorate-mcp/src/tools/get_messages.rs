//! `get_messages`: reads a conversation, and waits for new messages.

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
use quorate::service::whole::Whole;

/// The number of messages: default and maximum.
const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 500;

pub(super) struct GetMessages;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
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
    type Arguments = Arguments;
    type Output = Messages;

    async fn call(
        server: &Arc<ServerState>,
        arguments: Arguments,
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
