//! A lease: its row in the database, its renewal, and the clock for both.

use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::{Drives, LedgerError};
use quorate_protocol::Name;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::DURATION_MS;
use crate::Store;
use crate::store::connection::{Connection, Writer};
use crate::store::engine::{Column, Value, rows_lost_error, sql, sql_rows};
use crate::store::leases::{Leases, OwnLease, now};
use crate::store::postgres::machine_id;
use crate::store::postgres::server::LeaseCall;

/// The time after a renewal during which no other process can have the run. It is shorter than the lease, because a
/// request takes time to arrive.
const FENCE_LIMIT: Duration = Duration::from_millis(DURATION_MS.unsigned_abs() - 1_000);
/// The interval of checks for a lease that may have ended.
const FENCE_POLL: Duration = Duration::from_millis(20);
/// The interval of renewals.
const RENEW_INTERVAL: Duration = Duration::from_millis(DURATION_MS.unsigned_abs() / 3);

const RENEW_HEAD: &str = concat!("UPDATE lease SET until_ms = ", now!(), " + ours.duration_ms FROM (VALUES ");
const RENEW_TAIL: &str = ") AS ours (run, owner, duration_ms) WHERE lease.run = ours.run AND lease.owner = ours.owner \
     RETURNING lease.run";

/// The row of a run that this process drives. Dropping it deletes the row.
pub(super) struct Lease {
    run: Name,
    owner: String,
    connection: Weak<Mutex<Connection>>,
}

impl Lease {
    /// Acquires a run's lease, or returns the expiry of the lease that another process holds.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) async fn acquire(store: &Store, run: &Name) -> Result<Result<Lease, i64>, LedgerError> {
        let owner = entropy::run_id().to_string();
        let call = LeaseCall {
            run: run.to_string(),
            owner: owner.clone(),
            place: machine_id(store.dir()),
            duration_ms: DURATION_MS,
        };
        let mut connection = store.writer().await;
        let since = now();
        let called = connection.write_call(&call).await;
        let Some((lease, _)) = called.map_err(|error| store.error(error))? else {
            return Err(store.error(rows_lost_error("lease", 0, 1)));
        };
        match lease.held {
            Some((holder, _)) if lease.was_taken && holder == owner => {}
            Some((_, until_ms)) if !lease.was_taken => return Ok(Err(until_ms)),
            // A trigger may have put another name or time into the row.
            _ => return Err(store.error(rows_lost_error("lease", 0, 1))),
        }
        Ok(Ok(Lease::registered(store, &connection.leases, run, owner, since)))
    }

    /// A lease whose row this process has inserted, requested at `since`, by [`now`].
    pub(super) async fn adopt(store: &Store, run: &Name, owner: &str, since: Duration) -> Lease {
        let connection = store.writer().await;
        Lease::registered(store, &connection.leases, run, owner.to_owned(), since)
    }

    fn registered(store: &Store, leases: &Leases, run: &Name, owner: String, since: Duration) -> Lease {
        let weak = store.weak_connection();
        if leases.insert(run, &owner, since) {
            tokio::spawn(renew(leases.clone(), weak.clone()));
        }
        Lease { run: run.clone(), owner, connection: weak }
    }
}

/// This process's lease of a run, for executors.
pub(super) struct LeaseFence {
    pub(super) run: Name,
    pub(super) leases: Leases,
}

#[async_trait]
impl Drives for LeaseFence {
    async fn drives(&self, until: Instant) -> bool {
        loop {
            match self.leases.get(&self.run) {
                // No other process can take it over.
                None => return true,
                Some(lease) if lease.is_lost => return false,
                Some(lease) if now().saturating_sub(lease.since) < FENCE_LIMIT => return true,
                // It is about to be renewed, or to be reported as lost.
                Some(_) if Instant::now() >= until => return false,
                Some(_) => tokio::time::sleep(FENCE_POLL).await,
            }
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lease")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A remaining row expires soon. Closing the ledger waits for this task, which has the connection.
        let (Some(connection), Ok(runtime)) =
            (self.connection.upgrade(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let (run, owner) = (self.run.clone(), std::mem::take(&mut self.owner));
        runtime.spawn(async move {
            let mut connection = Writer::acquire(connection).await;
            let _ = release(&mut connection, &run, &owner).await;
            connection.leases.remove(&run, &owner);
        });
    }
}

async fn release(connection: &mut Connection, run: &Name, owner: &str) -> Result<u64, sqlx::Error> {
    let release = sql("DELETE FROM lease WHERE run = $1 AND owner = $2");
    release.bind(&**run).bind(owner).execute(connection.engine().await?).await
}

/// Renews all leases of a process at once, as long as there are any.
async fn renew(leases: Leases, connection: Weak<Mutex<Connection>>) {
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        let Some(connection) = connection.upgrade() else { return };
        let mut connection = Writer::acquire(connection).await;
        let Some(ours) = leases.all_or_stop() else { return };
        let row = |(run, lease): (&Name, &OwnLease)| {
            vec![Value::from(&**run), lease.owner.clone().into(), DURATION_MS.into()]
        };
        let renew = sql_rows(RENEW_HEAD, ours.iter().map(row), RENEW_TAIL);
        let since = now();
        // Every append checks the lease again; the next one reopens a lost connection.
        if let Ok(engine) = connection.engine().await
            && let Ok(rows) = renew.rows(engine, &[Column::Text]).await
        {
            let renewed = rows.iter().map(|row| Name::from(row.text(0))).collect();
            leases.renewed(&ours, &renewed, since);
        }
    }
}

/// The time since the machine started.
#[cfg(target_os = "linux")]
pub(in crate::store) fn now() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The time since the first call in this process.
#[cfg(not(target_os = "linux"))]
pub(in crate::store) fn now() -> Duration {
    use std::sync::OnceLock;
    use tokio::time::Instant;
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}
