//! Which process drives a run. For a ledger in a file, a lock on a file beside it decides (`run_lock.rs`). If several
//! machines write to one ledger, the driver also has a *lease*: a row with its name and a time by the server's clock,
//! renewed while the driver lives. An append to a run under another's lease is refused, so a driver that was presumed dead
//! cannot write.

#[cfg(feature = "postgres")]
pub(super) mod clock;
#[cfg(feature = "postgres")]
mod server;

use std::collections::BTreeSet;
#[cfg(feature = "postgres")]
use std::sync::Arc;
#[cfg(feature = "postgres")]
use std::time::Duration;

#[cfg(feature = "postgres")]
use quorate_kernel::ports::fence::Fence;
use quorate_kernel::ports::ledger::Error;
use quorate_protocol::Name;

use super::leases::BlockedRuns;
use super::run_lock::RunLock;
use super::{Store, unavailable};

/// How long a lease lasts, in milliseconds: how long it takes until a dead driver's run can be taken up elsewhere.
#[cfg(feature = "postgres")]
pub(super) const DURATION_MS: i64 = 15_000;

/// The result of acquiring a run.
#[derive(Debug)]
pub enum LockOutcome {
    /// This process drives it.
    Acquired(RunGuard),
    /// Another process of this machine does.
    HeldLocally,
    /// A process of another machine does, until this time (in milliseconds since the Unix epoch, by the server's clock)
    /// unless it renews the lease.
    HeldRemotely { until_ms: i64 },
}

/// Where the process is that drives a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// On this machine. It can be this process.
    Local,
    Remote,
}

/// A run that this process drives. Dropping it releases it.
#[derive(Debug)]
pub struct RunGuard {
    // It ends first: when the lock is free on this machine, no lease of a living process remains.
    #[cfg(feature = "postgres")]
    _lease: Option<server::Lease>,
    /// `None` where a process of this machine that lost its lease still has the file.
    _lock: Option<RunLock>,
}

impl Store {
    /// Acquires a run exclusively.
    ///
    /// # Errors
    /// When the lock's file cannot be made, or the store does not answer.
    #[crate::boxed]
    pub async fn lock_run(&self, run: &Name) -> Result<LockOutcome, Error> {
        let cannot = |error| unavailable(format!("cannot take hold of {run}"), error);
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

    /// Takes hold of a run whose lease this process has made a row of. A process of this machine that had the run before
    /// and hangs may still have its file: what counts on a server is the lease.
    #[cfg(feature = "postgres")]
    pub(super) async fn adopt_lease(
        &self,
        run: &Name,
        owner: &str,
        since: Duration,
    ) -> Result<RunGuard, Error> {
        let cannot = |error| unavailable(format!("cannot take hold of {run}"), error);
        let hold = RunLock::try_acquire(self.dir(), &lock_name(run)).map_err(cannot)?;
        Ok(RunGuard { _lease: Some(server::Lease::adopt(self, run, owner, since).await), _lock: hold })
    }

    /// What tells whether this process still drives a run; nothing where no other can.
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
    /// When the lock's file cannot be read, or the store does not answer.
    #[crate::boxed]
    pub async fn driver(&self, run: &Name) -> Result<Option<Driver>, Error> {
        let cannot = |error| unavailable(format!("cannot see who drives {run}"), error);
        if RunLock::is_held(self.dir(), &lock_name(run)).map_err(cannot)? {
            return Ok(Some(Driver::Local));
        }
        let is_remote = self.is_shared() && self.runs_driven_elsewhere().await?.contains(run);
        Ok(is_remote.then_some(Driver::Remote))
    }

    /// The runs that others drive now, as far as the ledger knows; empty for a file.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn runs_driven_elsewhere(&self) -> Result<BTreeSet<Name>, Error> {
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
