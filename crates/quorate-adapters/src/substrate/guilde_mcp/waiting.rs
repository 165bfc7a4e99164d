//! Waits for new messages: by a waiting request if the server supports it, else by polling.

use std::time::Duration;

use quorate_kernel::ports::substrate::Error;
use quorate_protocol::Name;
use tokio::time::{Instant, sleep};

use super::GuildeSubstrate;
use super::conversation::{GET_TOOL, MessagePage, MessageQuery};
use crate::mcp::ServerTools;

const MAX_WAIT: Duration = Duration::from_secs(25);

/// How many of the newest messages a poll reads.
const NEWS_LIMIT: usize = 10;

impl GuildeSubstrate {
    /// Returns when there may be a message that was not delivered yet.
    pub(super) async fn wait_for_news(&self) -> Result<(), Error> {
        let offer = self.conversation.tools().await?;
        let waits = offer.accepts(GET_TOOL, "after") && offer.accepts(GET_TOOL, "waitMs");
        match self.read_history.frontier() {
            Some(frontier) if waits => self.wait_after(&offer, frontier).await,
            frontier => self.poll_for_news(frontier.as_ref()).await,
        }
    }

    async fn wait_after(&self, offer: &ServerTools, frontier: Name) -> Result<(), Error> {
        let maximum = offer.maximum(GET_TOOL, "waitMs").map_or(MAX_WAIT, Duration::from_millis);
        let wait = MAX_WAIT.min(self.conversation.timeout()).min(maximum);
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

    async fn poll_for_news(&self, frontier: Option<&Name>) -> Result<(), Error> {
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
