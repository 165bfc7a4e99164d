//! A running member: its pipes, and how it ends, by itself or by termination (X6).

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{guard, monotonic_now};

/// How long the pipes are read after the child has exited: a process that the guard did not end may hold them.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);
/// How often the child's status is checked on systems without descriptors for processes.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The children that run and were not reaped.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills the processes of all children.
pub(super) fn kill_all() {
    running().iter().for_each(|child| guard::kill_all(*child));
}

/// A contained child: on Linux the guard, which exits as the command did, and elsewhere the command.
pub(super) struct RunningProcess {
    child: Child,
    pid: Pid,
    exit_fd: Option<OwnedFd>,
    pub(super) pipes: Pipes,
}

impl RunningProcess {
    /// Takes over a child that was just started.
    pub(super) fn new(mut child: Child, prompt: Arc<str>) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        match Pipes::take_from(&mut child, prompt) {
            Ok(pipes) => {
                running().push(pid);
                Ok(RunningProcess { child, pid, exit_fd: open_exit_fd(pid), pipes })
            }
            Err(error) => {
                guard::kill_group(pid);
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Serves the pipes until an event, at the latest until `until`; returns whether `hangup` was the event.
    pub(super) fn poll(&mut self, until: Instant, hangup: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let mut timeout = until.saturating_duration_since(monotonic_now());
        if self.exit_fd.is_none() {
            timeout = timeout.min(POLL_INTERVAL);
        }
        let exit_fd = self.exit_fd.as_ref().map(AsFd::as_fd);
        let [_, hung_up] = self.pipes.poll([exit_fd, hangup], timeout)?;
        Ok(hung_up)
    }

    /// Whether the child has exited. It stays in the process table until [`Self::finish`] or [`Self::terminate`] reaps it,
    /// so that the system does not reuse its id, which is also the group's.
    pub(super) fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None) | Err(Errno::INTR))
    }

    /// After the child has exited: kills the rest of its group, and reads the rest of its output.
    pub(super) fn finish(mut self) -> io::Result<(ExitStatus, Pipes)> {
        self.pipes.stop_writing();
        guard::kill_group(self.pid);
        let drained = self.drain();
        let status = self.reap()?;
        drained?;
        Ok((status, self.pipes))
    }

    fn drain(&mut self) -> io::Result<()> {
        let stop = monotonic_now() + DRAIN_TIMEOUT;
        while !self.pipes.are_drained() && !self.pipes.have_overflowed() {
            let remaining = stop.saturating_duration_since(monotonic_now());
            if remaining.is_zero() {
                break;
            }
            self.pipes.poll([], remaining)?;
        }
        Ok(())
    }

    /// Asks all processes to exit, and has them killed two seconds later. Returns when the child has exited, with the output
    /// until then.
    pub(super) fn terminate(mut self) -> Pipes {
        self.pipes.stop_writing();
        guard::request_exit(self.pid);
        let give_up = monotonic_now() + guard::EXIT_TIMEOUT;
        while !self.has_exited() && monotonic_now() < give_up {
            // A broken pipe does not shorten the grace period.
            if self.poll(give_up, None).is_err() {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        guard::kill_group(self.pid);
        // A child that runs as another user, or that is stuck in the kernel, is left to the system.
        let give_up = monotonic_now() + guard::KILL_TIMEOUT;
        while !self.has_exited() && monotonic_now() < give_up {
            std::thread::sleep(POLL_INTERVAL);
        }
        match self.has_exited() {
            true => drop(self.reap()),
            false => running().retain(|pid| *pid != self.pid),
        }
        self.pipes
    }

    /// Waits for the child, which has exited or was killed; only one that is stuck in the kernel does not end.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        running().retain(|pid| *pid != self.pid);
        self.child.wait()
    }
}

/// A descriptor that is readable once the process has exited. Without one, its status is polled.
fn open_exit_fd(pid: Pid) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// The most that an answer may contain, in bytes.
pub(super) const STDOUT_CAP: usize = 4 << 20;
/// How much of the end of stderr is kept, in bytes.
const STDERR_CAP: usize = 16 << 10;
const CHUNK: usize = 64 << 10;
/// Chunks that are read from one pipe before the others have their turn.
const CHUNKS_PER_TURN: usize = 8;

pub(super) struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    prompt: Arc<str>,
    written: usize,
    stdout_bytes: Vec<u8>,
    stderr_tail: Vec<u8>,
    overflowed: bool,
    buffer: Vec<u8>,
}

