//! Scripted members: executors whose answers are a function of the invocation, and who remember what they were asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::ports::executor::{About, Executor, Failure, Invocation, Reply};
use quorate_kernel::member_config::MemberConfig;

/// What a member does when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Says this after so many milliseconds.
    Say(String, u64),
    /// Fails after so many milliseconds.
    Fail(u64),
    /// Hangs until the deadline.
    Hang,
}

type Script = dyn Fn(&Invocation) -> Act + Send + Sync;

/// A member who follows a script.
pub struct Scripted {
    script: Box<Script>,
    asked: Arc<Mutex<Vec<(String, u32)>>>,
}

impl Scripted {
    /// A seat with such a member in it.
    pub fn seat(self: Arc<Self>) -> MemberConfig {
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

    /// With a script.
    pub fn new(script: impl Fn(&Invocation) -> Act + Send + Sync + 'static) -> Self {
        Scripted { script: Box::new(script), asked: Arc::default() }
    }

    /// Remembers in a list that outlives it.
    #[must_use]
    pub fn remembering(mut self, asked: Arc<Mutex<Vec<(String, u32)>>>) -> Self {
        self.asked = asked;
        self
    }

    /// The invocations that were made: id and attempt, in order.
    pub fn asked(&self) -> Vec<(String, u32)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Executor for Scripted {
    fn about(&self) -> About {
        About { kind: "scripted", asks_a_model: false, model: None }
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let asked = (invocation.id.to_string(), invocation.attempt);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        let wait = |ms| tokio::time::sleep(std::time::Duration::from_millis(ms));
        match (self.script)(&invocation) {
            Act::Say(text, ms) => {
                wait(ms).await;
                Ok(Reply { text, ..Reply::default() })
            }
            Act::Fail(ms) => {
                wait(ms).await;
                Err(Failure::failed("scripted to fail"))
            }
            Act::Hang => {
                tokio::time::sleep_until(invocation.deadline).await;
                Err(Failure::TimedOut)
            }
        }
    }
}
