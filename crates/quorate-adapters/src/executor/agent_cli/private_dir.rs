//! The private directory of one attempt of a judge (X15): an empty working directory, and a replacement of the user's
//! directory of the CLI. Only this user can read it, and it is removed when the attempt ends.

#![expect(clippy::disallowed_methods, reason = "this is where a judge's private directory is made")]

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use quorate_kernel::ports::executor::Failure;
use tempfile::TempDir;

/// The working directory, relative to the private directory.
const WORK: &str = "work";
/// The replacement of the user's directory of the CLI, relative to the private directory.
pub(super) const HOME: &str = "home";

/// What a preset adds to a judge's call.
#[derive(Debug, Default)]
pub(super) struct JudgeConfig {
    pub(super) arguments: Vec<OsString>,
    pub(super) variables: Vec<(OsString, OsString)>,
    /// Path in the private directory, and content.
    pub(super) files: Vec<(String, String)>,
    /// Links to files that a login needs: path in the private directory, and target; a missing target is skipped.
    pub(super) links: Vec<(String, PathBuf)>,
}

#[derive(Debug)]
pub(super) struct PrivateDir {
    dir: TempDir,
}

impl PrivateDir {
    pub(super) fn new() -> Result<Self, Failure> {
        let owner_only = std::fs::Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new()
            .prefix("quorate-")
            .permissions(owner_only)
            .tempdir()
            .map_err(write_failure)?;
        let private = PrivateDir { dir };
        for folder in [WORK, HOME] {
            std::fs::create_dir(private.path().join(folder)).map_err(write_failure)?;
        }
        Ok(private)
    }

    /// Creates the preset's files and links.
    pub(super) fn populate(&self, config: &JudgeConfig) -> Result<(), Failure> {
        let place = |path: &str| -> io::Result<PathBuf> {
            let place = self.path().join(path);
            place.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            Ok(place)
        };
        for (path, text) in &config.files {
            place(path).and_then(|place| std::fs::write(place, text)).map_err(write_failure)?;
        }
        for (path, target) in config.links.iter().filter(|(_, target)| target.is_file()) {
            place(path).and_then(|place| std::os::unix::fs::symlink(target, place)).map_err(write_failure)?;
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The replacement of the user's directory of the CLI.
    pub(super) fn home(&self) -> PathBuf {
        self.path().join(HOME)
    }

    pub(super) fn work(&self) -> PathBuf {
        self.path().join(WORK)
    }
}

fn write_failure(error: io::Error) -> Failure {
    Failure::failed(format!("cannot make the judge's private directory: {error}; check TMPDIR"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{JudgeConfig, PrivateDir};

    #[test]
    fn a_directory_is_private_its_working_directory_empty_and_it_is_gone_afterwards() {
        // X15
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("login"), "token").unwrap();
        let private = PrivateDir::new().unwrap();
        let config = JudgeConfig {
            files: vec![("home/.x/settings.json".into(), "{}".into())],
            links: vec![
                ("home/login".into(), elsewhere.path().join("login")),
                ("home/none".into(), elsewhere.path().join("none")),
            ],
            ..JudgeConfig::default()
        };
        private.populate(&config).unwrap();
        let path = private.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(private.work().read_dir().unwrap().count(), 0);
        assert_eq!(std::fs::read_to_string(path.join("home/login")).unwrap(), "token");
        assert!(path.join("home/.x/settings.json").exists() && !path.join("home/none").exists());
        drop(private);
        assert!(!path.exists() && elsewhere.path().join("login").exists());
    }
}
