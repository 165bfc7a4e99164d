//! Requests messages from a server, in the server's order, and turns them into turns.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::SubstrateError;
use quorate_protocol::{Json, Name};
use serde_json::json;
use tokio::time::sleep;

use super::message::{AuthorMap, Message, TurnMetadata};
use super::{GET_TOOL, MAX_FETCH};
use crate::mcp::{Arguments, CallDeadline, CallError, Connection, Retry, ServerTools};

/// How often a failed read is attempted, and the pause before the second attempt, which grows fourfold.
const MAX_READ_ATTEMPTS: u32 = 3;
const FIRST_READ_RETRY_DELAY: Duration = Duration::from_millis(150);
/// How often the direction is asked for while messages keep coming.
const MAX_DIRECTION_ATTEMPTS: u32 = 5;
/// The most requests of one read, so that no server can prolong it forever.
pub(super) const MAX_REQUESTS: usize = 256;
/// How many posted messages are remembered.
const MAX_POSTED: usize = 4096;

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

impl MessagePage {
    pub(super) fn last_id(&self) -> Option<Name> {
        self.messages.last().map(|message| message.turn.id.clone())
    }
}

/// A turn with further data of its message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnMessage {
    pub(super) turn: Turn,
    /// Quorate's attempt that posted it, if the metadata names one. Anybody may have written it there.
    pub(super) post_id: Option<String>,
}

pub(super) fn position(messages: &[TurnMessage], id: &Name) -> Option<usize> {
    messages.iter().position(|message| message.turn.id == *id)
}

/// The newest messages, as far back as was required.
pub(super) struct Tail {
    pub(super) messages: Vec<TurnMessage>,
    /// Whether these are all messages.
    pub(super) is_complete: bool,
}

/// At which end of a page the newest message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    OldestFirst,
    NewestFirst,
}

pub(super) struct Conversation {
    pub(super) connection: Arc<Connection>,
    pub(super) id: String,
    pub(super) authors: AuthorMap,
    /// The direction of all pages, once it is known. It stays the same as long as the process.
    pub(super) direction: OnceLock<Direction>,
    /// Messages that this process posted, each with its participant.
    posted: Mutex<VecDeque<(Name, Name)>>,
}

impl Conversation {
    pub(super) fn new(
        connection: Arc<Connection>,
        id: &str,
        authors: AuthorMap,
        direction: Option<Direction>,
    ) -> Self {
        let direction = direction.map_or_else(OnceLock::new, OnceLock::from);
        Conversation { connection, id: id.to_owned(), authors, direction, posted: Mutex::default() }
    }

    /// The server's tools; connects if necessary.
    pub(super) async fn tools(&self) -> Result<Arc<ServerTools>, SubstrateError> {
        self.connection.tools(CallDeadline::Timeout).await.map_err(|error| self.read_error(error))
    }

    /// The most messages of one request.
    pub(super) fn max_limit(&self, tools: &ServerTools) -> usize {
        if !tools.accepts(GET_TOOL, "limit") {
            return usize::MAX;
        }
        let maximum = tools.maximum(GET_TOOL, "limit").and_then(|limit| usize::try_from(limit).ok());
        maximum.map_or(MAX_FETCH, |limit| limit.clamp(1, MAX_FETCH))
    }

    fn posted(&self) -> MutexGuard<'_, VecDeque<(Name, Name)>> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message that this process posted for a participant.
    pub(super) fn record_posted(&self, id: &Name, participant: &Name) {
        let mut posted = self.posted();
        if posted.len() >= MAX_POSTED {
            posted.pop_front();
        }
        posted.push_back((id.clone(), participant.clone()));
    }

    /// The participant that this process posted a message for.
    pub(super) fn posted_for(&self, id: &str) -> Option<Name> {
        let posted = self.posted();
        posted.iter().find(|(posted, _)| &**posted == id).map(|(_, participant)| participant.clone())
    }

    /// Requests messages, oldest first.
    pub(super) async fn fetch(&self, query: MessageQuery<'_>) -> Result<MessagePage, SubstrateError> {
        let tools = self.tools().await?;
        let mut page = self.request(&tools, query).await?;
        if page.messages.len() > 1 {
            let direction = match self.direction.get() {
                Some(known) => *known,
                None => self.find_direction(&tools, &page.messages).await?,
            };
            if *self.direction.get_or_init(|| direction) == Direction::NewestFirst {
                page.messages.reverse();
            }
        }
        Ok(page)
    }

    pub(super) async fn fetch_newest(&self, limit: usize) -> Result<MessagePage, SubstrateError> {
        self.fetch(MessageQuery { limit, ..MessageQuery::default() }).await
    }

    /// Asks the server at which end of a page its newest message is (K17): for the messages after the first one of a page,
    /// or for its newest message.
    async fn find_direction(
        &self,
        tools: &ServerTools,
        page: &[TurnMessage],
    ) -> Result<Direction, SubstrateError> {
        if let Some(first) = page.first().filter(|_| tools.accepts(GET_TOOL, "after")) {
            let after = Some(&*first.turn.id);
            let later = self
                .request(tools, MessageQuery { limit: page.len(), after, ..MessageQuery::default() })
                .await?;
            if later.known {
                let is_later =
                    page[1..].iter().any(|message| position(&later.messages, &message.turn.id).is_some());
                return Ok(if is_later { Direction::OldestFirst } else { Direction::NewestFirst });
            }
        }
        for _ in 0..MAX_DIRECTION_ATTEMPTS {
            let newest = |limit| self.request(tools, MessageQuery { limit, ..MessageQuery::default() });
            let (pair, newest) = (newest(2).await?.messages, newest(1).await?.messages);
            match (&pair[..], &newest[..]) {
                ([first, _], [newest]) if first.turn.id == newest.turn.id => {
                    return Ok(Direction::NewestFirst);
                }
                ([_, last], [newest]) if last.turn.id == newest.turn.id => return Ok(Direction::OldestFirst),
                // Another message came between the requests.
                (_, [_]) => {}
                // The server does not keep to a limit.
                _ => break,
            }
        }
        Err(SubstrateError::Unknown(format!(
            "cannot tell in which order the server lists the messages of the conversation `{}`: it takes no `after`, and no \
             `limit` that it keeps to. Write `order: newest-first` or `order: oldest-first` into the `substrate` block",
            self.id
        )))
    }

