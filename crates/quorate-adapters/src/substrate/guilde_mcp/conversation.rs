//! Requests messages from a server, and turns them into turns.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::SubstrateError;
use quorate_protocol::{Json, Name};
use serde_json::{Map, json};
use tokio::time::sleep;

use super::{AuthorMap, MAX_FETCH, TurnMetadata};
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
    pub(super) connection: Arc<Connection>,
    pub(super) conversation_id: String,
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

    /// A name that stays the same after a restart and holds no secret.
    pub(super) fn stable_name(&self) -> String {
        format!("{}#{}", self.connection.stable_name(), self.conversation_id)
    }

    /// The server's tools; connects if necessary.
    pub(super) async fn tools(&self) -> Result<Arc<ServerTools>, SubstrateError> {
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
    ) -> Result<MessagePage, SubstrateError> {
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
    ) -> Result<Direction, SubstrateError> {
        let ids = |messages: &[TurnMessage]| -> Vec<Name> {
            messages.iter().map(|message| message.turn.id.clone()).collect()
        };
        let page = ids(page);
        if let Some(first) = page.first().filter(|_| tools.accepts(GET_TOOL, "after")) {
            let later = MessageQuery { limit: page.len(), after: Some(first), ..MessageQuery::default() };
            let later = self.request(tools, memory, later).await?;
            if later.known {
                return Ok(from_later(&page, &ids(&later.messages)));
            }
        }
        if tools.accepts(GET_TOOL, "limit") {
            for _ in 0..MAX_DIRECTION_ATTEMPTS {
                let newest = |limit| MessageQuery { limit, ..MessageQuery::default() };
                let pair = self.request(tools, memory, newest(2)).await?;
                let newest = self.request(tools, memory, newest(1)).await?;
                if let Some(direction) = from_newest(&ids(&pair.messages), &ids(&newest.messages)) {
                    return Ok(direction);
                }
                if newest.messages.len() > 1 {
                    break;
                }
            }
        }
        Err(SubstrateError::Unknown(format!(
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
    ) -> Result<MessagePage, SubstrateError> {
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

    fn read_error(&self, error: CallError) -> SubstrateError {
        SubstrateError::unavailable(
            format!("the conversation `{}` cannot be read", self.conversation_id),
            error,
        )
    }
}

const IDS: &[&str] = &["id", "messageId"];
const AUTHORS: &[&str] = &["authorId", "operatorId", "userId", "participantId"];
const CONTENTS: &[&str] = &["content", "text"];
const TIMES: &[&str] = &["timestamp", "createdAt"];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) id: String,
    /// All names of the author, the most specific first; empty if the server names none.
    pub(super) authors: Vec<String>,
    pub(super) content: String,
    /// As the server wrote it; empty without one. It is shown, and orders nothing (K17).
    pub(super) timestamp: String,
    pub(super) metadata: Map<String, Json>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) id: String,
    pub(super) timestamp: Option<String>,
    /// Whether a message with this idempotency key existed before.
    pub(super) duplicate: bool,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// The problem, as a predicate: `has no id`.
    pub(super) fn parse(value: &Json) -> Result<Self, String> {
        let fields = value.as_object().ok_or("is not an object")?;
        let id = message_id(fields)?;
        let with_id = |problem: String| format!("`{id}` {problem}");
        let nested = fields
            .get("author")
            .and_then(|author| first_string(author).or_else(|| first_string(author.get("id")?)));
        let candidates = AUTHORS.iter().filter_map(|name| first_string(fields.get(*name)?)).chain(nested);
        let authors: Vec<String> = candidates.filter(|author| !author.is_empty()).collect();
        Ok(Message {
            authors,
            content: message_content(fields).map_err(with_id)?,
            timestamp: message_time(fields).unwrap_or_default(),
            metadata: fields.get("metadata").and_then(Json::as_object).cloned().unwrap_or_default(),
            id,
        })
    }
}

impl Receipt {
    /// Reads a receipt; `None` if it does not identify the message.
    pub(super) fn parse(value: &Json) -> Option<Self> {
        let receipt = value.as_object()?;
        let fields = receipt.get("message").and_then(Json::as_object).unwrap_or(receipt);
        let id = message_id(fields).or_else(|_| message_id(receipt)).ok()?;
        let timestamp = message_time(fields).or_else(|| message_time(receipt));
        let duplicate = receipt.get("duplicate").and_then(Json::as_bool).unwrap_or(false);
        Some(Receipt { id, timestamp, duplicate })
    }
}

fn message_id(fields: &Map<String, Json>) -> Result<String, String> {
    let id = first_text(fields, IDS).ok_or("has no id")?;
    // Ids become part of keys that are separated by white space elsewhere.
    match id.is_empty() || id.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        true => Err(format!("has an id with white space, {id:?}, or none")),
        false => Ok(id),
    }
}

