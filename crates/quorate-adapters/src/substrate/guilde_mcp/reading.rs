//! Reads the turns newer than a given one, and the window that ends with one.

use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::{Page, SubstrateError};
use quorate_protocol::Name;
use tokio::time::{Instant, sleep};

use super::GuildeSubstrate;
use super::conversation::{GET_TOOL, MessagePage, MessageQuery, TurnMessage, Unlisted};
use crate::mcp::ServerTools;

/// The most requests of one read, so that no server can prolong it forever.
const MAX_READ_REQUESTS: usize = 256;

/// How long a server may take to list what it has acknowledged: some six seconds in all.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_millis(3_200);

/// The newest messages, as far back as was required.
pub(super) struct Tail {
    pub(super) messages: Vec<TurnMessage>,
    /// Whether these are all messages.
    pub(super) is_complete: bool,
}

impl Tail {
    pub(super) fn position(&self, id: &Name) -> Option<usize> {
        position(&self.messages, id)
    }
}

impl GuildeSubstrate {
    pub(super) async fn read_page(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let offer = self.conversation.tools().await?;
        match since {
            Some(since) if offer.accepts(GET_TOOL, "after") => self.read_after(since, limit).await,
            _ => self.read_among_newest(since, limit).await,
        }
    }

    /// Waits for messages that the server has acknowledged and does not list yet. If one stays missing, it is reported once,
    /// since waiting on would block all participants.
    pub(super) async fn await_listing(
        &self,
        since: Option<&Name>,
        mut missing: Vec<Unlisted>,
    ) -> Result<(), SubstrateError> {
        let limit = self.conversation.max_limit(&*self.conversation.tools().await?);
        let mut pause = FIRST_DELAY;
        loop {
            let newest = self.fetch_newest(limit).await?;
            missing = self.read_history.still_unlisted(missing);
            let Some(first) = missing.first() else { return Ok(()) };
            if pause > LAST_DELAY {
                self.read_history.give_up(&missing);
                let cursors = [since, first.after.as_ref()];
                let reaches =
                    cursors.into_iter().flatten().any(|id| position(&newest.messages, id).is_some());
                // So many messages may have come since then that it is out of reach.
                return match reaches || is_everything(&newest, limit) {
                    true => Err(self.unlisted_error(&missing)),
                    false => Ok(()),
                };
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    fn unlisted_error(&self, missing: &[Unlisted]) -> SubstrateError {
        let ids: Vec<String> = missing.iter().map(|unlisted| format!("`{}`", unlisted.id)).collect();
        let (noun, verb) = if ids.len() == 1 { ("message", "was") } else { ("messages", "were") };
        SubstrateError::Unavailable {
            what: format!(
                "the {noun} {} {verb} posted to the conversation `{}` and acknowledged, and the server does not list {}: \
                 messages in it will not be read",
                ids.join(", "),
                self.conversation.conversation_id,
                if ids.len() == 1 { "it" } else { "them" },
            ),
            source: None,
        }
    }

    /// Reads from a server that accepts `after`.
    async fn read_after(&self, since: &Name, limit: usize) -> Result<Page, SubstrateError> {
        let mut page = Page { turns: Vec::new(), known: true };
        let mut after = since.clone();
        for request in 0..MAX_READ_REQUESTS {
            let limit_left = limit - page.turns.len();
            let newer = MessageQuery { limit: limit_left, after: Some(&after), ..MessageQuery::default() };
            let received = self.conversation.fetch(&self.read_history, newer).await?;
            if !received.known {
                match request {
                    0 => page.known = false,
                    // The last message was removed meanwhile. The turns so far are right.
                    _ => break,
                }
            }
            let has_more = received.has_more == Some(true);
            let last = received.messages.last().map(|message| message.turn.id.clone());
            let known = page.known;
            let is_new = |turn: &Turn, turns: &[Turn]| {
                let delivered = known && self.read_history.precedes(&turn.id, since);
                !delivered && turns.iter().all(|listed| listed.id != turn.id)
            };
            for message in received.messages {
                if is_new(&message.turn, &page.turns) {
                    page.turns.push(message.turn);
                }
            }
            match last {
                Some(last) if has_more && page.turns.len() < limit && last != after => after = last,
                _ => break,
            }
        }
        page.turns.truncate(limit);
        Ok(page)
    }

    /// Reads from a server that returns only its newest messages.
    async fn read_among_newest(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let tail =
            self.read_tail(|messages| since.is_some_and(|since| position(messages, since).is_some())).await?;
        let page = |messages: Vec<TurnMessage>, known| {
            let new = messages.into_iter().filter(|message| {
                !since.is_some_and(|since| known && self.read_history.precedes(&message.turn.id, since))
            });
            Page { turns: new.map(|message| message.turn).take(limit).collect(), known }
        };
        let Some(since) = since else {
            // A server without a limit has returned all that it can.
            let is_all =
                tail.is_complete && (!self.accepts_limits().await? || self.honors_limits(&tail).await?);
            return match is_all {
                true => Ok(page(tail.messages, true)),
                false => Err(self.out_of_reach_error("its first messages", &tail).await?),
            };
        };
        if let Some(place) = tail.position(since) {
            return Ok(page(tail.messages.into_iter().skip(place + 1).collect(), true));
        }
        let seen = |id: &Name| tail.position(id).is_some();
        if !tail.is_complete
            || self.read_history.is_out_of_sight(since, seen)
            || !self.honors_limits(&tail).await?
        {
            return Err(self.out_of_reach_error(&format!("the message `{since}`"), &tail).await?);
        }
        Ok(page(tail.messages, false))
    }

    /// The newest messages, until `enough` accepts them, or as far back as the server goes.
    pub(super) async fn read_tail(
        &self,
        enough: impl Fn(&[TurnMessage]) -> bool,
    ) -> Result<Tail, SubstrateError> {
        let offer = self.conversation.tools().await?;
        let reach = self.conversation.max_limit(&offer);
        let mut limit = if offer.accepts(GET_TOOL, "limit") { self.initial_fetch.min(reach) } else { reach };
        let mut newest = self.fetch_newest(limit).await?;
        let mut tail = Tail { messages: Vec::new(), is_complete: false };
        if offer.accepts(GET_TOOL, "before") {
            tail.messages = newest.messages;
            tail.is_complete = newest.raw_count == 0 || newest.has_more == Some(false);
            for _ in 0..MAX_READ_REQUESTS {
                let Some(oldest) = tail
                    .messages
                    .first()
                    .filter(|_| !tail.is_complete)
                    .map(|message| message.turn.id.clone())
                else {
                    break;
                };
                if enough(&tail.messages) {
                    break;
                }
                let older = MessageQuery { limit: reach, before: Some(&oldest), ..MessageQuery::default() };
                let mut page = self.conversation.fetch(&self.read_history, older).await?;
                page.messages.retain(|message| tail.position(&message.turn.id).is_none());
                tail.is_complete =
                    page.raw_count == 0 || (page.has_more == Some(false) && !page.messages.is_empty());
                if page.messages.is_empty() {
                    break;
                }
                tail.messages.splice(0..0, page.messages);
            }
        } else {
            while !enough(&newest.messages) && !is_everything(&newest, limit) && limit < reach {
                limit = (limit * 2).min(reach);
                newest = self.fetch_newest(limit).await?;
            }
            tail.is_complete = is_everything(&newest, limit);
            tail.messages = newest.messages;
        }
        Ok(tail)
    }

    pub(super) async fn fetch_newest(&self, limit: usize) -> Result<MessagePage, SubstrateError> {
        self.conversation.fetch(&self.read_history, MessageQuery { limit, ..MessageQuery::default() }).await
    }

    /// Whether the server fills each page up to the requested limit, so that a shorter page is the last.
    async fn honors_limits(&self, tail: &Tail) -> Result<bool, SubstrateError> {
        Ok(tail.messages.len() < 2 || self.fetch_newest(1).await?.raw_count == 1)
    }

    /// Whether the server accepts a limit.
    async fn accepts_limits(&self) -> Result<bool, SubstrateError> {
        Ok(self.conversation.tools().await?.accepts(GET_TOOL, "limit"))
    }

    pub(super) async fn out_of_reach_error(
        &self,
        subject: &str,
        tail: &Tail,
    ) -> Result<SubstrateError, SubstrateError> {
        let gives = format!(
            "{subject} of the conversation `{}` cannot be seen: the server gives the newest {} messages and none before \
             them. Run more often, or begin with a new conversation",
            self.conversation.conversation_id,
            tail.messages.len(),
        );
        Ok(SubstrateError::Unknown(match self.accepts_limits().await? {
            true => format!(
                "{gives}, or raise `fetchLimit` (up to {}) where the server allows it",
                super::MAX_FETCH
            ),
            false => format!("{gives}; it takes no `limit`, so more cannot be requested"),
        }))
    }

    /// The window, from a server that accepts `after` and `before`; `None` if these do not find it.
    pub(super) async fn window_around(
        &self,
        at: &Name,
        count: usize,
    ) -> Result<Option<Vec<Turn>>, SubstrateError> {
        let before = MessageQuery { limit: count, before: Some(at), ..MessageQuery::default() };
        let mut older = self.conversation.fetch(&self.read_history, before).await?;
        let Some(last) = older.messages.last().map(|message| message.turn.id.clone()) else {
            return Ok(None);
        };
        let after = MessageQuery { limit: 1, after: Some(&last), ..MessageQuery::default() };
        let after = self.conversation.fetch(&self.read_history, after).await?;
        let Some(found) =
            after.messages.into_iter().find(|message| message.turn.id == *at).filter(|_| after.known)
        else {
            return Ok(None);
        };
        let mut window = vec![found];
        for _ in 0..MAX_READ_REQUESTS {
            older.messages.retain(|message| position(&window, &message.turn.id).is_none());
            let received = older.messages.len();
            window.splice(0..0, older.messages);
            if received == 0 || window.len() >= count || older.has_more == Some(false) {
                break;
            }
            let Some(first) = window.first().map(|message| message.turn.id.clone()) else { break };
            let limit = count - window.len();
            older = self
                .conversation
                .fetch(
                    &self.read_history,
                    MessageQuery { limit, before: Some(&first), ..MessageQuery::default() },
                )
                .await?;
        }
        window.drain(..window.len().saturating_sub(count));
        Ok(Some(window.into_iter().map(|message| message.turn).collect()))
    }
}

pub(super) fn position(messages: &[TurnMessage], id: &Name) -> Option<usize> {
    messages.iter().position(|message| message.turn.id == *id)
}

/// Whether a page holds all messages of the conversation.
fn is_everything(page: &MessagePage, limit: usize) -> bool {
    page.has_more.map_or(page.raw_count < limit, |more| !more)
}

const MAX_WAIT: Duration = Duration::from_secs(25);

/// How many of the newest messages a poll reads.
const NEWS_LIMIT: usize = 10;

impl GuildeSubstrate {
    pub(super) async fn wait_after(&self, offer: &ServerTools, frontier: Name) -> Result<(), SubstrateError> {
        let maximum = offer.maximum(GET_TOOL, "waitMs").map_or(MAX_WAIT, Duration::from_millis);
        let wait = MAX_WAIT.min(self.conversation.connection.timeout()).min(maximum);
        let mut after = frontier.clone();
        loop {
            let requested_at = Instant::now();
            let ask = MessageQuery { limit: NEWS_LIMIT, after: Some(&after), before: None, wait: Some(wait) };
            let page = self.conversation.fetch(&self.read_history, ask).await?;
            if !page.known || self.is_news(&page, Some(&frontier)) {
                return Ok(());
            }
            // A message that was delivered before and moved behind the frontier is not new; do not wait for it again.
            if let Some(last) = page.messages.last() {
                after = last.turn.id.clone();
            }
            if requested_at.elapsed() < wait / 2 {
                sleep(self.poll_interval).await;
            }
        }
    }

    pub(super) async fn poll_for_news(&self, frontier: Option<&Name>) -> Result<(), SubstrateError> {
        loop {
            let page = self.fetch_newest(NEWS_LIMIT).await?;
            if self.is_news(&page, frontier) {
                return Ok(());
            }
            sleep(self.poll_interval).await;
        }
    }

    /// Whether a page holds a message that was not delivered yet.
    fn is_news(&self, page: &MessagePage, frontier: Option<&Name>) -> bool {
        let place = frontier
            .and_then(|frontier| page.messages.iter().position(|message| message.turn.id == *frontier));
        let later = page.messages.iter().skip(place.map_or(0, |place| place + 1));
        later.into_iter().any(|message| !self.read_history.contains(&message.turn.id))
    }
}
