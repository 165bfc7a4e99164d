//! The `recorder` lifecycle keeps all events in memory, in order, for tests and for programs that embed a runtime.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::lifecycle::{HookError, Lifecycle};
use quorate_protocol::Name;

const KIND: &str = "recorder";

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    TurnEnd(Turn),
    /// A participant was chosen to answer the turn `by`.
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
