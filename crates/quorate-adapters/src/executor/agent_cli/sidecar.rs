//! A program that runs longer than one invocation and is spoken to over its pipes, such as an MCP server. It is started,
//! contained and ended as a member is.

use std::io::PipeWriter;
use std::os::fd::AsFd;
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::call::LiveAttempt;
use super::command::{self, Launch, Program};
use super::monotonic_now;
use super::running_process::RunningProcess;

/// The longest wait for an event of a sidecar.
const MAX_POLL: Duration = Duration::from_secs(3_600);

/// A running sidecar; dropping it ends the program.
#[derive(Debug)]
pub(crate) struct Sidecar {
    /// Closing it tells the thread to end the program.
    hangup: Option<PipeWriter>,
    /// Filled while the program is being ended, so that this process waits for it before it exits.
    stopping: Arc<Mutex<Option<LiveAttempt>>>,
    last_words: Option<oneshot::Receiver<Vec<u8>>>,
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
        let launch = self.launch()?;
        let program = launch.program.clone();
        let no_room = |error: std::io::Error| command::start_failure(&program, &error).to_string();
        let (mut hangup, hangup_writer) = std::io::pipe().map_err(no_room)?;
        let (started, ends) = oneshot::channel();
        let (say, last_words) = oneshot::channel();
        let stopping = Arc::new(Mutex::new(None));
        let until_gone = Arc::clone(&stopping);
        std::thread::Builder::new()
            .name("companion".into())
            .spawn(move || {
                supervise(&launch, &mut hangup, started, say);
                drop(until_gone.lock().unwrap_or_else(PoisonError::into_inner).take());
            })
            .map_err(no_room)?;
        // Created before the answer arrives: a caller that gives up waiting drops it, which ends the program.
        let sidecar = Sidecar { hangup: Some(hangup_writer), stopping, last_words: Some(last_words) };
        let ends =
            ends.await.unwrap_or_else(|_| Err("the thread that watched the command is gone".to_owned()))?;
        Ok((sidecar, ends))
    }
}

impl Sidecar {
    /// The end of its stderr, if it ends by itself within `patience`. Returned once.
    pub(crate) async fn stderr_tail(&mut self, patience: Duration) -> Option<String> {
        let words = tokio::time::timeout(patience, self.last_words.take()?).await.ok()?.ok()?;
        let words = String::from_utf8_lossy(&words);
        let words = words.trim();
        (!words.is_empty()).then(|| words.to_owned())
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner) = Some(LiveAttempt::enter());
        self.hangup = None;
    }
}

/// Starts the program and watches it until it ends: by itself, or because the sidecar was dropped.
fn supervise(
    launch: &Launch,
    hangup: &mut std::io::PipeReader,
    started: oneshot::Sender<Result<StdioPipes, String>>,
    say: oneshot::Sender<Vec<u8>>,
) {
    let mut child = match launch.spawn() {
        Ok(child) => child,
        Err(error) => {
            // The receiver is gone if the caller gave up.
            let _ = started.send(Err(command::start_failure(&launch.program, &error).to_string()));
            return;
        }
    };
    let ends = child.stdin.take().zip(child.stdout.take());
    let mut member = match RunningProcess::new(child, Arc::from("")) {
        Ok(member) => member,
        Err(error) => {
            let _ = started.send(Err(format!("cannot use the command's pipes: {error}")));
            return;
        }
    };
    let Some((stdin, stdout)) = ends else { return drop(member.terminate()) };
    let _ = started.send(Ok(StdioPipes { stdin, stdout }));
    loop {
        match member.poll(monotonic_now() + MAX_POLL, Some(hangup.as_fd())) {
            Ok(false) if member.has_exited() => {
                if let Ok((_, pipes)) = member.finish() {
                    let _ = say.send(pipes.into_output().1);
                }
                return;
            }
            Ok(false) => {}
            Ok(true) | Err(_) => return drop(member.terminate()),
        }
    }
}
