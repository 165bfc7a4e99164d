//! All processes that one member started, on Linux: its process group, and processes outside of it that carry the tag or
//! descend from one that does. `/proc` shows them; a signal reaches the observed process and never one that later got the
//! same id.

#![expect(clippy::disallowed_methods, reason = "the system shows its processes as files")]

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group,
    pidfd_open, pidfd_send_signal, waitid, waitpid,
};

use super::environment::{CallTag, MEMBER_VARIABLE, Scope};

/// The processes of one invocation. The leader must not have been reaped while this is in use: until then the system
/// cannot reuse its id, which is also the group's.
#[derive(Debug)]
pub(super) struct ProcessTree {
    leader: Pid,
    start_ticks: u64,
    scope: Scope,
}

impl ProcessTree {
    /// The process tree of a process that was just started in a group of its own.
    pub(super) fn new(leader: Pid, tag: CallTag) -> Self {
        let start_ticks = Process::read(leader).map_or(0, |process| process.start_ticks);
        ProcessTree { leader, start_ticks, scope: Scope::Call(tag) }
    }

    /// Sends SIGTERM to all; stopped processes are woken, since they could not receive it otherwise.
    pub(super) fn request_exit(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Whether no process is left, given that the leader has exited.
    pub(super) fn is_gone(&self) -> bool {
        self.other_processes().iter().all(|process| process.zombie)
    }

    /// Kills all processes with their leader, and reaps those that were adopted. It repeats until none is found, since a
    /// process may start another while it is being killed.
    pub(super) fn kill_all(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
        kill_until_gone(|| self.other_processes());
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
        self.other_processes().iter().for_each(|process| process.signal(signal));
    }

    fn other_processes(&self) -> Vec<Process> {
        let mut all = find_in_scope(self.scope, Some(self.leader), self.start_ticks);
        all.retain(|process| process.pid != self.leader);
        all
    }
}

/// Kills the processes that `find` returns, until it returns none. After about a second it gives up on processes that
/// cannot be killed (stuck in the kernel).
pub(super) fn kill_until_gone(find: impl Fn() -> Vec<Process>) {
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

/// A process at the moment it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// Whether it has ended and waits to be reaped.
    pub(super) zombie: bool,
    parent: i32,
    group: i32,
    /// Start time in ticks since boot; with `pid` it identifies the process.
    pub(super) start_ticks: u64,
}

impl Process {
    /// The process with this id.
    pub(super) fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat", pid = pid.as_raw_pid())).ok()?;
        Process::parse(pid, &stat)
    }

    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        // The second field is the name in parentheses, which may itself hold spaces and parentheses.
        let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
        Some(Process {
            pid,
            zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    /// Sends a signal to this process, unless it has ended.
    pub(super) fn signal(&self, signal: Signal) {
        // Once the descriptor is open it refers to one process: the same one, if the start time is the same.
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(pidfd) if Process::read(self.pid).is_some_and(|now| now.start_ticks == self.start_ticks) => {
                // It may have ended by itself.
                let _ = pidfd_send_signal(pidfd, signal);
            }
            Err(Errno::NOSYS | Errno::PERM)
                if Process::read(self.pid).is_some_and(|now| now.start_ticks == self.start_ticks) =>
            {
                let _ = kill_process(self.pid, signal);
            }
            _ => {}
        }
    }

    /// Reaps an adopted process, so that it leaves the table.
    pub(super) fn reap(&self) {
        if self.zombie && self.parent == getpid().as_raw_pid() {
            let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
        }
    }

    /// Whether it carries a tag of this scope.
    pub(super) fn carries_tag_in(&self, scope: Scope) -> bool {
        let pid = self.pid.as_raw_pid();
        if let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) {
            let has_tag = environment
                .split(|byte| *byte == 0)
                .filter_map(|entry| entry.strip_prefix(MEMBER_VARIABLE.as_bytes())?.strip_prefix(b"="))
                .filter_map(|value| std::str::from_utf8(value).ok())
                .any(|value| CallTag::parse_variable(value).any(|tag| scope.covers(tag)));
            if has_tag {
                return true;
            }
        }
        fs::read_to_string(format!("/proc/{pid}/limits"))
            .ok()
            .and_then(|limits| limit_tag(&limits))
            .is_some_and(|tag| scope.covers(tag))
    }
}

