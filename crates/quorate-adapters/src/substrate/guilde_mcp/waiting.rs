//! Waiting for news: the server waits where it can, else it is asked now and then.

use std::time::Duration;

use quorate_kernel::ports::substrate::Error;
use quorate_protocol::Name;
use tokio::time::{Instant, sleep};

use super::Guilde;
use super::room::{Ask, GET, Given};
use crate::mcp::Offer;

/// How long a server is asked to wait.
const LONGEST: Duration = Duration::from_secs(25);

/// How many of the newest messages are looked at.
const LOOK: usize = 10;

impl Guilde {
    /// Returns when there may be a message that the last read did not give.
    pub(super) async fn news(&self) -> Result<(), Error> {
        let offer = self.room.offer().await?;
        let waits = offer.takes(GET, "after") && offer.takes(GET, "waitMs");
        match self.memory.frontier() {
            Some(frontier) if waits => self.wait_after(&offer, frontier).await,
            frontier => self.look_now_and_then(frontier.as_ref()).await,
        }
    }

    async fn wait_after(&self, offer: &Offer, frontier: Name) -> Result<(), Error> {
        let most = offer.maximum(GET, "waitMs").map_or(LONGEST, Duration::from_millis);
        let wait = LONGEST.min(self.room.timeout()).min(most);
        let mut after = frontier.clone();
        loop {
            let asked = Instant::now();
            let ask = Ask { limit: LOOK, after: Some(&after), before: None, wait: Some(wait) };
            let given = self.room.get(&self.memory, ask).await?;
            if !given.known || self.is_news(&given, Some(&frontier)) {
                return Ok(());
            }
            // What was given before and has been moved behind the frontier is no news, and is not waited for again.
            if let Some(last) = given.said.last() {
                after = last.turn.id.clone();
            }
            if asked.elapsed() < wait / 2 {
                sleep(self.poll).await;
            }
        }
    }

    async fn look_now_and_then(&self, frontier: Option<&Name>) -> Result<(), Error> {
        loop {
            let given = self.newest(LOOK).await?;
            if self.is_news(&given, frontier) {
                return Ok(());
            }
            sleep(self.poll).await;
        }
    }

    /// Whether something among these was not given yet.
    fn is_news(&self, given: &Given, frontier: Option<&Name>) -> bool {
        let place =
            frontier.and_then(|frontier| given.said.iter().position(|said| said.turn.id == *frontier));
        let behind = given.said.iter().skip(place.map_or(0, |place| place + 1));
        behind.into_iter().any(|said| !self.memory.knows(&said.turn.id))
    }
}
