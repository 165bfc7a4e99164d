//! The `memory` substrate: a conversation that ends with its process, for dry runs and for tests.
//!
//! Clones of one [`Memory`] share a conversation; two that are built from one manifest do not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, Lifetime, Page, Substrate, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;
use tokio::sync::Notify;

use super::{check_turn, next_millisecond, persistent, turn_id};
use crate::block::Block;

/// The kind that manifests name.
pub const KIND: &str = "memory";

/// Builds the substrate from its block, which takes no keys.
///
/// # Errors
/// When the block has a key.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    Block::parse(build.block, &["kind"])?;
    // The name is unique, so that no other conversation's records match.
    let unique = entropy::hex(&entropy::bytes::<6>());
    Ok(Arc::new(Memory::new(&format!("{}/{unique}", build.runtime))))
}

/// A conversation in memory.
#[derive(Default)]
pub struct Memory {
    place: String,
    transcript: Mutex<Transcript>,
    appended: Notify,
}

#[derive(Default)]
struct Transcript {
    turns: Vec<Turn>,
    ids: HashMap<Name, usize>,
    keys: HashMap<Name, usize>,
    /// How many turns there were at the last `read`.
    seen_count: usize,
}

impl Memory {
    /// An empty conversation of a runtime.
    pub fn new(runtime: &str) -> Self {
        Memory { place: format!("{KIND}/{runtime}"), ..Memory::default() }
    }

    fn transcript(&self) -> MutexGuard<'_, Transcript> {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transcript {
    fn append(&mut self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        let position = turn.stamp.as_ref().and_then(|stamp| self.keys.get(&stamp.key));
        if let Some(at) = position {
            return Ok(Appended { turn: self.turns[*at].clone(), fresh: false });
        }
        let NewTurn { participant, content, mut timestamp, meta, stamp } = turn;
        let mut name = turn_id(&participant, &timestamp, &content);
        while self.ids.contains_key(&name) {
            timestamp = next_millisecond(&timestamp)?;
            name = turn_id(&participant, &timestamp, &content);
        }
        self.ids.insert(name.clone(), self.turns.len());
        if let Some(stamp) = &stamp {
            self.keys.insert(stamp.key.clone(), self.turns.len());
        }
        let turn = Turn { id: name, participant, timestamp: timestamp.into(), content, meta, stamp };
        self.turns.push(turn.clone());
        Ok(Appended { turn, fresh: true })
    }
}

#[async_trait]
impl Substrate for Memory {
    fn about(&self) -> About {
        About { lifetime: Lifetime::Process, ..persistent(KIND, self.place.clone()) }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        check_turn(&turn)?;
        let appended = self.transcript().append(turn)?;
        self.appended.notify_waiters();
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let mut transcript = self.transcript();
        let at = since.map(|since| transcript.ids.get(since).copied());
        let start = at.flatten().map_or(0, |at| at + 1);
        let end = start.saturating_add(limit).min(transcript.turns.len());
        transcript.seen_count = end;
        Ok(Page { turns: transcript.turns[start..end].to_vec(), known: at != Some(None) })
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        let transcript = self.transcript();
        let end = transcript.ids.get(at).map_or(0, |at| at + 1);
        Ok(transcript.turns[end.saturating_sub(count)..end].to_vec())
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        loop {
            // Subscribe first, so that an append between the check and the wait is not missed.
            let mut appended = std::pin::pin!(self.appended.notified());
            appended.as_mut().enable();
            let news = {
                let transcript = self.transcript();
                transcript.seen_count < transcript.turns.len()
            };
            if news {
                return Ok(());
            }
            appended.await;
        }
    }
}
