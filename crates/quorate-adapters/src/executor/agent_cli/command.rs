//! Finds a command, starts it in its environment, directory and sandbox, and explains why it cannot be started.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quorate_kernel::ports::executor::{ConfigError, Failure, SideEffect};
use tempfile::TempDir;
use tokio::process::Child;

use super::environment::{self, BaseVariables, Environment, MEMBER_VARIABLE};
use super::guard;
use super::sandbox::Sandbox;

/// Refuses a command line with a NUL character, which would end the word.
pub(super) fn check_no_nul(command: &str, args: &[String]) -> Result<(), ConfigError> {
    let has_nul = |word: &str| word.contains('\0');
    let key = match (has_nul(command), args.iter().any(|arg| has_nul(arg))) {
        (true, _) => "command",
        (false, true) => "args",
        (false, false) => return Ok(()),
    };
    Err(ConfigError::for_key(key, format!("`{key}` has a NUL character, which no command line can hold"))
        .with_help("take `\\u0000` out"))
}

/// The program behind a `command`: a path below `dir` when it has a `/`, else the first one on our `PATH`.
pub(super) fn find_command(command: &str, dir: &Path) -> Result<PathBuf, Failure> {
    if command.contains('/') {
        let path = dir.join(command);
        let path = std::path::absolute(&path).unwrap_or(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(Failure::failed(format!(
                "no command at `{}`; a `command` with a `/` is relative to {}",
                path.display(),
                dir.display()
            )))
        };
    }
    std::env::split_paths(&environment::search_path())
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(command))
        .find(|path| is_executable(path))
        .ok_or_else(|| {
            Failure::failed(format!(
                "command `{command}` was not found on PATH; install it, or set `command` to its path"
            ))
        })
}

/// Refuses a missing `command`; the help is `install` for a program of a preset, else the PATH.
pub(super) fn check_installed(command: &str, dir: &Path, install: Option<&str>) -> Result<(), ConfigError> {
    let Err(missing) = find_command(command, dir) else { return Ok(()) };
    if command.contains('/') {
        return Err(
            ConfigError::for_key("command", missing.to_string()).with_help("correct the path in `command`")
        );
    }
    let message = format!("cannot start `{command}`: there is no such program on PATH");
    let help = match install {
        Some(install) => format!("install it: {install}; or set `command` in its table to where it is"),
        None => {
            let path = environment::search_path();
            format!("install it, or set `command` to its path; PATH is {}", path.to_string_lossy())
        }
    };
    Err(ConfigError::for_key("command", message).with_help(help))
}

/// Why an existing program did not start.
pub(super) fn start_failure(program: &Path, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        io::ErrorKind::PermissionDenied => "it is not executable; try `chmod +x` on it".to_owned(),
        io::ErrorKind::NotFound => "the interpreter that its first line names is missing".to_owned(),
        io::ErrorKind::ArgumentListTooLong => "its arguments are too long".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            "it is neither a program nor a script with a `#!` line".to_owned()
        }
        _ => error.to_string(),
    };
    Failure::failed(format!("`{}` cannot be started: {reason}", program.display()))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A command that is not a member's: a hook, a scorer, a command that prints a key, an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(super) command: String,
    args: Vec<String>,
    environment: Environment,
    dir: PathBuf,
    cwd: PathBuf,
}

impl Program {
    /// A command, found as an executor's is; it runs in `cwd`, else in `dir`, and sees the variables of `env` besides
    /// the base set.
    ///
    /// # Errors
    /// When a word holds a NUL character, an entry of `env` is not a name, or `cwd` is not a directory.
    pub(crate) fn new(
        command: &str,
        args: Vec<String>,
        env: Vec<String>,
        cwd: Option<&str>,
        dir: &Path,
    ) -> Result<Self, ConfigError> {
        check_no_nul(command, &args)?;
        let environment = Environment::new(env, BaseVariables::Inherited)?;
        let work_dir = cwd.map_or_else(|| dir.to_owned(), |cwd| dir.join(cwd));
        if cwd.is_some() && !work_dir.is_dir() {
            return Err(ConfigError::for_key("cwd", format!("`{}` is not a directory", work_dir.display()))
                .with_help("a relative path is relative to the file that names the server"));
        }
        Ok(Program { command: command.to_owned(), args, environment, dir: dir.to_owned(), cwd: work_dir })
    }

