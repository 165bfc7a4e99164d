//! Waiting for news: the server waits where it can, else it is asked now and then.

use std::time::Duration;

use quorate_kernel::ports::substrate::Error;
use quorate_protocol::Name;
use tokio::time::{Instant, sleep};

use super::GuildeSubstrate;
use super::conversation::{GET_TOOL, MessagePage, MessageQuery};
use crate::mcp::ServerTools;

/// How long a server is asked to wait.
const MAX_WAIT: Duration = Duration::from_secs(25);

/// How many of the newest messages are looked at.
const NEWS_LIMIT: usize = 10;

impl GuildeSubstrate {
    /// Returns when there may be a message that the last read did not give.
    pub(super) async fn wait_for_news(&self) -> Result<(), Error> {
        let offer = self.conversation.tools().await?;
        let waits = offer.accepts(GET_TOOL, "after") && offer.accepts(GET_TOOL, "waitMs");
        match self.read_history.frontier() {
            Some(frontier) if waits => self.wait_after(&offer, frontier).await,
            frontier => self.poll_for_news(frontier.as_ref()).await,
        }
    }

    async fn wait_after(&self, offer: &ServerTools, frontier: Name) -> Result<(), Error> {
        let most = offer.maximum(GET_TOOL, "waitMs").map_or(MAX_WAIT, Duration::from_millis);
        let wait = MAX_WAIT.min(self.conversation.timeout()).min(most);
        let mut after = frontier.clone();
        loop {
            let asked = Instant::now();
            let ask = MessageQuery { limit: NEWS_LIMIT, after: Some(&after), before: None, wait: Some(wait) };
            let given = self.conversation.fetch(&self.read_history, ask).await?;
            if !given.known || self.is_news(&given, Some(&frontier)) {
                return Ok(());
            }
            // What was given before and has been moved behind the frontier is no news, and is not waited for again.
            if let Some(last) = given.messages.last() {
                after = last.turn.id.clone();
            }
            if asked.elapsed() < wait / 2 {
                sleep(self.poll_interval).await;
            }
        }
    }

    async fn poll_for_news(&self, frontier: Option<&Name>) -> Result<(), Error> {
        loop {
            let given = self.fetch_newest(NEWS_LIMIT).await?;
            if self.is_news(&given, frontier) {
                return Ok(());
            }
            sleep(self.poll_interval).await;
        }
    }

    /// Whether something among these was not given yet.
    fn is_news(&self, given: &MessagePage, frontier: Option<&Name>) -> bool {
        let place =
            frontier.and_then(|frontier| given.messages.iter().position(|said| said.turn.id == *frontier));
        let behind = given.messages.iter().skip(place.map_or(0, |place| place + 1));
        behind.into_iter().any(|said| !self.read_history.contains(&said.turn.id))
    }
}
