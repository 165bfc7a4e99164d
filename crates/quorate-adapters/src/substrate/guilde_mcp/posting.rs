//! Posts each turn once, even if a response is lost.
//!
//! A server that takes `idempotencyKey` guarantees it. If it takes only metadata, the key is stored there, and the
//! messages since the trigger are searched before and after posting. If it takes neither, a turn that may have been posted
//! is recognized by author and text.

use std::sync::{Mutex, PoisonError};

use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::substrate::{Appended, Error, Keeps};
use quorate_protocol::Name;
use serde_json::{Map, json};

use super::GuildeSubstrate;
use super::conversation::{GET_TOOL, MessageQuery, POST_TOOL, TurnMessage};
use super::keeps_of;
use super::message::Receipt;
use super::turn_metadata::TurnMetadata;
use crate::mcp::{Arguments, CallError, Retry, ServerTools};

/// How many uncertain turns are remembered.
const MAX_UNCERTAIN: usize = 64;

/// The most requests for the search of a message.
const MAX_REQUESTS: usize = 64;

/// Turns that may have been posted, each with the id of the attempt.
#[derive(Debug, Default)]
pub(super) struct UncertainPosts(Mutex<Vec<(NewTurn, String)>>);

impl UncertainPosts {
    /// The attempt of an uncertain turn.
    fn attempt(&self, turn: &NewTurn) -> Option<String> {
        let doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.iter().find(|(doubted, _)| doubted == turn).map(|(_, post)| post.clone())
    }

    fn add(&self, turn: &NewTurn, post: &str) {
        self.resolve(turn);
        let mut doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if doubts.len() >= MAX_UNCERTAIN {
            doubts.remove(0);
        }
        doubts.push((turn.clone(), post.to_owned()));
    }

    fn resolve(&self, turn: &NewTurn) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(doubted, _)| doubted != turn);
    }
}

impl GuildeSubstrate {
    pub(super) async fn post(&self, turn: NewTurn) -> Result<Appended, Error> {
        crate::substrate::check_turn(&turn)?;
        let offer = self.conversation.tools().await?;
        let doubted = self.uncertain_posts.attempt(&turn);
        let post = doubted.clone().unwrap_or_else(|| entropy::hex(&entropy::bytes::<12>()));
        let keyed = offer.accepts(POST_TOOL, "idempotencyKey");
        let keeps_stamps = keeps_of(&offer) == Keeps::Stamps;
        let may_be_there = doubted.is_some() || (keeps_stamps && turn.stamp.is_some());
        if !keyed
            && may_be_there
            && let Some(found) = self.find_posted(&offer, &turn, &post).await?
        {
            return Ok(self.finish_post(&turn, found, &post));
        }
        let arguments = self.arguments(&offer, &turn, &post);
        let repeat = if keyed { Retry::Safe } else { Retry::Never };
        match self.conversation.post(arguments, repeat).await {
            Ok(answer) => match Receipt::parse(&answer) {
                Some(receipt) if receipt.duplicate => self.first_posted(&offer, &turn, &receipt, &post).await,
                Some(receipt) => {
                    let appended = self.finish_post(
                        &turn,
                        self.message_from_receipt(&offer, &turn, receipt, &post),
                        &post,
                    );
                    self.read_history.record_acknowledged(&appended.turn.id);
                    Ok(appended)
                }
                None => self.resolve_uncertain(&offer, turn, &post, None).await,
            },
            Err(error) if error.may_have_run() => {
                self.resolve_uncertain(&offer, turn, &post, Some(error)).await
            }
            Err(error) => Err(self.post_error(error)),
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
        post: &str,
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
        TurnMessage { turn: posted, at_ms: 0, post_id: Some(post.to_owned()) }
    }

    fn finish_post(&self, turn: &NewTurn, message: TurnMessage, post: &str) -> Appended {
        self.uncertain_posts.resolve(turn);
        self.read_history.record_posted(&message.turn.id, &turn.participant);
        let fresh = message.post_id.as_deref().is_none_or(|attempt| attempt == post);
        let participant = turn.participant.clone();
        Appended { turn: Turn { participant, ..message.turn }, fresh }
    }

    /// The turn that was posted first with this key.
    async fn first_posted(
        &self,
        offer: &ServerTools,
        turn: &NewTurn,
        receipt: &Receipt,
        post: &str,
    ) -> Result<Appended, Error> {
        let matches = |message: &TurnMessage| *message.turn.id == *receipt.id;
        match self.search(offer, turn, matches).await? {
            Some(message) => {
                self.uncertain_posts.resolve(turn);
                let fresh = message.post_id.as_deref() == Some(post);
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
        post: &str,
        error: Option<CallError>,
    ) -> Result<Appended, Error> {
        self.uncertain_posts.add(&turn, post);
        match self.find_posted(offer, &turn, post).await {
            Ok(Some(found)) => Ok(self.finish_post(&turn, found, post)),
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
        post: &str,
    ) -> Result<Option<TurnMessage>, Error> {
        let keeps_stamps = keeps_of(offer) == Keeps::Stamps;
        let key = turn.stamp.as_ref().map(|stamp| &stamp.key);
        let operator = self.conversation.authors.operator_for(&turn.participant).map(str::to_owned);
        let matches = |message: &TurnMessage| match keeps_stamps {
            true => {
                message.post_id.as_deref() == Some(post)
                    || key
                        .is_some_and(|key| message.turn.stamp.as_ref().is_some_and(|stamp| stamp.key == *key))
            }
            false => {
                let author = operator.is_none()
                    || message.turn.participant == turn.participant
                    || operator.as_deref() == Some(&*message.turn.participant);
                let is_new = !self.read_history.contains(&message.turn.id)
                    && self.read_history.posted_for(&message.turn.id).is_none();
                author && is_new && message.turn.content == turn.content
            }
        };
        self.search(offer, turn, matches).await
    }

    /// The first message that matches, among those since the turn's trigger, or among the newest.
    async fn search(
        &self,
        offer: &ServerTools,
        turn: &NewTurn,
        matches: impl Fn(&TurnMessage) -> bool,
    ) -> Result<Option<TurnMessage>, Error> {
        let start =
            turn.stamp.as_ref().map(|stamp| stamp.trigger.clone()).or_else(|| self.read_history.frontier());
        if let Some(mut after) = start.filter(|_| offer.accepts(GET_TOOL, "after")) {
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
        Ok(newest.messages.into_iter().find(matches))
    }

    fn post_error(&self, error: CallError) -> Error {
        let message = format!(
            "the turn could not be posted to the conversation `{}`",
            self.conversation.conversation_id()
        );
        Error::unavailable(message, error)
    }
}