fn message_content(fields: &Map<String, Json>) -> Result<String, String> {
    let present = || CONTENTS.iter().filter_map(|name| fields.get(*name));
    let written = present().find(|value| !value.is_null()).or_else(|| present().next());
    match written.ok_or_else(|| "has no content".to_owned())? {
        Json::String(first_string) => Ok(first_string.clone()),
        // A message may consist of an attachment alone.
        Json::Null => Ok(String::new()),
        _ => Err("has a content that is not a text".to_owned()),
    }
}

/// When the message was stored, by the server's clock.
fn message_time(fields: &Map<String, Json>) -> Option<String> {
    TIMES.iter().find_map(|name| match fields.get(*name)? {
        Json::String(first_string) => Some(first_string.clone()),
        number => number.as_i64().map(rfc3339),
    })
}

fn first_text(fields: &Map<String, Json>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| first_string(fields.get(*name)?))
}

fn first_string(value: &Json) -> Option<String> {
    match value {
        Json::String(first_string) => Some(first_string.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Which message of a page comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    OldestFirst,
    NewestFirst,
}

/// The kinds of pages; a server may list them in different directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    /// The messages after one.
    After,
    /// The newest messages, or those before one.
    Newest,
}

/// The directions, as far as known. They stay the same as long as the process.
#[derive(Debug, Default)]
pub(super) struct ListingOrder {
    after: OnceLock<Direction>,
    newest: OnceLock<Direction>,
}

impl ListingOrder {
    /// The order that a manifest declares; `None` asks the server.
    pub(super) fn new(declared: Option<Direction>) -> Self {
        let order = ListingOrder::default();
        if let Some(direction) = declared {
            order.set(PageKind::After, direction);
            order.set(PageKind::Newest, direction);
        }
        order
    }

    pub(super) fn get(&self, kind: PageKind) -> Option<Direction> {
        self.cell(kind).get().copied()
    }

    pub(super) fn set(&self, kind: PageKind, direction: Direction) {
        self.cell(kind).get_or_init(|| direction);
    }

    fn cell(&self, kind: PageKind) -> &OnceLock<Direction> {
        match kind {
            PageKind::After => &self.after,
            PageKind::Newest => &self.newest,
        }
    }
}

/// The direction of a page, given the messages after the page's first one.
pub(super) fn from_later<T: PartialEq>(page: &[T], after_first: &[T]) -> Direction {
    match page.iter().skip(1).any(|message| after_first.contains(message)) {
        true => Direction::OldestFirst,
        false => Direction::NewestFirst,
    }
}

/// The direction of the two newest messages, given the newest one; `None` if another message came between the requests.
pub(super) fn from_newest<T: PartialEq>(pair: &[T], newest: &[T]) -> Option<Direction> {
    match (pair, newest) {
        ([first, _], [newest]) if first == newest => Some(Direction::NewestFirst),
        ([_, last], [newest]) if last == newest => Some(Direction::OldestFirst),
        _ => None,
    }
}

/// How many messages are remembered.
const MAX_REMEMBERED: usize = 4096;

/// How many unlisted messages are remembered; a participant that posts and never reads does not learn of their listing.
const MAX_UNLISTED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct ReadHistory(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The order of delivery, oldest first, without gaps.
    order: Vec<Name>,
    /// Messages that this process posted, each with its participant.
    posted: VecDeque<(Name, Name)>,
    /// Posted messages that the server has acknowledged and not listed yet.
    unlisted: Vec<Unlisted>,
    /// The last message that was read.
    frontier: Option<Name>,
}

/// A message that the server has acknowledged and not listed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unlisted {
    pub(super) id: Name,
    /// The last message that was read when it was posted.
    pub(super) after: Option<Name>,
}

impl Inner {
    fn position(&self, id: &Name) -> Option<usize> {
        // Most lookups are for the newest.
        self.order.iter().rposition(|known| known == id)
    }
}

