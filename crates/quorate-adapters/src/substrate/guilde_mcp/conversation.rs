//! Requests messages from a server, and turns them into turns.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::Error;
use quorate_protocol::{Json, Name};
use serde_json::json;
use tokio::time::sleep;

use super::MAX_FETCH;
use super::authors::AuthorMap;
use super::message::Message;
use super::order::{self, Direction, ListingOrder, PageKind};
use super::read_history::ReadHistory;
use super::turn_metadata::TurnMetadata;
use crate::mcp::{Arguments, CallDeadline, CallError, Connection, Retry, ServerTools};

/// The tool that returns messages.
pub(super) const GET_TOOL: &str = "get_messages";
/// The tool that posts one.
pub(super) const POST_TOOL: &str = "post_message";

/// How often a failed read is attempted, and the pause before the second attempt, which grows fourfold.
const MAX_READ_ATTEMPTS: u32 = 3;
const FIRST_READ_RETRY_DELAY: Duration = Duration::from_millis(150);
/// How often the direction is asked for while messages keep coming.
const MAX_DIRECTION_ATTEMPTS: u32 = 5;

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

#[derive(Debug, Default)]
pub(super) struct MessagePage {
    /// Without duplicates, oldest first.
    pub(super) messages: Vec<TurnMessage>,
    /// The number of messages with duplicates.
    pub(super) raw_count: usize,
    /// Whether there are more; `None` if the server does not tell.
    pub(super) has_more: Option<bool>,
    /// Whether the server knew the message of `after`.
    pub(super) known: bool,
}

/// A turn with further data of its message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnMessage {
    pub(super) turn: Turn,
    /// Quorate's attempt that posted it, if the metadata names one. Anybody may have written it there.
    pub(super) post_id: Option<String>,
}

pub(super) struct Conversation {
    connection: Arc<Connection>,
    conversation_id: String,
    pub(super) authors: AuthorMap,
    order: ListingOrder,
}

