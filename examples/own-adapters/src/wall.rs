//! A substrate that keeps the conversation in memory.

use std::sync::Mutex;

use async_trait::async_trait;
use quorate::ports::conversation::{Capability, NewTurn, Turn};
use quorate::ports::substrate::{About, Appended, Keeps, Lifetime, Page, Substrate, SubstrateError};
use tokio::sync::Notify;

type Name = std::sync::Arc<str>;

#[derive(Default)]
pub(crate) struct Wall {
    turns: Mutex<Vec<Turn>>,
    news: Notify,
}

#[async_trait]
impl Substrate for Wall {
    fn about(&self) -> About {
        let (capabilities, place) = ([Capability::Mentions].into(), format!("wall:{:p}", self));
        About {
            kind: "wall",
            capabilities,
            keeps: Keeps::Stamps,
            lifetime: Lifetime::Process,
            place,
            conversation: None,
        }
    }

    async fn append(&self, new: NewTurn) -> Result<Appended, SubstrateError> {
        let mut turns = self.turns.lock().expect("not poisoned");
        let is_it = |turn: &&Turn| {
            new.stamp.as_ref().is_some_and(|new| turn.stamp.as_ref().is_some_and(|one| one.key == new.key))
        };
        let known = turns.iter().find(is_it);
        if let Some(turn) = known {
            return Ok(Appended { turn: turn.clone(), fresh: false });
        }
        let NewTurn { participant, content, timestamp, meta, stamp } = new;
        let id = format!("w{}", turns.len()).into();
        let turn = Turn { id, participant, timestamp: timestamp.into(), content, meta, stamp };
        turns.push(turn.clone());
        self.news.notify_one();
        Ok(Appended { turn, fresh: true })
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let turns = self.turns.lock().expect("not poisoned");
        let at = since.map(|id| turns.iter().position(|turn| turn.id == *id));
        let first = at.flatten().map_or(0, |at| at + 1);
        Ok(Page { turns: turns.iter().skip(first).take(limit).cloned().collect(), known: at != Some(None) })
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        let turns = self.turns.lock().expect("not poisoned");
        let end = turns.iter().position(|turn| turn.id == *at).map_or(0, |at| at + 1);
        Ok(turns[end.saturating_sub(count)..end].to_vec())
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        self.news.notified().await;
        Ok(())
    }
}
