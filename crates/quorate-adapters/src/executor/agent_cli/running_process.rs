//! A running member: how it is started, its pipes, and how it ends, by itself or by termination (X6).
//!
//! Threads of their own start members and watch them: a guard takes the end of the thread that started it for the end of
//! this process, and a member that nobody waits for any more is ended although the runtime of its caller is gone.

use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::FusedFuture as _;
use quorate_kernel::ports::executor::Failure;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, sleep_until, timeout};

use super::command::{self, Launch};
use super::{guard, monotonic_now};

/// How long the pipes are read after the child has exited: a process that the guard did not end may hold them.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);
/// How many threads start and watch members.
const THREADS: usize = 4;
/// How long a start that failed for lack of processes or descriptors waits.
const SHORTAGE_DELAY: Duration = Duration::from_millis(50);
/// The most that an answer may contain, in bytes.
pub(super) const STDOUT_CAP: usize = 4 << 20;
/// How much of the end of stderr is kept, in bytes.
const STDERR_CAP: usize = 16 << 10;
const CHUNK: usize = 64 << 10;

/// The threads for members, which last as long as this process.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: Mutex<Option<&'static Runtime>> = Mutex::new(None);
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = *known {
        return Ok(runtime);
    }
    let new =
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("member").enable_all().build()?;
    Ok(known.insert(Box::leak(Box::new(new))))
}

static LIVE_ATTEMPTS: Mutex<usize> = Mutex::new(0);
static ATTEMPT_ENDED: Condvar = Condvar::new();

/// Counts an attempt for as long as anything of it may run.
#[derive(Debug)]
struct LiveAttempt;

impl LiveAttempt {
    fn enter() -> Self {
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
/// The program calls it before it exits, so that members get their two seconds also where no guard outlives it.
pub fn wait_for_members(limit: Duration) {
    let live = LIVE_ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ATTEMPT_ENDED.wait_timeout_while(live, limit, |live| *live > 0));
}

/// The children that run.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills the processes of all children.
pub(super) fn kill_all() {
    running().iter().for_each(|child| guard::kill_all(*child));
}

/// A contained child, which is ended if this is dropped before it has exited.
#[derive(Debug)]
pub(super) struct RunningProcess(Option<Contained>);

/// On Linux the guard, which exits as the command did, and elsewhere the command.
#[derive(Debug)]
struct Contained {
    child: Child,
    pid: Pid,
    /// Removes the private directory of a judge when everything has ended.
    _launch: Arc<Launch>,
    live: Option<LiveAttempt>,
}

impl RunningProcess {
    /// Starts a command. A start that fails for lack of processes or descriptors is repeated until the deadline.
    pub(super) async fn start(launch: &Arc<Launch>, deadline: Instant) -> Result<Self, Failure> {
        if monotonic_now() >= deadline {
            return Err(Failure::TimedOut);
        }
        if !launch.cwd.as_os_str().is_empty() && !launch.cwd.is_dir() {
            return Err(Failure::failed(format!("`{}` is not a directory", launch.cwd.display())));
        }
        loop {
            let (starting, live) = (Arc::clone(launch), Some(LiveAttempt::enter()));
            let start = async move {
                let child = starting.spawn()?;
                let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
                let pid = pid.ok_or(io::ErrorKind::NotFound)?;
                running().push(pid);
                Ok(RunningProcess(Some(Contained { child, pid, _launch: starting, live })))
            };
            let started = match runtime() {
                Ok(runtime) => runtime.spawn(start).await.map_err(io::Error::other).flatten(),
                Err(error) => Err(error),
            };
            match started {
                Err(error) if is_shortage(&error, deadline) => sleep(SHORTAGE_DELAY).await,
                started => return started.map_err(|error| command::start_failure(&launch.program, &error)),
            }
        }
    }

    /// Its pipes, which this process then serves. Returned once.
    pub(super) fn take_pipes(&mut self) -> Option<Pipes> {
        let child = &mut self.0.as_mut()?.child;
        Some(Pipes { stdin: child.stdin.take()?, stdout: child.stdout.take()?, stderr: child.stderr.take()? })
    }

    /// Until it is dropped, nobody waits for its end.
    pub(super) fn detach(&mut self) {
        self.0.iter_mut().for_each(|contained| contained.live = None);
    }

    /// Waits until it has exited by itself.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let contained = self.0.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let status = contained.wait().await?;
        self.0 = None;
        Ok(status)
    }

    /// Ends it.
    async fn terminate(&mut self) {
        if let Some(contained) = &mut self.0 {
            contained.terminate().await;
            self.0 = None;
        }
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        if let (Some(mut contained), Ok(runtime)) = (self.0.take(), runtime()) {
            contained.live.get_or_insert_with(LiveAttempt::enter);
            runtime.spawn(async move { contained.terminate().await });
        }
    }
}

/// How often an ended child is looked for.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(10);

