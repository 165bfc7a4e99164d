//! Everything that one member started, on Linux: its process group, and whoever left the group but carries the mark
//! or descends from one who does.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::executor::agent_cli::process_table::{self, Process};
use crate::executor::agent_cli::process_tag::{CallTag, Scope};

/// The processes of one invocation. The leader must not have been reaped while this is in use: its number is the
/// group's, and stays ours until then.
#[derive(Debug)]
pub(in crate::executor::agent_cli) struct ProcessTree {
    leader: Pid,
    start_ticks: u64,
    scope: Scope,
}

impl ProcessTree {
    /// The family of a process that was just started in a group of its own.
    pub(in crate::executor::agent_cli) fn new(leader: Pid, mark: CallTag) -> Self {
        let start_ticks = Process::read(leader).map_or(0, |process| process.start_ticks);
        ProcessTree { leader, start_ticks, scope: Scope::Call(mark) }
    }

    /// Asks everybody to end; those that are stopped are woken, as they could not hear it otherwise.
    pub(in crate::executor::agent_cli) fn request_exit(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Whether nobody is left, given that the leader has exited.
    pub(in crate::executor::agent_cli) fn is_gone(&self) -> bool {
        self.other_processes().iter().all(|process| process.zombie)
    }

    /// Ends everybody, leader included, and takes the exit status of those that we adopted. It looks again until
    /// nobody is found, because who is being killed may just have started somebody.
    pub(in crate::executor::agent_cli) fn kill_all(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
        kill_until_gone(|| self.other_processes());
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
        self.other_processes().iter().for_each(|process| process.signal(signal));
    }

    fn other_processes(&self) -> Vec<Process> {
        let mut all = process_table::find_in_scope(self.scope, Some(self.leader), self.start_ticks);
        all.retain(|process| process.pid != self.leader);
        all
    }
}

/// Ends whomever `find` finds, until it finds nobody. It gives up on what not even a kill ends (a process stuck in the
/// kernel) after about a second.
pub(in crate::executor::agent_cli) fn kill_until_gone(find: impl Fn() -> Vec<Process>) {
    const LOOKS: u32 = 200;
    const PAUSE: Duration = Duration::from_millis(5);
    let mut found_any = false;
    for _ in 0..LOOKS {
        let found = find();
        found.iter().for_each(|process| match process.zombie {
            true => process.reap(),
            false => process.signal(Signal::KILL),
        });
        let clean = found.iter().all(|process| process.zombie);
        if clean && !found_any {
            return;
        }
        // After a find one clean look is not enough: a child may have been born behind the place in the table where
        // the look had been already.
        found_any = !clean;
        std::thread::sleep(PAUSE);
    }
}
