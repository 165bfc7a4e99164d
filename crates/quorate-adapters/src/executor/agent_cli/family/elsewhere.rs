//! Everything that one member started, where there is no `/proc` to look at: its process group.

use rustix::process::{Pid, Signal, kill_process_group};

use crate::executor::agent_cli::mark::Mark;

/// The process group of one invocation. The leader must not have been reaped while this is in use: its number is the
/// group's, and stays ours until then.
#[derive(Debug)]
pub(in crate::executor::agent_cli) struct Family {
    leader: Pid,
}

impl Family {
    /// The family of a process that was just started in a group of its own.
    pub(in crate::executor::agent_cli) fn of(leader: Pid, _mark: Mark) -> Self {
        Family { leader }
    }

    /// Asks everybody to end; those that are stopped are woken, as they could not hear it otherwise.
    pub(in crate::executor::agent_cli) fn ask_to_end(&self) {
        let _ = kill_process_group(self.leader, Signal::TERM);
        let _ = kill_process_group(self.leader, Signal::CONT);
    }

    /// Whether nobody is left, given that the leader has exited. The rest of the group cannot be counted here, and
    /// gets no more time than the leader took.
    pub(in crate::executor::agent_cli) fn is_gone(&self) -> bool {
        true
    }

    /// Ends everybody, leader included.
    pub(in crate::executor::agent_cli) fn extinguish(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}
