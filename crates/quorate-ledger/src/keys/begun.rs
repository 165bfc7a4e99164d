//! Which planned changes were begun with this ledger. A plan lies in the workspace, where others can write; its hash is the name
//! of an empty file in `keys/begun/`, which members in a sandbox cannot reach and version control ignores.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::{Directory, Error, file};
use crate::files::{ensure_private_dir, remove};

impl Directory {
    /// Notes, durably, that the plan with this SHA-256 was begun.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn note_begun(&self, sha256: &str) -> Result<(), Error> {
        self.ensure_exists()?;
        let dir = self.begun_dir();
        ensure_private_dir(&dir).map_err(|source| file::io("make", &dir, source))?;
        file::sync_dir(&self.path)?;
        file::replace_locked(&dir, &dir.join(sha256), "", || Ok::<_, Error>(true))
    }

    /// Whether the plan with this SHA-256 was begun here, and is not finished. As with keys, a file that is open to others, as
    /// those of a checkout are, does not count.
    pub fn has_begun(&self, sha256: &str) -> bool {
        let path = self.begun_dir().join(sha256);
        let is_private = |found: &Metadata| file::check_permissions(&path, found, 0o077).is_ok();
        path.symlink_metadata().is_ok_and(|found| found.is_file() && is_private(&found))
    }

    /// Forgets a plan that was finished.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget_begun(&self, sha256: &str) -> Result<(), Error> {
        let path = self.begun_dir().join(sha256);
        match remove(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(file::io("remove", &path, error)),
            _ => Ok(()),
        }
    }

    fn begun_dir(&self) -> PathBuf {
        self.path.join("begun")
    }
}
