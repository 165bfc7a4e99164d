//! The `guilde-mcp` substrate: a conversation behind an MCP server that has `post_message` and `get_messages`.
//! This file owns its block, reading and posting. In `guilde_mcp/`: `conversation` requests messages in the server's order,
//! `message` reads their form and finds their authors.
//!
//! Requests use `after`, `before`, `waitMs`, `idempotencyKey` and `metadata` if the server takes them. A server that takes
//! none of them returns only its newest messages: then the messages newer than a turn are known only while that turn is
//! among them; if it is not, reading fails.
//!
//! Order and ids are the server's (K17). Clocks decide nothing: a message may have any time, or none. A message without an
//! author is a turn of `system`. A message that the server lists late, or moves, is read where the server lists it.
//!
//! Whether the server stores metadata is known only after it was connected; [`Substrate::about`] returns [`Keeps::Turns`]
//! until then. A participant without `meta.operatorId`, in a block without `asOperatorId`, can be impersonated by everyone
//! who may write metadata into the conversation.
//!
//! Posts each turn once, even if a response is lost. A server that takes `idempotencyKey` guarantees it. If it takes only
//! metadata, the key is stored there, and the messages since the trigger are searched before and after posting. If it takes
//! neither, a turn whose post failed in this process is recognized by author and text. A server may have stored a message
//! although it reports a failure, so each failed post is looked up before it is repeated (K17).

mod conversation;
mod message;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, NewTurn, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, Keeps, Page, Substrate, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;
use serde_json::{Map, json};
use tokio::time::{Instant, sleep};

use super::persistent;
use crate::block::Block;
use crate::mcp::{self, Arguments, CallDeadline, CallError, Retry, ServerTools};
use conversation::{Conversation, Direction, MAX_REQUESTS, MessageQuery, Tail, TurnMessage, position};
use message::{AuthorMap, Receipt, SYSTEM, TurnMetadata};

/// The kind that a manifest names.
pub const KIND: &str = crate::optional_kinds::MCP_SUBSTRATE;

/// The tool that returns messages.
const GET_TOOL: &str = "get_messages";
/// The tool that posts one.
const POST_TOOL: &str = "post_message";

const KEYS: &[&str] =
    &["kind", mcp::SERVER_KEY, "conversationId", "asOperatorId", "fetchLimit", "order", "pollMs"];

/// The most messages of one request.
const MAX_FETCH: usize = 500;
const DEFAULT_FETCH: usize = 50;
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_millis(2_000);
/// How long a server is asked to wait for news.
const MAX_WAIT: Duration = Duration::from_secs(25);
/// How many of the newest messages a poll reads.
const NEWS_LIMIT: usize = 10;
/// How many turns are remembered whose post failed.
const MAX_UNCERTAIN: usize = 64;

/// Builds the substrate from its block.
///
/// # Errors
/// When the block has an unknown key or a value that does not fit, or when the server that it names is not configured.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    let block = Block::parse(build.block, KEYS)?;
    let conversation = block.text("conversationId")?.ok_or_else(|| {
        ConfigError::for_key("conversationId", "`conversationId` is missing")
            .with_help("the id of the conversation, as the server knows it")
    })?;
    let first_limit = match block.count("fetchLimit")? {
        Some(count) if count > MAX_FETCH => {
            return Err(ConfigError::for_key("fetchLimit", format!("`fetchLimit` is {count}"))
                .with_help(format!("a number from 1 to {MAX_FETCH}")));
        }
        written => written.unwrap_or(DEFAULT_FETCH),
    };
    let poll_interval =
        block.count("pollMs")?.map_or(DEFAULT_POLL_INTERVAL, |ms| Duration::from_millis(ms as u64));
    let direction = match block.text("order")? {
        None => None,
        Some("newest-first") => Some(Direction::NewestFirst),
        Some("oldest-first") => Some(Direction::OldestFirst),
        Some(other) => {
            return Err(ConfigError::for_key("order", format!("`order` is `{other}`"))
                .with_help("write `newest-first` or `oldest-first`, or leave it out: the server is asked"));
        }
    };
    if build.participants.iter().any(|participant| &*participant.id == SYSTEM) {
        let message = format!("a participant has the id `{SYSTEM}`, the author of messages without one");
        return Err(ConfigError::for_block(message).with_help("rename the participant"));
    }
    let connection = mcp::connection(&block, build.servers, build.dir)?;
    let authors = AuthorMap::new(build.participants, block.text("asOperatorId")?);
    let conversation = Conversation::new(connection, conversation, authors, direction);
    let (frontier, uncertain) = (Mutex::default(), Mutex::default());
    Ok(Arc::new(GuildeSubstrate { conversation, first_limit, poll_interval, frontier, uncertain }))
}

