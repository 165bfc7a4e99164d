//! A running member, and how it ends: by itself or by termination (X6).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::clock;
use super::orphans;
use super::pipes::Pipes;
use super::process_tag::CallTag;
use super::process_tree::ProcessTree;

/// Between SIGTERM and SIGKILL.
pub(super) const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// How long the pipes are read after the leader has exited and all others were killed.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);
/// How often the process tree is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// How long a killed leader may take to exit; only one that is stuck in the kernel takes longer.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct RunningProcess {
    child: Child,
    process_tree: ProcessTree,
    pid: Pid,
    exit_fd: Option<OwnedFd>,
    pub(super) pipes: Pipes,
}

impl RunningProcess {
    /// Takes over a child that was just started.
    pub(super) fn new(mut child: Child, tag: CallTag, prompt: std::sync::Arc<str>) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        let process_tree = ProcessTree::new(pid, tag);
        match Pipes::take_from(&mut child, prompt) {
            Ok(pipes) => Ok(RunningProcess { child, process_tree, pid, exit_fd: open_exit_fd(pid), pipes }),
            Err(error) => {
                process_tree.kill_all();
                let _ = child.wait();
                orphans::forget(pid);
                Err(error)
            }
        }
    }

    /// Serves the pipes until an event, at the latest until `until`; returns whether `hangup` was the event.
    pub(super) fn poll(&mut self, until: Instant, hangup: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let mut timeout = until.saturating_duration_since(clock::now());
        if self.exit_fd.is_none() {
            timeout = timeout.min(POLL_INTERVAL);
        }
        let exit_fd = self.exit_fd.as_ref().map(AsFd::as_fd);
        let [_, hung_up] = self.pipes.poll([exit_fd, hangup], timeout)?;
        Ok(hung_up)
    }

    /// Whether the leader has exited. It stays in the process table until [`Self::finish`] or [`Self::terminate`] reaps it,
    /// so that the system does not reuse its id, which is also the group's.
    pub(super) fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None) | Err(rustix::io::Errno::INTR))
    }

    /// After the leader has exited: kills what it left behind, and reads the rest of its output.
    pub(super) fn finish(mut self) -> io::Result<(ExitStatus, Pipes)> {
        self.pipes.stop_writing();
        self.process_tree.kill_all();
        let drained = self.drain();
        let status = self.child.wait()?;
        self.record_reaped();
        drained?;
        Ok((status, self.pipes))
    }

    fn drain(&mut self) -> io::Result<()> {
        let stop = clock::now() + DRAIN_TIMEOUT;
        while !self.pipes.are_drained() && !self.pipes.have_overflowed() {
            let remaining = stop.saturating_duration_since(clock::now());
            if remaining.is_zero() {
                break;
            }
            self.pipes.poll([], remaining)?;
        }
        Ok(())
    }

    /// Sends SIGTERM to all, and SIGKILL two seconds later. Returns when no process is left, with the output until then.
    pub(super) fn terminate(mut self) -> Pipes {
        self.pipes.stop_writing();
        self.process_tree.request_exit();
        let kill_at = clock::now() + GRACE_PERIOD;
        let mut exited = false;
        while clock::now() < kill_at {
            // A broken pipe does not shorten the grace period.
            if self.poll(kill_at.min(clock::now() + POLL_INTERVAL), None).is_err() {
                std::thread::sleep(POLL_INTERVAL);
            }
            if exited || self.has_exited() {
                exited = true;
                // From here on its descriptor is always readable, and polling it would spin.
                self.exit_fd = None;
                if self.process_tree.is_gone() {
                    break;
                }
            }
        }
        self.process_tree.kill_all();
        let give_up = clock::now() + KILL_TIMEOUT;
        while !self.has_exited() && clock::now() < give_up {
            std::thread::sleep(Duration::from_millis(2));
        }
        if let Ok(Some(_)) = self.child.try_wait() {
            self.record_reaped();
        }
        self.pipes
    }

    /// The leader was reaped; untagged orphans of it can be killed now.
    fn record_reaped(&self) {
        orphans::forget(self.pid);
        orphans::kill_orphans();
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
