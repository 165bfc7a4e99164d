//! Starting a process that is ours to end: in a group of its own, marked, and bound to our life.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::environment;
use super::guard;
use super::private_dir::PrivateDir;
use super::process_tag::{CallTag, VARIABLE};
use super::sandbox::Sandbox;
use super::{orphans, signals};

#[derive(Debug)]
pub(super) struct Launch {
    /// The program, as an absolute path.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// All that it sees of our environment.
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) cwd: PathBuf,
    /// What it cannot reach; `None` lets it reach what we reach.
    pub(super) sandbox: Option<Sandbox>,
    /// A judge's private directory, which is removed once the command and all that it started have ended.
    pub(super) _private_dir: Option<PrivateDir>,
}

impl Launch {
    /// Starts it. The calling thread has to live until the child is reaped: on Linux the child is killed when the
    /// thread that started it ends.
    #[expect(clippy::disallowed_methods, reason = "this is where members are started")]
    pub(super) fn spawn(&self, mark: CallTag) -> io::Result<Child> {
        signals::check_sigchld()?;
        let inherited = environment::outer_tag();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env(VARIABLE, mark.to_variable(inherited.as_deref()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if !self.cwd.as_os_str().is_empty() {
            command.current_dir(&self.cwd);
        }
        if let Some(temporary) = self.sandbox.as_ref().and_then(Sandbox::temp_dir) {
            command.env("TMPDIR", temporary);
        }
        bind_to_parent(&mut command, mark);
        #[cfg(target_os = "linux")]
        if let Some(sandbox) = &self.sandbox {
            let mut ruleset = sandbox.ruleset()?;
            in_child(&mut command, move || ruleset.impose());
        }
        let child = orphans::spawn_tracked(|| command.spawn())?;
        tracing::debug!(program = %self.program.display(), pid = child.id(), "started");
        Ok(child)
    }
}

/// Writes the mark into the child's limits, and has the child die with us.
#[cfg(target_os = "linux")]
fn bind_to_parent(command: &mut Command, mark: CallTag) {
    use rustix::process::{
        Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
    };

    // With a guard, which kills in any case, the child gets the same two seconds that a deadline gives it.
    let farewell = match guard::ensure() {
        guard::Status::Watching => Signal::TERM,
        guard::Status::Absent => Signal::KILL,
    };
    let host = getpid();
    let hard = getrlimit(Resource::Rttime).maximum;
    let limit = Rlimit { current: Some(mark.to_limit()), maximum: hard };
    let fits = hard.is_none_or(|hard| mark.to_limit() <= hard);
    in_child(command, move || {
        if fits {
            // The variable marks it too, so that a refusal here is no reason not to start.
            let _ = setrlimit(Resource::Rttime, limit);
        }
        set_parent_process_death_signal(Some(farewell))?;
        // The signal comes only if we end from here on: whoever was orphaned before that has another parent now.
        if getppid() == Some(host) { Ok(()) } else { Err(rustix::io::Errno::OWNERDEAD.into()) }
    });
}

#[cfg(not(target_os = "linux"))]
fn bind_to_parent(_command: &mut Command, _tag: CallTag) {
    let guard::Status::Absent = guard::ensure();
}

/// Runs `step` in the child, between fork and exec.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no safe way to act between fork and exec")]
pub(super) fn in_child(command: &mut Command, step: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: the closures that are passed here (of `Launch::start`, `bind` and `guard::start`) make system calls alone:
    // they neither allocate nor take a lock, which is what a child of a process with threads may not do before it execs.
    unsafe {
        command.pre_exec(step);
    }
}
