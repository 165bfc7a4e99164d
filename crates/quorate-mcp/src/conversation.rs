//! One conversation as remote parties read it: the newest turns, what is newer than one, what is older than one, and
//! waiting for what comes. It knows substrates by their port alone.

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::{Error, Substrate};
use quorate_protocol::Name;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use super::caller::Caller;

/// How many turns are read at once on the way to the newest.
const PAGE_SIZE: usize = 512;
/// A substrate may wake whoever waits for nothing; it does not make this process spin.
const WAKE_PAUSE: Duration = Duration::from_millis(20);

/// Turns that were read, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TurnPage {
    pub(super) turns: Vec<Turn>,
    /// Whether there are more on the side that was read towards.
    pub(super) more: bool,
    /// Whether the turn that it was read from is there.
    pub(super) known: bool,
}

/// A reader of a conversation that several may use at once.
pub(super) struct Conversation {
    substrate: Arc<dyn Substrate>,
    /// The newest turn that was ever seen, so that the newest are found without reading everything again.
    newest: Mutex<Option<Name>>,
    /// Something was read or appended. A substrate owes news only to the last reader, so that readers tell each other.
    news: Notify,
}

impl Conversation {
    pub(super) fn new(substrate: Arc<dyn Substrate>) -> Conversation {
        Conversation { substrate, newest: Mutex::new(None), news: Notify::new() }
    }

    /// Something was appended through this process.
    pub(super) fn notify_appended(&self) {
        self.news.notify_waiters();
    }

    /// The newest turns.
    pub(super) async fn newest(&self, limit: usize) -> Result<TurnPage, Error> {
        let Some(last) = self.newest_id().await? else {
            return Ok(TurnPage { known: true, ..TurnPage::default() });
        };
        let mut turns = self.substrate.window(&last, limit + 1).await?;
        let more = turns.len() > limit;
        turns.drain(..turns.len().saturating_sub(limit));
        Ok(TurnPage { turns, more, known: true })
    }

    /// The turns right before one.
    pub(super) async fn before(&self, at: &Name, limit: usize) -> Result<TurnPage, Error> {
        let mut turns = self.substrate.window(at, limit + 2).await?;
        let known = turns.pop().is_some();
        let more = turns.len() > limit;
        turns.drain(..turns.len().saturating_sub(limit));
        Ok(TurnPage { turns, more, known })
    }

    /// The turns right after one; where it is not there, the first ones.
    pub(super) async fn after(&self, at: &Name, limit: usize) -> Result<TurnPage, Error> {
        let page = self.substrate.read(Some(at), limit + 1).await?;
        let (mut turns, known) = (page.turns, page.known);
        if !turns.is_empty() {
            self.news.notify_waiters();
        }
        let more = turns.len() > limit;
        turns.truncate(limit);
        Ok(TurnPage { turns, more, known })
    }

    /// As [`Conversation::after`], once there are any; after `wait` there may still be none. With no turn to read
    /// from, the newest.
    pub(super) async fn wait_for_turns(
        &self,
        at: Option<&Name>,
        limit: usize,
        wait: Duration,
        caller: &Caller,
    ) -> Result<TurnPage, Error> {
        let error = Instant::now() + wait;
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // From here on nothing is missed, whoever reads it first.
            news.as_mut().enable();
            let found = match at {
                Some(at) => self.after(at, limit).await?,
                None => self.newest(limit).await?,
            };
            if !found.turns.is_empty() || !found.known {
                return Ok(found);
            }
            tokio::select! {
                biased;
                () = caller.cancelled() => return Ok(found),
                () = tokio::time::sleep_until(error) => return Ok(found),
                () = news => {}
                changed = self.substrate.changed() => {
                    changed?;
                    self.news.notify_waiters();
                    tokio::time::sleep(WAKE_PAUSE).await;
                }
            }
        }
    }

    /// The newest turn there is.
    pub(super) async fn newest_id(&self) -> Result<Option<Name>, Error> {
        let mut newest = self.newest.lock().await;
        loop {
            let page = self.substrate.read(newest.as_ref(), PAGE_SIZE).await?;
            if !page.known {
                // Somebody has cut or replaced the conversation: what was given is from its beginning.
                *newest = None;
            }
            let Some(last) = page.turns.last() else { return Ok(newest.clone()) };
            *newest = Some(last.id.clone());
            self.news.notify_waiters();
        }
    }
}
