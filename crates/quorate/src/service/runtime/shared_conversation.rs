//! A conversation for concurrent remote readers: the newest turns, the turns after or before a turn, and waiting for new
//! turns. It knows substrates only through their port.

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::{Error, Substrate};
use quorate_protocol::Name;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::service::jobs::Waiter;

/// How many turns one read fetches on the way to the newest.
const PAGE_SIZE: usize = 512;
/// The pause after each wake-up, since a substrate may wake its waiter without news.
const WAKE_PAUSE: Duration = Duration::from_millis(20);

/// The turns of a read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnPage {
    pub turns: Vec<Turn>,
    /// Whether there are more in the direction of the read.
    pub more: bool,
    /// Whether the turn that the read started from exists.
    pub known: bool,
}

/// A reader of a conversation, for concurrent use.
pub struct Conversation {
    substrate: Arc<dyn Substrate>,
    /// The newest turn seen so far, so that a search for newer turns starts there.
    newest: Mutex<Option<Name>>,
    /// Notified of reads and appends. A substrate wakes only its last reader, and readers wake each other.
    news: Notify,
}

impl Conversation {
    pub fn new(substrate: Arc<dyn Substrate>) -> Conversation {
        Conversation { substrate, newest: Mutex::new(None), news: Notify::new() }
    }

    /// Notifies waiters of an append by this process.
    pub fn notify_appended(&self) {
        self.news.notify_waiters();
    }

    /// The newest turns.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn newest(&self, limit: usize) -> Result<TurnPage, Error> {
        let Some(last) = self.newest_id().await? else {
            return Ok(TurnPage { known: true, ..TurnPage::default() });
        };
        let mut turns = self.substrate.window(&last, limit + 1).await?;
        let more = turns.len() > limit;
        turns.drain(..turns.len().saturating_sub(limit));
        Ok(TurnPage { turns, more, known: true })
    }

    /// The turns right before `at`.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn before(&self, at: &Name, limit: usize) -> Result<TurnPage, Error> {
        let mut turns = self.substrate.window(at, limit + 2).await?;
        let known = turns.pop().is_some();
        let more = turns.len() > limit;
        turns.drain(..turns.len().saturating_sub(limit));
        Ok(TurnPage { turns, more, known })
    }

    /// The turns right after `at`; the first ones if `at` does not exist.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn after(&self, at: &Name, limit: usize) -> Result<TurnPage, Error> {
        let page = self.substrate.read(Some(at), limit + 1).await?;
        let (mut turns, known) = (page.turns, page.known);
        if !turns.is_empty() {
            self.news.notify_waiters();
        }
        let more = turns.len() > limit;
        turns.truncate(limit);
        Ok(TurnPage { turns, more, known })
    }

    /// The first turns.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn first(&self, limit: usize) -> Result<TurnPage, Error> {
        let page = self.substrate.read(None, limit + 1).await?;
        let mut turns = page.turns;
        self.news.notify_waiters();
        let more = turns.len() > limit;
        turns.truncate(limit);
        Ok(TurnPage { turns, more, known: true })
    }

    /// As [`Conversation::after`], once there are any; empty if none arrive within `wait`. Without a turn to start from,
    /// the newest.
    ///
    /// # Errors
    /// When the substrate fails.
    pub async fn wait_for_turns(
        &self,
        at: Option<&Name>,
        limit: usize,
        wait: Duration,
        caller: &impl Waiter,
    ) -> Result<TurnPage, Error> {
        let error = Instant::now() + wait;
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // From here on no notification is missed, even if another reader reads the turn first.
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

    /// The id of the newest turn; `None` without turns.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn newest_id(&self) -> Result<Option<Name>, Error> {
        let mut newest = self.newest.lock().await;
        loop {
            let page = self.substrate.read(newest.as_ref(), PAGE_SIZE).await?;
            if !page.known {
                // The conversation was truncated or replaced: the page is from its beginning.
                *newest = None;
            }
            let Some(last) = page.turns.last() else { return Ok(newest.clone()) };
            *newest = Some(last.id.clone());
            self.news.notify_waiters();
        }
    }
}
