//! Leases in the database: those of this process, their renewal, the clock for both, and the runs that those of other
//! processes keep this one out of.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::{Drives, LedgerError};
use quorate_protocol::Name;
use sqlx::FromRow as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::DURATION_MS;
use crate::Store;
use crate::store::connection::{Connection, Writer};
use crate::store::engine::{Column, Value, rows_lost_error, sql, sql_rows};
use crate::store::leases::{Leases, OwnLease, now};
use crate::store::postgres::machine_id;

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
        const CALL: &str = "SELECT taken, holder, until, place FROM quorate_take_lease($1, $2, $3, $4, $5)";
        let (owner, place) = (entropy::run_id().to_string(), machine_id(store.dir()));
        let call = |known: Option<i64>| {
            sqlx::query(CALL).bind(known).bind(&**run).bind(&owner).bind(&place).bind(DURATION_MS)
        };
        let mut connection = store.writer().await;
        let since = uptime();
        let taken = async {
            let (rows, _) = connection.write_call(call).await?;
            let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
            <(i64, Option<String>, Option<i64>)>::from_row(row)
        };
        match taken.await.map_err(|error| store.error(error))? {
            (1, Some(holder), _) if holder == owner => {
                Ok(Ok(Lease::registered(store, &connection.leases, run, owner, since)))
            }
            (0, Some(_), Some(until_ms)) => Ok(Err(until_ms)),
            // A trigger may have put another name or time into the row.
            _ => Err(store.error(rows_lost_error("lease", 0, 1))),
        }
    }

    /// A lease whose row this process has inserted, requested at `since`, by [`uptime`].
    pub(super) fn registered(
        store: &Store,
        leases: &Leases,
        run: &Name,
        owner: String,
        since: Duration,
    ) -> Lease {
        let connection = Arc::downgrade(&store.connection);
        let mut own = leases.lock();
        own.by_run.insert(run.clone(), OwnLease { owner: owner.clone(), since, is_lost: false });
        if !std::mem::replace(&mut own.are_renewed, true) {
            tokio::spawn(renew(leases.clone(), connection.clone()));
        }
        Lease { run: run.clone(), owner, connection }
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
            let lease = self.leases.lock().by_run.get(&self.run).cloned();
            match lease {
                // No other process can take it over.
                None => return true,
                Some(lease) if lease.is_lost => return false,
                Some(lease) if uptime().saturating_sub(lease.since) < FENCE_LIMIT => return true,
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
            if let Ok(engine) = connection.engine().await {
                let release =
                    sql("DELETE FROM lease WHERE run = $1 AND owner = $2").bind(&*run).bind(&*owner);
                let _ = release.execute(engine).await;
            }
            let mut own = connection.leases.lock();
            // The run may have been acquired again meanwhile.
            if own.by_run.get(&run).is_some_and(|now| now.owner == owner) {
                own.by_run.remove(&run);
            }
        });
    }
}

/// Renews all leases of a process at once, as long as there are any.
async fn renew(leases: Leases, connection: Weak<Mutex<Connection>>) {
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        let Some(connection) = connection.upgrade() else { return };
        let mut connection = Writer::acquire(connection).await;
        let asked = {
            let mut own = leases.lock();
            own.are_renewed = !own.by_run.is_empty();
            own.by_run.clone()
        };
        if asked.is_empty() {
            return;
        }
        let row = |(run, lease): (&Name, &OwnLease)| {
            vec![Value::from(&**run), lease.owner.clone().into(), DURATION_MS.into()]
        };
        let renew = sql_rows(RENEW_HEAD, asked.iter().map(row), RENEW_TAIL);
        let since = uptime();
        // Every append checks the lease again; the next one reopens a lost connection.
        let Ok(engine) = connection.engine().await else { continue };
        let Ok(rows) = renew.rows(engine, &[Column::Text]).await else { continue };
        let renewed: BTreeSet<&str> = rows.iter().map(|row| row.text(0)).collect();
        let mut own = leases.lock();
        for (run, lease) in &asked {
            let Some(now) = own.by_run.get_mut(run).filter(|now| now.owner == lease.owner) else { continue };
            match renewed.contains(&**run) {
                true => now.since = since,
                false => now.is_lost = true,
            }
        }
    }
}

/// The time since the machine started.
#[cfg(target_os = "linux")]
pub(in crate::store) fn uptime() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The time since the first call in this process.
#[cfg(not(target_os = "linux"))]
pub(in crate::store) fn uptime() -> Duration {
    use std::sync::OnceLock;
    use tokio::time::Instant;
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}
