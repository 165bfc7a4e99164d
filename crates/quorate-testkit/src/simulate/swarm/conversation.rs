//! The conversation that all processes of a simulation share, and a process's handle on it: slow, and failing before or
//! after a call takes effect.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, NewTurn, Stamp, Turn};
use quorate_kernel::ports::substrate::{About, Appended, Error, Keeps, Lifetime, Page, Substrate};
use quorate_protocol::Name;
use serde_json::Map;
use tokio::sync::watch;

use super::life::{Life, StepFailed};

pub(super) const PLACE: &str = "simulated";

pub(super) struct SharedConversation {
    pub(super) keeps: Keeps,
    /// The number of appends whose caller did not learn of their success.
    pub(super) unacknowledged: AtomicUsize,
    kept: Mutex<StoredTurns>,
    length: watch::Sender<usize>,
}

#[derive(Default)]
struct StoredTurns {
    turns: Vec<Turn>,
    keys: HashMap<Name, usize>,
    /// The stamp of each turn, even if the substrate does not keep it, for the checkers.
    stamps: Vec<Option<Stamp>>,
}

impl SharedConversation {
    pub(super) fn new(keeps: Keeps) -> SharedConversation {
        SharedConversation {
            keeps,
            unacknowledged: AtomicUsize::new(0),
            kept: Mutex::default(),
            length: watch::Sender::new(0),
        }
    }

    pub(super) fn turns(&self) -> Vec<Turn> {
        self.stored().turns.clone()
    }

    /// The stamps of the turns, in the same order.
    pub(super) fn stamps(&self) -> Vec<Option<Stamp>> {
        self.stored().stamps.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.stored().turns.len()
    }

    pub(super) fn append(&self, turn: NewTurn) -> Appended {
        let mut stored = self.stored();
        let keeps_stamps = self.keeps == Keeps::Stamps;
        let existing =
            turn.stamp.as_ref().and_then(|stamp| stored.keys.get(&stamp.key)).filter(|_| keeps_stamps);
        if let Some(at) = existing {
            return Appended { turn: stored.turns[*at].clone(), fresh: false };
        }
        let at = stored.turns.len();
        if let Some(stamp) = &turn.stamp {
            stored.keys.insert(stamp.key.clone(), at);
        }
        stored.stamps.push(turn.stamp.clone());
        let turn = Turn {
            id: format!("t{at}").into(),
            participant: turn.participant,
            timestamp: turn.timestamp.into(),
            content: turn.content,
            meta: if keeps_stamps { turn.meta } else { Map::new() },
            stamp: turn.stamp.filter(|_| keeps_stamps),
        };
        stored.turns.push(turn.clone());
        self.length.send_replace(at + 1);
        Appended { turn, fresh: true }
    }

    fn stored(&self) -> MutexGuard<'_, StoredTurns> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of a turn: ids count from 0.
pub(super) fn position(id: &str) -> Option<usize> {
    id.strip_prefix('t')?.parse().ok()
}

pub(super) struct FlakySubstrate {
    pub(super) talk: Arc<SharedConversation>,
    pub(super) life: Arc<Life>,
    /// The number of turns at the last read.
    pub(super) seen: AtomicUsize,
}

impl FlakySubstrate {
    async fn step(&self, what: &'static str) -> Result<(), Error> {
        let unavailable =
            |StepFailed| Error::Unavailable { what: format!("simulated: {what} failed"), source: None };
        self.life.step(what).await.map_err(unavailable)
    }
}

#[async_trait]
impl Substrate for FlakySubstrate {
    fn about(&self) -> About {
        About {
            kind: "simulated",
            capabilities: [Capability::MultiWriter, Capability::Ordered].into(),
            keeps: self.talk.keeps,
            lifetime: Lifetime::Persistent,
            place: PLACE.to_owned(),
            conversation: None,
        }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, Error> {
        self.step("an append").await?;
        let appended = self.talk.append(turn);
        let mut unacknowledged = UnacknowledgedAppend { talk: &self.talk, learnt: !appended.fresh };
        self.step("an append that was done").await?;
        unacknowledged.learnt = true;
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        self.step("a read").await?;
        let page = {
            let stored = self.talk.stored();
            let cursor = since.map(|since| position(since).filter(|at| *at < stored.turns.len()));
            let start = cursor.flatten().map_or(0, |at| at + 1);
            let end = start.saturating_add(limit).min(stored.turns.len());
            Page { turns: stored.turns[start..end].to_vec(), known: cursor != Some(None) }
        };
        let last = page.turns.last().map(|turn| &turn.id).or(since.filter(|_| page.known));
        let seen = last.and_then(|id| position(id)).map_or(0, |at| at + 1);
        self.step("a read that was done").await?;
        self.seen.store(seen, Ordering::Relaxed);
        Ok(page)
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, Error> {
        self.step("a look back").await?;
        let stored = self.talk.stored();
        let Some(at) = position(at).filter(|at| *at < stored.turns.len()) else { return Ok(Vec::new()) };
        Ok(stored.turns[(at + 1).saturating_sub(count)..=at].to_vec())
    }

    async fn changed(&self) -> Result<(), Error> {
        self.step("a wait").await?;
        let seen = self.seen.load(Ordering::Relaxed);
        let _ = self.talk.length.subscribe().wait_for(|length| *length > seen).await;
        self.step("a wait that was over").await
    }
}

/// Counts an append whose caller was dropped, or got an error, before it learned of the success.
struct UnacknowledgedAppend<'t> {
    talk: &'t SharedConversation,
    learnt: bool,
}

impl Drop for UnacknowledgedAppend<'_> {
    fn drop(&mut self) {
        if !self.learnt {
            self.talk.unacknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
}
