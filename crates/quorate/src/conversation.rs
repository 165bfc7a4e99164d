//! Conversations of agents: a runtime manifest whose participants answer each other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::turn::{Begin, CycleResult};

use crate::builder::Quorate;
use crate::error::Error;
use crate::service::error::ServiceError;
use crate::service::runtime::conversation::{AuthorRule, ConversationReader, say};
use crate::service::runtime::drive::{Step, Until, drive};
use crate::service::runtime::events::FanOut;
use crate::service::runtime::{OpenRuntime, Request, open};

pub use quorate_kernel::conversation::Turn;

/// How long participants that are still answering have to finish.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

impl Quorate {
    /// Opens a conversation: a runtime manifest, or the directory that holds it.
    ///
    /// # Errors
    /// If the manifest, the configuration or the ledger cannot be used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use async_trait::async_trait;
    /// use quorate::Quorate;
    /// use quorate::ports::executor::{About, Executor, Failure, Invocation, Reply};
    ///
    /// /// Answers everything with the same words.
    /// struct Parrot;
    ///
    /// #[async_trait]
    /// impl Executor for Parrot {
    ///     fn about(&self) -> About {
    ///         About { kind: "parrot", asks_a_model: false, model: None }
    ///     }
    ///
    ///     async fn invoke(&self, _: Invocation) -> Result<Reply, Failure> {
    ///         Ok(Reply { text: "Hello, hello!".to_owned(), ..Reply::default() })
    ///     }
    /// }
    ///
    /// std::fs::write(
    ///     dir.path().join("parrots.yaml"),
    ///     "schema: agentruntimes/v1\n\
    ///      kind: MultiAgentRuntime\n\
    ///      id: parrots\n\
    ///      participants: [{id: polly, executor: parrot, displayName: Polly}]\n\
    ///      dispatcher: {kind: round-robin}\n\
    ///      substrate: {kind: file, path: talk.txt}\n",
    /// )?;
    /// let quorate = Quorate::builder().workspace(dir.path()).executor("parrot", Parrot).build()?;
    /// let conversation = quorate.conversation("parrots.yaml").await?;
    /// conversation.say("@polly, who are you?", "ann").await?;
    /// let answers = conversation.answer().await?;
    /// assert_eq!(&*answers[0].content, "Hello, hello!");
    /// conversation.close().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn conversation(&self, manifest: impl Into<PathBuf>) -> Result<Conversation, Error> {
        let request = Request { path: manifest.into(), ..Request::default() };
        let runtime = open(&self.environment, &self.places, &request, &self.environment.host)?;
        Ok(Conversation { runtime: runtime.open_ledger().await? })
    }
}

/// An open conversation. [`Conversation::close`] seals and closes its ledger.
pub struct Conversation {
    runtime: OpenRuntime,
}

impl Conversation {
    /// Adds a turn under the name of a person, without white space. No participant answers before [`Conversation::answer`].
    ///
    /// # Errors
    /// If the text is empty, the name is a participant's, or the substrate rejects the turn.
    pub async fn say(&self, text: &str, by: &str) -> Result<Turn, Error> {
        Ok(say(&self.runtime.runtime, text, by, AuthorRule::PeopleOnly).await?)
    }

    /// Lets participants answer until no turn is unanswered, and returns what they wrote.
    ///
    /// # Errors
    /// If another process runs the conversation, or substrate or ledger fail. Answers given until then are recorded.
    pub async fn answer(&self) -> Result<Vec<Turn>, Error> {
        let (mut runner, _guard) = self.runtime.runner(Begin::First, Arc::new(FanOut::default())).await?;
        let mut replies = Vec::new();
        let driven = drive(&mut runner, Until::Idle, self.runtime.runtime.wall, |step| {
            if let Step::Cycled(CycleResult::Asked { appended, .. }) = step {
                replies.extend(appended);
            }
        })
        .await;
        let closed = runner.close(SHUTDOWN_TIMEOUT).await.map_err(ServiceError::from);
        driven?;
        closed?;
        Ok(replies)
    }

    /// The last `limit` turns, or all of them.
    ///
    /// # Errors
    /// If the substrate fails.
    pub async fn turns(&self, last: Option<usize>) -> Result<Vec<Turn>, Error> {
        Ok(ConversationReader::new(&self.runtime.runtime).last(last).await?)
    }

    /// Seals the ledger if it has new records, and closes it.
    pub async fn close(self) {
        self.runtime.seal().await;
        self.runtime.close().await;
    }
}
