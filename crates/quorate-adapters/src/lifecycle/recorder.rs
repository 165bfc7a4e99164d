//! The `recorder` lifecycle: it remembers what happened, in order, for whoever asks. It lives in memory, and takes the
//! place of hooks in tests and in programs that look on from inside.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::lifecycle::{HookError, Lifecycle};
use quorate_protocol::Name;

const KIND: &str = "recorder";

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A turn was appended.
    TurnEnd(Turn),
    /// A participant was chosen.
    Mention {
        target: Name,
        by: Turn,
    },
    Idle,
}

#[derive(Debug, Default)]
pub struct Recorder {
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    /// What has happened so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, happened: Event) -> Result<(), HookError> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(happened);
        Ok(())
    }
}

#[async_trait]
impl Lifecycle for Recorder {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn on_turn_end(&self, turn: &Turn) -> Result<(), HookError> {
        self.push(Event::TurnEnd(turn.clone()))
    }

    async fn on_mention(&self, target: &str, by: &Turn) -> Result<(), HookError> {
        self.push(Event::Mention { target: target.into(), by: by.clone() })
    }

    async fn on_idle(&self) -> Result<(), HookError> {
        self.push(Event::Idle)
    }
}