impl Pipes {
    /// Takes the pipes of a child.
    pub(super) fn take_from(child: &mut Child, prompt: Arc<str>) -> io::Result<Self> {
        let pipes = Pipes {
            stdin: child.stdin.take().filter(|_| !prompt.is_empty()),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            prompt,
            written: 0,
            stdout_bytes: Vec::new(),
            stderr_tail: Vec::new(),
            overflowed: false,
            buffer: vec![0; CHUNK],
        };
        for pipe in [fd(&pipes.stdin), fd(&pipes.stdout), fd(&pipes.stderr)].into_iter().flatten() {
            ioctl_fionbio(pipe, true)?;
        }
        Ok(pipes)
    }

    /// Waits until one of its pipes is ready, one of `others` is readable (or hung up), or the time is over; then transfers
    /// data. Returns which of `others` it was.
    pub(super) fn poll<const N: usize>(
        &mut self,
        others: [Option<BorrowedFd<'_>>; N],
        timeout: Duration,
    ) -> io::Result<[bool; N]> {
        let pipes = [
            (fd(&self.stdin), PollFlags::OUT),
            (fd(&self.stdout), PollFlags::IN),
            (fd(&self.stderr), PollFlags::IN),
        ];
        let others = others.map(|other| (other, PollFlags::IN));
        let watched: Vec<_> = pipes.into_iter().chain(others).collect();
        let mut polled: Vec<PollFd<'_>> =
            watched.iter().filter_map(|(fd, flags)| Some(PollFd::from_borrowed_fd((*fd)?, *flags))).collect();
        match poll(&mut polled, Timespec::try_from(timeout).ok().as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok([false; N]),
            Err(error) => return Err(error.into()),
        }
        let mut events = polled.iter().map(|polled| !polled.revents().is_empty());
        let ready: Vec<bool> =
            watched.iter().map(|(fd, _)| fd.is_some() && events.next().unwrap_or(false)).collect();
        drop(polled);
        self.write(ready[0]);
        self.read_stdout(ready[1]);
        self.read_stderr(ready[2]);
        Ok(std::array::from_fn(|other| ready[3 + other]))
    }

    /// Call it when the reader of the prompt has exited.
    pub(super) fn stop_writing(&mut self) {
        self.stdin = None;
    }

    /// Whether all output has been read.
    pub(super) fn are_drained(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Whether stdout exceeded [`STDOUT_CAP`].
    pub(super) fn have_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Stdout, and the end of stderr.
    pub(super) fn into_output(self) -> (Vec<u8>, Vec<u8>) {
        (self.stdout_bytes, self.stderr_tail)
    }

    fn write(&mut self, ready: bool) {
        let Some(stdin) = self.stdin.as_mut().filter(|_| ready) else { return };
        let rest = &self.prompt.as_bytes()[self.written..];
        match stdin.write(rest) {
            Ok(written) => self.written += written,
            Err(error) if is_retryable(&error) => {}
            // A command may answer without reading the whole prompt.
            Err(_) => self.written = self.prompt.len(),
        }
        if self.written == self.prompt.len() {
            self.stdin = None;
        }
    }

    fn read_stdout(&mut self, ready: bool) {
        if !ready {
            return;
        }
        for _ in 0..CHUNKS_PER_TURN {
            let Some(count) = read(&mut self.stdout, &mut self.buffer) else { return };
            self.stdout_bytes.extend_from_slice(&self.buffer[..count]);
            if self.stdout_bytes.len() > STDOUT_CAP {
                self.overflowed = true;
                // The command's next write fails.
                self.stdout = None;
                return;
            }
        }
    }

    fn read_stderr(&mut self, ready: bool) {
        if !ready {
            return;
        }
        for _ in 0..CHUNKS_PER_TURN {
            let Some(count) = read(&mut self.stderr, &mut self.buffer) else { return };
            self.stderr_tail.extend_from_slice(&self.buffer[..count]);
            let excess = self.stderr_tail.len().saturating_sub(STDERR_CAP);
            self.stderr_tail.drain(..excess);
        }
    }
}

/// Reads once; `None` if no data is available now. At the end it closes the pipe.
fn read(pipe: &mut Option<impl Read>, buffer: &mut [u8]) -> Option<usize> {
    match pipe.as_mut()?.read(buffer) {
        Ok(count) if count > 0 => Some(count),
        Err(error) if is_retryable(&error) => None,
        Ok(_) | Err(_) => {
            *pipe = None;
            None
        }
    }
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn fd(pipe: &Option<impl AsFd>) -> Option<BorrowedFd<'_>> {
    pipe.as_ref().map(AsFd::as_fd)
}
