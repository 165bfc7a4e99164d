//! One attempt, from start to end, on a thread of its own.
//!
//! The thread is what keeps the promises: it starts the child (which dies with it), serves the pipes, watches the
//! clock, and ends everything. The future only waits for it. When the future is dropped the thread notices and ends
//! the member the same way, whether or not there still is an async runtime.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quorate_kernel::ports::executor::Failure;
use tokio::sync::oneshot;

use super::clock;
use super::command;
use super::ending::Member;
use super::mark::Mark;
use super::orphans;
use super::shortage;
use super::spawn::Launch;

/// How an attempt ended and what was printed.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) ending: Ending,
    /// All of stdout, up to its cap.
    pub(super) stdout: Vec<u8>,
    /// The end of stderr.
    pub(super) stderr: Vec<u8>,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Ending {
    Exited(ExitStatus),
    /// The deadline passed, or nobody waits any more.
    DeadlinePassed,
    /// It printed more than an answer may have.
    Flooded,
}

/// Starts a command, gives it the prompt, and waits for its end.
pub(super) async fn run(launch: Arc<Launch>, prompt: Arc<str>, deadline: Instant) -> Result<Ended, Failure> {
    let no_room = |error: std::io::Error| Failure::failed(format!("no room to start a command: {error}"));
    // Dropping `_held` is how the thread learns that nobody waits any more.
    let (hangup, _held) = loop {
        match std::io::pipe() {
            Ok(pipe) => break pipe,
            Err(error) if shortage::may_come(&error, deadline) => shortage::pause().await,
            Err(error) => return Err(no_room(error)),
        }
    };
    let (report, reported) = oneshot::channel();
    let live = Live::enter();
    std::thread::Builder::new()
        .name("member".into())
        .spawn(move || {
            let ended = attend(&launch, prompt, deadline, hangup);
            // Its private directory goes first where nobody waits any more: whoever settles waits for that, too.
            drop(launch);
            drop(live);
            // Nobody listens when the future was dropped.
            let _ = report.send(ended);
        })
        .map_err(no_room)?;
    reported.await.unwrap_or_else(|_| Err(Failure::failed("the thread that watched the command is gone")))
}

fn attend(
    launch: &Launch,
    prompt: Arc<str>,
    deadline: Instant,
    hangup: PipeReader,
) -> Result<Ended, Failure> {
    if clock::now() >= deadline {
        return Err(Failure::TimedOut);
    }
    if !launch.cwd.as_os_str().is_empty() && !launch.cwd.is_dir() {
        return Err(Failure::failed(format!("`{}` is not a directory", launch.cwd.display())));
    }
    let mark = Mark::next();
    let child = loop {
        match launch.start(mark) {
            Ok(child) => break child,
            Err(error) if shortage::may_come(&error, deadline) => {
                if shortage::hung_up(hangup.as_fd()) {
                    return Err(Failure::TimedOut);
                }
            }
            Err(error) => return Err(command::not_started(&launch.program, &error)),
        }
    };
    let broken = |error: std::io::Error| {
        Failure::failed(format!("cannot use the pipes of `{}`: {error}", launch.program.display()))
    };
    let mut member = Member::new(child, mark, prompt).map_err(broken)?;
    let ending = loop {
        let hung_up = match member.serve(deadline, Some(hangup.as_fd())) {
            Ok(hung_up) => hung_up,
            Err(error) => {
                member.end();
                return Err(broken(error));
            }
        };
        if member.has_exited() {
            let (status, pipes) = member.finish().map_err(broken)?;
            let flooded = pipes.are_flooded();
            let (stdout, stderr) = pipes.into_printed();
            let ending = if flooded { Ending::Flooded } else { Ending::Exited(status) };
            return Ok(Ended { ending, stdout, stderr });
        }
        if member.pipes.are_flooded() {
            break Ending::Flooded;
        }
        if hung_up || clock::now() >= deadline {
            break Ending::DeadlinePassed;
        }
    };
    let (stdout, stderr) = member.end().into_printed();
    Ok(Ended { ending, stdout, stderr })
}

static LIVE: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// Counts an attempt for as long as anything of it may run.
#[derive(Debug)]
pub(super) struct Live;

impl Live {
    pub(super) fn enter() -> Self {
        *LIVE.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Live
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        *LIVE.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_all();
    }
}

/// Waits, at most for `limit`, until nothing runs any more that was started by attempts which have ended or were
/// dropped. The program calls it before it exits, so that members get their two seconds also where no guard stands.
pub fn settle(limit: Duration) {
    let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ENDED.wait_timeout_while(live, limit, |live| *live > 0));
    orphans::end();
}
