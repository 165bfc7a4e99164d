//! The `guilde-mcp` substrate: a conversation behind an MCP server that has `post_message` and `get_messages`.
//! This file owns its block, the authors of turns, the metadata that is written with a turn, and posting. In `guilde_mcp/`:
//! `conversation` requests messages, reads their form and order, and remembers what it read; `reading` returns pages of
//! turns and waits for new ones.
//!
//! Requests use `after`, `before`, `waitMs`, `idempotencyKey` and `metadata` if the server takes them. A server that takes
//! none of them returns only its newest messages: then the messages newer than a turn are known only while that turn is
//! among them; if it is not, reading fails.
//!
//! Order and ids are the server's (K17). Clocks decide nothing: a message may have any time, or none. A message without an
//! author is a turn of `system`.
//!
//! Whether the server stores metadata is known only after it was connected; [`Substrate::about`] returns [`Keeps::Turns`]
//! until then. A participant without `meta.operatorId`, in a block without `asOperatorId`, can be impersonated by everyone
//! who may write metadata into the conversation.
//!
//! Posts each turn once, even if a response is lost.
//!
//! A server that takes `idempotencyKey` guarantees it. If it takes only metadata, the key is stored there, and the
//! messages since the trigger are searched before and after posting. If it takes neither, a turn that may have been posted
//! is recognized by author and text. A server may have stored a message although it reports a failure, so each failed
//! post is looked up before it is repeated (K17).

mod conversation;
mod reading;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, NewTurn, Participant, Stamp, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, Keeps, Lifetime, Page, Substrate, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::block::Block;
use crate::mcp::{self, Arguments, CallError, Retry, ServerTools};
use conversation::ReadHistory;
use conversation::{
    Conversation, Direction, GET_TOOL, ListingOrder, MessageQuery, POST_TOOL, Receipt, TurnMessage,
};

/// The kind that a manifest names.
pub const KIND: &str = crate::optional_kinds::MCP_SUBSTRATE;

const KEYS: &[&str] =
    &["kind", mcp::SERVER_KEY, "conversationId", "asOperatorId", "fetchLimit", "order", "pollMs"];

/// The most messages of one request.
const MAX_FETCH: usize = 500;
const DEFAULT_FETCH: usize = 50;
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_millis(2_000);

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
    let initial_fetch = match block.count("fetchLimit")? {
        Some(count) if count > MAX_FETCH => {
            return Err(ConfigError::for_key("fetchLimit", format!("`fetchLimit` is {count}"))
                .with_help(format!("a number from 1 to {MAX_FETCH}")));
        }
        written => written.unwrap_or(DEFAULT_FETCH),
    };
    let poll_interval =
        block.count("pollMs")?.map_or(DEFAULT_POLL_INTERVAL, |ms| Duration::from_millis(ms as u64));
    let order = match block.text("order")? {
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
    let conversation = Conversation::new(connection, conversation, authors, ListingOrder::new(order));
    Ok(Arc::new(GuildeSubstrate {
        conversation,
        initial_fetch,
        poll_interval,
        read_history: ReadHistory::default(),
        uncertain_posts: UncertainPosts::default(),
    }))
}

struct GuildeSubstrate {
    conversation: Conversation,
    /// The number of messages in the first request.
    initial_fetch: usize,
    /// How often a server that cannot wait is asked for new messages.
    poll_interval: Duration,
    read_history: ReadHistory,
    uncertain_posts: UncertainPosts,
}

/// Whether the server stores metadata with a message.
fn keeps_of(offer: &ServerTools) -> Keeps {
    if offer.accepts(POST_TOOL, "metadata") { Keeps::Stamps } else { Keeps::Turns }
}

