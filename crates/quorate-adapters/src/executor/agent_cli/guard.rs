//! The guard: a small process that outlives this one briefly, to end this process's members if it was killed and can
//! no longer do so itself (X6).
//!
//! It is the same program, started with [`ARGUMENT`] in a session of its own, and holds only the read end of a pipe.
//! This process never writes to the pipe; when it ends for any reason, the system closes the pipe, and the guard ends
//! every process that carries this process's tag: SIGTERM first, SIGKILL two seconds later.
//!
//! A program that wants a guard calls [`run_guard`] when its first argument is [`ARGUMENT`], and [`enable`] otherwise.
//! Without a guard, the parent-death signal still kills the members' leaders. Other systems than Linux have neither.
//!
//! This file also owns orphans (processes that this one adopted when their parents ended) and the dispositions of signals.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

#[cfg(target_os = "linux")]
use rustix::process::Pid;

#[cfg(target_os = "linux")]
use super::environment::ProcessTag;

#[cfg(target_os = "linux")]
pub(super) use linux::{claim_orphans, forget_orphan, kill_orphans, spawn_tracked};

/// The first argument of a guard.
pub const ARGUMENT: &str = "__guard";

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Allows a guard, which starts with the first member. Only for programs that call [`run_guard`].
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// Whether a guard watches this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    #[cfg(target_os = "linux")]
    Watching,
    Absent,
}

/// Starts the guard if it is enabled and not running yet.
#[cfg(target_os = "linux")]
pub(super) fn ensure() -> Status {
    static GUARD: Mutex<Option<Guard>> = Mutex::new(None);
    if !ENABLED.load(Ordering::Relaxed) {
        return Status::Absent;
    }
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if !guard.as_mut().is_some_and(Guard::is_running) {
        *guard = start().ok();
    }
    if guard.is_some() { Status::Watching } else { Status::Absent }
}

/// This system has no guard.
#[cfg(not(target_os = "linux"))]
pub(super) fn ensure() -> Status {
    let _ = ENABLED.load(Ordering::Relaxed);
    Status::Absent
}

#[cfg(target_os = "linux")]
struct Guard {
    process: Child,
    _pipe: Option<ChildStdin>,
}

