//! The guard: a small process that outlives this one briefly, to end this process's members if it was killed and can
//! no longer do so itself (X6).
//!
//! It is the same program, started with [`ARGUMENT`] in a session of its own, and holds only the read end of a pipe.
//! This process never writes to the pipe; when it ends for any reason, the system closes the pipe, and the guard ends
//! every process that carries this process's tag: SIGTERM first, SIGKILL two seconds later.
//!
//! A program that wants a guard calls [`run`] when its first argument is [`ARGUMENT`], and [`enable`] otherwise.
//! Without a guard, the parent-death signal still kills the members' leaders. Other systems than Linux have neither.

#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
#[cfg(target_os = "linux")]
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

#[cfg(target_os = "linux")]
use rustix::process::Pid;

#[cfg(target_os = "linux")]
use super::orphans;
#[cfg(target_os = "linux")]
use super::process_tag::ProcessTag;

/// The first argument of a guard.
pub const ARGUMENT: &str = "__guard";

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Allows a guard, which starts with the first member. Only for programs that call [`run`].
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

/// There is no guard on this system.
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
            orphans::forget(Pid::from_child(&self.process));
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
    super::in_child::in_child(&mut command, || {
        rustix::process::setsid()?;
        Ok(())
    });
    let mut process = orphans::spawn_tracked(|| command.spawn())?;
    orphans::set_guard(Pid::from_child(&process));
    let pipe = process.stdin.take();
    Ok(Guard { process, _pipe: pipe })
}

/// The guard's main function: waits for the end of stdin, ends the processes that carry the tag in the second argument,
/// and exits.
#[cfg(target_os = "linux")]
pub fn run() -> ! {
    use std::io::Read;

    let Some(tag) = std::env::args().nth(2).and_then(|tag| ProcessTag::parse(&tag)) else {
        std::process::exit(64);
    };
    super::signals::restore_sigchld();
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
pub fn run() -> ! {
    std::process::exit(64);
}

#[cfg(target_os = "linux")]
fn terminate(tag: ProcessTag) {
    use super::clock;
    use super::process_table::find_in_scope;
    use super::process_tag::Scope;
    use super::process_tree;
    use super::running_process::GRACE_PERIOD;
    use rustix::process::Signal;
    use std::time::Duration;

    let find = || find_in_scope(Scope::Process(tag), None, 0);
    let kill_at = clock::now() + GRACE_PERIOD;
    for signal in [Signal::TERM, Signal::CONT] {
        find().iter().for_each(|process| process.signal(signal));
    }
    while clock::now() < kill_at && find().iter().any(|process| !process.zombie) {
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
