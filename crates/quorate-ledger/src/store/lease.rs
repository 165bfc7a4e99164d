//! Who drives a run. In a ledger that is a file, the lock on a file beside it says so (`hold.rs`). Where several machines
//! write to one ledger, the driver also has a *lease*: a row with its name and a time by the server's clock, renewed while
//! the driver lives. An append of a run whose lease is another's is refused, so a driver that was taken for dead writes
//! nothing more.

#[cfg(feature = "postgres")]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use quorate_kernel::ports::ledger::Error;
use quorate_protocol::Name;

use super::engine::Engine;
use super::run_lock::RunLock;
use super::{Store, unavailable};

/// What came of asking for a run.
#[derive(Debug)]
pub enum LockOutcome {
    /// This process drives it.
    Acquired(RunGuard),
    /// Another process of this machine does.
    HeldLocally,
    /// A process of another machine does, until this time (in milliseconds since the Unix epoch, by the server's clock)
    /// unless it says so again.
    HeldRemotely { until_ms: i64 },
}

/// A run that this process drives. Dropping it lets go.
#[derive(Debug)]
pub struct RunGuard {
    // It ends first: who finds the lock free on this machine finds no lease of a living process.
    #[cfg(feature = "postgres")]
    _lease: Option<server::Lease>,
    _lock: RunLock,
}

/// The leases of this process: whose name stands in the row of a run.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file needs none"))]
pub(crate) struct Leases(Arc<Mutex<BTreeMap<Name, String>>>);

/// Runs that nothing may be appended to by this process, since another drives them.
#[derive(Debug, Default)]
pub(super) struct Fence(BTreeSet<Name>);

impl Store {
    /// Takes a run, so that nobody else takes it up meanwhile.
    ///
    /// # Errors
    /// When the lock's file cannot be made, or the store does not answer.
    pub async fn lock_run(&self, run: &Name) -> Result<LockOutcome, Error> {
        let cannot = |error| unavailable(format!("cannot take hold of {run}"), error);
        let Some(hold) = RunLock::acquire(self.dir(), &run.replace('/', "-")).await.map_err(cannot)? else {
            return Ok(LockOutcome::HeldLocally);
        };
        #[cfg(feature = "postgres")]
        if self.is_shared() {
            return Ok(match server::Lease::acquire(self, run).await? {
                Ok(lease) => LockOutcome::Acquired(RunGuard { _lease: Some(lease), _lock: hold }),
                Err(until_ms) => LockOutcome::HeldRemotely { until_ms },
            });
        }
        Ok(LockOutcome::Acquired(RunGuard {
            #[cfg(feature = "postgres")]
            _lease: None,
            _lock: hold,
        }))
    }

    /// The runs that somebody else drives at this moment, as far as the ledger says it; in a file none.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn runs_driven_elsewhere(&self) -> Result<BTreeSet<Name>, Error> {
        let mut connection = self.writer().await;
        let leases = connection.leases.clone();
        let engine = connection.engine().await.map_err(|error| self.error(error))?;
        let fence = Fence::read(engine, &leases).await.map_err(|error| self.error(error))?;
        Ok(fence.0)
    }
}

impl Fence {
    /// As the ledger says it now.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_async, reason = "a server has to be asked"))]
    pub(super) async fn read(engine: &mut Engine, leases: &Leases) -> Result<Fence, sqlx::Error> {
        match engine {
            Engine::Sqlite(_) => {
                let _ = leases;
                Ok(Fence::default())
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => server::blocked_runs(engine, leases).await.map(Fence),
        }
    }

    /// Whether it keeps this process out of a run.
    pub(super) fn blocks(&self, run: &Name) -> bool {
        self.0.contains(run)
    }
}

#[cfg(feature = "postgres")]
impl Leases {
    fn insert(&self, run: &Name, owner: &str) {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(run.clone(), owner.to_owned());
    }

    fn remove(&self, run: &Name) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(run);
    }

    fn all(&self) -> BTreeMap<Name, String> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