#[async_trait]
impl Substrate for GuildeSubstrate {
    fn about(&self) -> About {
        About {
            kind: KIND,
            capabilities: Capability::ALL.into_iter().collect(),
            keeps: self.conversation.connection.last_tools().map_or(Keeps::Turns, |offer| keeps_of(&offer)),
            lifetime: Lifetime::Persistent,
            place: self.conversation.stable_name(),
            conversation: Some(self.conversation.conversation_id.clone()),
        }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        crate::substrate::check_turn(&turn)?;
        let offer = self.conversation.tools().await?;
        let doubted = self.uncertain_posts.attempt(&turn);
        let is_doubted = doubted.is_some();
        let keyed = offer.accepts(POST_TOOL, "idempotencyKey");
        let keeps_stamps = keeps_of(&offer) == Keeps::Stamps;
        let attempt = match doubted {
            Some(attempt) => attempt,
            None => Attempt {
                post: entropy::hex(&entropy::bytes::<12>()),
                since: self.last_before(&turn, keyed || keeps_stamps).await?,
            },
        };
        let may_be_there = is_doubted || (keeps_stamps && turn.stamp.is_some());
        if !keyed
            && may_be_there
            && let Some(found) = self.find_posted(&offer, &turn, &attempt).await?
        {
            return Ok(self.finish_post(&turn, found, &attempt));
        }
        let arguments = self.arguments(&offer, &turn, &attempt.post);
        let repeat = if keyed { Retry::Safe } else { Retry::Never };
        match self.conversation.post(arguments, repeat).await {
            Ok(answer) => match Receipt::parse(&answer) {
                Some(receipt) if receipt.duplicate => {
                    self.first_posted(&offer, &turn, &receipt, &attempt).await
                }
                Some(receipt) => {
                    let message = self.message_from_receipt(&offer, &turn, receipt, &attempt);
                    let appended = self.finish_post(&turn, message, &attempt);
                    self.read_history.record_acknowledged(&appended.turn.id);
                    Ok(appended)
                }
                None => self.resolve_uncertain(&offer, turn, &attempt, None).await,
            },
            Err(error) if error.may_have_run() => {
                self.resolve_uncertain(&offer, turn, &attempt, Some(error)).await
            }
            Err(error) => Err(self.post_error(error)),
        }
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let posted = self.read_history.unlisted(since);
        let mut page = self.read_page(since, limit).await?;
        // If the page is full, messages that this process posted may be on the next one.
        if page.turns.len() < limit {
            let missing = self.read_history.still_unlisted(posted);
            if !missing.is_empty() {
                self.await_listing(since, missing).await?;
                page = self.read_page(since, limit).await?;
            }
        }
        if !page.known {
            self.read_history.clear_order();
        }
        let ids: Vec<Name> = page.turns.iter().map(|turn| turn.id.clone()).collect();
        self.read_history.record_delivered(since.filter(|_| page.known), &ids);
        Ok(page)
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let offer = self.conversation.tools().await?;
        if offer.accepts(GET_TOOL, "before")
            && offer.accepts(GET_TOOL, "after")
            && let Some(window) = self.window_around(at, count).await?
        {
            return Ok(window);
        }
        let tail = self
            .read_tail(|messages| reading::position(messages, at).is_some_and(|place| place + 1 >= count))
            .await?;
        let Some(place) = tail.position(at) else {
            return match tail.is_complete {
                true => Ok(Vec::new()),
                false => Err(self.out_of_reach_error(&format!("the message `{at}`"), &tail).await?),
            };
        };
        let mut turns: Vec<Turn> =
            tail.messages.into_iter().take(place + 1).map(|message| message.turn).collect();
        turns.drain(..turns.len().saturating_sub(count));
        Ok(turns)
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        let offer = self.conversation.tools().await?;
        let waits = offer.accepts(GET_TOOL, "after") && offer.accepts(GET_TOOL, "waitMs");
        match self.read_history.frontier() {
            Some(frontier) if waits => self.wait_after(&offer, frontier).await,
            frontier => self.poll_for_news(frontier.as_ref()).await,
        }
    }
}

/// The author of a message for which the server names none (K17).
const SYSTEM: &str = "system";

#[derive(Debug, Clone, PartialEq, Default)]
struct AuthorMap {
    /// The operator of each participant; `None` for the default.
    operators: BTreeMap<Name, Option<String>>,
    /// The operator that other participants post as.
    default_operator: Option<String>,
    participants_by_operator: BTreeMap<String, Name>,
}

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Author {
    /// A participant's id, or the server's name of another author.
    name: Name,
    /// Whether the metadata of the message may be Quorate's.
    is_trusted: bool,
}

impl AuthorMap {
    /// The participants, and the operator of those without one of their own.
    fn new(participants: &[Participant], default: Option<&str>) -> Self {
        let operators: BTreeMap<Name, Option<String>> = participants
            .iter()
            .map(|participant| (participant.id.clone(), participant.operator().map(str::to_owned)))
            .collect();
        let mut participants_by_operator = BTreeMap::new();
        for participant in participants {
            if let Some(operator) = participant.operator() {
                participants_by_operator.entry(operator.to_owned()).or_insert_with(|| participant.id.clone());
            }
        }
        // If only one participant lacks an operator, the default operator is that participant.
        let mut without = participants.iter().filter(|participant| participant.operator().is_none());
        if let (Some(default), Some(only), None) = (default, without.next(), without.next()) {
            participants_by_operator.entry(default.to_owned()).or_insert_with(|| only.id.clone());
        }
        AuthorMap { operators, default_operator: default.map(str::to_owned), participants_by_operator }
    }

