//! Reading: what is newer than a turn, and the window that ends with one.

use std::time::Duration;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::substrate::{Error, Page};
use quorate_protocol::Name;
use tokio::time::sleep;

use super::Guilde;
use super::memory::Unlisted;
use super::order::Told;
use super::room::{Ask, GET, Given, Said};

/// How many requests one read may take, so that no server keeps it going forever.
const REQUESTS: usize = 256;

/// How long a server may take until it lists what it has acknowledged: some six seconds in all.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_millis(3_200);

/// The newest messages, back to where somebody wanted to come.
struct Tail {
    said: Vec<Said>,
    /// Whether nothing is older.
    whole: bool,
}

impl Tail {
    fn place(&self, id: &Name) -> Option<usize> {
        place(&self.said, id)
    }
}

impl Guilde {
    /// At most `limit` turns newer than `since`.
    pub(super) async fn newer(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        let posted = self.memory.unlisted(since);
        let mut page = self.page(since, limit).await?;
        // Where the page is full, what we posted may be on the next one.
        if page.turns.len() < limit {
            let missing = self.memory.still_unlisted(posted);
            if !missing.is_empty() {
                self.find_listed(since, missing).await?;
                page = self.page(since, limit).await?;
            }
        }
        if !page.known {
            self.memory.forget();
        }
        let ids: Vec<Name> = page.turns.iter().map(|turn| turn.id.clone()).collect();
        self.memory.gave(since.filter(|_| page.known), &ids);
        Ok(page)
    }

    async fn page(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        let offer = self.room.offer().await?;
        match since {
            Some(since) if offer.takes(GET, "after") => self.after(since, limit).await,
            _ => self.among_the_newest(since, limit).await,
        }
    }