fn limit_tag(limits: &str) -> Option<CallTag> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    CallTag::from_limit(line.split_whitespace().next()?.parse().ok()?)
}

/// The processes of a scope that were started at `since` or later: those that carry a tag, those of the process group
/// `group`, and all their descendants.
pub(super) fn find_in_scope(scope: Scope, group: Option<Pid>, since: u64) -> Vec<Process> {
    let own_pid = getpid();
    let candidates: Vec<Process> =
        all_processes().filter(|process| process.start_ticks >= since && process.pid != own_pid).collect();
    let roots = candidates.iter().filter(|process| {
        group.is_some_and(|group| process.group == group.as_raw_pid()) || process.carries_tag_in(scope)
    });
    let roots = roots.map(|process| process.pid.as_raw_pid()).collect();
    with_descendants_of(roots, candidates)
}

/// The processes whose parent is this one, started or adopted.
pub(super) fn children() -> Vec<Process> {
    // Most commands start no process, and reading the whole table takes milliseconds.
    if !has_children() {
        return Vec::new();
    }
    let own_pid = getpid().as_raw_pid();
    all_processes().filter(|process| process.parent == own_pid).collect()
}

/// Whether this process has a child, running or ended. Reaps none.
fn has_children() -> bool {
    let ask = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, ask), Err(Errno::CHILD))
}

/// These processes and all their descendants.
pub(super) fn with_descendants(roots: Vec<Process>) -> Vec<Process> {
    if roots.is_empty() {
        return roots;
    }
    let own_pid = getpid();
    with_descendants_of(
        roots.iter().map(|process| process.pid.as_raw_pid()).collect(),
        all_processes().filter(|process| process.pid != own_pid).collect(),
    )
}

/// The candidates that are in `pids` or descend from it.
fn with_descendants_of(mut pids: HashSet<i32>, candidates: Vec<Process>) -> Vec<Process> {
    loop {
        let before = pids.len();
        let descendants = candidates.iter().filter(|process| pids.contains(&process.parent));
        let descendants: Vec<i32> = descendants.map(|process| process.pid.as_raw_pid()).collect();
        pids.extend(descendants);
        if pids.len() == before {
            break;
        }
    }
    candidates.into_iter().filter(|process| pids.contains(&process.pid.as_raw_pid())).collect()
}

fn all_processes() -> impl Iterator<Item = Process> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter_map(Process::read)
}

#[cfg(test)]
mod tests {
    use super::{Pid, Process, Signal, children, has_children, kill_process, limit_tag};
    use crate::executor::agent_cli::environment::CallTag;
    use rustix::process::getpid;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c)) S 3 5 6 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 2";
        let process = Process::parse(getpid(), stat).unwrap();
        assert_eq!((process.parent, process.group, process.start_ticks, process.zombie), (3, 5, 4711, false));
    }

    #[test]
    fn the_mark_is_read_from_the_limits() {
        let tag = CallTag::next();
        let limits = format!("Limit  Soft\nMax realtime timeout      {}  unlimited  us\n", tag.to_limit());
        assert_eq!(limit_tag(&limits), Some(tag));
        assert_eq!(limit_tag("Max realtime timeout   unlimited  unlimited  us"), None);
    }

    #[test]
    fn a_child_is_found_until_it_is_reaped() {
        assert!(!has_children() && children().is_empty());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let is_found = || children().iter().any(|process| process.pid == Pid::from_child(&child));
        assert!(is_found());
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        assert!(is_found());
        child.wait().unwrap();
        assert!(!has_children() && children().is_empty());
    }

    #[test]
    fn this_process_is_in_the_table() {
        assert_eq!(Process::read(getpid()).unwrap().pid, getpid());
    }
}
