//! The `inline` executor: a closure of the embedding program takes the turns of a participant.
//!
//! A program registers it under the kind that its manifests name:
//!
//! ```
//! # use quorate_adapters::executor::inline::{Inline, Turn};
//! # let mut registry = quorate_adapters::default_registry().unwrap();
//! registry.executor("in-process-mastra", |_| {
//!     Ok(Inline::new(|conversation| async move {
//!         let trigger = conversation.trigger().map(|turn| turn.content.to_string()).unwrap_or_default();
//!         Ok(Turn { content: format!("I heard {} bytes.", trigger.len()), ..Turn::default() })
//!     }))
//! })?;
//! # Ok::<(), quorate_kernel::registry::Duplicate>(())
//! ```
//!
//! The closure receives the conversation as the participant sees it, and returns the turn. It works in conversations
//! alone: as a member of a council or an assembly it fails. The deadline cannot end what the closure does before its
//! first `await`, nor a future that never yields.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt as _;
use quorate_kernel::conversation::ConversationContext;
use quorate_kernel::ports::executor::{About, ConfigError, Executor, Failure, Invocation, Reply, Settings};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;
use serde_json::{Map, json};

pub use quorate_protocol::answers::advice::Turn;

/// The kind for manifests that use no registered one.
pub const KIND: &str = "inline";

/// Refuses: a manifest with this kind expects a closure that the program has not registered.
///
/// # Errors
/// Always.
pub fn new(_: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    Err(ConfigError::for_block(format!(
        "`{KIND}` is a closure of the program that runs the manifest, and this one has none"
    ))
    .with_help(
        "a program that uses the library registers one under this kind, or one of its own: \
         `host.with_executor(\"inline\", |_| Ok(Inline::new(closure)))`; elsewhere name another executor",
    ))
}

type TurnFuture = Pin<Box<dyn Future<Output = Result<Turn, String>> + Send>>;

/// A closure that takes turns.
pub struct Inline {
    take: Box<dyn Fn(Arc<ConversationContext>) -> TurnFuture + Send + Sync>,
}

impl Inline {
    /// An executor of a closure that receives the conversation and returns the turn, or the reason why it failed.
    #[expect(clippy::new_ret_no_self, reason = "a registry wants executors, whatever they are made of")]
    pub fn new<Closure, ClosureFuture>(take: Closure) -> Arc<dyn Executor>
    where
        Closure: Fn(Arc<ConversationContext>) -> ClosureFuture + Send + Sync + 'static,
        ClosureFuture: Future<Output = Result<Turn, String>> + Send + 'static,
    {
        Arc::new(Inline { take: Box::new(move |conversation| Box::pin(take(conversation))) })
    }
}

#[async_trait]
impl Executor for Inline {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: false, model: None }
    }

    fn turn_schema(&self) -> Schema {
        Schema::Turn
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let only = || Failure::failed("a closure of the program answers in conversations alone");
        let conversation = invocation.conversation.clone().ok_or_else(only)?;
        let form = invocation.answer_schema;
        if !matches!(form, Schema::PlainText | Schema::Turn) {
            return Err(only());
        }
        // A panic fails only this turn.
        let taking = AssertUnwindSafe(async { (self.take)(conversation).await }).catch_unwind();
        let taken = tokio::time::timeout_at(invocation.deadline, taking).await;
        let turn = taken.map_err(|_| Failure::TimedOut)?.map_err(panic_failure)?.map_err(Failure::failed)?;
        let text = match form {
            Schema::PlainText => turn.content,
            _ => turn_json(turn).to_string(),
        };
        Ok(Reply { text, ..Reply::default() })
    }
}

/// A turn in the form of an answer.
fn turn_json(turn: Turn) -> Json {
    let mut answer = Map::from_iter([("content".to_owned(), json!(turn.content))]);
    if !turn.meta.is_empty() {
        answer.insert("meta".to_owned(), Json::Object(turn.meta));
    }
    if let Some(state) = turn.state {
        answer.insert("stateUpdate".to_owned(), Json::Object(state));
    }
    Json::Object(answer)
}

fn panic_failure(panic: Box<dyn std::any::Any + Send>) -> Failure {
    let message = panic.downcast_ref::<&str>().map(ToString::to_string);
    match message.or_else(|| panic.downcast_ref::<String>().cloned()) {
        Some(message) => Failure::failed(format!("the closure panicked: {message}")),
        None => Failure::failed("the closure panicked"),
    }
}
