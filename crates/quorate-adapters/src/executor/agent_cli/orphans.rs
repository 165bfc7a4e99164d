//! Orphans without a mark. A member can start a process that leaves its group and session, empties its environment and
//! lifts its limits: then nothing marks it. But when its parent ends, this process adopts it, and a process of ours that
//! starts nothing else knows it for a member's by that.
//!
//! Nothing else is ever ended (X6): a program says once, before it has started anything, that its children are members
//! alone; that does not count where it has inherited children, as a program has that a shell became by `exec`, nor where it
//! is the first process of a container, which adopts everybody's orphans.

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

    /// The children that this process has started itself and not reaped, with their times of birth.
    static STARTED: Mutex<BTreeMap<i32, u64>> = Mutex::new(BTreeMap::new());

    /// Says that this process starts nothing but members and their guard.
    pub(in crate::executor::agent_cli) fn claim() {
        CLAIMED.get_or_init(|| getpid() != Pid::INIT && process_table::children().is_empty());
    }

    /// Starts a child, so that it is never taken for an orphan.
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

    /// A child was reaped: its number is anybody's from now on.
    pub(in crate::executor::agent_cli) fn forget(pid: Pid) {
        STARTED.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid.as_raw_pid());
    }

    /// Ends the orphans without a mark, and what they have started, that nobody who still runs can have started: each is
    /// older than every child of ours. The rest is ended after a later invocation, or at the end.
    pub(in crate::executor::agent_cli) fn kill_orphans() {
        if CLAIMED.get() == Some(&true) {
            process_tree::kill_until_gone(find_orphans);
        }
    }

    fn find_orphans() -> Vec<Process> {
        // Held while the table is read: a child that is just being started carries no mark yet.
        let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        let own = Scope::Process(ProcessTag::current());
        let oldest = started.iter().filter(|(pid, _)| !super::is_guard(**pid)).map(|(_, born)| *born).min();
        let orphans = process_table::children().into_iter().filter(|process| {
            !started.contains_key(&process.pid.as_raw_pid())
                && oldest.is_none_or(|oldest| process.start_ticks < oldest)
                && !process.carries_tag_in(own)
        });
        process_table::with_descendants(orphans.collect())
    }
}

/// The process id of the guard, which runs as long as we do.
#[cfg(target_os = "linux")]
static GUARD: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);

/// Says which child is the guard.
#[cfg(target_os = "linux")]
pub(super) fn set_guard(pid: rustix::process::Pid) {
    GUARD.store(pid.as_raw_pid(), std::sync::atomic::Ordering::Relaxed);
}

#[cfg(target_os = "linux")]
fn is_guard(pid: i32) -> bool {
    GUARD.load(std::sync::atomic::Ordering::Relaxed) == pid
}

/// Nothing is adopted here.
#[cfg(not(target_os = "linux"))]
pub(super) fn claim() {}

#[cfg(not(target_os = "linux"))]
pub(super) fn spawn_tracked(
    start: impl FnOnce() -> std::io::Result<std::process::Child>,
) -> std::io::Result<std::process::Child> {
    start()
}

/// Nothing is adopted here.
#[cfg(not(target_os = "linux"))]
pub(super) fn forget(_: rustix::process::Pid) {}

/// Nothing is adopted here.
#[cfg(not(target_os = "linux"))]
pub(super) fn kill_orphans() {}
