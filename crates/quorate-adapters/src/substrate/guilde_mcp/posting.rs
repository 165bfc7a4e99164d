//! Posting: each turn once, also where no answer comes.
//!
//! A server that takes `idempotencyKey` takes care of it. Where it takes metadata alone, the key stands there, and the
//! messages since the trigger are looked through before and after. Where it takes neither, a turn that may have been
//! posted is known by its author and its text.

use std::sync::{Mutex, PoisonError};

use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::substrate::{Appended, Error, Keeps};
use quorate_protocol::Name;
use serde_json::{Map, json};

use super::Guilde;
use super::keeps;
use super::marks::Marks;
use super::message::Receipt;
use super::room::{Ask, GET, POST, Said};
use crate::mcp::{Arguments, Offer, Repeat, Trouble};

/// How many turns in doubt are remembered.
const KEPT: usize = 64;

/// How many requests it may take to find a message.
const REQUESTS: usize = 64;

/// Turns of which it is not known whether they were posted, each with the name of the attempt.
#[derive(Debug, Default)]
pub(super) struct Doubts(Mutex<Vec<(NewTurn, String)>>);

impl Doubts {
    /// The attempt of a turn that is in doubt.
    fn attempt(&self, turn: &NewTurn) -> Option<String> {
        let doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.iter().find(|(doubted, _)| doubted == turn).map(|(_, post)| post.clone())
    }

    fn add(&self, turn: &NewTurn, post: &str) {
        self.settle(turn);
        let mut doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if doubts.len() >= KEPT {
            doubts.remove(0);
        }
        doubts.push((turn.clone(), post.to_owned()));
    }

    fn settle(&self, turn: &NewTurn) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(doubted, _)| doubted != turn);
    }
}

impl Guilde {
    /// Posts a turn, once.
    pub(super) async fn post(&self, turn: NewTurn) -> Result<Appended, Error> {
        crate::substrate::admit(&turn)?;
        let offer = self.room.offer().await?;
        let doubted = self.doubts.attempt(&turn);
        let post = doubted.clone().unwrap_or_else(|| entropy::hex(&entropy::bytes::<12>()));
        let keyed = offer.takes(POST, "idempotencyKey");
        let marked = keeps(&offer) == Keeps::Stamps;
        let may_be_there = doubted.is_some() || (marked && turn.stamp.is_some());
        if !keyed
            && may_be_there
            && let Some(found) = self.find(&offer, &turn, &post).await?
        {
            return Ok(self.posted(&turn, found, &post));
        }
        let arguments = self.arguments(&offer, &turn, &post);
        let repeat = if keyed { Repeat::Harmless } else { Repeat::Never };
        match self.room.call_post(arguments, repeat).await {
            Ok(answer) => match Receipt::read(&answer) {
                Some(receipt) if receipt.duplicate => self.first(&offer, &turn, &receipt, &post).await,
                Some(receipt) => {
                    let appended = self.posted(&turn, self.said(&offer, &turn, receipt, &post), &post);
                    self.memory.acknowledged(&appended.turn.id);
                    Ok(appended)
                }
                None => self.in_doubt(&offer, turn, &post, None).await,
            },
            Err(trouble) if trouble.is_in_doubt() => self.in_doubt(&offer, turn, &post, Some(trouble)).await,
            Err(trouble) => Err(self.unposted(trouble)),
        }
    }

    fn arguments(&self, offer: &Offer, turn: &NewTurn, post: &str) -> Arguments {
        let mut arguments = self.room.arguments();
        arguments.insert("content".into(), json!(&*turn.content));
        if let Some(operator) = self.room.people.posts_as(&turn.participant) {
            arguments.insert("asOperatorId".into(), json!(operator));
        }
        let key = turn.stamp.as_ref().map_or(post, |stamp| &stamp.key);
        arguments.insert("idempotencyKey".into(), json!(key));
        arguments.insert("metadata".into(), Marks::of(turn, post).written());
        // K8: we choose who answers, and nobody else does.
        arguments.insert("disableAutoOrchestration".into(), json!(true));
        offer.fitted(POST, arguments, &["idempotencyKey", "metadata", "disableAutoOrchestration"])
    }

