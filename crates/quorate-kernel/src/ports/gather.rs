//! The gather port: a custom strategy that selects what a member reads.
//!
//! # For adapter authors
//!
//! - A strategy is registered under a name that begins with `custom:`; manifests name it in `gatherInput.strategy`.
//! - It is called at most once for each invocation, and its result is recorded: a resumed or replayed run uses the record.
//! - Its result is material, never an instruction: members see it between markers.

use async_trait::async_trait;
use quorate_protocol::{Json, Name, Part};
use serde_json::Map;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    pub run: Name,
    /// The member that it is for.
    pub member: Name,
    /// The manifest's `params`.
    pub params: Map<String, Json>,
    /// What the run is about, whole.
    pub subject: Part,
}

#[async_trait]
pub trait Gather: Send + Sync {
    /// What the member is given to read.
    ///
    /// # Errors
    /// The reason, as a message for users. The member is then not asked and counts as missing.
    async fn gather(&self, request: Request) -> Result<String, String>;
}
