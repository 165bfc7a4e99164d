//! Which process drives a run. For a ledger in a file, a lock on a file beside it decides ([`RunLock`]). The system
//! releases that lock when the process ends. If several machines write to one ledger, the driver also has a *lease*: a
//! row with its name and an expiry by the server's clock, renewed while the driver lives. An append to a run under
//! another's lease is refused, so a driver that was presumed dead cannot write.

#[cfg(feature = "postgres")]
pub(super) mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(feature = "postgres")]
use quorate_kernel::ports::ledger::Fence;
use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Name;

use super::engine::Engine;
#[cfg(feature = "postgres")]
use super::engine::{Column, sql};
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
        let Some(hold) = RunLock::acquire(self.dir(), &lock_name(run)).await.map_err(cannot)? else {
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
        Ok(RunGuard { _lease: Some(server::Lease::adopt(self, run, owner, since).await), _lock: hold })
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
        let leases = connection.leases.clone();
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        let blocked = BlockedRuns::read(engine, &leases).await.map_err(|error| self.error(error))?;
        Ok(blocked.into_runs())
    }
}

/// The name of a run's lock file.
fn lock_name(run: &Name) -> String {
    run.replace('/', "-")
}

/// The server's time, in milliseconds since the Unix epoch.
#[cfg(feature = "postgres")]
macro_rules! now {
    () => {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}
#[cfg(feature = "postgres")]
pub(super) use now;

#[cfg(feature = "postgres")]
const LIVE: &str = concat!("SELECT run, owner, CASE WHEN until_ms > ", now!(), " THEN run END FROM lease");

/// The leases of this process by run, with the owner name in each row.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file needs none"))]
pub(crate) struct Leases(Arc<Mutex<OwnLeases>>);

#[derive(Debug, Default)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file needs none"))]
struct OwnLeases {
    owners: BTreeMap<Name, OwnLease>,
    /// Whether a task renews them.
    are_renewed: bool,
}

/// A lease of this process.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file needs none"))]
pub(super) struct OwnLease {
    /// The owner name in its row.
    pub(super) owner: String,
    /// The time of the request for it or for its last renewal, by `server::now`. The server's count starts later.
    pub(super) since: Duration,
    /// Whether the row was missing at a renewal.
    pub(super) is_lost: bool,
}

/// Runs that this process may not append to, because another process drives them.
#[derive(Debug, Default)]
pub(super) struct BlockedRuns(BTreeSet<Name>);

impl BlockedRuns {
    /// Reads the current leases.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_async, reason = "a server has to be asked"))]
    pub(super) async fn read(engine: &mut Engine, leases: &Leases) -> Result<BlockedRuns, sqlx::Error> {
        match engine {
            Engine::Sqlite(_) => {
                let _ = leases;
                Ok(BlockedRuns::default())
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => blocked_runs(engine, leases).await.map(BlockedRuns),
        }
    }

    /// The runs.
    pub(super) fn into_runs(self) -> BTreeSet<Name> {
        self.0
    }

    /// Whether this process may not append to a run.
    pub(super) fn blocks(&self, run: &Name) -> bool {
        self.0.contains(run)
    }
}

#[cfg(feature = "postgres")]
impl Leases {
    /// Adds a lease. Returns whether to start the task that renews leases.
    pub(super) fn insert(&self, run: &Name, owner: &str, since: Duration) -> bool {
        let mut own = self.lock();
        own.owners.insert(run.clone(), OwnLease { owner: owner.to_owned(), since, is_lost: false });
        !std::mem::replace(&mut own.are_renewed, true)
    }

    /// Removes a lease, unless the run was acquired again meanwhile.
    pub(super) fn remove(&self, run: &Name, owner: &str) {
        let mut own = self.lock();
        if own.owners.get(run).is_some_and(|now| now.owner == owner) {
            own.owners.remove(run);
        }
    }

    /// The owner name in this process's lease of a run.
    pub(super) fn owner(&self, run: &Name) -> Option<String> {
        self.get(run).map(|lease| lease.owner)
    }

    /// This process's lease of a run.
    pub(super) fn get(&self, run: &Name) -> Option<OwnLease> {
        self.lock().owners.get(run).cloned()
    }

    /// Updates the leases after a renewal that was requested at `since`.
    pub(super) fn renewed(
        &self,
        asked: &BTreeMap<Name, OwnLease>,
        renewed: &BTreeSet<Name>,
        since: Duration,
    ) {
        let mut own = self.lock();
        for (run, lease) in asked {
            let Some(now) = own.owners.get_mut(run).filter(|now| now.owner == lease.owner) else { continue };
            match renewed.contains(run) {
                true => now.since = since,
                false => now.is_lost = true,
            }
        }
    }

    /// All leases, for the task that renews them; `None` if there are none, which ends the task.
    pub(super) fn all_or_stop(&self) -> Option<BTreeMap<Name, OwnLease>> {
        let mut own = self.lock();
        own.are_renewed = !own.owners.is_empty();
        own.are_renewed.then(|| own.owners.clone())
    }

    fn all(&self) -> BTreeMap<Name, OwnLease> {
        self.lock().owners.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OwnLeases> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(feature = "postgres")]
/// The runs under other leases: those that other processes drive, and those that they took over from this one.
async fn blocked_runs(engine: &mut Engine, leases: &Leases) -> Result<BTreeSet<Name>, sqlx::Error> {
    let mut ours = leases.all();
    let mut shut = BTreeSet::new();
    for row in sql(LIVE).rows(engine, &[Column::Text; 3]).await? {
        let run = Name::from(row.text(0));
        match ours.remove(&run) {
            Some(lease) if lease.owner == row.text(1) => {}
            Some(_) => _ = shut.insert(run),
            None if row.opt_text(2).is_some() => _ = shut.insert(run),
            None => {}
        }
    }
    // Another driver took the run over and released it.
    shut.extend(ours.into_keys());
    Ok(shut)
}

/// A run that this process drives. Dropping it releases the lock.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    file: File,
}

/// The total wait of [`RunLock::acquire`], and the pause between attempts.
const ACQUIRE_TIMEOUT: Duration = Duration::from_millis(600);
const RETRY_PAUSE: Duration = Duration::from_millis(15);

impl RunLock {
    /// As [`RunLock::try_acquire`], but waits briefly for the owner: after a process is killed, a child that it was
    /// about to start holds the lock until its `exec`.
    ///
    /// # Errors
    /// As [`RunLock::try_acquire`].
    #[crate::boxed]
    pub async fn acquire(dir: &Path, run: &str) -> io::Result<Option<RunLock>> {
        RunLock::acquire_within(dir, run, ACQUIRE_TIMEOUT).await
    }

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

    /// Acquires a run; `None` if another process has it. `dir` is the ledger's directory.
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
