//! All processes that one member started, on Linux: its process group, and processes outside of it that carry the tag or
//! descend from one that does.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::executor::agent_cli::process_table::{self, Process};
use crate::executor::agent_cli::process_tag::{CallTag, Scope};

/// The processes of one invocation. The leader must not have been reaped while this is in use: until then the system
/// cannot reuse its id, which is also the group's.
#[derive(Debug)]
pub(in crate::executor::agent_cli) struct ProcessTree {
    leader: Pid,
    start_ticks: u64,
    scope: Scope,
}

impl ProcessTree {
    /// The process tree of a process that was just started in a group of its own.
    pub(in crate::executor::agent_cli) fn new(leader: Pid, tag: CallTag) -> Self {
        let start_ticks = Process::read(leader).map_or(0, |process| process.start_ticks);
        ProcessTree { leader, start_ticks, scope: Scope::Call(tag) }
    }

    /// Sends SIGTERM to all; stopped processes are woken, since they could not receive it otherwise.
    pub(in crate::executor::agent_cli) fn request_exit(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Whether no process is left, given that the leader has exited.
    pub(in crate::executor::agent_cli) fn is_gone(&self) -> bool {
        self.other_processes().iter().all(|process| process.zombie)
    }

    /// Kills all processes with their leader, and reaps those that were adopted. It repeats until none is found, since a
    /// process may start another while it is being killed.
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

/// Kills the processes that `find` returns, until it returns none. After about a second it gives up on processes that
/// cannot be killed (stuck in the kernel).
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
        // After a hit, one empty search is not enough: a new child may have a place in the table that the search had
        // already passed.
        found_any = !clean;
        std::thread::sleep(PAUSE);
    }
}
