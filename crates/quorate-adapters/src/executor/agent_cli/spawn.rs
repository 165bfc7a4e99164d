//! Starts a process in a session of its own, tagged, and bound to this process's life.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::environment;
use super::guard;
use super::in_child::in_child;
use super::private_dir::PrivateDir;
use super::process_tag::{CallTag, VARIABLE};
use super::sandbox::Sandbox;
use super::{orphans, signals};

#[derive(Debug)]
pub(super) struct Launch {
    /// Absolute path.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// Its whole environment, except the tag.
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) cwd: PathBuf,
    /// `None` runs it without restrictions.
    pub(super) sandbox: Option<Sandbox>,
    /// A judge's private directory, removed once the command and its descendants have ended.
    pub(super) _private_dir: Option<PrivateDir>,
}

impl Launch {
    /// Starts the command. The calling thread must live until the child is reaped: Linux kills the child when the thread
    /// that started it ends.
    #[expect(clippy::disallowed_methods, reason = "this is where members are started")]
    pub(super) fn spawn(&self, tag: CallTag) -> io::Result<Child> {
        signals::check_sigchld()?;
        let inherited = environment::outer_tag();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env(VARIABLE, tag.to_variable(inherited.as_deref()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !self.cwd.as_os_str().is_empty() {
            command.current_dir(&self.cwd);
        }
        if let Some(temporary) = self.sandbox.as_ref().and_then(Sandbox::temp_dir) {
            command.env("TMPDIR", temporary);
        }
        // The session has a process group of its own. Without a controlling terminal a member cannot write to the user's by `/dev/tty`.
        in_child(&mut command, || {
            rustix::process::setsid()?;
            Ok(())
        });
        bind_to_parent(&mut command, tag);
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

/// Writes the tag into the child's limits, and makes the system kill the child when this process dies.
#[cfg(target_os = "linux")]
fn bind_to_parent(command: &mut Command, tag: CallTag) {
    use rustix::process::{
        Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
    };

    // With a guard, which kills in any case, the child gets the same two seconds as at a deadline.
    let farewell = match guard::ensure() {
        guard::Status::Watching => Signal::TERM,
        guard::Status::Absent => Signal::KILL,
    };
    let host = getpid();
    let hard = getrlimit(Resource::Rttime).maximum;
    let limit = Rlimit { current: Some(tag.to_limit()), maximum: hard };
    let fits = hard.is_none_or(|hard| tag.to_limit() <= hard);
    in_child(command, move || {
        if fits {
            // The variable carries the tag too, so that the start need not fail here.
            let _ = setrlimit(Resource::Rttime, limit);
        }
        set_parent_process_death_signal(Some(farewell))?;
        // The signal comes only if the parent ends from here on: a child that was orphaned earlier has another parent.
        if getppid() == Some(host) { Ok(()) } else { Err(rustix::io::Errno::OWNERDEAD.into()) }
    });
}

#[cfg(not(target_os = "linux"))]
fn bind_to_parent(_command: &mut Command, _tag: CallTag) {
    let guard::Status::Absent = guard::ensure();
}
