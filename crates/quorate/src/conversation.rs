//! A conversation of agents: a runtime manifest, whose participants answer each other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::turn::{Begin, CycleResult};

use crate::builder::Quorate;
use crate::error::Error;
use crate::service::error::ServiceError;
use crate::service::runtime::conversation::{ConversationReader, say};
use crate::service::runtime::drive::{Step, Until, drive};
use crate::service::runtime::events::FanOut;
use crate::service::runtime::{OpenRuntime, Request, open};

pub use quorate_kernel::conversation::Turn;

/// How long participants that are still being asked have to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

impl Quorate {
    /// Opens a conversation: a runtime manifest, or the directory that holds it.
    ///
    /// # Errors
    /// When manifest, configuration or ledger cannot be used.
    pub async fn conversation(&self, manifest: impl Into<PathBuf>) -> Result<Conversation, Error> {
        let request = Request { path: manifest.into(), ..Request::default() };
        let runtime = open(&self.environment, &self.places, &request, &self.environment.host)?;
        Ok(Conversation { runtime: runtime.open_ledger().await? })
    }
}

/// A conversation that is open. [`Conversation::close`] folds its ledger together.
pub struct Conversation {
    runtime: OpenRuntime,
}

impl Conversation {
    /// Says something, under a name without white space. Nobody answers before [`Conversation::answer`].
    ///
    /// # Errors
    /// When there is nothing to say, or the substrate does not take it.
    pub async fn say(&self, text: &str, by: &str) -> Result<Turn, Error> {
        Ok(say(&self.runtime.runtime, text, by).await?)
    }

    /// Has participants answer until nothing is to be answered any more, and gives what they said.
    ///
    /// # Errors
    /// When another process runs the conversation, or substrate or ledger fail. What was answered is recorded.
    pub async fn answer(&self) -> Result<Vec<Turn>, Error> {
        let (mut runner, _guard) = self.runtime.runner(Begin::First, Arc::new(FanOut::default())).await?;
        let mut said = Vec::new();
        let driven = drive(&mut runner, Until::Idle, self.runtime.runtime.wall, |step| {
            if let Step::Cycled(CycleResult::Asked { appended, .. }) = step {
                said.extend(appended);
            }
        })
        .await;
        let closed = runner.close(SHUTDOWN_TIMEOUT).await.map_err(ServiceError::from);
        driven?;
        closed?;
        Ok(said)
    }

    /// The last so many turns; all of them without a number.
    ///
    /// # Errors
    /// When the substrate does not answer.
    pub async fn turns(&self, last: Option<usize>) -> Result<Vec<Turn>, Error> {
        Ok(ConversationReader::new(&self.runtime.runtime).last(last).await?)
    }

    /// Seals the ledger where something was recorded, and closes it.
    pub async fn close(self) {
        self.runtime.seal().await;
        self.runtime.close().await;
    }
}
