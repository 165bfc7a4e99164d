//! A member that runs, and how it ends: by itself, or by being ended (X6).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::clock;
use super::family::Family;
use super::mark::Mark;
use super::orphans;
use super::pipes::Pipes;

/// Between being asked to end and being killed.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// How long the pipes are read on after the leader has exited and all others were killed.
const DRAIN: Duration = Duration::from_millis(250);
/// How often it is looked who still lives.
const LOOK: Duration = Duration::from_millis(25);
/// How long a killed leader may take to be gone; longer takes only one that is stuck in the kernel.
const KILLED: Duration = Duration::from_secs(1);

pub(super) struct Member {
    child: Child,
    family: Family,
    pid: Pid,
    exit: Option<OwnedFd>,
    pub(super) pipes: Pipes,
}

impl Member {
    /// Takes charge of a child that was just started.
    pub(super) fn new(mut child: Child, mark: Mark, prompt: std::sync::Arc<str>) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        let family = Family::of(pid, mark);
        match Pipes::of(&mut child, prompt) {
            Ok(pipes) => Ok(Member { child, family, pid, exit: exit_descriptor(pid), pipes }),
            Err(error) => {
                family.extinguish();
                let _ = child.wait();
                orphans::reaped(pid);
                Err(error)
            }
        }
    }

    /// Moves data until something happens, at the latest until `until`; says whether `hangup` did.
    pub(super) fn serve(&mut self, until: Instant, hangup: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let mut timeout = until.saturating_duration_since(clock::now());
        if self.exit.is_none() {
            timeout = timeout.min(LOOK);
        }
        let exit = self.exit.as_ref().map(AsFd::as_fd);
        let [_, hung_up] = self.pipes.serve([exit, hangup], timeout)?;
        Ok(hung_up)
    }

    /// Whether the leader has exited. It stays in the process table until it is reaped by [`Member::finish`] or
    /// [`Member::end`], so that its number, and its group's, remain its own.
    pub(super) fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None) | Err(rustix::io::Errno::INTR))
    }

    /// After the leader has exited: kills whom it left behind, and reads what it had printed.
    pub(super) fn finish(mut self) -> io::Result<(ExitStatus, Pipes)> {
        self.pipes.stop_writing();
        self.family.extinguish();
        let drained = self.drain();
        let status = self.child.wait()?;
        self.reaped();
        drained?;
        Ok((status, self.pipes))
    }

    fn drain(&mut self) -> io::Result<()> {
        let stop = clock::now() + DRAIN;
        while !self.pipes.are_drained() && !self.pipes.are_flooded() {
            let left = stop.saturating_duration_since(clock::now());
            if left.is_zero() {
                break;
            }
            self.pipes.serve([], left)?;
        }
        Ok(())
    }

    /// Ends it: everybody is asked to end, and killed two seconds later. Returns when nobody is left, with what was printed
    /// until then.
    pub(super) fn end(mut self) -> Pipes {
        self.pipes.stop_writing();
        self.family.ask_to_end();
        let kill_at = clock::now() + GRACE;
        let mut exited = false;
        while clock::now() < kill_at {
            // A pipe that fails is no reason to wait less patiently.
            if self.serve(kill_at.min(clock::now() + LOOK), None).is_err() {
                std::thread::sleep(LOOK);
            }
            if exited || self.has_exited() {
                exited = true;
                // From here on its descriptor is always readable, and would turn waiting into spinning.
                self.exit = None;
                if self.family.is_gone() {
                    break;
                }
            }
        }
        self.family.extinguish();
        let give_up = clock::now() + KILLED;
        while !self.has_exited() && clock::now() < give_up {
            std::thread::sleep(Duration::from_millis(2));
        }
        if let Ok(Some(_)) = self.child.try_wait() {
            self.reaped();
        }
        self.pipes
    }

    /// The leader is gone for good; what it left without a mark is ours to end now.
    fn reaped(&self) {
        orphans::reaped(self.pid);
        orphans::end();
    }
}

/// A descriptor that can be read once the process has exited. Where there is none, it is asked now and then.
fn exit_descriptor(pid: Pid) -> Option<OwnedFd> {
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
