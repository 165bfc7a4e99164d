//! The options of a run, whatever its protocol.

use std::time::Duration;

use quorate_kernel::budget::Caps;

use super::producer::Producer;

/// Options of a run; `None` falls back to the workspace's settings or, in a resume, to those of the opened run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// `--executor`: for all members.
    pub executor: Option<String>,
    /// `--model`: for all members.
    pub model: Option<String>,
    /// `--max-calls`, `--max-tokens`, `--max-money`.
    pub caps: Caps,
    /// `--timeout`: the deadline of each invocation.
    pub timeout: Option<Duration>,
    /// `--made-by`: the producer of the run's subject.
    pub producer: Option<Producer>,
}
