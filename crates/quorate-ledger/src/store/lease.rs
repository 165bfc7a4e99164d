//! Which process drives a run. For a ledger in a file, a lock on a file beside it decides ([`RunLock`]). The system
//! releases that lock when the process ends. If several machines write to one ledger, the driver also has a *lease*: a
//! row with its name and an expiry by the server's clock, renewed while the driver lives. An append to a run under
//! another's lease is refused, so a driver that was presumed dead cannot write.

#[cfg(feature = "postgres")]
pub(super) mod server;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
#[cfg(feature = "postgres")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "postgres")]
use quorate_kernel::ports::ledger::Fence;
use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Name;

use super::{Store, unavailable};
use crate::files;

/// The duration of a lease in milliseconds, after which another machine can take over a dead driver's run.
#[cfg(feature = "postgres")]
pub(super) const DURATION_MS: i64 = 15_000;

/// The result of acquiring a run.
#[derive(Debug)]
pub enum LockOutcome {
    /// This process drives it.
    Acquired(RunGuard),
    /// Another process of this machine drives it.
    HeldLocally,
    /// A process of another machine drives it, until this time unless it renews the lease. In milliseconds since the
    /// Unix epoch, by the server's clock.
    HeldRemotely { until_ms: i64 },
}

/// The location of the process that drives a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// This machine, possibly this process.
    Local,
    Remote,
}

/// A run that this process drives. Dropping it releases the run.
#[derive(Debug)]
pub struct RunGuard {
    // Dropped first: when the lock is free on this machine, no lease of a living process remains.
    #[cfg(feature = "postgres")]
    _lease: Option<server::Lease>,
    /// `None` if another process of this machine, which lost its lease, still holds the lock.
    _lock: Option<RunLock>,
}

impl Store {
    /// Acquires a run exclusively.
    ///
    /// # Errors
    /// If the lock file cannot be created, or the store does not answer.
    #[crate::boxed]
    pub async fn lock_run(&self, run: &Name) -> Result<LockOutcome, LedgerError> {
        let cannot = |error| unavailable(format!("cannot acquire {run}"), error);
        let Some(hold) =
            RunLock::acquire_within(self.dir(), &lock_name(run), ACQUIRE_TIMEOUT).await.map_err(cannot)?
        else {
            return Ok(LockOutcome::HeldLocally);
        };
        #[cfg(feature = "postgres")]
        if self.is_shared() {
            return Ok(match server::Lease::acquire(self, run).await? {
                Ok(lease) => LockOutcome::Acquired(RunGuard { _lease: Some(lease), _lock: Some(hold) }),
                Err(until_ms) => LockOutcome::HeldRemotely { until_ms },
            });
        }
        Ok(LockOutcome::Acquired(RunGuard {
            #[cfg(feature = "postgres")]
            _lease: None,
            _lock: Some(hold),
        }))
    }

    /// Acquires a run whose lease this process has already inserted. On a server only the lease counts: a hanging
    /// process of this machine that had the run before may still hold its lock file.
    #[cfg(feature = "postgres")]
    pub(super) async fn adopt_lease(
        &self,
        run: &Name,
        owner: &str,
        since: Duration,
    ) -> Result<RunGuard, LedgerError> {
        let cannot = |error| unavailable(format!("cannot acquire {run}"), error);
        let hold = RunLock::try_acquire(self.dir(), &lock_name(run)).map_err(cannot)?;
        let connection = self.writer().await;
        let lease = server::Lease::registered(self, &connection.leases, run, owner.to_owned(), since);
        Ok(RunGuard { _lease: Some(lease), _lock: hold })
    }

    /// Reports whether this process still drives a run; `None` if no other process can.
    #[cfg(feature = "postgres")]
    pub(super) fn lease_fence(&self, run: &Name) -> Fence {
        match self.is_shared() {
            true => Fence::of(Arc::new(server::LeaseFence { run: run.clone(), leases: self.leases.clone() })),
            false => Fence::default(),
        }
    }

    /// The process that drives a run; `None` if none does. Changes nothing.
    ///
    /// # Errors
    /// If the lock file cannot be read, or the store does not answer.
    #[crate::boxed]
    pub async fn driver(&self, run: &Name) -> Result<Option<Driver>, LedgerError> {
        let cannot = |error| unavailable(format!("cannot determine which process drives {run}"), error);
        if RunLock::is_held(self.dir(), &lock_name(run)).map_err(cannot)? {
            return Ok(Some(Driver::Local));
        }
        let is_remote = self.is_shared() && self.runs_driven_elsewhere().await?.contains(run);
        Ok(is_remote.then_some(Driver::Remote))
    }

    /// The runs that other processes drive, according to the ledger; empty for a file.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn runs_driven_elsewhere(&self) -> Result<BTreeSet<Name>, LedgerError> {
        let mut connection = self.writer().await;
        let blocked = async {
            connection.engine().await?;
            connection.blocked_runs().await
        };
        blocked.await.map_err(|error| self.error(error))
    }
}

/// The name of a run's lock file.
fn lock_name(run: &Name) -> String {
    run.replace('/', "-")
}

/// A run that this process drives. Dropping it releases the lock.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    file: File,
}

/// How long a run's lock is waited for, and the pause between attempts: after a process is killed, a child that it was
/// about to start holds the lock until its `exec`.
const ACQUIRE_TIMEOUT: Duration = Duration::from_millis(600);
const RETRY_PAUSE: Duration = Duration::from_millis(15);

impl RunLock {
    /// As [`RunLock::try_acquire`], but waits for the owner, at most for `patience`.
    ///
    /// # Errors
    /// As [`RunLock::try_acquire`].
    #[crate::boxed]
    pub async fn acquire_within(dir: &Path, run: &str, patience: Duration) -> io::Result<Option<RunLock>> {
        let until = tokio::time::Instant::now() + patience;
        loop {
            match RunLock::try_acquire(dir, run)? {
                None if tokio::time::Instant::now() < until => tokio::time::sleep(RETRY_PAUSE).await,
                taken => return Ok(taken),
            }
        }
    }

    /// Whether a process drives a run. Creates nothing. It takes a shared lock and releases it immediately, which
    /// delays a process that acquires the run for a moment at most.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn is_held(dir: &Path, run: &str) -> io::Result<bool> {
        let file = match files::open_with(OpenOptions::new().read(true), &dir.join("live").join(run)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => file.unlock().map(|()| false),
            Err(std::fs::TryLockError::WouldBlock) => Ok(true),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Acquires a run; `None` if another process holds it. `dir` is the ledger's directory.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn try_acquire(dir: &Path, run: &str) -> io::Result<Option<RunLock>> {
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
            // The previous owner may have removed the file between opening and locking it.
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
        // Removed before unlocking, so that no process locks a file that is about to disappear. A file that remains
        // does no harm.
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
        // The file of a killed process remains, without a lock.
        kept.file.unlock().unwrap();
        assert!(!RunLock::is_held(dir.path(), "r1").unwrap());
    }
}