impl ReadHistory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message that this process posted for a participant.
    pub(super) fn record_posted(&self, id: &Name, participant: &Name) {
        let mut inner = self.inner();
        if inner.posted.len() >= MAX_REMEMBERED {
            inner.posted.pop_front();
        }
        inner.posted.push_back((id.clone(), participant.clone()));
    }

    /// Records that the server acknowledged a message that it has not listed.
    pub(super) fn record_acknowledged(&self, id: &Name) {
        let mut inner = self.inner();
        // A concurrent reader may have listed it before the acknowledgement.
        if inner.position(id).is_none() {
            let after = inner.frontier.clone();
            if inner.unlisted.len() >= MAX_UNLISTED {
                inner.unlisted.remove(0);
            }
            inner.unlisted.push(Unlisted { id: id.clone(), after });
        }
    }

    /// Records that the server lists these messages.
    pub(super) fn mark_listed<'n>(&self, ids: impl Iterator<Item = &'n str>) {
        let mut inner = self.inner();
        for id in ids {
            if inner.unlisted.is_empty() {
                return;
            }
            inner.unlisted.retain(|unlisted| &*unlisted.id != id);
        }
    }

    /// The posted messages newer than `since` that the server has not listed.
    pub(super) fn unlisted(&self, since: Option<&Name>) -> Vec<Unlisted> {
        let inner = self.inner();
        if inner.unlisted.is_empty() {
            return Vec::new();
        }
        let place = |id: &Name| inner.posted.iter().position(|(posted, _)| posted == id);
        let start = since.and_then(place);
        let newer =
            |unlisted: &&Unlisted| start.is_none_or(|start| place(&unlisted.id).is_some_and(|at| at > start));
        inner.unlisted.iter().filter(newer).cloned().collect()
    }

    /// Those of `those` that are still not listed.
    pub(super) fn still_unlisted(&self, mut messages: Vec<Unlisted>) -> Vec<Unlisted> {
        let inner = self.inner();
        messages.retain(|message| inner.unlisted.contains(message));
        messages
    }

    /// Stops waiting for their listing.
    pub(super) fn give_up(&self, messages: &[Unlisted]) {
        self.inner().unlisted.retain(|unlisted| !messages.contains(unlisted));
    }

    /// The participant that this process posted a message for.
    pub(super) fn posted_for(&self, id: &str) -> Option<Name> {
        self.inner()
            .posted
            .iter()
            .find(|(posted, _)| &**posted == id)
            .map(|(_, participant)| participant.clone())
    }

    /// Whether a message was delivered no later than `since`.
    pub(super) fn precedes(&self, id: &Name, since: &Name) -> bool {
        let inner = self.inner();
        id == since || inner.position(since).zip(inner.position(id)).is_some_and(|(since, id)| id <= since)
    }

    /// Whether a message was delivered.
    pub(super) fn contains(&self, id: &Name) -> bool {
        self.inner().position(id).is_some()
    }

    /// Whether every message delivered before `since` is missing from a page, so that `since` is probably missing as well.
    pub(super) fn is_out_of_sight(&self, since: &Name, seen: impl Fn(&Name) -> bool) -> bool {
        let inner = self.inner();
        let before = inner.position(since).map_or(&[][..], |place| &inner.order[..place]);
        !before.is_empty() && !before.iter().any(seen)
    }

    /// Records the delivery of the messages newer than `since`.
    pub(super) fn record_delivered(&self, since: Option<&Name>, ids: &[Name]) {
        let mut inner = self.inner();
        let mut at = match since {
            None => 0,
            Some(since) => match inner.position(since) {
                Some(place) => place + 1,
                None => {
                    inner.order = vec![since.clone()];
                    1
                }
            },
        };
        for id in ids {
            match inner.position(id) {
                Some(place) => at = at.max(place + 1),
                None => {
                    inner.order.insert(at, id.clone());
                    at += 1;
                }
            }
        }
        let excess = inner.order.len().saturating_sub(MAX_REMEMBERED);
        inner.order.drain(..excess);
        inner.frontier = ids.last().or(since).cloned();
    }

    /// Forgets the order, since the conversation was replaced.
    pub(super) fn clear_order(&self) {
        let mut inner = self.inner();
        inner.order.clear();
        inner.frontier = None;
    }

    pub(super) fn frontier(&self) -> Option<Name> {
        self.inner().frontier.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Message, Receipt};

    fn read(value: Value) -> Result<[String; 4], String> {
        Message::parse(&value)
            .map(|message| [message.id, message.authors.join("+"), message.content, message.timestamp])
    }

    #[test]
    fn the_same_things_have_several_names() {
        let at = "2026-05-18T18:23:11.504Z";
        let expected = Ok(["7", "u", "hello", at].map(str::to_owned));
        assert_eq!(read(json!({"id": "7", "authorId": "u", "content": "hello", "timestamp": at})), expected);
        assert_eq!(read(json!({"messageId": 7, "userId": "u", "text": "hello", "createdAt": at})), expected);
        let author =
            json!({"id": 7, "author": {"id": "u"}, "content": "hello", "createdAt": 1_779_128_591_504_i64});
        assert_eq!(read(author), expected);
        let nulls =
            json!({"id": "7", "operatorId": null, "userId": "u", "content": "hello", "timestamp": at});
        assert_eq!(read(nulls), expected);
    }

    #[test]
    fn what_is_missing_is_named() {
        let complete =
            json!({"id": "m1", "authorId": "u", "content": "x", "timestamp": "2026-05-18T18:23:11Z"});
        for (field, problem) in [("id", "no id"), ("content", "no content")] {
            let mut message = complete.clone();
            message.as_object_mut().unwrap().remove(field);
            let error = read(message).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        let with = |field: &str, value: Value| {
            let mut message = complete.clone();
            message[field] = value;
            read(message)
        };
        assert!(with("id", json!("m 1")).unwrap_err().contains("white space"));
        assert!(with("content", json!(["x"])).unwrap_err().contains("not a text"));
        // K17: neither author nor time decides whether a message is read.
        for field in ["authorId", "timestamp"] {
            for nothing in [json!(null), json!(""), json!({})] {
                let [id, authors, _, timestamp] = with(field, nothing).unwrap();
                let missing = if field == "timestamp" { timestamp } else { authors };
                assert_eq!((id.as_str(), missing.as_str()), ("m1", ""));
            }
        }
        assert_eq!(with("timestamp", json!("yesterday")).unwrap()[3], "yesterday");
    }

    #[test]
    fn a_receipt_is_flat_or_holds_the_message() {
        let flat =
            Receipt::parse(&json!({"id": "m1", "timestamp": "2026-05-18T18:23:11Z", "duplicate": true}));
        assert_eq!(flat.map(|receipt| (receipt.id, receipt.duplicate)), Some(("m1".into(), true)));
        let nested =
            Receipt::parse(&json!({"message": {"id": "m1", "createdAt": "2026-05-18T18:23:11Z"}})).unwrap();
        assert_eq!(nested.timestamp.as_deref(), Some("2026-05-18T18:23:11Z"));
        assert_eq!(Receipt::parse(&json!({"ok": true})), None);
    }
}

