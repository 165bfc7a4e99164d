//! A program that runs longer than one invocation and is spoken to over its pipes, such as an MCP server. It is started,
//! contained and ended as a member is.

use std::sync::Arc;
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;

use super::command::Program;
use super::monotonic_now;
use super::running_process::{self, RunningProcess};

/// How long a start may be repeated for lack of processes or descriptors.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A running sidecar; dropping it ends the program.
#[derive(Debug)]
pub(crate) struct Sidecar {
    _process: RunningProcess,
    /// The end of its stderr, once that is closed.
    stderr: JoinHandle<Vec<u8>>,
}

pub(crate) struct StdioPipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl Program {
    /// Starts the program.
    ///
    /// # Errors
    /// The reason, as a message for users.
    pub(crate) async fn start(&self) -> Result<(Sidecar, StdioPipes), String> {
        let (launch, deadline) = (Arc::new(self.launch()?), monotonic_now() + START_TIMEOUT);
        let started = RunningProcess::start(&launch, deadline).await;
        let mut process = started.map_err(|failure| failure.to_string())?;
        process.detach();
        let pipes = process.take_pipes().ok_or("its pipes cannot be used")?;
        let stderr = tokio::spawn(async move {
            let mut tail = Vec::new();
            let _ = running_process::receive(pipes.stderr, &mut tail, running_process::keep_tail).await;
            tail
        });
        let ends = StdioPipes { stdin: pipes.stdin, stdout: pipes.stdout };
        Ok((Sidecar { _process: process, stderr }, ends))
    }
}

impl Sidecar {
    /// The end of its stderr, if it ends by itself within `patience`.
    pub(crate) async fn stderr_tail(&mut self, patience: Duration) -> Option<String> {
        let words = tokio::time::timeout(patience, &mut self.stderr).await.ok()?.ok()?;
        let words = String::from_utf8_lossy(&words);
        let words = words.trim();
        (!words.is_empty()).then(|| words.to_owned())
    }
}
