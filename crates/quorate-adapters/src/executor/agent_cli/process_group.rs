//! All processes that one member started, on systems without `/proc`: its process group.

use rustix::process::{Pid, Signal, kill_process_group};

use super::environment::CallTag;

/// The process group of one invocation. The leader must not have been reaped while this is in use: until then the system
/// cannot reuse its id, which is also the group's.
#[derive(Debug)]
pub(super) struct ProcessTree {
    leader: Pid,
}

impl ProcessTree {
    /// The process tree of a process that was just started in a group of its own.
    pub(super) fn new(leader: Pid, _tag: CallTag) -> Self {
        ProcessTree { leader }
    }

    /// Sends SIGTERM to all; stopped processes are woken, since they could not receive it otherwise.
    pub(super) fn request_exit(&self) {
        let _ = kill_process_group(self.leader, Signal::TERM);
        let _ = kill_process_group(self.leader, Signal::CONT);
    }

    /// Whether no process is left, given that the leader has exited. The rest of the group cannot be counted on this
    /// system, and gets no more time than the leader took.
    pub(super) fn is_gone(&self) -> bool {
        true
    }

    /// Kills all processes with their leader.
    pub(super) fn kill_all(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}
