//! The leases in the database: those of this process, and the runs that those of other processes keep it out of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_protocol::Name;

use super::engine::Engine;
#[cfg(feature = "postgres")]
use super::engine::{Column, sql};

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

    async fn blocked(&self, engine: &mut Engine) -> Result<BTreeSet<Name>, sqlx::Error> {
        let mut ours = self.lock().owners.clone();
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

    fn lock(&self) -> std::sync::MutexGuard<'_, OwnLeases> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The runs that this process may not append to: those that other processes drive, and those that they took over from
/// this one.
pub(super) async fn blocked_runs(
    engine: &mut Engine,
    leases: &Leases,
) -> Result<BTreeSet<Name>, sqlx::Error> {
    match engine {
        Engine::Sqlite(_) => {
            let _ = leases;
            Ok(BTreeSet::new())
        }
        #[cfg(feature = "postgres")]
        Engine::Postgres(_) => leases.blocked(engine).await,
    }
}