    /// The turn as the server has it, going by its receipt.
    fn said(&self, offer: &Offer, turn: &NewTurn, receipt: Receipt, post: &str) -> Said {
        let marked = keeps(offer) == Keeps::Stamps;
        let said = Turn {
            id: Name::from(receipt.id),
            participant: turn.participant.clone(),
            timestamp: receipt.timestamp.unwrap_or_else(|| turn.timestamp.clone()).into(),
            content: turn.content.clone(),
            meta: if marked { turn.meta.clone() } else { Map::new() },
            stamp: turn.stamp.clone().filter(|_| marked),
        };
        Said { turn: said, at_ms: 0, post: Some(post.to_owned()) }
    }

    fn posted(&self, turn: &NewTurn, said: Said, post: &str) -> Appended {
        self.doubts.settle(turn);
        self.memory.posted(&said.turn.id, &turn.participant);
        let fresh = said.post.as_deref().is_none_or(|attempt| attempt == post);
        let participant = turn.participant.clone();
        Appended { turn: Turn { participant, ..said.turn }, fresh }
    }

    /// The turn that was posted first with this key.
    async fn first(
        &self,
        offer: &Offer,
        turn: &NewTurn,
        receipt: &Receipt,
        post: &str,
    ) -> Result<Appended, Error> {
        let is_it = |said: &Said| *said.turn.id == *receipt.id;
        match self.look(offer, turn, is_it).await? {
            Some(said) => {
                self.doubts.settle(turn);
                let fresh = said.post.as_deref() == Some(post);
                Ok(Appended { turn: said.turn, fresh })
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

    /// It may have been posted. It is looked for; where it is not found, the next call looks again first.
    async fn in_doubt(
        &self,
        offer: &Offer,
        turn: NewTurn,
        post: &str,
        trouble: Option<Trouble>,
    ) -> Result<Appended, Error> {
        self.doubts.add(&turn, post);
        match self.find(offer, &turn, post).await {
            Ok(Some(found)) => Ok(self.posted(&turn, found, post)),
            Ok(None) | Err(_) => Err(match trouble {
                Some(trouble) => self.unposted(trouble),
                None => Error::Unavailable {
                    what: "the server does not say which message it made of the turn".to_owned(),
                    source: None,
                },
            }),
        }
    }

    /// The message that is this turn.
    async fn find(&self, offer: &Offer, turn: &NewTurn, post: &str) -> Result<Option<Said>, Error> {
        let marked = keeps(offer) == Keeps::Stamps;
        let key = turn.stamp.as_ref().map(|stamp| &stamp.key);
        let operator = self.room.people.posts_as(&turn.participant).map(str::to_owned);
        let is_it = |said: &Said| match marked {
            true => {
                said.post.as_deref() == Some(post)
                    || key.is_some_and(|key| said.turn.stamp.as_ref().is_some_and(|stamp| stamp.key == *key))
            }
            false => {
                let author = operator.is_none()
                    || said.turn.participant == turn.participant
                    || operator.as_deref() == Some(&*said.turn.participant);
                let is_new =
                    !self.memory.knows(&said.turn.id) && self.memory.posted_for(&said.turn.id).is_none();
                author && is_new && said.turn.content == turn.content
            }
        };
        self.look(offer, turn, is_it).await
    }

    /// The first message that fits, among those since the turn's trigger, or among the newest.
    async fn look(
        &self,
        offer: &Offer,
        turn: &NewTurn,
        is_it: impl Fn(&Said) -> bool,
    ) -> Result<Option<Said>, Error> {
        let from = turn.stamp.as_ref().map(|stamp| stamp.trigger.clone()).or_else(|| self.memory.frontier());
        if let Some(mut after) = from.filter(|_| offer.takes(GET, "after")) {
            for _ in 0..REQUESTS {
                let ask = Ask { limit: self.room.reach(offer), after: Some(&after), ..Ask::default() };
                let given = self.room.get(&self.memory, ask).await?;
                let last = given.said.last().map(|said| said.turn.id.clone());
                if let Some(found) = given.said.into_iter().find(&is_it) {
                    return Ok(Some(found));
                }
                match last {
                    Some(last) if given.has_more == Some(true) && last != after => after = last,
                    _ => break,
                }
            }
        }
        let newest = self.newest(self.room.reach(offer)).await?;
        Ok(newest.said.into_iter().find(is_it))
    }

    fn unposted(&self, trouble: Trouble) -> Error {
        let what = format!("the turn could not be posted to the conversation `{}`", self.room.conversation());
        Error::unavailable(what, trouble)
    }
}
