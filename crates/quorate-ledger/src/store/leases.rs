//! The leases of this process in a database that several machines write to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_protocol::Name;

use super::engine::{Column, Engine, sql};

/// The server's time, in milliseconds since the Unix epoch.
macro_rules! now {
    () => {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}
pub(in crate::store) use now;

const LIVE: &str = concat!("SELECT run, owner, CASE WHEN until_ms > ", now!(), " THEN run END FROM lease");

/// The leases of this process by run.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Leases(Arc<std::sync::Mutex<OwnLeases>>);

#[derive(Debug, Default)]
pub(in crate::store) struct OwnLeases {
    pub(in crate::store) by_run: BTreeMap<Name, OwnLease>,
    /// Whether a task renews them.
    pub(in crate::store) are_renewed: bool,
}

/// A lease of this process.
#[derive(Debug, Clone)]
pub(in crate::store) struct OwnLease {
    /// The owner name in its row.
    pub(in crate::store) owner: String,
    /// The time of the request for it or for its last renewal, by [`uptime`]. The server's count starts later.
    pub(in crate::store) since: Duration,
    /// Whether the row was missing at a renewal.
    pub(in crate::store) is_lost: bool,
}

impl Leases {
    pub(in crate::store) fn lock(&self) -> MutexGuard<'_, OwnLeases> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner name in this process's lease of a run.
    pub(in crate::store) fn owner(&self, run: &Name) -> Option<String> {
        self.lock().by_run.get(run).map(|lease| lease.owner.clone())
    }

    /// The runs that this process may not append to: those that other processes drive, and those that they took over from
    /// this one.
    pub(in crate::store) async fn blocked(&self, engine: &mut Engine) -> Result<BTreeSet<Name>, sqlx::Error> {
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
