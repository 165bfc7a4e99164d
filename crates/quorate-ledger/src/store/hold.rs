//! Holds: a process that drives a run keeps a lock on a file named after it, so that nobody else takes the run up
//! while it lives. The system lets go of the lock when the process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io::Result;
use std::path::{Path, PathBuf};

use super::files;

/// A run that this process drives. Dropping it lets go.
#[derive(Debug)]
pub struct Hold {
    path: PathBuf,
    file: File,
}

impl Hold {
    /// Takes hold of a run; `None` while another process has it. `dir` is the ledger's directory.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn take(dir: &Path, run: &str) -> Result<Option<Hold>> {
        let live = dir.join("live");
        files::private_dir(&live)?;
        let path = live.join(run);
        loop {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
            // Whoever held it before may have removed the file between our opening and our locking it.
            if same_file(&file, &path) {
                return Ok(Some(Hold { path, file }));
            }
        }
    }
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn same_file(_: &File, path: &Path) -> bool {
    path.exists()
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Removed while it is locked, so that nobody takes a file that is about to go. One that stays does no harm.
        let _ = files::remove(&self.path);
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_held_once_and_free_again_after() {
        let dir = tempfile::tempdir().unwrap();
        let hold = Hold::take(dir.path(), "r1").unwrap().expect("free");
        assert!(Hold::take(dir.path(), "r1").unwrap().is_none());
        assert!(Hold::take(dir.path(), "r2").unwrap().is_some());
        drop(hold);
        assert!(Hold::take(dir.path(), "r1").unwrap().is_some());
    }
}
