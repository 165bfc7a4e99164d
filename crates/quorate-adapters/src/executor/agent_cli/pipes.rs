//! Serves a member's three pipes together so that none blocks another: it writes the prompt while it reads stdout and
//! stderr, each up to a cap.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

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
