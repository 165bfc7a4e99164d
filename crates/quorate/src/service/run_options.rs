//! What a person says about a run besides what it is of.

use std::time::Duration;

use super::producer::Producer;

/// How a run is held; what is left out is what the workspace says, or what the run was opened with.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// `--executor`: for all members.
    pub executor: Option<String>,
    /// `--model`: for all members.
    pub model: Option<String>,
    /// `--max-calls`.
    pub max_calls: Option<u32>,
    /// `--timeout`: the deadline of each invocation.
    pub timeout: Option<Duration>,
    /// `--made-by`: who made what the run is about.
    pub producer: Option<Producer>,
}