    /// Requests messages, in the order of the server. A failed request is repeated: it changes nothing (K17).
    async fn request(
        &self,
        tools: &ServerTools,
        query: MessageQuery<'_>,
    ) -> Result<MessagePage, SubstrateError> {
        let mut arguments = self.arguments();
        arguments.insert("limit".into(), json!(query.limit.clamp(1, self.max_limit(tools))));
        arguments.extend(query.after.map(|after| ("after".to_owned(), json!(after))));
        arguments.extend(query.before.map(|before| ("before".to_owned(), json!(before))));
        let wait = query.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        arguments.extend(wait.map(|wait| ("waitMs".to_owned(), json!(wait))));
        let arguments = tools.without_unsupported(GET_TOOL, arguments, &["limit"]);
        let until = query.wait.map_or(CallDeadline::Timeout, CallDeadline::TimeoutPlus);
        let (mut pause, mut left) = (FIRST_READ_RETRY_DELAY, MAX_READ_ATTEMPTS);
        loop {
            left -= 1;
            let value = self.connection.call(GET_TOOL, arguments.clone(), Retry::Safe, until).await;
            match value.and_then(|value| self.parse_page(&value)) {
                Ok(page) => return Ok(page),
                // The connection repeats what it lost itself.
                Err(CallError::Failed { .. } | CallError::MalformedResult { .. }) if left > 0 => {
                    sleep(pause).await;
                    pause *= 4;
                }
                Err(error) => return Err(self.read_error(error)),
            }
        }
    }

    /// The arguments common to all calls.
    pub(super) fn arguments(&self) -> Arguments {
        Arguments::from_iter([("conversationId".to_owned(), json!(self.id))])
    }

    fn parse_page(&self, value: &Json) -> Result<MessagePage, CallError> {
        let raw_messages = value.as_array().or_else(|| value.get("messages")?.as_array());
        let raw_messages = raw_messages.ok_or_else(|| self.malformed("has no list `messages`"))?;
        let (mut messages, mut seen) = (Vec::with_capacity(raw_messages.len()), HashSet::new());
        for (index, value) in raw_messages.iter().enumerate() {
            let message = Message::parse(value)
                .map_err(|why| self.malformed(&format!("cannot be used: message {} {why}", index + 1)))?;
            if seen.insert(message.id.clone()) {
                messages.push(self.to_turn_message(message));
            }
        }
        Ok(MessagePage {
            messages,
            raw_count: raw_messages.len(),
            has_more: value.get("hasMore").and_then(Json::as_bool),
            known: value.get("known").and_then(Json::as_bool).unwrap_or(true),
        })
    }

    fn to_turn_message(&self, mut message: Message) -> TurnMessage {
        let metadata = TurnMetadata::take_from(&mut message.metadata);
        let author =
            self.authors.resolve(&message.authors, metadata.as_ref().map(|metadata| &metadata.participant));
        let post_id = metadata.as_ref().map(|metadata| metadata.post.clone());
        let participant = self.posted_for(&message.id).unwrap_or(author.name);
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

    fn read_error(&self, error: CallError) -> SubstrateError {
        SubstrateError::unavailable(format!("the conversation `{}` cannot be read", self.id), error)
    }

    /// The newest messages, until `enough` accepts them, or as far back as the server goes.
    pub(super) async fn read_tail(
        &self,
        first_limit: usize,
        enough: impl Fn(&[TurnMessage]) -> bool,
    ) -> Result<Tail, SubstrateError> {
        let tools = self.tools().await?;
        let reach = self.max_limit(&tools);
        let pages_back = tools.accepts(GET_TOOL, "before");
        let mut limit = if tools.accepts(GET_TOOL, "limit") { first_limit.min(reach) } else { reach };
        let is_everything = |page: &MessagePage, limit: usize| match page.has_more {
            Some(more) => !more,
            None if pages_back => page.raw_count == 0,
            None => page.raw_count < limit,
        };
        let newest = self.fetch_newest(limit).await?;
        let mut tail = Tail { is_complete: is_everything(&newest, limit), messages: newest.messages };
        for _ in 0..MAX_REQUESTS {
            if tail.is_complete || enough(&tail.messages) {
                break;
            }
            if pages_back {
                let Some(oldest) = tail.messages.first().map(|message| message.turn.id.clone()) else {
                    break;
                };
                let before = Some(&*oldest);
                let mut page =
                    self.fetch(MessageQuery { limit: reach, before, ..MessageQuery::default() }).await?;
                tail.is_complete = is_everything(&page, reach);
                page.messages.retain(|message| position(&tail.messages, &message.turn.id).is_none());
                if page.messages.is_empty() {
                    break;
                }
                tail.messages.splice(0..0, page.messages);
            } else if limit < reach {
                limit = (limit * 2).min(reach);
                let newest = self.fetch_newest(limit).await?;
                tail = Tail { is_complete: is_everything(&newest, limit), messages: newest.messages };
            } else {
                break;
            }
        }
        Ok(tail)
    }
}
