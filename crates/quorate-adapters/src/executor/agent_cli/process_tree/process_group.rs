//! Everything that one member started, where there is no `/proc` to look at: its process group.

use rustix::process::{Pid, Signal, kill_process_group};

use crate::executor::agent_cli::process_tag::CallTag;

/// The process group of one invocation. The leader must not have been reaped while this is in use: its number is the
/// group's, and stays ours until then.
#[derive(Debug)]
pub(in crate::executor::agent_cli) struct ProcessTree {
    leader: Pid,
}

impl ProcessTree {
    /// The process tree of a process that was just started in a group of its own.
    pub(in crate::executor::agent_cli) fn new(leader: Pid, _tag: CallTag) -> Self {
        ProcessTree { leader }
    }

    /// Asks everybody to end; those that are stopped are woken, as they could not hear it otherwise.
    pub(in crate::executor::agent_cli) fn request_exit(&self) {
        let _ = kill_process_group(self.leader, Signal::TERM);
        let _ = kill_process_group(self.leader, Signal::CONT);
    }

    /// Whether nobody is left, given that the leader has exited. The rest of the group cannot be counted here, and
    /// gets no more time than the leader took.
    pub(in crate::executor::agent_cli) fn is_gone(&self) -> bool {
        true
    }

    /// Ends everybody, leader included.
    pub(in crate::executor::agent_cli) fn kill_all(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}
