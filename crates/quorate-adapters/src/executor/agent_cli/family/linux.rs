//! Everything that one member started, on Linux: its process group, and whoever left the group but carries the mark
//! or descends from one who does.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::executor::agent_cli::mark::{Mark, Scope};
use crate::executor::agent_cli::proc::{self, Process};

/// The processes of one invocation. The leader must not have been reaped while this is in use: its number is the
/// group's, and stays ours until then.
#[derive(Debug)]
pub(in crate::executor::agent_cli) struct Family {
    leader: Pid,
    born: u64,
    scope: Scope,
}

impl Family {
    /// The family of a process that was just started in a group of its own.
    pub(in crate::executor::agent_cli) fn of(leader: Pid, mark: Mark) -> Self {
        let born = Process::read(leader).map_or(0, |process| process.born);
        Family { leader, born, scope: Scope::Call(mark) }
    }

    /// Asks everybody to end; those that are stopped are woken, as they could not hear it otherwise.
    pub(in crate::executor::agent_cli) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Whether nobody is left, given that the leader has exited.
    pub(in crate::executor::agent_cli) fn is_gone(&self) -> bool {
        self.others().iter().all(|process| process.zombie)
    }

    /// Ends everybody, leader included, and takes the exit status of those that we adopted. It looks again until
    /// nobody is found, because who is being killed may just have started somebody.
    pub(in crate::executor::agent_cli) fn extinguish(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
        extinguish(|| self.others());
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
        self.others().iter().for_each(|process| process.signal(signal));
    }

    fn others(&self) -> Vec<Process> {
        let mut all = proc::relatives(self.scope, Some(self.leader), self.born);
        all.retain(|process| process.pid != self.leader);
        all
    }
}

/// Ends whomever `find` finds, until it finds nobody. It gives up on what not even a kill ends (a process stuck in the
/// kernel) after about a second.
pub(in crate::executor::agent_cli) fn extinguish(find: impl Fn() -> Vec<Process>) {
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
