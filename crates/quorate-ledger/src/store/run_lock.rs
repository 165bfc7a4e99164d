//! Run locks: a process that drives a run locks a file named after it, so that no other process drives the run meanwhile.
//! The system releases the lock when the process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files;

/// A run that this process drives. Dropping it releases the lock.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    file: File,
}

/// How long [`RunLock::acquire`] waits, and how often it retries.
const ACQUIRE_TIMEOUT: Duration = Duration::from_millis(600);
const RETRY_PAUSE: Duration = Duration::from_millis(15);

impl RunLock {
    /// As [`RunLock::try_acquire`], but waits a moment for the owner: a killed process is gone at once, but a child that it was
    /// just starting keeps the lock until its `exec`.
    ///
    /// # Errors
    /// As [`RunLock::try_acquire`].
    #[crate::boxed]
    pub async fn acquire(dir: &Path, run: &str) -> Result<Option<RunLock>> {
        RunLock::acquire_within(dir, run, ACQUIRE_TIMEOUT).await
    }

    /// As [`RunLock::try_acquire`], but waits for the owner, at most for `patience`.
    ///
    /// # Errors
    /// As [`RunLock::try_acquire`].
    #[crate::boxed]
    pub async fn acquire_within(dir: &Path, run: &str, patience: Duration) -> Result<Option<RunLock>> {
        let until = tokio::time::Instant::now() + patience;
        loop {
            match RunLock::try_acquire(dir, run)? {
                None if tokio::time::Instant::now() < until => tokio::time::sleep(RETRY_PAUSE).await,
                taken => return Ok(taken),
            }
        }
    }

    /// Whether a process drives a run. Creates nothing. The lock that it asks with is shared and ends at once, so that a process
    /// which acquires the run meanwhile waits for a moment at most.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn is_held(dir: &Path, run: &str) -> Result<bool> {
        let file = match files::open_with(OpenOptions::new().read(true), &dir.join("live").join(run)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => file.unlock().map(|()| false),
            Err(std::fs::TryLockError::WouldBlock) => Ok(true),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes hold of a run; `None` while another process has it. `dir` is the ledger's directory.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn try_acquire(dir: &Path, run: &str) -> Result<Option<RunLock>> {
        let live = dir.join("live");
        files::ensure_private_dir(&live)?;
        let path = live.join(run);
        loop {
            let file = files::open_with(
                OpenOptions::new().read(true).write(true).create(true).truncate(false),
                &path,
            )?;
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
            // The previous owner may have removed the file between our opening and our locking it.
            if same_file(&file, &path) {
                return Ok(Some(RunLock { path, file }));
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

impl Drop for RunLock {
    fn drop(&mut self) {
        // Removed while it is locked, so that no process locks a file that is about to go. One that stays does no harm.
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
        let hold = RunLock::try_acquire(dir.path(), "r1").unwrap().expect("free");
        assert!(RunLock::try_acquire(dir.path(), "r1").unwrap().is_none());
        assert!(RunLock::try_acquire(dir.path(), "r2").unwrap().is_some());
        assert!(RunLock::is_held(dir.path(), "r1").unwrap());
        drop(hold);
        assert!(!RunLock::is_held(dir.path(), "r1").unwrap());
        assert!(RunLock::try_acquire(dir.path(), "r1").unwrap().is_some());
    }

    #[test]
    fn asking_who_holds_a_run_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!RunLock::is_held(dir.path(), "r1").unwrap());
        assert!(!dir.path().join("live").exists());
        let kept = RunLock::try_acquire(dir.path(), "r1").unwrap().expect("free");
        // The file of a killed process stays, without a lock.
        kept.file.unlock().unwrap();
        assert!(!RunLock::is_held(dir.path(), "r1").unwrap());
    }
}