    /// The side effect that a user trusts.
    pub(crate) fn side_effect(&self) -> SideEffect {
        let env = self.environment.names();
        super::side_effect::of_command(&self.command, &self.args, env, &self.dir, &self.cwd)
    }

    /// The command line, with the current environment.
    ///
    /// # Errors
    /// When there is no such program.
    pub(super) fn launch(&self) -> Result<Launch, String> {
        Ok(Launch {
            program: find_command(&self.command, &self.dir).map_err(|failure| failure.to_string())?,
            arguments: self.args.iter().map(Into::into).collect(),
            variables: self.environment.variables(),
            cwd: self.cwd.clone(),
            sandbox: None,
            _private_dir: None,
        })
    }
}

#[derive(Debug)]
pub(super) struct Launch {
    /// Absolute path.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// Its whole environment, except [`MEMBER_VARIABLE`].
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) cwd: PathBuf,
    /// `None` runs it without restrictions.
    pub(super) sandbox: Option<Sandbox>,
    /// A judge's private directory, removed once the command and its descendants have ended.
    pub(super) _private_dir: Option<TempDir>,
}

impl Launch {
    /// Starts the command, contained. The calling thread, of a runtime, must live until the child is reaped.
    #[expect(clippy::disallowed_methods, reason = "this is where members are started")]
    pub(super) fn spawn(&self) -> io::Result<Child> {
        guard::check_sigchld()?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env(MEMBER_VARIABLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !self.cwd.as_os_str().is_empty() {
            command.current_dir(&self.cwd);
        }
        if let Some(temporary) = self.sandbox.as_ref().and_then(Sandbox::temp_dir) {
            command.env("TMPDIR", temporary);
        }
        guard::contain(&mut command);
        // After the guard, which is not confined.
        #[cfg(target_os = "linux")]
        if let Some(sandbox) = &self.sandbox {
            let mut ruleset = sandbox.ruleset()?;
            guard::in_child(&mut command, move || ruleset.impose());
        }
        let child = tokio::process::Command::from(command).spawn()?;
        tracing::debug!(program = %self.program.display(), pid = child.id(), "started");
        Ok(child)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{check_installed, find_command};

    #[test]
    fn a_missing_command_is_named_with_what_to_do() {
        let failure = find_command("quorate-no-such-command", Path::new("/")).unwrap_err().to_string();
        assert!(failure.contains("`quorate-no-such-command` was not found on PATH"), "{failure}");
        let failure = find_command("bin/no-such", Path::new("/srv")).unwrap_err().to_string();
        assert!(failure.contains("/srv/bin/no-such"), "{failure}");
    }

    #[test]
    fn a_missing_command_is_refused_with_the_way_to_install_it() {
        assert_eq!(check_installed("sh", Path::new("/"), None), Ok(()));
        let error = check_installed("quorate-no-such-command", Path::new("/"), None).unwrap_err();
        assert!(error.message.contains("`quorate-no-such-command`"), "{error:?}");
        assert!(error.help.is_some_and(|help| help.contains("PATH is /")));
        let error = check_installed("quorate-no-such-command", Path::new("/"), Some("`get it`")).unwrap_err();
        assert!(error.help.is_some_and(|help| help.contains("`get it`")));
        let error = check_installed("bin/no-such", Path::new("/srv"), Some("`get it`")).unwrap_err();
        assert!(error.message.contains("/srv/bin/no-such"), "{error:?}");
    }

    #[test]
    fn a_plain_name_is_found_on_path_and_made_absolute() {
        assert!(find_command("sh", Path::new("/nowhere")).unwrap().is_absolute());
    }
}
