//! The conversation that all processes of a simulation share, and a process's handle on it: slow, and failing before or
//! after what it was asked for is done.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, NewTurn, Stamp, Turn};
use quorate_kernel::ports::substrate::{About, Appended, Error, Keeps, Page, Substrate};
use quorate_protocol::Name;
use serde_json::Map;
use tokio::sync::watch;

use super::life::{Failed, Life};

/// What the conversation is called.
pub(super) const PLACE: &str = "simulated";

/// A conversation.
pub(super) struct Talk {
    pub(super) keeps: Keeps,
    /// How many appends were done of which nobody learnt that they were.
    pub(super) unsure: AtomicUsize,
    kept: Mutex<Kept>,
    length: watch::Sender<usize>,
}

#[derive(Default)]
struct Kept {
    turns: Vec<Turn>,
    keys: HashMap<Name, usize>,
    /// The stamp that each turn came with, whatever is kept of it. For the checkers.
    stamps: Vec<Option<Stamp>>,
}

impl Talk {
    pub(super) fn new(keeps: Keeps) -> Talk {
        Talk { keeps, unsure: AtomicUsize::new(0), kept: Mutex::default(), length: watch::Sender::new(0) }
    }

    pub(super) fn turns(&self) -> Vec<Turn> {
        self.kept().turns.clone()
    }

    /// The stamps that turns came with, in the same order.
    pub(super) fn stamps(&self) -> Vec<Option<Stamp>> {
        self.kept().stamps.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.kept().turns.len()
    }

    /// Appends at once.
    pub(super) fn append(&self, turn: NewTurn) -> Appended {
        let mut kept = self.kept();
        let keeps_stamps = self.keeps == Keeps::Stamps;
        let known = turn.stamp.as_ref().and_then(|stamp| kept.keys.get(&stamp.key)).filter(|_| keeps_stamps);
        if let Some(at) = known {
            return Appended { turn: kept.turns[*at].clone(), fresh: false };
        }
        let at = kept.turns.len();
        if let Some(stamp) = &turn.stamp {
            kept.keys.insert(stamp.key.clone(), at);
        }
        kept.stamps.push(turn.stamp.clone());
        let turn = Turn {
            id: format!("t{at}").into(),
            participant: turn.participant,
            timestamp: turn.timestamp.into(),
            content: turn.content,
            meta: if keeps_stamps { turn.meta } else { Map::new() },
            stamp: turn.stamp.filter(|_| keeps_stamps),
        };
        kept.turns.push(turn.clone());
        self.length.send_replace(at + 1);
        Appended { turn, fresh: true }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a turn stands: ids count from 0.
pub(super) fn place(id: &str) -> Option<usize> {
    id.strip_prefix('t')?.parse().ok()
}

/// One process's handle.
pub(super) struct Handle {
    pub(super) talk: Arc<Talk>,
    pub(super) life: Arc<Life>,
    /// How many turns the last read has seen.
    pub(super) seen: AtomicUsize,
}

impl Handle {
    async fn step(&self, what: &str) -> Result<(), Error> {
        let unavailable =
            |Failed| Error::Unavailable { what: format!("simulated: {what} failed"), source: None };
        self.life.step().await.map_err(unavailable)
    }
}

#[async_trait]
impl Substrate for Handle {
    fn about(&self) -> About {
        About {
            kind: "simulated",
            capabilities: [Capability::MultiWriter, Capability::Ordered].into(),
            keeps: self.talk.keeps,
            place: PLACE.to_owned(),
            conversation: None,
        }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, Error> {
        self.step("an append").await?;
        let appended = self.talk.append(turn);
        let mut unsure = Unsure { talk: &self.talk, learnt: !appended.fresh };
        self.step("an append that was done").await?;
        unsure.learnt = true;
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        self.step("a read").await?;
        let page = {
            let kept = self.talk.kept();
            let from = since.map(|since| place(since).filter(|at| *at < kept.turns.len()));
            let start = from.flatten().map_or(0, |at| at + 1);
            let end = start.saturating_add(limit).min(kept.turns.len());
            Page { turns: kept.turns[start..end].to_vec(), known: from != Some(None) }
        };
        let last = page.turns.last().map(|turn| &turn.id).or(since.filter(|_| page.known));
        let seen = last.and_then(|id| place(id)).map_or(0, |at| at + 1);
        self.step("a read that was done").await?;
        self.seen.store(seen, Ordering::Relaxed);
        Ok(page)
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, Error> {
        self.step("a look back").await?;
        let kept = self.talk.kept();
        let Some(at) = place(at).filter(|at| *at < kept.turns.len()) else { return Ok(Vec::new()) };
        Ok(kept.turns[(at + 1).saturating_sub(count)..=at].to_vec())
    }

    async fn changed(&self) -> Result<(), Error> {
        self.step("a wait").await?;
        let seen = self.seen.load(Ordering::Relaxed);
        let _ = self.talk.length.subscribe().wait_for(|length| *length > seen).await;
        self.step("a wait that was over").await
    }
}

/// Counts an append whose caller is gone, or was told something else, before it learnt what came of it.
struct Unsure<'t> {
    talk: &'t Talk,
    learnt: bool,
}

impl Drop for Unsure<'_> {
    fn drop(&mut self) {
        if !self.learnt {
            self.talk.unsure.fetch_add(1, Ordering::Relaxed);
        }
    }
}
