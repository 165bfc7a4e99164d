//! A user's options for a runtime.

use std::path::PathBuf;
use std::time::Duration;

use quorate_kernel::budget::Caps;

/// Which runtime, and how its participants are asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The manifest, or a directory with a `multi-agent.yaml` in it.
    pub path: PathBuf,
    /// The workspace's root, if it is not to be searched for.
    pub root: Option<PathBuf>,
    /// `--executor`: for all participants.
    pub executor: Option<String>,
    /// `--max-calls`, `--max-tokens`, `--max-money`: of this process.
    pub caps: Caps,
    /// `--timeout`: the deadline of each turn.
    pub timeout: Option<Duration>,
}
