//! The lifecycle port: listeners to events of a conversation.
//!
//! # For adapter authors
//!
//! Hooks are advisory. The kernel starts them in the order of events and waits for none of them: a hook that fails, hangs
//! or panics is recorded, and the conversation continues. Each has [`DEADLINE`] to end. A few run at once and some hundred
//! wait; if a conversation outpaces its hooks for long, calls are dropped, which is recorded too.
//!
//! `quorate_testkit::conformance::lifecycle` checks that a failing hook does not affect the conversation.

use std::time::Duration;

use async_trait::async_trait;

use super::executor::SideEffect;
use crate::conversation::Turn;

/// How long a hook may take before it is abandoned.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Why a hook failed, as a message for users.
pub type HookError = String;

/// Listens to events of a conversation. See the module's text for the contract.
#[async_trait]
pub trait Lifecycle: Send + Sync {
    fn kind(&self) -> &'static str;

    /// What it does outside of this process, as [`Executor::side_effects`](super::executor::Executor::side_effects) says it.
    fn side_effects(&self) -> Vec<SideEffect> {
        Vec::new()
    }

    /// A turn was appended.
    async fn on_turn_end(&self, turn: &Turn) -> Result<(), HookError> {
        let _ = turn;
        Ok(())
    }

    /// The dispatcher chose a participant.
    async fn on_mention(&self, target: &str, by: &Turn) -> Result<(), HookError> {
        let _ = (target, by);
        Ok(())
    }

    async fn on_idle(&self) -> Result<(), HookError> {
        Ok(())
    }
}