impl Contained {
    /// Waits until the child has exited, and kills the rest of its group.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.pid), exited), Ok(None) | Err(Errno::INTR)) {
            sleep(EXIT_POLL_INTERVAL).await;
        }
        // Until it is reaped, the system does not give its id to another process.
        guard::kill_group(self.pid);
        running().retain(|pid| *pid != self.pid);
        self.child.wait().await
    }

    /// Asks all processes to exit, and has them killed two seconds later.
    async fn terminate(&mut self) {
        guard::request_exit(self.pid);
        if timeout(guard::EXIT_TIMEOUT, self.wait()).await.is_err() {
            guard::kill_group(self.pid);
            // A child that runs as another user, or that is stuck in the kernel, is left to the system.
            let _ = timeout(guard::KILL_TIMEOUT, self.wait()).await;
        }
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        running().retain(|pid| *pid != self.pid);
    }
}

/// Whether a start failed for a shortage, and there is time to retry.
fn is_shortage(error: &io::Error, deadline: Instant) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    let short = short.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    short && monotonic_now() + SHORTAGE_DELAY < deadline
}

/// How an attempt ended and what was printed.
#[derive(Debug)]
pub(super) struct CallOutput {
    pub(super) termination: Termination,
    /// All of stdout, up to its cap.
    pub(super) stdout: Vec<u8>,
    /// The end of stderr.
    pub(super) stderr: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Termination {
    Exited(ExitStatus),
    DeadlinePassed,
    /// It printed more than an answer may contain.
    Overflowed,
}

/// Starts a command, gives it the prompt, and waits for its end. Dropping the future ends the command.
pub(super) async fn run(
    launch: &Arc<Launch>,
    prompt: &str,
    deadline: Instant,
) -> Result<CallOutput, Failure> {
    let mut process = RunningProcess::start(launch, deadline).await?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let pipes = process.take_pipes();
    let termination = {
        let mut transfer = pin!(transfer(pipes, prompt.as_bytes(), &mut stdout, &mut stderr).fuse());
        let termination = tokio::select! {
            biased;
            true = &mut transfer => Termination::Overflowed,
            status = process.wait() => Termination::Exited(status.map_err(|error| {
                Failure::failed(format!("cannot wait for `{}`: {error}", launch.program.display()))
            })?),
            () = sleep_until(deadline.into()) => Termination::DeadlinePassed,
        };
        if !matches!(termination, Termination::Exited(_)) {
            // A command that is asked to exit may print until it does.
            let serve = async {
                (&mut transfer).await;
                std::future::pending().await
            };
            tokio::select! { () = process.terminate() => {}, () = serve => {} }
        }
        let is_drained = transfer.is_terminated();
        match !is_drained && timeout(DRAIN_TIMEOUT, &mut transfer).await == Ok(true) {
            true => Termination::Overflowed,
            false => termination,
        }
    };
    Ok(CallOutput { termination, stdout, stderr })
}

pub(super) struct Pipes {
    pub(super) stdin: tokio::process::ChildStdin,
    pub(super) stdout: tokio::process::ChildStdout,
    pub(super) stderr: tokio::process::ChildStderr,
}

/// Sends the prompt, and receives the output until all pipes are closed. Where stdout exceeds [`STDOUT_CAP`] it returns
/// true early, and the command's next write fails.
async fn transfer(pipes: Option<Pipes>, prompt: &[u8], stdout: &mut Vec<u8>, stderr: &mut Vec<u8>) -> bool {
    let Some(mut pipes) = pipes else { return false };
    let send = async move {
        // A command may answer without reading the whole prompt.
        let _ = pipes.stdin.write_all(prompt).await;
        Ok(())
    };
    let keep_all = |all: &mut Vec<u8>| if all.len() > STDOUT_CAP { Err(()) } else { Ok(()) };
    let receive_stdout = receive(pipes.stdout, stdout, keep_all);
    tokio::try_join!(send, receive_stdout, receive(pipes.stderr, stderr, keep_tail)).is_err()
}

/// Keeps the end of stderr.
pub(super) fn keep_tail(stderr: &mut Vec<u8>) -> Result<(), ()> {
    stderr.drain(..stderr.len().saturating_sub(STDERR_CAP));
    Ok(())
}

/// Reads a pipe to its end; an error if `keep` refuses what was read so far.
pub(super) async fn receive(
    mut pipe: impl AsyncRead + Unpin,
    into: &mut Vec<u8>,
    keep: impl Fn(&mut Vec<u8>) -> Result<(), ()>,
) -> Result<(), ()> {
    loop {
        into.reserve(CHUNK);
        match pipe.read_buf(into).await {
            Ok(1..) => keep(into)?,
            Ok(0) | Err(_) => return Ok(()),
        }
    }
}
/// Programs that run longer than one invocation.
#[cfg(feature = "mcp")]
pub(crate) mod sidecar {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::process::{ChildStdin, ChildStdout};
    use tokio::task::JoinHandle;

    use super::super::command::Program;
    use super::super::monotonic_now;
    use super::{RunningProcess, keep_tail, receive};

    /// How long a start may be repeated for lack of processes or descriptors.
    const START_TIMEOUT: Duration = Duration::from_secs(10);

    /// A program that runs longer than one invocation and is spoken to over its pipes, such as an MCP server. It is started,
    /// contained and ended as a member is; dropping it ends the program.
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
                let _ = receive(pipes.stderr, &mut tail, keep_tail).await;
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
}
