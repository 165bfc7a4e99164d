//! The `memory` substrate: a conversation that lives as long as its process. For rehearsals and for tests, which can
//! hook into each call to delay it or to let it fail.
//!
//! Whoever has the same [`Memory`] has the same conversation; two that are built from one manifest are two.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, NewTurn, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, Error, Keeps, Lifetime, Page, Substrate};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;
use tokio::sync::Notify;

use super::{check_turn, next_millisecond, turn_id};
use crate::block::Block;

/// The kind that manifests name.
pub const KIND: &str = "memory";

/// Builds the substrate from its block, which has no keys of its own.
///
/// # Errors
/// When there is one.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    Block::parse(build.block, &["kind"])?;
    // No other process has it, so none may take its records for its own.
    let one = entropy::hex(&entropy::bytes::<6>());
    Ok(Arc::new(Memory::new(&format!("{}/{one}", build.runtime))))
}

/// A call of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`Substrate::append`].
    Append,
    /// [`Substrate::read`].
    Read,
    /// [`Substrate::window`].
    Window,
    /// [`Substrate::changed`].
    Changed,
}

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Before anything is done; what it fails with is what comes of the call.
    Before,
    /// When it is done; what it fails with is what the caller gets to know of it.
    After,
}

/// What a hook does: waits, fails, or nothing.
pub type HookFuture = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

type Hook = Box<dyn Fn(Operation, Timing) -> HookFuture + Send + Sync>;

/// A conversation in memory.
#[derive(Default)]
pub struct Memory {
    place: String,
    transcript: Mutex<Transcript>,
    appended: Notify,
    hook: Option<Hook>,
}

#[derive(Default)]
struct Transcript {
    turns: Vec<Turn>,
    ids: HashMap<Name, usize>,
    keys: HashMap<Name, usize>,
    /// How many turns the last `read` has seen.
    seen_count: usize,
}

impl Memory {
    /// An empty conversation, of a runtime.
    pub fn new(runtime: &str) -> Self {
        Memory { place: format!("{KIND}/{runtime}"), ..Memory::default() }
    }

    /// Has a hook called before and after each call.
    #[must_use]
    pub fn with_hook(
        mut self,
        hook: impl Fn(Operation, Timing) -> HookFuture + Send + Sync + 'static,
    ) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// All turns, oldest first.
    pub fn turns(&self) -> Vec<Turn> {
        self.transcript().turns.clone()
    }

    fn transcript(&self) -> MutexGuard<'_, Transcript> {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn hook(&self, call: Operation, moment: Timing) -> Result<(), Error> {
        match &self.hook {
            Some(hook) => hook(call, moment).await,
            None => Ok(()),
        }
    }
}

impl Transcript {
    fn append(&mut self, turn: NewTurn) -> Result<Appended, Error> {
        let known = turn.stamp.as_ref().and_then(|stamp| self.keys.get(&stamp.key));
        if let Some(at) = known {
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
        About {
            kind: KIND,
            capabilities: [Capability::Mentions, Capability::MultiWriter, Capability::Ordered].into(),
            keeps: Keeps::Stamps,
            lifetime: Lifetime::Process,
            place: self.place.clone(),
            conversation: None,
        }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, Error> {
        check_turn(&turn)?;
        self.hook(Operation::Append, Timing::Before).await?;
        let appended = self.transcript().append(turn)?;
        self.appended.notify_waiters();
        self.hook(Operation::Append, Timing::After).await?;
        Ok(appended)
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        self.hook(Operation::Read, Timing::Before).await?;
        let page = {
            let mut transcript = self.transcript();
            let at = since.map(|since| transcript.ids.get(since).copied());
            let from = at.flatten().map_or(0, |at| at + 1);
            let to = from.saturating_add(limit).min(transcript.turns.len());
            transcript.seen_count = to;
            Page { turns: transcript.turns[from..to].to_vec(), known: at != Some(None) }
        };
        self.hook(Operation::Read, Timing::After).await?;
        Ok(page)
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, Error> {
        self.hook(Operation::Window, Timing::Before).await?;
        let turns = {
            let transcript = self.transcript();
            let to = transcript.ids.get(at).map_or(0, |at| at + 1);
            transcript.turns[to.saturating_sub(count)..to].to_vec()
        };
        self.hook(Operation::Window, Timing::After).await?;
        Ok(turns)
    }

    async fn changed(&self) -> Result<(), Error> {
        self.hook(Operation::Changed, Timing::Before).await?;
        loop {
            // Listening first: what is appended between the look and the wait wakes us.
            let mut appended = std::pin::pin!(self.appended.notified());
            appended.as_mut().enable();
            let news = {
                let transcript = self.transcript();
                transcript.seen_count < transcript.turns.len()
            };
            if news {
                return self.hook(Operation::Changed, Timing::After).await;
            }
            appended.await;
        }
    }
}
