//! The containment of a command (X6): its session and process group, on Linux its guard, and the dispositions of signals that
//! waiting for it needs.
//!
//! On Linux a command is not the child of this process but of its guard, a fork of this process that runs no other
//! program. The guard is the subreaper of the command: a process whose parent exits becomes the guard's child, also after
//! `setsid` and a double fork. The guard exits as the command did, once it has no children. It kills what the command
//! leaves behind. When this process asks for it by SIGUSR1 or dies, it sends SIGTERM to the group, and SIGKILL two seconds
//! later to all that remains; at SIGUSR2 it kills all at once. The guard is in the group, and a command may send SIGTERM or
//! SIGINT to its own group, so those ask for nothing.
//!
//! A command can kill its guard. Then the system kills the command, and this process the group; processes outside of the
//! group remain. Other systems have no guard: there this process ends the group.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::GRACE_PERIOD;

/// How long a guard waits for processes that it has killed; only one that is stuck in the kernel, or that runs as another
/// user, takes longer.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long after [`request_exit`] the child may take to exit before its group is killed.
pub(super) const EXIT_TIMEOUT: Duration = match cfg!(target_os = "linux") {
    true => GRACE_PERIOD.saturating_add(KILL_TIMEOUT).saturating_add(Duration::from_millis(500)),
    false => GRACE_PERIOD,
};

/// Starts the command in a session of its own, without a controlling terminal, and on Linux below a guard. The child of this
/// process is then the guard, whose id is the group's. The calling thread must live until the guard is reaped: Linux
/// takes its end for the end of this process.
pub(super) fn contain(command: &mut Command) {
    #[cfg(target_os = "linux")]
    let host = rustix::process::getpid();
    in_child(command, move || {
        rustix::process::setsid()?;
        #[cfg(target_os = "linux")]
        linux::fork_guard(host)?;
        Ok(())
    });
}

/// Asks the processes of a contained child to exit: SIGTERM, and SIGCONT, since a stopped process could not receive it.
pub(super) fn request_exit(child: Pid) {
    // Each call fails only if no process is left.
    #[cfg(target_os = "linux")]
    for signal in [Signal::USR1, Signal::CONT] {
        let _ = rustix::process::kill_process(child, signal);
    }
    #[cfg(not(target_os = "linux"))]
    for signal in [Signal::TERM, Signal::CONT] {
        let _ = kill_process_group(child, signal);
    }
}

/// Kills the processes of a contained child at once: the guard kills all of them, and exits.
pub(super) fn kill_all(child: Pid) {
    // It fails if no process is left.
    #[cfg(target_os = "linux")]
    for signal in [Signal::USR2, Signal::CONT] {
        let _ = rustix::process::kill_process(child, signal);
    }
    #[cfg(not(target_os = "linux"))]
    kill_group(child);
}

/// Kills the group of a contained child that was not reaped: until then the system does not reuse its id.
pub(super) fn kill_group(child: Pid) {
    // It fails if no process is left.
    let _ = kill_process_group(child, Signal::KILL);
}