    /// The operator that a participant's turns are posted as; `None` means the token's own.
    fn operator_for(&self, name: &str) -> Option<&str> {
        self.operators.get(name).and_then(Option::as_deref).or(self.default_operator.as_deref())
    }

    /// The author of a message, by the server's names for it and the participant that its metadata claims.
    fn resolve(&self, authors: &[String], claimed: Option<&Name>) -> Author {
        // Nothing supports a claim without an author.
        if authors.is_empty() {
            return Author { name: SYSTEM.into(), is_trusted: false };
        }
        let any = |fits: &dyn Fn(&str) -> bool| authors.iter().any(|author| fits(author));
        if let Some(claimed) = claimed {
            // A server with participants of its own may use the participant's id.
            let by_id = any(&|author| *author == **claimed);
            let holds = by_id
                || match self.operator_for(claimed) {
                    Some(operator) => any(&|author| author == operator),
                    // The operator of the token is unknown, but it is not an operator of a participant.
                    None => !any(&|author| self.participants_by_operator.contains_key(author)),
                };
            if holds {
                return Author { name: claimed.clone(), is_trusted: true };
            }
        }
        let name = authors.iter().find_map(|author| self.participants_by_operator.get(author).cloned());
        let name = name.or_else(|| authors.first().map(|author| Name::from(author.as_str())));
        Author { name: name.unwrap_or_default(), is_trusted: false }
    }
}

const METADATA_KEY: &str = "quorate";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TurnMetadata {
    participant: Name,
    /// The id of the attempt to post it, so that it is found if the response is lost.
    post: String,
    /// The author's own metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    meta: Map<String, Json>,
    /// Ties it to the turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Stamp>,
}

impl TurnMetadata {
    /// The metadata of a turn to post.
    fn new(turn: &NewTurn, post: &str) -> Self {
        TurnMetadata {
            participant: turn.participant.clone(),
            post: post.to_owned(),
            meta: turn.meta.clone(),
            stamp: turn.stamp.clone(),
        }
    }

    fn to_metadata(&self) -> Json {
        // A struct of strings and JSON always serializes.
        let value = serde_json::to_value(self).unwrap_or_default();
        Json::Object(Map::from_iter([(METADATA_KEY.to_owned(), value)]))
    }

    /// Removes Quorate's part from metadata. A part in another form is dropped.
    fn take_from(metadata: &mut Map<String, Json>) -> Option<Self> {
        metadata.remove(METADATA_KEY).and_then(|value| serde_json::from_value(value).ok())
    }
}

/// How many uncertain turns are remembered.
const MAX_UNCERTAIN: usize = 64;

/// The most requests for the search of a message.
const MAX_REQUESTS: usize = 64;

/// A turn that may have been posted.
#[derive(Debug, Clone)]
struct Doubt {
    turn: NewTurn,
    attempt: Attempt,
}

/// An attempt to post a turn.
#[derive(Debug, Clone)]
struct Attempt {
    /// Its id, which the metadata of the message names.
    post: String,
    /// The last message that is known to be older.
    since: Option<Name>,
}

#[derive(Debug, Default)]
struct UncertainPosts(Mutex<Vec<Doubt>>);

impl UncertainPosts {
    fn doubts(&self) -> MutexGuard<'_, Vec<Doubt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The attempt of an uncertain turn.
    fn attempt(&self, turn: &NewTurn) -> Option<Attempt> {
        self.doubts().iter().find(|doubt| doubt.turn == *turn).map(|doubt| doubt.attempt.clone())
    }

    fn add(&self, turn: &NewTurn, attempt: &Attempt) {
        self.resolve(turn);
        let mut doubts = self.doubts();
        if doubts.len() >= MAX_UNCERTAIN {
            doubts.remove(0);
        }
        doubts.push(Doubt { turn: turn.clone(), attempt: attempt.clone() });
    }

    fn resolve(&self, turn: &NewTurn) {
        self.doubts().retain(|doubt| doubt.turn != *turn);
    }
}