impl Conversation {
    pub(super) fn new(
        connection: Arc<Connection>,
        conversation: &str,
        authors: AuthorMap,
        order: ListingOrder,
    ) -> Self {
        Conversation { connection, conversation_id: conversation.to_owned(), authors, order }
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

    /// Requests messages, oldest first.
    pub(super) async fn fetch(
        &self,
        memory: &ReadHistory,
        ask: MessageQuery<'_>,
    ) -> Result<MessagePage, Error> {
        let tools = self.tools().await?;
        let mut page = self.request(&tools, memory, ask).await?;
        if page.messages.len() > 1 {
            let kind = if ask.after.is_some() { PageKind::After } else { PageKind::Newest };
            let direction = match self.order.get(kind) {
                Some(known) => known,
                None => self.find_direction(&tools, memory, &page.messages).await?,
            };
            self.order.set(kind, direction);
            if direction == Direction::NewestFirst {
                page.messages.reverse();
            }
        }
        Ok(page)
    }

    /// Asks the server at which end of a page its newest message is.
    async fn find_direction(
        &self,
        tools: &ServerTools,
        memory: &ReadHistory,
        page: &[TurnMessage],
    ) -> Result<Direction, Error> {
        let ids = |messages: &[TurnMessage]| -> Vec<Name> {
            messages.iter().map(|message| message.turn.id.clone()).collect()
        };
        let page = ids(page);
        if let Some(first) = page.first().filter(|_| tools.accepts(GET_TOOL, "after")) {
            let later = MessageQuery { limit: page.len(), after: Some(first), ..MessageQuery::default() };
            let later = self.request(tools, memory, later).await?;
            if later.known {
                return Ok(order::from_later(&page, &ids(&later.messages)));
            }
        }
        if tools.accepts(GET_TOOL, "limit") {
            for _ in 0..MAX_DIRECTION_ATTEMPTS {
                let newest = |limit| MessageQuery { limit, ..MessageQuery::default() };
                let pair = self.request(tools, memory, newest(2)).await?;
                let newest = self.request(tools, memory, newest(1)).await?;
                if let Some(direction) = order::from_newest(&ids(&pair.messages), &ids(&newest.messages)) {
                    return Ok(direction);
                }
                if newest.messages.len() > 1 {
                    break;
                }
            }
        }
        Err(Error::Unknown(format!(
            "cannot tell in which order the server lists the messages of the conversation `{}`: it takes no `after`, and no \
             `limit` that it keeps to. Write `order: newest-first` or `order: oldest-first` into the `substrate` block",
            self.conversation_id
        )))
    }

    /// Requests messages, in the order of the server. A failed request is repeated: it changes nothing (K17).
    async fn request(
        &self,
        tools: &ServerTools,
        memory: &ReadHistory,
        ask: MessageQuery<'_>,
    ) -> Result<MessagePage, Error> {
        let mut arguments = self.arguments();
        arguments.insert("limit".into(), json!(ask.limit.clamp(1, self.max_limit(tools))));
        arguments.extend(ask.after.map(|after| ("after".to_owned(), json!(after))));
        arguments.extend(ask.before.map(|before| ("before".to_owned(), json!(before))));
        let wait = ask.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        arguments.extend(wait.map(|wait| ("waitMs".to_owned(), json!(wait))));
        let arguments = tools.without_unsupported(GET_TOOL, arguments, &["limit"]);
        let until = ask.wait.map_or(CallDeadline::Timeout, CallDeadline::TimeoutPlus);
        let mut pause = FIRST_READ_RETRY_DELAY;
        for left in (0..MAX_READ_ATTEMPTS).rev() {
            let value = self.connection.call(GET_TOOL, arguments.clone(), Retry::Safe, until).await;
            match value.and_then(|value| self.parse_page(memory, &value)) {
                Ok(page) => return Ok(page),
                // The connection repeats what it lost itself.
                Err(CallError::Failed { .. } | CallError::MalformedResult { .. }) if left > 0 => {
                    sleep(pause).await;
                    pause *= 4;
                }
                Err(error) => return Err(self.read_error(error)),
            }
        }
        Ok(MessagePage::default())
    }

    /// Posts a message; the tool must accept the arguments.
    pub(super) async fn post(&self, arguments: Arguments, repeat: Retry) -> Result<Json, CallError> {
        self.connection.call(POST_TOOL, arguments, repeat, CallDeadline::Timeout).await
    }

    /// The arguments common to all calls.
    pub(super) fn arguments(&self) -> Arguments {
        Arguments::from_iter([("conversationId".to_owned(), json!(self.conversation_id))])
    }

    fn parse_page(&self, memory: &ReadHistory, value: &Json) -> Result<MessagePage, CallError> {
        let raw_messages = value.as_array().or_else(|| value.get("messages")?.as_array());
        let raw_messages = raw_messages.ok_or_else(|| self.malformed("has no list `messages`"))?;
        let mut messages = Vec::with_capacity(raw_messages.len());
        for (index, value) in raw_messages.iter().enumerate() {
            let message = Message::parse(value)
                .map_err(|why| self.malformed(&format!("cannot be used: message {} {why}", index + 1)))?;
            messages.push(message);
        }
        memory.mark_listed(messages.iter().map(|message| message.id.as_str()));
        let mut seen_ids = HashSet::new();
        let unique = messages.into_iter().filter(|message| seen_ids.insert(message.id.clone()));
        Ok(MessagePage {
            messages: unique.map(|message| self.to_turn_message(memory, message)).collect(),
            raw_count: raw_messages.len(),
            has_more: value.get("hasMore").and_then(Json::as_bool),
            known: value.get("known").and_then(Json::as_bool).unwrap_or(true),
        })
    }

    fn to_turn_message(&self, memory: &ReadHistory, mut message: Message) -> TurnMessage {
        let metadata = TurnMetadata::take_from(&mut message.metadata);
        let author =
            self.authors.resolve(&message.authors, metadata.as_ref().map(|metadata| &metadata.participant));
        let post_id = metadata.as_ref().map(|metadata| metadata.post.clone());
        let participant = memory.posted_for(&message.id).unwrap_or(author.name);
        let (meta, stamp) = match metadata.filter(|_| author.is_trusted) {
            Some(metadata) => (metadata.meta, metadata.stamp),
            None => (message.metadata, None),
        };
        let turn = Turn {
            id: Name::from(message.id),
            participant,
            timestamp: message.timestamp.into(),
            content: message.content.into(),
            meta,
            stamp,
        };
        TurnMessage { turn, post_id }
    }

    fn malformed(&self, problem: &str) -> CallError {
        CallError::MalformedResult {
            server: self.connection.id().to_owned(),
            tool: GET_TOOL.to_owned(),
            why: problem.to_owned(),
        }
    }

    fn read_error(&self, error: CallError) -> Error {
        Error::unavailable(format!("the conversation `{}` cannot be read", self.conversation_id), error)
    }
}
