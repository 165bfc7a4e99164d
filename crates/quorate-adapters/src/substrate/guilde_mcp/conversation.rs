//! Requests messages from a server, and turns them into turns.

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

/// The tool that returns messages.
pub(super) const GET_TOOL: &str = "get_messages";
/// The tool that posts one.
pub(super) const POST_TOOL: &str = "post_message";

/// The parameters of a request for messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageQuery<'a> {
    pub(super) limit: usize,
    /// Only messages strictly newer than this one.
    pub(super) after: Option<&'a str>,
    /// Only messages strictly older than this one.
    pub(super) before: Option<&'a str>,
    /// How long the server waits for a new one.
    pub(super) wait: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct MessagePage {
    /// Without duplicates, oldest first by the server's direction.
    pub(super) messages: Vec<TurnMessage>,
    /// The number of messages with duplicates.
    pub(super) raw_count: usize,
    /// Whether there are more; `None` if the server does not tell.
    pub(super) has_more: Option<bool>,
    /// Whether the server knew the message of `after`.
    pub(super) known: bool,
    /// The order of the messages by their times.
    pub(super) order: PageOrder,
}

/// A turn with further data of its message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnMessage {
    pub(super) turn: Turn,
    /// Milliseconds since the Unix epoch.
    pub(super) at_ms: i64,
    /// Quorate's attempt that posted it, if the metadata names one.
    pub(super) post_id: Option<String>,
}

pub(super) struct Conversation {
    connection: Arc<Connection>,
    conversation_id: String,
    pub(super) authors: AuthorMap,
}

impl Conversation {
    pub(super) fn new(connection: Arc<Connection>, conversation: &str, authors: AuthorMap) -> Self {
        Conversation { connection, conversation_id: conversation.to_owned(), authors }
    }

    pub(super) fn conversation_id(&self) -> &str {
        &self.conversation_id
    }

    /// A name that stays the same after a restart and holds no secret.
    pub(super) fn stable_name(&self) -> String {
        format!("{}#{}", self.connection.stable_name(), self.conversation_id)
    }

    /// The tools of the last session, if there was one.
    pub(super) fn last_tools(&self) -> Option<Arc<ServerTools>> {
        self.connection.last_tools()
    }

    pub(super) fn timeout(&self) -> Duration {
        self.connection.timeout()
    }

    /// The server's tools; connects if necessary.
    pub(super) async fn tools(&self) -> Result<Arc<ServerTools>, Error> {
        self.connection.tools(CallDeadline::Timeout).await.map_err(|error| self.read_error(error))
    }

    /// The most messages of one request; [`MAX_FETCH`] for a server without a limit.
    pub(super) fn max_limit(&self, offer: &ServerTools) -> usize {
        if !offer.accepts(GET_TOOL, "limit") {
            return usize::MAX;
        }
        let maximum = offer.maximum(GET_TOOL, "limit").and_then(|limit| usize::try_from(limit).ok());
        maximum.map_or(MAX_FETCH, |limit| limit.clamp(1, MAX_FETCH))
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
        self.parse_page(memory, &value.map_err(|error| self.read_error(error))?)
    }

    /// Posts a message; the tool must accept the arguments.
    pub(super) async fn post(&self, arguments: Arguments, repeat: Retry) -> Result<Json, CallError> {
        self.connection.call(POST_TOOL, arguments, repeat, CallDeadline::Timeout).await
    }

    /// The arguments common to all calls.
    pub(super) fn arguments(&self) -> Arguments {
        Arguments::from_iter([("conversationId".to_owned(), json!(self.conversation_id))])
    }

    fn parse_page(&self, memory: &ReadHistory, value: &Json) -> Result<MessagePage, Error> {
        let raw_messages = value.as_array().or_else(|| value.get("messages")?.as_array());
        let raw_messages = raw_messages.ok_or_else(|| self.malformed_error("has no list `messages`"))?;
        let mut messages = Vec::with_capacity(raw_messages.len());
        for (index, value) in raw_messages.iter().enumerate() {
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
        let mut seen_ids = HashSet::new();
        let unique = messages.into_iter().filter(|message| seen_ids.insert(message.id.clone()));
        Ok(MessagePage {
            messages: unique.map(|message| self.to_turn_message(memory, message)).collect(),
            raw_count: raw_messages.len(),
            has_more: value.get("hasMore").and_then(Json::as_bool),
            known: value.get("known").and_then(Json::as_bool).unwrap_or(true),
            order,
        })
    }

    fn to_turn_message(&self, memory: &ReadHistory, mut message: Message) -> TurnMessage {
        let metadata = TurnMetadata::take_from(&mut message.metadata);
        let author =
            self.authors.resolve(&message.authors, metadata.as_ref().map(|metadata| &metadata.participant));
        let metadata = metadata.filter(|_| author.is_trusted);
        let participant = memory.posted_for(&message.id).unwrap_or(author.name);
        let (post, meta, stamp) = match metadata {
            Some(metadata) => (Some(metadata.post), metadata.meta, metadata.stamp),
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

    fn malformed_error(&self, problem: &str) -> Error {
        self.read_error(CallError::MalformedResult {
            server: self.connection.id().to_owned(),
            tool: GET_TOOL.to_owned(),
            why: problem.to_owned(),
        })
    }

    fn read_error(&self, error: CallError) -> Error {
        Error::unavailable(format!("the conversation `{}` cannot be read", self.conversation_id), error)
    }
}