impl GuildeSubstrate {
    /// The last message that is older than a turn to post: its trigger, or what was read last. If neither is known, and a
    /// posted message has nothing but its text to be recognized by, the server is asked.
    async fn last_before(&self, turn: &NewTurn, has_marks: bool) -> Result<Option<Name>, SubstrateError> {
        let trigger = turn.stamp.as_ref().map(|stamp| stamp.trigger.clone()).filter(|id| !id.is_empty());
        match trigger.or_else(|| self.read_history.frontier()) {
            None if !has_marks => {
                let newest = self.fetch_newest(1).await?;
                Ok(newest.messages.last().map(|message| message.turn.id.clone()))
            }
            known => Ok(known),
        }
    }

    fn arguments(&self, offer: &ServerTools, turn: &NewTurn, post: &str) -> Arguments {
        let mut arguments = self.conversation.arguments();
        arguments.insert("content".into(), json!(&*turn.content));
        if let Some(operator) = self.conversation.authors.operator_for(&turn.participant) {
            arguments.insert("asOperatorId".into(), json!(operator));
        }
        let key = turn.stamp.as_ref().map_or(post, |stamp| &stamp.key);
        arguments.insert("idempotencyKey".into(), json!(key));
        arguments.insert("metadata".into(), TurnMetadata::new(turn, post).to_metadata());
        // K8: the local dispatcher alone chooses who answers.
        arguments.insert("disableAutoOrchestration".into(), json!(true));
        offer.without_unsupported(
            POST_TOOL,
            arguments,
            &["idempotencyKey", "metadata", "disableAutoOrchestration"],
        )
    }

    /// The turn as the server stored it, according to the receipt.
    fn message_from_receipt(
        &self,
        offer: &ServerTools,
        turn: &NewTurn,
        receipt: Receipt,
        attempt: &Attempt,
    ) -> TurnMessage {
        let keeps_stamps = keeps_of(offer) == Keeps::Stamps;
        let posted = Turn {
            id: Name::from(receipt.id),
            participant: turn.participant.clone(),
            timestamp: receipt.timestamp.unwrap_or_else(|| turn.timestamp.clone()).into(),
            content: turn.content.clone(),
            meta: if keeps_stamps { turn.meta.clone() } else { Map::new() },
            stamp: turn.stamp.clone().filter(|_| keeps_stamps),
        };
        TurnMessage { turn: posted, post_id: Some(attempt.post.clone()) }
    }

    fn finish_post(&self, turn: &NewTurn, message: TurnMessage, attempt: &Attempt) -> Appended {
        self.uncertain_posts.resolve(turn);
        self.read_history.record_posted(&message.turn.id, &turn.participant);
        let fresh = message.post_id.as_deref().is_none_or(|post| post == attempt.post);
        let participant = turn.participant.clone();
        Appended { turn: Turn { participant, ..message.turn }, fresh }
    }

