//! The embedder port: texts as vectors, so that they can be compared by meaning (L4).
//!
//! # For adapter authors
//!
//! - One vector for each text, all of one length, in the order of the texts; the same text gives the same vector.
//! - A failure is reported, never replaced with zeros: a text that could not be compared is not persisted.
//! - [`Embedder::threshold`] is the cosine from which on two texts of this model count as similar.
//! - The kernel asks once for each comparison, and drops the future after [`Embedder::timeout`]; an adapter that tries
//!   again does so within it.
//! - Where texts leave this process, [`Embedder::side_effects`] says so, and a person is asked first.
//! - Where requests are paid for, each MUST be reserved with [`Meter::reserve`] before it is sent, and settled with what the
//!   service reports. One that is not settled counts with all that was reserved.

use std::time::Duration;

use async_trait::async_trait;

use super::executor::{CallLimit, ConfigError, SideEffect};
pub use crate::budget::meter::{Meter, MeteredRequest};

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The model, as records name it.
    fn model(&self) -> &str;

    /// The cosine similarity, between -1 and 1, from which on two texts count as near.
    fn threshold(&self) -> f32;

    /// How long one comparison may take.
    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// What embedding does outside of this process; asked of those that a workspace's file configures.
    fn side_effects(&self) -> Vec<SideEffect> {
        Vec::new()
    }

    /// Refuses where the key that it sends is known not to be there.
    ///
    /// # Errors
    /// The setting at fault.
    fn check_installed(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Whether each call is paid for, so that `doctor` makes one only if a person says so.
    fn is_metered(&self) -> bool {
        false
    }

    /// The most that all requests for these texts take, repeated ones included; `None` where that is not known. A budget of
    /// tokens or money is held by it.
    fn call_limit(&self, _texts: &[&str]) -> Option<CallLimit> {
        (!self.is_metered()).then_some(CallLimit { tokens: 0, usd_nanos: Some(0) })
    }

    /// The model, where it is and how it is reached, in one line.
    fn describe(&self) -> String {
        format!("`{}`", self.model())
    }

    /// One vector for each text. Paid requests are reserved and settled with `meter`.
    ///
    /// # Errors
    /// The reason, as a message for users.
    async fn embed(&self, texts: &[&str], meter: &Meter) -> Result<Vec<Vec<f32>>, String>;
}
