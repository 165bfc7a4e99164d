//! Asking a server for messages, and making turns of what it gives.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::Error;
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::MAX_FETCH;
use super::authors::AuthorMap;
use super::message::Message;
use super::order::{self, PageOrder};
use super::read_history::ReadHistory;
use super::turn_metadata::TurnMetadata;
use crate::mcp::{Arguments, CallDeadline, CallError, Connection, Retry, ServerTools};

/// The tool that gives messages.
pub(super) const GET_TOOL: &str = "get_messages";
/// The tool that takes one.
pub(super) const POST_TOOL: &str = "post_message";

/// What is asked for beside the conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageQuery<'a> {
    /// At most so many messages.
    pub(super) limit: usize,
    /// Those strictly newer than this one.
    pub(super) after: Option<&'a str>,
    /// Those strictly older than this one.
    pub(super) before: Option<&'a str>,
    /// How long the server is to wait until there is one.
    pub(super) wait: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct MessagePage {
    /// The messages, each once, oldest first as far as the server's direction goes.
    pub(super) messages: Vec<TurnMessage>,
    /// How many messages there were, repeated ones included.
    pub(super) raw_count: usize,
    /// Whether there are more, where the server says so.
    pub(super) has_more: Option<bool>,
    /// Whether the server knew the message that was named in `after`.
    pub(super) known: bool,
    /// What the messages' times say of their order.
    pub(super) order: PageOrder,
}

/// A turn, and what else its message says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnMessage {
    pub(super) turn: Turn,
    /// Milliseconds since the Unix epoch.
    pub(super) at_ms: i64,
    /// Which attempt of ours to post it, if it was one.
    pub(super) post_id: Option<String>,
}

/// A conversation, and the server that has it.
pub(super) struct Conversation {
    connection: Arc<Connection>,
    conversation_id: String,
    /// Who posts as whom.
    pub(super) authors: AuthorMap,
}

impl Conversation {
    pub(super) fn new(connection: Arc<Connection>, conversation: &str, people: AuthorMap) -> Self {
        Conversation { connection, conversation_id: conversation.to_owned(), authors: people }
    }

    pub(super) fn conversation_id(&self) -> &str {
        &self.conversation_id
    }

    /// The conversation's name for good.
    pub(super) fn stable_name(&self) -> String {
        format!("{}#{}", self.connection.stable_name(), self.conversation_id)
    }

    /// What the server offers, as far as it was ever connected.
    pub(super) fn last_tools(&self) -> Option<Arc<ServerTools>> {
        self.connection.last_tools()
    }

    /// How long a call may take.
    pub(super) fn timeout(&self) -> Duration {
        self.connection.timeout()
    }

    /// What the server offers.
    pub(super) async fn tools(&self) -> Result<Arc<ServerTools>, Error> {
        self.connection.tools(CallDeadline::Timeout).await.map_err(|trouble| self.read_error(trouble))
    }

    /// The most messages that can be asked for at once: all, of a server that takes no limit.
    pub(super) fn max_limit(&self, offer: &ServerTools) -> usize {
        if !offer.accepts(GET_TOOL, "limit") {
            return usize::MAX;
        }
        let maximum = offer.maximum(GET_TOOL, "limit").and_then(|most| usize::try_from(most).ok());
        maximum.map_or(MAX_FETCH, |most| most.clamp(1, MAX_FETCH))
    }

    pub(super) async fn fetch(
        &self,
        memory: &ReadHistory,
        ask: MessageQuery<'_>,
    ) -> Result<MessagePage, Error> {
        let tools = self.tools().await?;
        let mut arguments = self.arguments();
        arguments.insert("limit".into(), json!(ask.limit.clamp(1, self.max_limit(&tools))));
        arguments.extend(ask.after.map(|after| ("after".to_owned(), json!(after))));
        arguments.extend(ask.before.map(|before| ("before".to_owned(), json!(before))));
        let wait = ask.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        arguments.extend(wait.map(|wait| ("waitMs".to_owned(), json!(wait))));
        let arguments = tools.without_unsupported(GET_TOOL, arguments, &["limit"]);
        let until = ask.wait.map_or(CallDeadline::Timeout, CallDeadline::TimeoutPlus);
        let value = self.connection.call(GET_TOOL, arguments, Retry::Safe, until).await;
        self.parse_page(memory, &value.map_err(|trouble| self.read_error(trouble))?)
    }

    /// Posts, with arguments that the tool takes.
    pub(super) async fn post(&self, arguments: Arguments, repeat: Retry) -> Result<Json, CallError> {
        self.connection.call(POST_TOOL, arguments, repeat, CallDeadline::Timeout).await
    }

    /// The arguments that every call has.
    pub(super) fn arguments(&self) -> Arguments {
        Arguments::from_iter([("conversationId".to_owned(), json!(self.conversation_id))])
    }

    fn parse_page(&self, memory: &ReadHistory, value: &Json) -> Result<MessagePage, Error> {
        let listed = value.as_array().or_else(|| value.get("messages")?.as_array());
        let listed = listed.ok_or_else(|| self.malformed_error("has no list `messages`"))?;
        let mut messages = Vec::with_capacity(listed.len());
        for (index, value) in listed.iter().enumerate() {
            let message = Message::parse(value).map_err(|why| {
                self.malformed_error(&format!("cannot be used: message {} {why}", index + 1))
            })?;
            messages.push(message);
        }
        let order = order::sort_oldest_first(&mut messages, memory.direction());
        if let PageOrder::Direction(direction) = order {
            memory.set_direction(direction);
        }
        memory.mark_listed(messages.iter().map(|message| message.id.as_str()));
        let mut there = HashSet::new();
        let unique = messages.into_iter().filter(|message| there.insert(message.id.clone()));
        Ok(MessagePage {
            messages: unique.map(|message| self.to_turn_message(memory, message)).collect(),
            raw_count: listed.len(),
            has_more: value.get("hasMore").and_then(Json::as_bool),
            known: value.get("known").and_then(Json::as_bool).unwrap_or(true),
            order,
        })
    }

    fn to_turn_message(&self, memory: &ReadHistory, mut message: Message) -> TurnMessage {
        let marks = TurnMetadata::take_from(&mut message.metadata);
        let author = self.authors.resolve(&message.authors, marks.as_ref().map(|marks| &marks.participant));
        let marks = marks.filter(|_| author.is_trusted);
        let participant = memory.posted_for(&message.id).unwrap_or(author.name);
        let (post, meta, stamp) = match marks {
            Some(marks) => (Some(marks.post), marks.meta, marks.stamp),
            None => (None, message.metadata, None),
        };
        let turn = Turn {
            id: Name::from(message.id),
            participant,
            timestamp: message.timestamp.into(),
            content: message.content.into(),
            meta,
            stamp,
        };
        TurnMessage { turn, at_ms: message.at_ms, post_id: post }
    }

    fn malformed_error(&self, why: &str) -> Error {
        self.read_error(CallError::MalformedResult {
            server: self.connection.id().to_owned(),
            tool: GET_TOOL.to_owned(),
            why: why.to_owned(),
        })
    }

    fn read_error(&self, trouble: CallError) -> Error {
        Error::unavailable(format!("the conversation `{}` cannot be read", self.conversation_id), trouble)
    }
}