struct GuildeSubstrate {
    conversation: Conversation,
    /// The number of messages in the first request.
    first_limit: usize,
    /// How often a server that cannot wait is asked for new messages.
    poll_interval: Duration,
    /// The last message that was read.
    frontier: Mutex<Option<Name>>,
    /// Turns that may have been posted although that failed.
    uncertain: Mutex<Vec<Attempt>>,
}

/// An attempt to post a turn.
#[derive(Debug, Clone)]
struct Attempt {
    turn: NewTurn,
    /// Its id, which the metadata of the message names.
    post: String,
    /// The last message that is known to be older.
    since: Option<Name>,
}

/// Whether the server stores metadata with a message.
fn keeps_of(tools: &ServerTools) -> Keeps {
    if tools.accepts(POST_TOOL, "metadata") { Keeps::Stamps } else { Keeps::Turns }
}

#[async_trait]
impl Substrate for GuildeSubstrate {
    fn about(&self) -> About {
        let connection = &self.conversation.connection;
        About {
            capabilities: Capability::ALL.into_iter().collect(),
            keeps: connection.last_tools().map_or(Keeps::Turns, |tools| keeps_of(&tools)),
            conversation: Some(self.conversation.id.clone()),
            ..persistent(KIND, format!("{}#{}", connection.stable_name(), self.conversation.id))
        }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        crate::substrate::check_turn(&turn)?;
        let tools = self.conversation.tools().await?;
        let has_keys = tools.accepts(POST_TOOL, "idempotencyKey");
        let has_metadata = keeps_of(&tools) == Keeps::Stamps;
        let known = self.uncertain().iter().find(|attempt| attempt.turn == turn).cloned();
        let may_be_there = known.is_some() || (has_metadata && turn.stamp.is_some());
        let attempt = match known {
            Some(attempt) => attempt,
            None => Attempt {
                post: entropy::hex(&entropy::bytes::<12>()),
                since: self.last_before(&turn, has_metadata).await?,
                turn,
            },
        };
        if !has_keys
            && may_be_there
            && let Some(found) = self.find_posted(&tools, &attempt).await?
        {
            return Ok(self.posted(&attempt, found));
        }
        let retry = if has_keys { Retry::Safe } else { Retry::Never };
        let arguments = self.arguments(&tools, &attempt);
        let connection = &self.conversation.connection;
        let error = match connection.call(POST_TOOL, arguments, retry, CallDeadline::Timeout).await {
            Ok(answer) => match Receipt::parse(&answer) {
                Some(receipt) if receipt.duplicate => {
                    return self.first_posted(&tools, &attempt, receipt).await;
                }
                Some(receipt) => return Ok(self.posted(&attempt, stored(&tools, &attempt, receipt))),
                None => SubstrateError::Unavailable {
                    what: "the server does not say which message it made of the turn".to_owned(),
                    source: None,
                },
            },
            Err(error) if !error.may_have_run() => return Err(self.post_error(error)),
            Err(error) => self.post_error(error),
        };
        self.remember(&attempt);
        match self.find_posted(&tools, &attempt).await {
            Ok(Some(found)) => Ok(self.posted(&attempt, found)),
            Ok(None) | Err(_) => Err(error),
        }
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let tools = self.conversation.tools().await?;
        let page = match since {
            Some(since) if tools.accepts(GET_TOOL, "after") => self.read_after(since, limit).await?,
            _ => self.read_among_newest(since, limit).await?,
        };
        let last = page.turns.last().map(|turn| &turn.id).or(since.filter(|_| page.known));
        *self.frontier.lock().unwrap_or_else(PoisonError::into_inner) = last.cloned();
        Ok(page)
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let reaches =
            |messages: &[TurnMessage]| position(messages, at).is_some_and(|place| place + 1 >= count);
        let tail = self.conversation.read_tail(self.first_limit, reaches).await?;
        match position(&tail.messages, at) {
            Some(place) => {
                let window = tail.messages.into_iter().take(place + 1);
                Ok(window.skip((place + 1).saturating_sub(count)).map(|message| message.turn).collect())
            }
            None if tail.is_complete => Ok(Vec::new()),
            None => Err(self.out_of_reach_error(&format!("the message `{at}`"), &tail).await?),
        }
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        let tools = self.conversation.tools().await?;
        let waits = tools.accepts(GET_TOOL, "after") && tools.accepts(GET_TOOL, "waitMs");
        let frontier = self.frontier();
        loop {
            let requested_at = Instant::now();
            let (is_news, wait) = match frontier.as_deref().filter(|_| waits) {
                Some(frontier) => {
                    let maximum = tools.maximum(GET_TOOL, "waitMs").map_or(MAX_WAIT, Duration::from_millis);
                    let wait = MAX_WAIT.min(self.conversation.connection.timeout()).min(maximum);
                    let (after, wait) = (Some(frontier), Some(wait));
                    let query = MessageQuery { limit: NEWS_LIMIT, after, wait, ..MessageQuery::default() };
                    let page = self.conversation.fetch(query).await?;
                    (!page.known || !page.messages.is_empty(), wait)
                }
                None => {
                    let newest = self.conversation.fetch_newest(NEWS_LIMIT).await?.messages;
                    let place = frontier.as_ref().and_then(|frontier| position(&newest, frontier));
                    (newest.len() > place.map_or(0, |place| place + 1), None)
                }
            };
            if is_news {
                return Ok(());
            }
            if wait.is_none_or(|wait| requested_at.elapsed() < wait / 2) {
                sleep(self.poll_interval).await;
            }
        }
    }
}

