//! Scripted members: executors whose answers are a function of the invocation, and that record their calls.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};

/// A member's action for an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Answers with this text after a delay in milliseconds.
    Say(String, u64),
    /// Fails after a delay in milliseconds.
    Fail(u64),
    /// Hangs until the deadline.
    Hang,
}

type Script = dyn Fn(&Invocation) -> Action + Send + Sync;

pub struct ScriptedExecutor {
    script: Box<Script>,
    asks_a_model: bool,
    calls: Arc<Mutex<Vec<(String, u32)>>>,
}

impl ScriptedExecutor {
    /// The member config of this executor.
    pub fn into_member_config(self: Arc<Self>) -> MemberConfig {
        MemberConfig {
            executor: self,
            executor_name: "scripted".into(),
            timeout: Duration::from_secs(5),
            retries: 1,
            role: "role".into(),
            persona: None,
            context: Vec::new(),
            weight: None,
            extra_fields: serde_json::Map::new(),
            conversation: None,
        }
    }

    pub fn new(script: impl Fn(&Invocation) -> Action + Send + Sync + 'static) -> Self {
        ScriptedExecutor { script: Box::new(script), asks_a_model: false, calls: Arc::default() }
    }

    /// Says that its answers come from a model, and so cost something.
    #[must_use]
    pub fn as_model(mut self) -> Self {
        self.asks_a_model = true;
        self
    }

    /// Records calls in a list that outlives the executor.
    #[must_use]
    pub fn with_call_log(mut self, calls: Arc<Mutex<Vec<(String, u32)>>>) -> Self {
        self.calls = calls;
        self
    }

    /// The calls in order: invocation id and attempt.
    pub fn calls(&self) -> Vec<(String, u32)> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Executor for ScriptedExecutor {
    fn about(&self) -> About {
        About { kind: "scripted", asks_a_model: self.asks_a_model, model: None }
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let call = (invocation.id.to_string(), invocation.attempt);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        let wait = |ms| tokio::time::sleep(std::time::Duration::from_millis(ms));
        match (self.script)(&invocation) {
            Action::Say(text, ms) => {
                wait(ms).await;
                Ok(Reply { text, ..Reply::default() })
            }
            Action::Fail(ms) => {
                wait(ms).await;
                Err(Failure::failed("scripted to fail"))
            }
            Action::Hang => {
                tokio::time::sleep_until(invocation.deadline).await;
                Err(Failure::TimedOut)
            }
        }
    }
}
