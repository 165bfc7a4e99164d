//! Scripted members: executors whose answers are a function of the invocation, and who remember what they were asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};

/// What a member does when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Says this after so many milliseconds.
    Say(String, u64),
    /// Fails after so many milliseconds.
    Fail(u64),
    /// Hangs until the deadline.
    Hang,
}

type Script = dyn Fn(&Invocation) -> Action + Send + Sync;

/// A member who follows a script.
pub struct ScriptedExecutor {
    script: Box<Script>,
    asked: Arc<Mutex<Vec<(String, u32)>>>,
}

impl ScriptedExecutor {
    /// A seat with such a member in it.
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
        ScriptedExecutor { script: Box::new(script), asked: Arc::default() }
    }

    /// Remembers in a list that outlives it.
    #[must_use]
    pub fn with_call_log(mut self, asked: Arc<Mutex<Vec<(String, u32)>>>) -> Self {
        self.asked = asked;
        self
    }

    /// The invocations that were made: id and attempt, in order.
    pub fn calls(&self) -> Vec<(String, u32)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Executor for ScriptedExecutor {
    fn about(&self) -> About {
        About { kind: "scripted", asks_a_model: false, model: None }
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let asked = (invocation.id.to_string(), invocation.attempt);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
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
