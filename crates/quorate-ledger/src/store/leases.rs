//! The leases in the database: those of this process, and the runs that those of other processes keep it out of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_protocol::Name;

use super::engine::{Column, Engine, sql};

/// The server's time, in milliseconds since the Unix epoch.
macro_rules! now {
    () => {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}
pub(super) use now;

const LIVE: &str = concat!("SELECT run, owner, CASE WHEN until_ms > ", now!(), " THEN run END FROM lease");

/// The leases of this process by run.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases(Arc<Mutex<OwnLeases>>);

#[derive(Debug, Default)]
pub(super) struct OwnLeases {
    pub(super) by_run: BTreeMap<Name, OwnLease>,
    /// Whether a task renews them.
    pub(super) are_renewed: bool,
}

/// A lease of this process.
#[derive(Debug, Clone)]
pub(super) struct OwnLease {
    /// The owner name in its row.
    pub(super) owner: String,
    /// The time of the request for it or for its last renewal, by `server::now`. The server's count starts later.
    pub(super) since: Duration,
    /// Whether the row was missing at a renewal.
    pub(super) is_lost: bool,
}

impl Leases {
    pub(super) fn lock(&self) -> MutexGuard<'_, OwnLeases> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner name in this process's lease of a run.
    pub(super) fn owner(&self, run: &Name) -> Option<String> {
        self.lock().by_run.get(run).map(|lease| lease.owner.clone())
    }

    /// The runs that this process may not append to: those that other processes drive, and those that they took over from
    /// this one.
    pub(super) async fn blocked(&self, engine: &mut Engine) -> Result<BTreeSet<Name>, sqlx::Error> {
        let mut ours = self.lock().by_run.clone();
        let mut blocked = BTreeSet::new();
        for row in sql(LIVE).rows(engine, &[Column::Text; 3]).await? {
            let run = Name::from(row.text(0));
            let is_other = match ours.remove(&run) {
                Some(lease) => lease.owner != row.text(1),
                None => row.opt_text(2).is_some(),
            };
            if is_other {
                blocked.insert(run);
            }
        }
        // Another driver took the run over and released it.
        blocked.extend(ours.into_keys());
        Ok(blocked)
    }
}