// Reading.
impl GuildeSubstrate {
    fn frontier(&self) -> Option<Name> {
        self.frontier.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads from a server that accepts `after`.
    async fn read_after(&self, since: &Name, limit: usize) -> Result<Page, SubstrateError> {
        let mut page = Page { turns: Vec::new(), known: true };
        let mut after = since.clone();
        for request in 0..MAX_REQUESTS {
            let limit_left = limit - page.turns.len();
            let query = MessageQuery { limit: limit_left, after: Some(&after), ..MessageQuery::default() };
            let received = self.conversation.fetch(query).await?;
            if !received.known {
                match request {
                    0 => page.known = false,
                    // The last message was removed meanwhile. The turns so far are right.
                    _ => break,
                }
            }
            let last = received.last_id().filter(|last| received.has_more == Some(true) && *last != after);
            page.turns.extend(received.messages.into_iter().map(|message| message.turn));
            match last.filter(|_| page.turns.len() < limit) {
                Some(last) => after = last,
                None => break,
            }
        }
        page.turns.truncate(limit);
        Ok(page)
    }

    /// Reads from a server that returns only its newest messages.
    async fn read_among_newest(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let reaches =
            |messages: &[TurnMessage]| since.is_some_and(|since| position(messages, since).is_some());
        let tail = self.conversation.read_tail(self.first_limit, reaches).await?;
        let place = since.and_then(|since| position(&tail.messages, since));
        // A message that this process has read is more likely out of sight than gone. A server without a limit may list all
        // messages or not.
        let has_limit = self.conversation.tools().await?.accepts(GET_TOOL, "limit");
        let is_lost = since.is_some() && (!has_limit || self.frontier().as_ref() == since);
        if place.is_none() && (!tail.is_complete || is_lost) {
            let what =
                since.map_or("its first messages".to_owned(), |since| format!("the message `{since}`"));
            return Err(self.out_of_reach_error(&what, &tail).await?);
        }
        let newer = tail.messages.into_iter().skip(place.map_or(0, |place| place + 1));
        let turns = newer.map(|message| message.turn).take(limit).collect();
        Ok(Page { turns, known: since.is_none() || place.is_some() })
    }

    async fn out_of_reach_error(&self, what: &str, tail: &Tail) -> Result<SubstrateError, SubstrateError> {
        let help = match self.conversation.tools().await?.accepts(GET_TOOL, "limit") {
            true => format!(", or raise `fetchLimit` (up to {MAX_FETCH}) where the server allows it"),
            false => "; it takes no `limit`, so more cannot be requested".to_owned(),
        };
        Ok(SubstrateError::Unknown(format!(
            "{what} of the conversation `{}` cannot be seen: the server gives the newest {} messages and none before them. \
             Run more often, or begin with a new conversation{help}",
            self.conversation.id,
            tail.messages.len(),
        )))
    }
}

// Posting.
impl GuildeSubstrate {
    fn uncertain(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.uncertain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers an attempt that failed: the next one for this turn searches first.
    fn remember(&self, attempt: &Attempt) {
        let mut uncertain = self.uncertain();
        if uncertain.iter().all(|known| known.post != attempt.post) {
            if uncertain.len() >= MAX_UNCERTAIN {
                uncertain.remove(0);
            }
            uncertain.push(attempt.clone());
        }
    }

    /// The last message that is older than a turn to post: its trigger, or what was read last. If neither is known, and a
    /// posted message has nothing but its text to be recognized by, the server is asked.
    async fn last_before(&self, turn: &NewTurn, has_marks: bool) -> Result<Option<Name>, SubstrateError> {
        let trigger = turn.stamp.as_ref().map(|stamp| stamp.trigger.clone()).filter(|id| !id.is_empty());
        match trigger.or_else(|| self.frontier()) {
            None if !has_marks => Ok(self.conversation.fetch_newest(1).await?.last_id()),
            known => Ok(known),
        }
    }

    fn arguments(&self, tools: &ServerTools, attempt: &Attempt) -> Arguments {
        let Attempt { turn, post, .. } = attempt;
        let mut arguments = self.conversation.arguments();
        arguments.insert("content".into(), json!(&*turn.content));
        if let Some(operator) = self.conversation.authors.operator_for(&turn.participant) {
            arguments.insert("asOperatorId".into(), json!(operator));
        }
        let key = turn.stamp.as_ref().map_or(&**post, |stamp| &stamp.key);
        arguments.insert("idempotencyKey".into(), json!(key));
        arguments.insert("metadata".into(), TurnMetadata::new(turn, post).to_metadata());
        // K8: the local dispatcher alone chooses who answers.
        arguments.insert("disableAutoOrchestration".into(), json!(true));
        let optional = ["idempotencyKey", "metadata", "disableAutoOrchestration"];
        tools.without_unsupported(POST_TOOL, arguments, &optional)
    }

    /// The turn is there, as this message.
    fn posted(&self, attempt: &Attempt, message: TurnMessage) -> Appended {
        self.uncertain().retain(|known| known.turn != attempt.turn);
        let participant = attempt.turn.participant.clone();
        self.conversation.record_posted(&message.turn.id, &participant);
        let fresh = message.post_id.as_deref().is_none_or(|post| post == attempt.post);
        Appended { turn: Turn { participant, ..message.turn }, fresh }
    }

    /// The turn that was posted first with this key.
    async fn first_posted(
        &self,
        tools: &ServerTools,
        attempt: &Attempt,
        receipt: Receipt,
    ) -> Result<Appended, SubstrateError> {
        let matches = |message: &TurnMessage| *message.turn.id == *receipt.id;
        match self.search(tools, attempt.since.clone(), matches).await? {
            Some(message) => {
                self.uncertain().retain(|known| known.turn != attempt.turn);
                let fresh = message.post_id.as_deref() == Some(&*attempt.post);
                Ok(Appended { turn: message.turn, fresh })
            }
            None => Err(SubstrateError::Unavailable {
                what: format!(
                    "the server says that it has the turn already, as `{}`, and does not give it",
                    receipt.id
                ),
                source: None,
            }),
        }
    }

    /// The message of a turn: by its key or its attempt, or by author and text.
    async fn find_posted(
        &self,
        tools: &ServerTools,
        attempt: &Attempt,
    ) -> Result<Option<TurnMessage>, SubstrateError> {
        let Attempt { turn, post, since } = attempt;
        let has_metadata = keeps_of(tools) == Keeps::Stamps;
        let key = turn.stamp.as_ref().map(|stamp| &stamp.key);
        let operator = self.conversation.authors.operator_for(&turn.participant);
        let matches = |message: &TurnMessage| {
            let found = &message.turn;
            if has_metadata {
                let has_key = found.stamp.as_ref().is_some_and(|stamp| Some(&stamp.key) == key);
                return has_key || message.post_id.as_ref() == Some(post);
            }
            let is_author = operator.is_none_or(|operator| *found.participant == *operator)
                || [&*turn.participant, SYSTEM].contains(&&*found.participant);
            is_author && found.content == turn.content && self.conversation.posted_for(&found.id).is_none()
        };
        self.search(tools, since.clone(), matches).await
    }

    /// The first message that matches, among those after one, or among the newest.
    async fn search(
        &self,
        tools: &ServerTools,
        since: Option<Name>,
        matches: impl Fn(&TurnMessage) -> bool,
    ) -> Result<Option<TurnMessage>, SubstrateError> {
        let limit = self.conversation.max_limit(tools);
        let mut after = since.clone().filter(|_| tools.accepts(GET_TOOL, "after"));
        for _ in 0..MAX_REQUESTS {
            let Some(last) = after.take() else { break };
            let query = MessageQuery { limit, after: Some(&last), ..MessageQuery::default() };
            let page = self.conversation.fetch(query).await?;
            after = page.last_id().filter(|newest| page.has_more == Some(true) && *newest != last);
            if let Some(found) = page.messages.into_iter().find(&matches) {
                return Ok(Some(found));
            }
        }
        let newest = self.conversation.fetch_newest(limit).await?.messages;
        let older = since.and_then(|since| position(&newest, &since));
        Ok(newest.into_iter().skip(older.map_or(0, |at| at + 1)).find(matches))
    }

    fn post_error(&self, error: CallError) -> SubstrateError {
        let conversation = &self.conversation.id;
        let message = format!("the turn could not be posted to the conversation `{conversation}`");
        SubstrateError::unavailable(message, error)
    }
}

/// The turn as the server stored it, according to the receipt.
fn stored(tools: &ServerTools, attempt: &Attempt, receipt: Receipt) -> TurnMessage {
    let (turn, has_metadata) = (&attempt.turn, keeps_of(tools) == Keeps::Stamps);
    let posted = Turn {
        id: Name::from(receipt.id),
        participant: turn.participant.clone(),
        timestamp: receipt.timestamp.unwrap_or_else(|| turn.timestamp.clone()).into(),
        content: turn.content.clone(),
        meta: if has_metadata { turn.meta.clone() } else { Map::new() },
        stamp: turn.stamp.clone().filter(|_| has_metadata),
    };
    TurnMessage { turn: posted, post_id: Some(attempt.post.clone()) }
}
