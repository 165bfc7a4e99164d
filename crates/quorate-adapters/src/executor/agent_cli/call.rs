//! One attempt, from start to end, on a thread of its own.
//!
//! The thread starts the child (whose guard takes the thread's end for that of this process), serves the pipes, enforces the deadline, and ends the processes.
//! The future only waits for it. When the future is dropped the thread notices and ends the member in the same way,
//! with or without an async runtime.
//!
//! This file also owns the files of an attempt, the limit on concurrent attempts of one program, and the retry of a start
//! that fails for lack of processes or descriptors.

use std::collections::BTreeMap;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quorate_kernel::ports::executor::{Admission, Failure, Settings};
use quorate_protocol::Json;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tempfile::TempDir;
use tokio::sync::{Semaphore, oneshot};

use super::command::Launch;
use super::running_process::{RunningProcess, STDOUT_CAP};
use super::{command, monotonic_now};
use quorate_kernel::files;

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
            Err(error) if is_shortage(&error, deadline) => tokio::time::sleep(SHORTAGE_DELAY).await,
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
    if monotonic_now() >= deadline {
        return Err(Failure::TimedOut);
    }
    if !launch.cwd.as_os_str().is_empty() && !launch.cwd.is_dir() {
        return Err(Failure::failed(format!("`{}` is not a directory", launch.cwd.display())));
    }
    let child = loop {
        match launch.spawn() {
            Ok(child) => break child,
            Err(error) if is_shortage(&error, deadline) => {
                if hung_up(hangup.as_fd()) {
                    return Err(Failure::TimedOut);
                }
            }
            Err(error) => return Err(command::start_failure(&launch.program, &error)),
        }
    };
    let broken = |error: std::io::Error| {
        Failure::failed(format!("cannot use the pipes of `{}`: {error}", launch.program.display()))
    };
    let mut member = RunningProcess::new(child, prompt).map_err(broken)?;
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
        if hung_up || monotonic_now() >= deadline {
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
/// The program calls it before it exits, so that members get their two seconds also where no guard outlives it.
pub fn wait_for_members(limit: Duration) {
    let live = LIVE_ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ATTEMPT_ENDED.wait_timeout_while(live, limit, |live| *live > 0));
}

/// The files of one attempt.
#[derive(Debug)]
pub(super) struct AttemptFiles {
    dir: TempDir,
}

impl AttemptFiles {
    /// A fresh directory with the schema and the servers, if given.
    #[expect(clippy::disallowed_methods, reason = "the files of an attempt are written here")]
    pub(super) fn new(schema: Option<&Json>, servers: Option<&Json>) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::failed(format!("no temporary files can be written ({error}); check TMPDIR"))
        };
        let owner_only = std::fs::Permissions::from_mode(0o700);
        let dir =
            tempfile::Builder::new().prefix("quorate-").permissions(owner_only).tempdir().map_err(failed)?;
        let files = AttemptFiles { dir };
        for (path, content) in [(files.schema_path(), schema), (files.servers_path(), servers)] {
            if let Some(content) = content {
                std::fs::write(path, content.to_string()).map_err(failed)?;
            }
        }
        Ok(files)
    }

    pub(super) fn schema_path(&self) -> PathBuf {
        self.dir.path().join("schema.json")
    }

    pub(super) fn servers_path(&self) -> PathBuf {
        self.dir.path().join("mcp.json")
    }

    /// The file that the CLI writes its last message to.
    pub(super) fn last_message_path(&self) -> PathBuf {
        self.dir.path().join("last-message.txt")
    }

    /// The last message; `None` if the file is missing, is not text, or exceeds the cap of any output.
    pub(super) fn read_last_message(&self) -> Option<String> {
        // The command may have put anything in its place.
        let text = files::read_text(&self.last_message_path(), STDOUT_CAP as u64).ok()?;
        Some(text).filter(|text| !text.trim().is_empty())
    }
}

/// The lowest default: the members of one council.
const MIN_DEFAULT: usize = 4;

/// Directory, name and limit: an executor whose limit changed counts as another.
type LimitKey = (PathBuf, String, usize);

static LIMITS: Mutex<BTreeMap<LimitKey, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());

/// The permits of one executor.
#[derive(Debug, Clone)]
pub(super) struct Concurrency(Arc<Semaphore>);

impl Concurrency {
    /// The permits of the executor with these settings.
    pub(super) fn for_executor(settings: &Settings, most: Option<usize>) -> Self {
        let most = most.unwrap_or_else(default_limit).min(Semaphore::MAX_PERMITS);
        let key = (settings.dir.clone(), settings.name.clone(), most);
        let mut rooms = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
        Concurrency(Arc::clone(rooms.entry(key).or_insert_with(|| Arc::new(Semaphore::new(most)))))
    }

    pub(super) async fn acquire(&self) -> Admission {
        match Arc::clone(&self.0).acquire_owned().await {
            Ok(permit) => Admission::with_permit(permit),
            // It is never closed.
            Err(_) => Admission::default(),
        }
    }
}

/// One for each core, and at least [`MIN_DEFAULT`].
fn default_limit() -> usize {
    std::thread::available_parallelism().map_or(MIN_DEFAULT, |cores| cores.get().max(MIN_DEFAULT))
}

const SHORTAGE_DELAY: Duration = Duration::from_millis(50);

/// Whether a start failed for a shortage, and there is time to retry.
fn is_shortage(error: &io::Error, deadline: Instant) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    let short = short.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    short && monotonic_now() + SHORTAGE_DELAY < deadline
}

/// Waits on a thread; returns whether the caller has hung up.
fn hung_up(hangup: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(hangup, PollFlags::IN)];
    let ready = poll(&mut polled, Timespec::try_from(SHORTAGE_DELAY).ok().as_ref());
    ready.is_ok_and(|ready| ready > 0)
}

#[cfg(all(test, unix))]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the tests replace the files of an attempt")]

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_in_place_of_the_last_message_does_not_block() {
        let files = AttemptFiles::new(None, None).unwrap();
        mknodat(CWD, files.last_message_path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(files.read_last_message(), None);
        std::fs::remove_file(files.last_message_path()).unwrap();
        std::fs::write(files.last_message_path(), "said").unwrap();
        assert_eq!(files.read_last_message().as_deref(), Some("said"));
        std::fs::write(files.last_message_path(), vec![b'x'; STDOUT_CAP + 1]).unwrap();
        assert_eq!(files.read_last_message(), None);
    }
}