/// Whether ending a member also ends processes that left its process group. On a system without that, `doctor` reports it.
pub fn ends_descendants() -> bool {
    cfg!(target_os = "linux") && std::path::Path::new("/proc/thread-self/children").exists()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CStr;
    use std::io;
    use std::time::{Duration, Instant};

    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;
    use rustix::process::{
        DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getppid,
        kill_current_process_group, kill_process, set_child_subreaper, set_dumpable_behavior,
        set_parent_process_death_signal, setrlimit, wait,
    };

    use super::super::{GRACE_PERIOD, monotonic_now};
    use super::KILL_TIMEOUT;

    /// The children of the calling thread, as decimal numbers with a space after each.
    const CHILDREN: &CStr = c"/proc/thread-self/children";
    /// The guard's name in a list of processes.
    const NAME: &CStr = c"member-guard";
    /// How often killing is repeated while processes remain.
    const KILL_INTERVAL: Duration = Duration::from_millis(5);
    /// Longer than any command runs.
    const NO_TIMEOUT: Duration = Duration::from_secs(1 << 30);

    /// Forks: the parent becomes the guard and does not return; the child returns, and starts the command.
    ///
    /// It and all that the guard does are for the child of a process with threads: nothing allocates or takes a lock.
    #[expect(unsafe_code, reason = "the standard library does not fork")]
    pub(super) fn fork_guard(host: Pid) -> io::Result<()> {
        let mut all = empty_set();
        // SAFETY: the set is valid.
        unsafe { libc::sigfillset(&raw mut all) };
        set_mask(libc::SIG_SETMASK, &all);
        // SAFETY: `SIG_DFL` installs no handler. A host that ignores the signal would keep the guard from waiting.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let guard = getpid();
        set_child_subreaper(Some(guard))?;
        stop_with_parent(host, Signal::USR1)?;
        // SAFETY: the process has one thread, and both sides only make system calls.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                stop_with_parent(guard, Signal::KILL)?;
                set_mask(libc::SIG_SETMASK, &empty_set());
                Ok(())
            }
            leader => watch(leader),
        }
    }

    /// Has the system send `signal` to this process when `parent` ends.
    fn stop_with_parent(parent: Pid, signal: Signal) -> io::Result<()> {
        set_parent_process_death_signal(Some(signal))?;
        // The signal comes only if the parent ends from here on: a process that was orphaned earlier has another parent.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::OWNERDEAD.into()) }
    }

    /// The guard: waits until it has no children, and exits as the leader did.
    #[expect(unsafe_code, reason = "the standard library has no name for a process")]
    fn watch(leader: i32) -> ! {
        // SAFETY: the name ends with a NUL.
        unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
        close_descriptors();
        let mut ended: Option<WaitStatus> = None;
        // When all children are killed.
        let mut kill_at: Option<Instant> = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid.as_raw_pid() == leader {
                        ended = Some(status);
                        kill_at = kill_at.or_else(|| Some(monotonic_now()));
                    }
                    continue;
                }
                Err(Errno::CHILD) => exit_as(ended),
                Ok(None) | Err(_) => {}
            }
            let now = monotonic_now();
            let timeout = match kill_at {
                None => NO_TIMEOUT,
                Some(at) if now < at => at.duration_since(now),
                Some(at) if now.duration_since(at) > KILL_TIMEOUT || kill_children().is_err() => {
                    if ended.is_none() {
                        // The host may be dead, and then no other process kills the group; this process is in it.
                        let _ = kill_current_process_group(Signal::KILL);
                    }
                    exit_as(ended)
                }
                Some(_) => KILL_INTERVAL,
            };
            match wait_for_signal(timeout) {
                libc::SIGUSR1 if kill_at.is_none() => {
                    // The guard is in the group, and has blocked the signal.
                    let _ = kill_current_process_group(Signal::TERM);
                    let _ = kill_current_process_group(Signal::CONT);
                    kill_at = Some(monotonic_now() + GRACE_PERIOD);
                }
                libc::SIGUSR2 => {
                    let now = monotonic_now();
                    kill_at = Some(kill_at.map_or(now, |at| at.min(now)));
                }
                _ => {}
            }
        }
    }

    /// Kills the children. Each stays in the table until the guard waits for it, so that its id has not been reused. Its own
    /// children become the guard's.
    fn kill_children() -> Result<(), Errno> {
        let list = rustix::fs::open(CHILDREN, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut buffer = [0; 4096];
        let mut pid = 0;
        loop {
            let count = rustix::io::read(&list, &mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            for byte in &buffer[..count] {
                if byte.is_ascii_digit() {
                    pid = pid * 10 + i32::from(byte - b'0');
                } else if let Some(child) = Pid::from_raw(std::mem::take(&mut pid)) {
                    // It may have ended, or run as another user.
                    let _ = kill_process(child, Signal::KILL);
                }
            }
        }
    }

    /// Waits until a child ends or this process is asked to end the command; returns the signal, or -1.
    #[expect(unsafe_code, reason = "the standard library does not wait for signals")]
    fn wait_for_signal(timeout: Duration) -> i32 {
        let mut awaited = empty_set();
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().cast_signed(),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: set and time are valid for the calls, and no information about the signal is asked for.
        unsafe {
            for signal in [libc::SIGCHLD, libc::SIGUSR1, libc::SIGUSR2] {
                libc::sigaddset(&raw mut awaited, signal);
            }
            libc::sigtimedwait(&raw const awaited, std::ptr::null_mut(), &raw const timeout)
        }
    }

    /// Ends this process as the leader ended, without a core file of its own.
    #[expect(unsafe_code, reason = "no destructor of the host may run in its fork")]
    fn exit_as(ended: Option<WaitStatus>) -> ! {
        let signal = match ended.map(|status| (status.exit_status(), status.terminating_signal())) {
            // SAFETY: the call only ends the process.
            Some((Some(code), _)) => unsafe { libc::_exit(code) },
            Some((_, Some(signal))) => signal,
            // The leader could not be killed.
            _ => libc::SIGKILL,
        };
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // A program that receives core files ignores the limit; the memory is the host's, with its keys.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let mut one = empty_set();
        // SAFETY: the set is valid, `SIG_DFL` installs no handler, and the rest ends the process.
        unsafe {
            libc::sigaddset(&raw mut one, signal);
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
            set_mask(libc::SIG_UNBLOCK, &one);
            libc::_exit(128 + signal)
        }
    }

    /// Closes the command's pipes and all descriptors of the host, so that their other ends do not wait for the guard.
    #[expect(unsafe_code, reason = "the descriptors of a fork have no owner to ask")]
    fn close_descriptors() {
        const MOST: i32 = 1 << 16;
        // SAFETY: this process uses no descriptor that it had before.
        unsafe {
            if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) != 0 {
                // Linux before 5.9.
                (0..MOST).for_each(|fd| _ = libc::close(fd));
            }
        }
    }

    #[expect(unsafe_code, reason = "a set of signals is initialized by a call")]
    fn empty_set() -> libc::sigset_t {
        let mut set = std::mem::MaybeUninit::uninit();
        // SAFETY: the call initializes the set.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            set.assume_init()
        }
    }

    #[expect(unsafe_code, reason = "the standard library does not block signals")]
    fn set_mask(how: i32, set: &libc::sigset_t) {
        // SAFETY: the set is valid, and the former one is not asked for.
        unsafe { libc::pthread_sigmask(how, set, std::ptr::null_mut()) };
    }
}

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
    if is_ignored(libc::SIGXFSZ) {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the handler does nothing, which is safe in a signal's context.
    unsafe {
        libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t);
    }
}

/// Whether the parent of this process made it ignore SIGHUP, as `nohup` does.
pub fn ignores_hangups() -> bool {
    is_ignored(libc::SIGHUP)
}

#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
fn is_ignored(signal: libc::c_int) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one, into a buffer of its size; zeroes are a valid
    // value too.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr());
        now.assume_init().sa_sigaction == libc::SIG_IGN
    }
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
    // SAFETY: the closures that are passed here (by `contain` and `Launch::spawn`) only make system calls: they neither
    // allocate nor take a lock, which a child of a process with threads must not do before exec.
    unsafe {
        command.pre_exec(step);
    }
}
