//! Orphans without a tag. A member can start a process that leaves its group and session, empties its environment and
//! lifts its limits, which removes every tag. But when its parent ends, this process adopts it; if this process starts
//! only members, an adopted process is a member's.
//!
//! No other process is ever ended (X6): the program declares once, before it starts a process, that all its children are
//! members. The declaration is ignored if the program has inherited children, as after a shell's `exec`, or if it is the
//! first process of a container, which adopts all orphans.

#[cfg(target_os = "linux")]
pub(super) use linux::{claim, forget, kill_orphans, spawn_tracked};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::io;
    use std::process::Child;
    use std::sync::{Mutex, OnceLock, PoisonError};

    use rustix::process::{Pid, getpid};

    use crate::executor::agent_cli::process_table::{self, Process};
    use crate::executor::agent_cli::process_tag::{ProcessTag, Scope};
    use crate::executor::agent_cli::process_tree;

    /// Whether every orphan that this process adopts is a member's.
    static CLAIMED: OnceLock<bool> = OnceLock::new();

    /// The children that this process has started and not reaped, with their start times.
    static STARTED: Mutex<BTreeMap<i32, u64>> = Mutex::new(BTreeMap::new());

    /// Declares that this process starts only members and their guard.
    pub(in crate::executor::agent_cli) fn claim() {
        CLAIMED.get_or_init(|| getpid() != Pid::INIT && process_table::children().is_empty());
    }

    /// Starts a child and records it, so that it is never mistaken for an orphan.
    pub(in crate::executor::agent_cli) fn spawn_tracked(
        start: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<Child> {
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        let child = start()?;
        let pid = Pid::from_child(&child);
        let born = Process::read(pid).map_or(0, |process| process.start_ticks);
        started.insert(pid.as_raw_pid(), born);
        Ok(child)
    }

    /// Call it after a child was reaped: the system may reuse its id.
    pub(in crate::executor::agent_cli) fn forget(pid: Pid) {
        STARTED.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid.as_raw_pid());
    }

    /// Ends untagged orphans and their descendants if no running child can have started them: each orphan is older than
    /// every child. The rest is ended after a later invocation, or at the end.
    pub(in crate::executor::agent_cli) fn kill_orphans() {
        if CLAIMED.get() == Some(&true) {
            process_tree::kill_until_gone(find_orphans);
        }
    }

    fn find_orphans() -> Vec<Process> {
        // Locked while the table is read: a child that is just being started carries no tag yet.
        let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        let scope = Scope::Process(ProcessTag::current());
        let oldest = started.iter().filter(|(pid, _)| !super::is_guard(**pid)).map(|(_, born)| *born).min();
        let orphans = process_table::children().into_iter().filter(|process| {
            !started.contains_key(&process.pid.as_raw_pid())
                && oldest.is_none_or(|oldest| process.start_ticks < oldest)
                && !process.carries_tag_in(scope)
        });
        process_table::with_descendants(orphans.collect())
    }
}

/// The process id of the guard, which runs as long as this process.
#[cfg(target_os = "linux")]
static GUARD: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);

#[cfg(target_os = "linux")]
pub(super) fn set_guard(pid: rustix::process::Pid) {
    GUARD.store(pid.as_raw_pid(), std::sync::atomic::Ordering::Relaxed);
}

#[cfg(target_os = "linux")]
fn is_guard(pid: i32) -> bool {
    GUARD.load(std::sync::atomic::Ordering::Relaxed) == pid
}

/// This system adopts no orphans.
#[cfg(not(target_os = "linux"))]
pub(super) fn claim() {}

#[cfg(not(target_os = "linux"))]
pub(super) fn spawn_tracked(
    start: impl FnOnce() -> std::io::Result<std::process::Child>,
) -> std::io::Result<std::process::Child> {
    start()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn forget(_: rustix::process::Pid) {}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_orphans() {}
