//! Whose leases are in the database, and which runs they keep this process out of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use quorate_protocol::Name;

use super::engine::Engine;
#[cfg(feature = "postgres")]
use super::engine::{Column, sql};

#[cfg(feature = "postgres")]
/// The server's time, in milliseconds since the Unix epoch.
macro_rules! now {
    () => {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}
#[cfg(feature = "postgres")]
pub(super) use now;

#[cfg(feature = "postgres")]
const LIVE: &str = concat!("SELECT run, owner, CASE WHEN until_ms > ", now!(), " THEN run END FROM lease");

/// The leases of this process: whose name is in the row of a run.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file needs none"))]
pub(crate) struct Leases(Arc<Mutex<BTreeMap<Name, String>>>);

/// Runs that nothing may be appended to by this process, since another drives them.
#[derive(Debug, Default)]
pub(super) struct Fence(BTreeSet<Name>);

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
            Engine::Postgres(_) => blocked_runs(engine, leases).await.map(Fence),
        }
    }

    /// The runs.
    pub(super) fn into_runs(self) -> BTreeSet<Name> {
        self.0
    }

    /// Whether it keeps this process out of a run.
    pub(super) fn blocks(&self, run: &Name) -> bool {
        self.0.contains(run)
    }
}

#[cfg(feature = "postgres")]
impl Leases {
    pub(super) fn insert(&self, run: &Name, owner: &str) {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(run.clone(), owner.to_owned());
    }

    pub(super) fn remove(&self, run: &Name) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(run);
    }

    fn all(&self) -> BTreeMap<Name, String> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

#[cfg(feature = "postgres")]
/// The runs under another's lease: those that others drive now, and those that they took from us.
async fn blocked_runs(engine: &mut Engine, leases: &Leases) -> Result<BTreeSet<Name>, sqlx::Error> {
    let mut ours = leases.all();
    let mut shut = BTreeSet::new();
    for row in sql(LIVE).rows(engine, &[Column::Text; 3]).await? {
        let run = Name::from(row.text(0));
        match ours.remove(&run) {
            Some(owner) if owner == row.text(1) => {}
            Some(_) => _ = shut.insert(run),
            None if row.opt_text(2).is_some() => _ = shut.insert(run),
            None => {}
        }
    }
    // Another driver took it, and has released it again.
    shut.extend(ours.into_keys());
    Ok(shut)
}
