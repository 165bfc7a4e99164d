//! A user's options for a runtime.

use std::path::PathBuf;
use std::time::Duration;

/// Which runtime, and how its participants are asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The manifest, or a directory with a `multi-agent.yaml` in it.
    pub path: PathBuf,
    /// The workspace's root, if it is not to be searched for.
    pub root: Option<PathBuf>,
    /// `--executor`: for all participants.
    pub executor: Option<String>,
    /// `--max-calls`: of this process.
    pub max_calls: Option<u32>,
    /// `--timeout`: the deadline of each turn.
    pub timeout: Option<Duration>,
}
