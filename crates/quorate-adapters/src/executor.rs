//! Executors answer invocations. One that this build leaves out refuses to be built.

#[cfg_attr(not(feature = "agent-cli"), expect(dead_code, reason = "hooks and servers use only a part"))]
pub mod agent_cli;
pub mod cassette;
#[cfg(feature = "mcp")]
pub mod db_operator;
pub mod inline;
#[cfg(feature = "llm")]
pub mod llm;
pub mod public_runtimes;
#[cfg(feature = "nats")]
pub mod remote;
#[cfg(feature = "rubric")]
pub mod rubric;
pub mod script;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;

/// Counts the calls of a pool over all processes that share it.
#[async_trait]
pub trait Quota: Send + Sync {
    /// Asks for one call through a pool. Gives after what time to ask again; nothing where the call may be made.
    async fn ask(&self, pool: &str) -> Option<Duration>;

    /// The service has limited a call through a pool, and asks to wait.
    fn limited(&self, pool: &str, wait: Duration);
}

/// Who counts for this process.
static QUOTA: OnceLock<Arc<dyn Quota>> = OnceLock::new();

/// Has the calls of this process counted from now on. The first call counts.
pub fn share_quota(quota: Arc<dyn Quota>) {
    let _ = QUOTA.set(quota);
}

#[cfg(feature = "llm")]
pub(crate) fn shared_quota() -> Option<&'static Arc<dyn Quota>> {
    QUOTA.get()
}

/// The executor `llm` of a build without it.
#[cfg(not(feature = "llm"))]
pub mod llm {
    use std::sync::Arc;

    use quorate_kernel::ports::executor::{ConfigError, Executor, Settings};

    use crate::optional_kinds::{self, missing_executor};

    pub const KIND: &str = optional_kinds::LLM;

    /// Refuses to build the executor.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
        Err(missing_executor(KIND))
    }

    /// Always `None`.
    pub fn with_key(_: impl Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// The executor `rubric` of a build without it.
#[cfg(not(feature = "rubric"))]
pub mod rubric {
    use std::sync::Arc;

    use quorate_kernel::ports::executor::{ConfigError, Executor, Settings};

    use crate::optional_kinds::{self, missing_executor};

    pub const KIND: &str = optional_kinds::RUBRIC;

    /// Refuses to build the executor.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
        Err(missing_executor(KIND))
    }
}