    /// The turn that was posted first with this key.
    async fn first_posted(
        &self,
        offer: &ServerTools,
        turn: &NewTurn,
        receipt: &Receipt,
        attempt: &Attempt,
    ) -> Result<Appended, SubstrateError> {
        let matches = |message: &TurnMessage| *message.turn.id == *receipt.id;
        match self.search(offer, attempt.since.clone(), matches).await? {
            Some(message) => {
                self.uncertain_posts.resolve(turn);
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

    /// Searches for a turn that may have been posted; if it is not found, the next call searches first.
    async fn resolve_uncertain(
        &self,
        offer: &ServerTools,
        turn: NewTurn,
        attempt: &Attempt,
        error: Option<CallError>,
    ) -> Result<Appended, SubstrateError> {
        self.uncertain_posts.add(&turn, attempt);
        match self.find_posted(offer, &turn, attempt).await {
            Ok(Some(found)) => Ok(self.finish_post(&turn, found, attempt)),
            Ok(None) | Err(_) => Err(match error {
                Some(error) => self.post_error(error),
                None => SubstrateError::Unavailable {
                    what: "the server does not say which message it made of the turn".to_owned(),
                    source: None,
                },
            }),
        }
    }

    /// The message of this turn.
    async fn find_posted(
        &self,
        offer: &ServerTools,
        turn: &NewTurn,
        attempt: &Attempt,
    ) -> Result<Option<TurnMessage>, SubstrateError> {
        let keeps_stamps = keeps_of(offer) == Keeps::Stamps;
        let key = turn.stamp.as_ref().map(|stamp| &stamp.key);
        let operator = self.conversation.authors.operator_for(&turn.participant).map(str::to_owned);
        let matches = |message: &TurnMessage| match keeps_stamps {
            true => {
                message.post_id.as_deref() == Some(&*attempt.post)
                    || key
                        .is_some_and(|key| message.turn.stamp.as_ref().is_some_and(|stamp| stamp.key == *key))
            }
            false => {
                let author = operator.is_none()
                    || [&*turn.participant, SYSTEM].contains(&&*message.turn.participant)
                    || operator.as_deref() == Some(&*message.turn.participant);
                let is_free = self.read_history.posted_for(&message.turn.id).is_none();
                author && is_free && message.turn.content == turn.content
            }
        };
        self.search(offer, attempt.since.clone(), matches).await
    }

    /// The first message that matches, among those after one, or among the newest.
    async fn search(
        &self,
        offer: &ServerTools,
        since: Option<Name>,
        matches: impl Fn(&TurnMessage) -> bool,
    ) -> Result<Option<TurnMessage>, SubstrateError> {
        if let Some(mut after) = since.clone().filter(|_| offer.accepts(GET_TOOL, "after")) {
            for _ in 0..MAX_REQUESTS {
                let ask = MessageQuery {
                    limit: self.conversation.max_limit(offer),
                    after: Some(&after),
                    ..MessageQuery::default()
                };
                let page = self.conversation.fetch(&self.read_history, ask).await?;
                let last = page.messages.last().map(|message| message.turn.id.clone());
                if let Some(found) = page.messages.into_iter().find(&matches) {
                    return Ok(Some(found));
                }
                match last {
                    Some(last) if page.has_more == Some(true) && last != after => after = last,
                    _ => break,
                }
            }
        }
        let newest = self.fetch_newest(self.conversation.max_limit(offer)).await?;
        let older = since.and_then(|since| newest.messages.iter().position(|one| one.turn.id == since));
        Ok(newest.messages.into_iter().skip(older.map_or(0, |at| at + 1)).find(matches))
    }

    fn post_error(&self, error: CallError) -> SubstrateError {
        let message = format!(
            "the turn could not be posted to the conversation `{}`",
            self.conversation.conversation_id
        );
        SubstrateError::unavailable(message, error)
    }
}

#[cfg(test)]
mod tests {
    use quorate_kernel::conversation::Participant;
    use quorate_protocol::Name;
    use serde_json::json;

    use super::AuthorMap;

    fn one(id: &str, operator: Option<&str>) -> Participant {
        let mut participant = Participant { id: id.into(), ..Participant::default() };
        participant.meta.extend(operator.map(|operator| ("operatorId".to_owned(), json!(operator))));
        participant
    }

    #[test]
    fn authors_are_participants_by_operator_or_by_id() {
        let authors = AuthorMap::new(&[one("reviewer", Some("op_7")), one("scribe", None)], Some("op_bot"));
        let name = |author: &str| authors.resolve(&[author.to_owned()], None).name.to_string();
        assert_eq!(
            [name("op_7"), name("scribe"), name("op_bot"), name("u_1")],
            ["reviewer", "scribe", "scribe", "u_1"]
        );
        assert_eq!(authors.operator_for("reviewer"), Some("op_7"));
        assert_eq!(authors.operator_for("somebody"), Some("op_bot"));
        // A message without an author is a turn of `system` (K17).
        let system = authors.resolve(&[], Some(&"scribe".into()));
        assert_eq!((&*system.name, system.is_trusted), ("system", false));
    }

    #[test]
    fn a_claim_holds_only_for_whom_its_author_posts() {
        let authors =
            AuthorMap::new(&[one("reviewer", Some("op_7")), one("a", None), one("b", None)], Some("op_bot"));
        let author =
            |author: &str, claimed: &str| authors.resolve(&[author.to_owned()], Some(&Name::from(claimed)));
        assert!(author("op_bot", "b").is_trusted);
        let forged = author("u_1", "reviewer");
        assert_eq!((forged.name.as_ref(), forged.is_trusted), ("u_1", false));
        assert!(!author("op_bot", "reviewer").is_trusted && author("reviewer", "reviewer").is_trusted);
        // A server may return an operator's display name as well as its id.
        let both = ["ada".to_owned(), "op_7".to_owned()];
        assert!(authors.resolve(&both, Some(&"reviewer".into())).is_trusted);
        assert_eq!(&*authors.resolve(&both, None).name, "reviewer");
        let anonymous = AuthorMap::new(&[one("reviewer", Some("op_7")), one("a", None)], None);
        assert!(anonymous.resolve(&["token".to_owned()], Some(&"a".into())).is_trusted);
        assert!(!anonymous.resolve(&["op_7".to_owned()], Some(&"a".into())).is_trusted);
    }
}
