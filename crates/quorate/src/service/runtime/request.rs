//! A user's options for a runtime.

use std::path::PathBuf;
use std::time::Duration;

use quorate_kernel::budget::Caps;

/// The runtime to open, and overrides for its participants.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The manifest, or a directory with a `multi-agent.yaml` in it.
    pub path: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// `--executor`: for all participants.
    pub executor: Option<String>,
    /// `--max-calls`, `--max-tokens`, `--max-money`: of this process.
    pub caps: Caps,
    /// `--timeout`: the deadline of each turn.
    pub timeout: Option<Duration>,
}
