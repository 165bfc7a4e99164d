//! Events of committed records over NATS: other processes that follow runs, or wait for tasks, need not poll the ledger.

use super::builder::Quorate;
use super::error::Error;

pub use super::service::commit_events::nats::{Heard, NatsEvents, NatsOptions};

impl Quorate {
    /// Connects to NATS servers. Events flow as long as the returned value is held.
    ///
    /// # Errors
    /// If the servers cannot be used.
    pub async fn connect_events(&self, options: &NatsOptions) -> Result<NatsEvents, Error> {
        NatsEvents::connect(&self.environment.commit_events, options).await
    }
}
