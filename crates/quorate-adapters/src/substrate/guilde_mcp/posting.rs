//! Posts each turn once, even if a response is lost.
//!
//! A server that takes `idempotencyKey` guarantees it. If it takes only metadata, the key is stored there, and the
//! messages since the trigger are searched before and after posting. If it takes neither, a turn that may have been posted
//! is recognized by author and text. A server may have stored a message although it reports a failure, so each failed
//! post is looked up before it is repeated (K17).

use std::sync::{Mutex, MutexGuard, PoisonError};

use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::substrate::{Appended, Error, Keeps};
use quorate_protocol::Name;
use serde_json::{Map, json};

use super::GuildeSubstrate;
use super::authors::SYSTEM;
use super::conversation::{GET_TOOL, MessageQuery, POST_TOOL, TurnMessage};
use super::keeps_of;
use super::message::Receipt;
use super::turn_metadata::TurnMetadata;
use crate::mcp::{Arguments, CallError, Retry, ServerTools};

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
pub(super) struct UncertainPosts(Mutex<Vec<Doubt>>);

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
    pub(super) async fn post(&self, turn: NewTurn) -> Result<Appended, Error> {
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

    /// The last message that is older than a turn to post: its trigger, or what was read last. If neither is known, and a
    /// posted message has nothing but its text to be recognized by, the server is asked.
    async fn last_before(&self, turn: &NewTurn, has_marks: bool) -> Result<Option<Name>, Error> {
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

    /// The turn as the server has it, according to the receipt.
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
    ) -> Result<Appended, Error> {
        let matches = |message: &TurnMessage| *message.turn.id == *receipt.id;
        match self.search(offer, attempt.since.clone(), matches).await? {
            Some(message) => {
                self.uncertain_posts.resolve(turn);
                let fresh = message.post_id.as_deref() == Some(&*attempt.post);
                Ok(Appended { turn: message.turn, fresh })
            }
            None => Err(Error::Unavailable {
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
    ) -> Result<Appended, Error> {
        self.uncertain_posts.add(&turn, attempt);
        match self.find_posted(offer, &turn, attempt).await {
            Ok(Some(found)) => Ok(self.finish_post(&turn, found, attempt)),
            Ok(None) | Err(_) => Err(match error {
                Some(error) => self.post_error(error),
                None => Error::Unavailable {
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
    ) -> Result<Option<TurnMessage>, Error> {
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
    ) -> Result<Option<TurnMessage>, Error> {
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

    fn post_error(&self, error: CallError) -> Error {
        let message = format!(
            "the turn could not be posted to the conversation `{}`",
            self.conversation.conversation_id()
        );
        Error::unavailable(message, error)
    }
}