#[cfg(test)]
mod order_tests {
    use super::Direction::{NewestFirst, OldestFirst};
    use super::{from_later, from_newest};

    #[test]
    fn the_servers_answers_tell_the_direction() {
        // The server is asked at which end of a page its newest message is; clocks decide nothing (K17).
        assert_eq!(from_later(&["a", "b", "c"], &["b"]), OldestFirst);
        assert_eq!(from_later(&["c", "b", "a"], &[]), NewestFirst);
        assert_eq!(from_later(&["c", "b", "a"], &["d"]), NewestFirst, "a new message");
        assert_eq!(from_newest(&["c", "b"], &["c"]), Some(NewestFirst));
        assert_eq!(from_newest(&["b", "c"], &["c"]), Some(OldestFirst));
        assert_eq!(from_newest(&["b", "c"], &["d"]), None);
        assert_eq!(from_newest(&["b", "c"], &["b", "c"]), None, "a server that ignores the limit");
    }
}

#[cfg(test)]
mod read_history_tests {
    use quorate_protocol::Name;

    use super::ReadHistory;

    fn names(ids: &[&str]) -> Vec<Name> {
        ids.iter().map(|id| Name::from(*id)).collect()
    }

    fn precedes(memory: &ReadHistory, id: &str, since: &str) -> bool {
        memory.precedes(&id.into(), &since.into())
    }

    #[test]
    fn what_was_given_before_is_known_by_its_place() {
        let memory = ReadHistory::default();
        memory.record_delivered(None, &names(&["a", "b", "c"]));
        memory.record_delivered(Some(&"c".into()), &names(&["d"]));
        assert!(precedes(&memory, "a", "d") && precedes(&memory, "d", "d"));
        assert!(!precedes(&memory, "d", "a") && !precedes(&memory, "e", "d"));
        assert_eq!(memory.frontier().as_deref(), Some("d"));
    }

    #[test]
    fn reading_again_from_the_start_moves_nothing() {
        let memory = ReadHistory::default();
        memory.record_delivered(None, &names(&["a", "b", "c", "d"]));
        memory.record_delivered(None, &names(&["a", "b"]));
        assert!(!precedes(&memory, "c", "b") && precedes(&memory, "a", "b"));
        memory.record_delivered(Some(&"elsewhere".into()), &names(&["x"]));
        assert!(!memory.contains(&"a".into()) && precedes(&memory, "elsewhere", "x"));
    }

    #[test]
    fn a_window_that_slid_on_is_noticed() {
        let memory = ReadHistory::default();
        memory.record_delivered(None, &names(&["a", "b", "c"]));
        assert!(memory.is_out_of_sight(&"c".into(), |id| &**id == "z"));
        assert!(!memory.is_out_of_sight(&"c".into(), |id| &**id == "a"));
        assert!(!memory.is_out_of_sight(&"a".into(), |_| false));
    }
}
