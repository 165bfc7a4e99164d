//! The config of a member: its executor, limits, and the prompt parts that only it gets.

use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::{Json, Part};
use serde_json::Map;

use crate::conversation::ConversationContext;
use crate::ports::executor::Executor;

/// A member that can be asked.
#[derive(Clone)]
pub struct MemberConfig {
    pub executor: Arc<dyn Executor>,
    /// The name that the executor goes by.
    pub executor_name: Arc<str>,
    /// One deadline spans all attempts of an invocation.
    pub timeout: Duration,
    /// How many failures are tried again.
    pub retries: u32,
    /// The member's role prompt.
    pub role: Arc<str>,
    /// Who it is, where it has a persona: the merged frontmatter, and its body as `body`.
    pub persona: Option<Arc<Json>>,
    /// Documents that its answers are based on.
    pub context: Vec<Part>,
    /// Recorded with its consultations.
    pub weight: Option<f64>,
    /// What is recorded with its consultations besides: what was woven into its role, say.
    pub extra_fields: Map<String, Json>,
    /// The conversation, where it is asked for a turn in one.
    pub conversation: Option<Arc<ConversationContext>>,
}