    /// Waits for messages that the server has acknowledged and does not list: it may take a moment. One that stays away
    /// is said once, since waiting for it for good would keep everybody else waiting.
    async fn find_listed(&self, since: Option<&Name>, mut missing: Vec<Unlisted>) -> Result<(), Error> {
        let asked = self.room.reach(&*self.room.offer().await?);
        let mut pause = FIRST_PAUSE;
        loop {
            let given = self.newest(asked).await?;
            missing = self.memory.still_unlisted(missing);
            let Some(first) = missing.first() else { return Ok(()) };
            if pause > LAST_PAUSE {
                self.memory.give_up(&missing);
                let from = [since, first.after.as_ref()];
                let reaches = from.into_iter().flatten().any(|id| place(&given.said, id).is_some());
                // So many may have come since that it is out of sight.
                return match reaches || is_all(&given, asked) {
                    true => Err(self.lost(&missing)),
                    false => Ok(()),
                };
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    fn lost(&self, missing: &[Unlisted]) -> Error {
        let ids: Vec<String> = missing.iter().map(|one| format!("`{}`", one.id)).collect();
        let (what, was) = if ids.len() == 1 { ("message", "was") } else { ("messages", "were") };
        Error::Unavailable {
            what: format!(
                "the {what} {} {was} posted to the conversation `{}` and acknowledged, and the server does not list {}: \
                 nobody will read what was said there",
                ids.join(", "),
                self.room.conversation(),
                if ids.len() == 1 { "it" } else { "them" },
            ),
            source: None,
        }
    }

    /// From a server that can say what is newer than a message.
    async fn after(&self, since: &Name, limit: usize) -> Result<Page, Error> {
        let mut page = Page { turns: Vec::new(), known: true };
        let mut after = since.clone();
        for request in 0..REQUESTS {
            let limit_left = limit - page.turns.len();
            let given =
                self.get_in_order(Ask { limit: limit_left, after: Some(&after), ..Ask::default() }).await?;
            if !given.known {
                match request {
                    0 => page.known = false,
                    // The message that came last was taken away since. What there is, is right.
                    _ => break,
                }
            }
            let goes_on = given.has_more == Some(true);
            let last = given.said.last().map(|said| said.turn.id.clone());
            let known = page.known;
            let is_new = |turn: &Turn, turns: &[Turn]| {
                let was_given = known && self.memory.precedes(&turn.id, since);
                !was_given && turns.iter().all(|other| other.id != turn.id)
            };
            for said in given.said {
                if is_new(&said.turn, &page.turns) {
                    page.turns.push(said.turn);
                }
            }
            match last {
                Some(last) if goes_on && page.turns.len() < limit && last != after => after = last,
                _ => break,
            }
        }
        page.turns.truncate(limit);
        Ok(page)
    }

    /// A page after a message. Where its times go to and fro, either the server's clock was set back or its order means
    /// nothing. It is asked what comes after a message that an older one follows: if that one comes after it, the order
    /// holds; if not, the times decide.
    async fn get_in_order(&self, ask: Ask<'_>) -> Result<Given, Error> {
        let mut given = self.room.get(&self.memory, ask).await?;
        let mut pairs = given.said.iter().zip(given.said.iter().skip(1));
        let step_back = pairs.find(|(one, next)| given.told == Told::Neither && one.at_ms > next.at_ms);
        if let Some((one, next)) = step_back {
            let behind = self.room.get(&self.memory, Ask { after: Some(&one.turn.id), ..ask }).await?;
            if !behind.said.iter().any(|said| said.turn.id == next.turn.id) {
                given.said.sort_by_key(|said| said.at_ms);
            }
        }
        Ok(given)
    }

    /// From a server that gives its newest messages alone.
    async fn among_the_newest(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        let tail = self.tail(|said| since.is_some_and(|since| place(said, since).is_some())).await?;
        let page = |said: Vec<Said>, known| {
            let new = said.into_iter().filter(|said| {
                !since.is_some_and(|since| known && self.memory.precedes(&said.turn.id, since))
            });
            Page { turns: new.map(|said| said.turn).take(limit).collect(), known }
        };
        let Some(since) = since else {
            // A server that takes no limit has said all that it ever will.
            let is_all = tail.whole && (!self.takes_limits().await? || self.keeps_limits(&tail).await?);
            return match is_all {
                true => Ok(page(tail.said, true)),
                false => Err(self.cut_off("its first messages", &tail).await?),
            };
        };
        if let Some(place) = tail.place(since) {
            return Ok(page(tail.said.into_iter().skip(place + 1).collect(), true));
        }
        let seen = |id: &Name| tail.place(id).is_some();
        if !tail.whole || self.memory.is_out_of_sight(since, seen) || !self.keeps_limits(&tail).await? {
            return Err(self.cut_off(&format!("the message `{since}`"), &tail).await?);
        }
        Ok(page(tail.said, false))
    }

    /// The newest messages, until they are `enough`, or as far back as the server goes.
    async fn tail(&self, enough: impl Fn(&[Said]) -> bool) -> Result<Tail, Error> {
        let offer = self.room.offer().await?;
        let reach = self.room.reach(&offer);
        let mut asked = if offer.takes(GET, "limit") { self.fetch.min(reach) } else { reach };
        let mut given = self.newest(asked).await?;
        let mut tail = Tail { said: Vec::new(), whole: false };
        let mut disordered = given.told == Told::Neither;
        if offer.takes(GET, "before") {
            tail.said = given.said;
            tail.whole = given.raw == 0 || given.has_more == Some(false);
            for _ in 0..REQUESTS {
                let Some(oldest) = tail.said.first().filter(|_| !tail.whole).map(|said| said.turn.id.clone())
                else {
                    break;
                };
                if enough(&tail.said) {
                    break;
                }
                let older = Ask { limit: reach, before: Some(&oldest), ..Ask::default() };
                let mut page = self.room.get(&self.memory, older).await?;
                disordered |= page.told == Told::Neither;
                page.said.retain(|said| tail.place(&said.turn.id).is_none());
                tail.whole = page.raw == 0 || (page.has_more == Some(false) && !page.said.is_empty());
                if page.said.is_empty() {
                    break;
                }
                tail.said.splice(0..0, page.said);
            }
        } else {
            while !enough(&given.said) && !is_all(&given, asked) && asked < reach {
                asked = (asked * 2).min(reach);
                given = self.newest(asked).await?;
                disordered = given.told == Told::Neither;
            }
            tail.whole = is_all(&given, asked);
            tail.said = given.said;
        }
        if disordered {
            tail.said.sort_by_key(|said| said.at_ms);
        }
        Ok(tail)
    }

    pub(super) async fn newest(&self, limit: usize) -> Result<Given, Error> {
        self.room.get(&self.memory, Ask { limit, ..Ask::default() }).await
    }

    /// Whether the server gives as many messages as it is asked for, so that fewer mean that there are no more.
    async fn keeps_limits(&self, tail: &Tail) -> Result<bool, Error> {
        Ok(tail.said.len() < 2 || self.newest(1).await?.raw == 1)
    }

    /// Whether the server can be told how many messages to give.
    async fn takes_limits(&self) -> Result<bool, Error> {
        Ok(self.room.offer().await?.takes(GET, "limit"))
    }

    async fn cut_off(&self, what: &str, tail: &Tail) -> Result<Error, Error> {
        let gives = format!(
            "{what} of the conversation `{}` cannot be seen: the server gives the newest {} messages and none before \
             them. Run more often, or begin with a new conversation",
            self.room.conversation(),
            tail.said.len(),
        );
        Ok(Error::Unknown(match self.takes_limits().await? {
            true => format!(
                "{gives}, or raise `fetchLimit` (up to {}) where the server allows it",
                super::LARGEST_FETCH
            ),
            false => format!("{gives}; it takes no `limit`, so that it cannot be asked for more"),
        }))
    }

    /// Up to `count` turns that end with `at`.
    pub(super) async fn ending_with(&self, at: &Name, count: usize) -> Result<Vec<Turn>, Error> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let offer = self.room.offer().await?;
        if offer.takes(GET, "before")
            && offer.takes(GET, "after")
            && let Some(window) = self.around(at, count).await?
        {
            return Ok(window);
        }
        let tail = self.tail(|said| place(said, at).is_some_and(|place| place + 1 >= count)).await?;
        let Some(place) = tail.place(at) else {
            return match tail.whole {
                true => Ok(Vec::new()),
                false => Err(self.cut_off(&format!("the message `{at}`"), &tail).await?),
            };
        };
        let mut turns: Vec<Turn> = tail.said.into_iter().take(place + 1).map(|said| said.turn).collect();
        turns.drain(..turns.len().saturating_sub(count));
        Ok(turns)
    }

    /// The window, from a server that can go both ways from a message; `None` where that leads nowhere.
    async fn around(&self, at: &Name, count: usize) -> Result<Option<Vec<Turn>>, Error> {
        let before = Ask { limit: count, before: Some(at), ..Ask::default() };
        let mut older = self.room.get(&self.memory, before).await?;
        let Some(last) = older.said.last().map(|said| said.turn.id.clone()) else { return Ok(None) };
        let after = Ask { limit: 1, after: Some(&last), ..Ask::default() };
        let after = self.room.get(&self.memory, after).await?;
        let Some(found) = after.said.into_iter().find(|said| said.turn.id == *at).filter(|_| after.known)
        else {
            return Ok(None);
        };
        let mut window = vec![found];
        for _ in 0..REQUESTS {
            older.said.retain(|said| place(&window, &said.turn.id).is_none());
            let came = older.said.len();
            window.splice(0..0, older.said);
            if came == 0 || window.len() >= count || older.has_more == Some(false) {
                break;
            }
            let Some(first) = window.first().map(|said| said.turn.id.clone()) else { break };
            let limit = count - window.len();
            older =
                self.room.get(&self.memory, Ask { limit, before: Some(&first), ..Ask::default() }).await?;
        }
        window.drain(..window.len().saturating_sub(count));
        Ok(Some(window.into_iter().map(|said| said.turn).collect()))
    }
}

fn place(said: &[Said], id: &Name) -> Option<usize> {
    said.iter().position(|said| said.turn.id == *id)
}

/// Whether these are all messages that there are.
fn is_all(given: &Given, asked: usize) -> bool {
    given.has_more.map_or(given.raw < asked, |more| !more)
}