#[cfg(target_os = "linux")]
impl Guard {
    fn is_running(&mut self) -> bool {
        let stands = matches!(self.process.try_wait(), Ok(None));
        if !stands {
            forget_orphan(Pid::from_child(&self.process));
        }
        stands
    }
}

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "this is where the guard is started")]
fn start() -> std::io::Result<Guard> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("member-guard")
        .args([ARGUMENT, &ProcessTag::current().to_hex()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    in_child(&mut command, || {
        rustix::process::setsid()?;
        Ok(())
    });
    let mut process = spawn_tracked(|| command.spawn())?;
    set_guard(Pid::from_child(&process));
    let pipe = process.stdin.take();
    Ok(Guard { process, _pipe: pipe })
}

/// The guard's main function: waits for the end of stdin, ends the processes that carry the tag in the second argument,
/// and exits.
#[cfg(target_os = "linux")]
pub fn run_guard() -> ! {
    use std::io::Read;

    let Some(tag) = std::env::args().nth(2).and_then(|tag| ProcessTag::parse(&tag)) else {
        std::process::exit(64);
    };
    restore_sigchld();
    close_inherited();
    let mut stdin = std::io::stdin();
    let mut nothing = [0; 16];
    loop {
        match stdin.read(&mut nothing) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    terminate(tag);
    std::process::exit(0);
}

/// This system has no guard; exits.
#[cfg(not(target_os = "linux"))]
pub fn run_guard() -> ! {
    std::process::exit(64);
}

#[cfg(target_os = "linux")]
fn terminate(tag: ProcessTag) {
    use super::environment::Scope;
    use super::process_tree::{self, find_in_scope};
    use super::{GRACE_PERIOD, monotonic_now};
    use rustix::process::Signal;
    use std::time::Duration;

    let find = || find_in_scope(Scope::Process(tag), None, 0);
    let kill_at = monotonic_now() + GRACE_PERIOD;
    for signal in [Signal::TERM, Signal::CONT] {
        find().iter().for_each(|process| process.signal(signal));
    }
    while monotonic_now() < kill_at && find().iter().any(|process| !process.zombie) {
        std::thread::sleep(Duration::from_millis(25));
    }
    process_tree::kill_until_gone(find);
}

/// Closes descriptors that the parent had open unintentionally, so that their other ends do not wait for the guard.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a descriptor that was inherited has no owner to ask")]
#[expect(clippy::disallowed_methods, reason = "the system lists open descriptors as a folder")]
fn close_inherited() {
    use std::os::fd::{FromRawFd, OwnedFd};

    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // The listing's own descriptor is in the list, and closed by now.
        if std::fs::read_link(format!("/proc/self/fd/{fd}")).is_ok() {
            // SAFETY: this runs at the start of a process with one thread, which has opened nothing: the descriptor is
            // open (just checked), above the standard three, and has no other owner.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::io;
    use std::process::Child;
    use std::sync::{Mutex, OnceLock, PoisonError};

    use rustix::process::{Pid, getpid};

    use crate::executor::agent_cli::environment::{ProcessTag, Scope};
    use crate::executor::agent_cli::process_tree::{self, Process};

    /// Whether every orphan that this process adopts is a member's.
    static CLAIMED: OnceLock<bool> = OnceLock::new();

    /// The children that this process has started and not reaped, with their start times.
    static STARTED: Mutex<BTreeMap<i32, u64>> = Mutex::new(BTreeMap::new());

    /// Declares that this process starts only members and their guard.
    pub(in crate::executor::agent_cli) fn claim_orphans() {
        CLAIMED.get_or_init(|| getpid() != Pid::INIT && process_tree::children().is_empty());
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
    pub(in crate::executor::agent_cli) fn forget_orphan(pid: Pid) {
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
        let orphans = process_tree::children().into_iter().filter(|process| {
            !started.contains_key(&process.pid.as_raw_pid())
                && oldest.is_none_or(|oldest| process.start_ticks < oldest)
                && !process.carries_tag_in(scope)
        });
        process_tree::with_descendants(orphans.collect())
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
pub(super) fn claim_orphans() {}

#[cfg(not(target_os = "linux"))]
pub(super) fn spawn_tracked(
    start: impl FnOnce() -> std::io::Result<std::process::Child>,
) -> std::io::Result<std::process::Child> {
    start()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn forget_orphan(_: rustix::process::Pid) {}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_orphans() {}

/// Restores the default, under which an ended child stays until it is waited for. A program calls it once, before it
/// starts a process.
#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
pub(super) fn restore_sigchld() {
    // SAFETY: `SIG_DFL` installs no handler, so that no code of this program runs in a signal's context.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Makes a write beyond `ulimit -f` fail instead of ending this process. A handler and not `SIG_IGN`, since child
/// processes would inherit the latter.
#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
pub(super) fn survive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    if is_ignored(libc::SIGXFSZ).unwrap_or(false) {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the handler does nothing, which is safe in a signal's context.
    unsafe {
        libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t);
    }
}

/// Whether the parent of this process made it ignore SIGHUP, as `nohup` does.
pub(super) fn ignores_hangups() -> bool {
    is_ignored(libc::SIGHUP).unwrap_or(false)
}

fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    Ok(disposition(signal)?.sa_sigaction == libc::SIG_IGN)
}

/// Checks that ended children stay until they are waited for.
///
/// # Errors
/// When the system drops them: then neither their exit codes nor their ids are reliable.
pub(super) fn check_sigchld() -> io::Result<()> {
    let now = disposition(libc::SIGCHLD)?;
    match now.sa_sigaction == libc::SIG_IGN || now.sa_flags & libc::SA_NOCLDWAIT != 0 {
        true => Err(io::Error::other("this process ignores SIGCHLD, so that it cannot wait for a command")),
        false => Ok(()),
    }
}

#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
fn disposition(signal: libc::c_int) -> io::Result<libc::sigaction> {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one, into a buffer of its size.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it, and zeroes are a valid value.
    Ok(unsafe { now.assume_init() })
}

/// Runs `step` in the child, between fork and exec.
#[expect(unsafe_code, reason = "the standard library has no safe way to act between fork and exec")]
pub(super) fn in_child(command: &mut Command, step: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: the closures that are passed here (by `Launch::spawn`, `bind_to_parent` and the guard's start) only make
    // system calls: they neither allocate nor take a lock, which a child of a process with threads must not do before exec.
    unsafe {
        command.pre_exec(step);
    }
}
