//! Finds the command, and explains why it cannot be started.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use quorate_kernel::ports::executor::{ConfigError, Failure};

use super::environment;

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
pub(super) fn find(command: &str, dir: &Path) -> Result<PathBuf, Failure> {
    if command.contains('/') {
        let path = dir.join(command);
        let path = std::path::absolute(&path).unwrap_or(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(Failure::failed(format!(
                "there is no command at `{}`; a `command` with a `/` is relative to {}",
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
    let Err(missing) = find(command, dir) else { return Ok(()) };
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{check_installed, find};

    #[test]
    fn a_missing_command_is_named_with_what_to_do() {
        let failure = find("quorate-no-such-command", Path::new("/")).unwrap_err().to_string();
        assert!(failure.contains("`quorate-no-such-command` was not found on PATH"), "{failure}");
        let failure = find("bin/no-such", Path::new("/srv")).unwrap_err().to_string();
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
        assert!(find("sh", Path::new("/nowhere")).unwrap().is_absolute());
    }
}
