//! The target folder of an installation. Every path is resolved from an open handle and without symlinks, so no path leads
//! out of the folder and no file has two names. Changes are a list of [`Step`]s, each of which is atomic, so that a test can
//! stop between any two of them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::files::{Root, is_obstacle};
use quorate_kernel::ports::provisioning::MAX_FILE_BYTES;

use crate::error::{Error, ErrorKind};

pub(super) use quorate_kernel::files::{Access, FileContent, TEMP_NAME};

/// A change of the target folder. Paths are relative to it, with `/`, and have no `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Creates a folder in an existing one, unless it exists.
    MakeFolder(String, Access),
    /// Replaces or creates a file.
    Write(String, Arc<[u8]>, Access),
    /// Removes a file if it exists.
    Remove(String),
    /// Removes a folder if it exists and is empty.
    RemoveFolder(String),
}

/// A folder on the disk.
#[derive(Debug)]
pub(super) struct Target(pub Root);

impl Target {
    /// Opens a folder, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Target> {
        let root = Root::open(path)?;
        // Tests do not survive a power failure.
        Ok(Target(if cfg!(test) { root.without_sync() } else { root }))
    }

    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] if the path is not a regular file of at most 16 MiB, or leads through a symlink;
    /// another kind if the file cannot be read.
    pub(super) fn read(&self, path: &str) -> Result<Option<FileContent>, Error> {
        self.0.read_unlinked(path, MAX_FILE_BYTES).map_err(|error| failed(path, "read", &error))
    }

    /// Whether a folder exists.
    ///
    /// # Errors
    /// If a file or a symlink is at the path or above it.
    pub(super) fn has_folder(&self, path: &str) -> Result<bool, Error> {
        let folder = self.0.open_unlinked(path).map_err(|error| failed(path, "read", &error))?;
        Ok(folder.is_some())
    }

    /// The sorted names in a folder; empty if the folder does not exist.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(super) fn names(&self, path: &str) -> Result<Vec<String>, Error> {
        self.0.names(path).map_err(|error| failed(path, "read", &error))
    }

    /// Makes a change durably.
    ///
    /// # Errors
    /// If the disk refuses it. Nothing is changed then.
    pub(super) fn perform(&self, step: &Step) -> Result<(), Error> {
        let (path, done) = match step {
            Step::MakeFolder(path, access) => (path, self.0.make_folder(path, *access)),
            Step::Write(path, bytes, access) => (path, self.0.replace(path, bytes, *access)),
            Step::Remove(path) => (path, self.0.remove(path)),
            Step::RemoveFolder(path) => (path, self.0.remove_folder(path)),
        };
        done.map_err(|error| failed(path, "write", &error))
    }
}

fn failed(path: &str, verb: &str, error: &io::Error) -> Error {
    if is_obstacle(error) {
        let body = Body::new(format!("{path} {error}")).help("move it away and run the command again");
        return Error::new(ErrorKind::Refused, codes::PROFILE_TARGET, body);
    }
    let help = "fix this and run the same command again: it continues where it stopped";
    let body = Body::new(format!("cannot {verb} {path}: {error}"));
    Error::configuration(codes::PROFILE_TARGET, body.help(help))
}
