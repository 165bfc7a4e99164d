//! The executor port: the one way to ask anybody anything.
//!
//! # For adapter authors
//!
//! An executor turns an [`Invocation`] into a [`Reply`] or a [`Failure`]. It is called at most once per attempt;
//! re-prompts, retries, budgets, redaction and records are the caller's. What an adapter owes:
//!
//! - It ends by `deadline` plus two seconds, whatever the other side does, and leaves nothing running.
//! - Dropping the future ends the call the same way: nothing that it started outlives it by more than two seconds.
//! - A limit message, an empty output and a non-zero exit are failures, not replies.
//! - It never invents text. What it returns in [`Reply::text`] is what the other side said.
//! - It holds no state between invocations that would change an answer.
//!
//! `quorate_testkit::conformance::executor` checks the first three for any implementation.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_protocol::{Json, Name, Part, answers};

use crate::conversation::{Participant, Speaking};

/// One attempt to get an answer from one member.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The run.
    pub run: Name,
    /// The invocation, for example `r2/skeptic`.
    pub id: Name,
    /// The member's id.
    pub member: Name,
    /// The step: `r1`, `r2`, `adjudicate`.
    pub step: Name,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// The whole prompt, laid out; what a model is shown.
    pub prompt: Arc<str>,
    /// The same material as typed parts, for executors that need no prompt.
    pub parts: Arc<[Part]>,
    /// The member's role text.
    pub role: Arc<str>,
    /// Who the member is, where it has a persona: the merged frontmatter, and its body as `body`.
    pub persona: Option<Arc<Json>>,
    /// Which form the answer has to have.
    pub form: answers::Schema,
    /// The JSON Schema of the answer.
    pub schema: Arc<Json>,
    /// The conversation, where the answer is to be a turn in one.
    pub speaking: Option<Arc<Speaking>>,
    /// When the attempt has to be over.
    pub deadline: tokio::time::Instant,
}

/// What came back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The text of the answer, or of what was said in its place.
    pub text: String,
    /// The model that says it answered, where known.
    pub model: Option<String>,
    /// What it cost, where the other side says so.
    pub usage: Usage,
    /// The turn, where the other side has put what was said into the conversation itself.
    pub posted: Option<Name>,
}

/// What one attempt cost, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Tokens read.
    pub tokens_in: Option<u64>,
    /// Tokens written.
    pub tokens_out: Option<u64>,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The deadline passed. Not retried.
    #[error("timed out")]
    TimedOut,
    /// Anything else. Retried while the executor's `retries` last.
    #[error("{message}")]
    Failed {
        /// What went wrong, for a person, with what the other side said (capped).
        message: String,
    },
}

impl Failure {
    /// A failure with a message.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure::Failed { message: message.into() }
    }
}

/// What an executor says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its kind, for example `agent-cli`.
    pub kind: &'static str,
    /// Whether a model is behind it.
    pub asks_a_model: bool,
    /// The model, where the settings name one.
    pub model: Option<String>,
}

/// What the program behind an executor was found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// Whether this version was tried.
    pub tried: bool,
    /// Its version, and what it lets a judge do, in one line.
    pub detail: String,
}

/// Somebody who can be asked. See the module's text for the contract.
#[async_trait]
pub trait Executor: Send + Sync {
    /// What this executor is.
    fn about(&self) -> About;

    /// What its answers depend on besides its settings, as far as it can know: the version of its rules, the hashes of
    /// files that it reads once. A run is resumed, and a sweep takes something for judged, only while it is the same.
    fn fingerprint(&self) -> Json {
        Json::Null
    }

    /// The form of its turns in a conversation: [`answers::Schema::Said`], or [`answers::Schema::Turn`] where it gives
    /// metadata and state with what it says.
    fn turns(&self) -> answers::Schema {
        answers::Schema::Said
    }

    /// Refuses a participant whose turns it could never take, by the key at fault; `conversation` is what the substrate
    /// calls the conversation elsewhere, as in [`Speaking::conversation`].
    fn seats(&self, _participant: &Participant, _conversation: Option<&str>) -> Result<(), Refused> {
        Ok(())
    }

    /// Whether it gives a participant the MCP servers that the manifest lets it use.
    fn passes_servers(&self) -> bool {
        false
    }

    /// Whether it has the participant's operator answer where the conversation is kept, and the answer comes back here
    /// alone.
    fn brings_back(&self) -> bool {
        false
    }

    /// The tools that whoever judges through it has; `None` where that is not known.
    fn tools(&self) -> Option<Vec<String>> {
        None
    }

    /// Holds the installed program against what the executor needs of it, without a question; `None` where there is
    /// nothing to hold. Fails where the program lacks something without which it must not be asked.
    async fn inspect(&self, _deadline: tokio::time::Instant) -> Option<Result<Inspected, Failure>> {
        None
    }

    /// Asks once.
    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure>;
}

/// The settings that every executor has, whatever its kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The name it goes by: a table of `quorate.toml`, or the kind itself.
    pub name: String,
    /// One deadline spans all attempts of an invocation.
    pub timeout: Duration,
    /// How many failures (not timeouts, not schema failures) are tried again.
    pub retries: u32,
    /// The directory that relative paths in the block are relative to.
    pub dir: std::path::PathBuf,
    /// Everything else, verbatim, for the adapter.
    pub block: serde_json::Map<String, Json>,
    /// The MCP servers that the host has configured, by id, each with its table verbatim.
    pub servers: Servers,
}

/// MCP servers by id, each with its table of `quorate.toml` verbatim.
pub type Servers = Arc<std::collections::BTreeMap<String, serde_json::Map<String, Json>>>;

/// Why an adapter refuses its block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The key at fault, where there is one.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Refused {
    /// A refusal of one key.
    pub fn key(key: impl Into<String>, message: impl Into<String>) -> Self {
        Refused { key: Some(key.into()), message: message.into(), help: None }
    }

    /// A refusal of the block as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Refused { key: None, message: message.into(), help: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
