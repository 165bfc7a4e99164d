//! One attempt, from start to end, on a thread of its own.
//!
//! The thread starts the child (which dies with it), serves the pipes, enforces the deadline, and ends the processes.
//! The future only waits for it. When the future is dropped the thread notices and ends the member in the same way,
//! with or without an async runtime.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quorate_kernel::ports::executor::Failure;
use tokio::sync::oneshot;

use super::clock;
use super::command;
use super::orphans;
use super::process_tag::CallTag;
use super::resource_shortage;
use super::running_process::RunningProcess;
use super::spawn::Launch;

/// How an attempt ended and what was printed.
#[derive(Debug)]
pub(super) struct CallOutput {
    pub(super) termination: Termination,
    /// All of stdout, up to its cap.
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Termination {
    Exited(ExitStatus),
    /// The deadline passed, or the caller dropped the future.
    DeadlinePassed,
    /// It printed more than an answer may contain.
    Overflowed,
}

/// Starts a command, gives it the prompt, and waits for its end.
pub(super) async fn run(
    launch: Arc<Launch>,
    prompt: Arc<str>,
    deadline: Instant,
) -> Result<CallOutput, Failure> {
    let cannot_start =
        |error: std::io::Error| Failure::failed(format!("no room to start a command: {error}"));
    // Dropping `_held` tells the thread that the caller no longer waits.
    let (hangup, _held) = loop {
        match std::io::pipe() {
            Ok(pipe) => break pipe,
            Err(error) if resource_shortage::should_retry(&error, deadline) => {
                resource_shortage::pause().await
            }
            Err(error) => return Err(cannot_start(error)),
        }
    };
    let (report, reported) = oneshot::channel();
    let live = LiveAttempt::enter();
    let span = tracing::Span::current();
    std::thread::Builder::new()
        .name("member".into())
        .spawn(move || {
            let ended = span.in_scope(|| supervise(&launch, prompt, deadline, hangup));
            // After a hang-up its private directory is removed first: waiting for the members includes that.
            drop(launch);
            drop(live);
            // The receiver is gone if the future was dropped.
            let _ = report.send(ended);
        })
        .map_err(cannot_start)?;
    reported.await.unwrap_or_else(|_| Err(Failure::failed("the thread that watched the command is gone")))
}

fn supervise(
    launch: &Launch,
    prompt: Arc<str>,
    deadline: Instant,
    hangup: PipeReader,
) -> Result<CallOutput, Failure> {
    if clock::now() >= deadline {
        return Err(Failure::TimedOut);
    }
    if !launch.cwd.as_os_str().is_empty() && !launch.cwd.is_dir() {
        return Err(Failure::failed(format!("`{}` is not a directory", launch.cwd.display())));
    }
    let tag = CallTag::next();
    let child = loop {
        match launch.spawn(tag) {
            Ok(child) => break child,
            Err(error) if resource_shortage::should_retry(&error, deadline) => {
                if resource_shortage::hung_up(hangup.as_fd()) {
                    return Err(Failure::TimedOut);
                }
            }
            Err(error) => return Err(command::start_failure(&launch.program, &error)),
        }
    };
    let broken = |error: std::io::Error| {
        Failure::failed(format!("cannot use the pipes of `{}`: {error}", launch.program.display()))
    };
    let mut member = RunningProcess::new(child, tag, prompt).map_err(broken)?;
    let termination = loop {
        let hung_up = match member.poll(deadline, Some(hangup.as_fd())) {
            Ok(hung_up) => hung_up,
            Err(error) => {
                member.terminate();
                return Err(broken(error));
            }
        };
        if member.has_exited() {
            let (status, pipes) = member.finish().map_err(broken)?;
            let flooded = pipes.have_overflowed();
            let (stdout, stderr) = pipes.into_output();
            let termination = if flooded { Termination::Overflowed } else { Termination::Exited(status) };
            return Ok(CallOutput { termination, stdout, stderr });
        }
        if member.pipes.have_overflowed() {
            break Termination::Overflowed;
        }
        if hung_up || clock::now() >= deadline {
            break Termination::DeadlinePassed;
        }
    };
    let (stdout, stderr) = member.terminate().into_output();
    Ok(CallOutput { termination, stdout, stderr })
}

static LIVE_ATTEMPTS: Mutex<usize> = Mutex::new(0);
static ATTEMPT_ENDED: Condvar = Condvar::new();

/// Counts an attempt for as long as anything of it may run.
#[derive(Debug)]
pub(super) struct LiveAttempt;

impl LiveAttempt {
    pub(super) fn enter() -> Self {
        *LIVE_ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        LiveAttempt
    }
}

impl Drop for LiveAttempt {
    fn drop(&mut self) {
        *LIVE_ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ATTEMPT_ENDED.notify_all();
    }
}

/// Waits, at most for `limit`, until no process runs that was started by attempts which have ended or were dropped.
/// The program calls it before it exits, so that members get their two seconds even without a guard.
pub fn wait_for_members(limit: Duration) {
    let live = LIVE_ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ATTEMPT_ENDED.wait_timeout_while(live, limit, |live| *live > 0));
    orphans::kill_orphans();
}
