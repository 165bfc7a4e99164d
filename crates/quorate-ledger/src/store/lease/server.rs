//! A lease: its row in the database, and its renewal.

use std::sync::{Arc, Weak};
use std::time::Duration;

use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::{Durability, Error};
use quorate_protocol::Name;
use tokio::sync::{Mutex, oneshot};

use crate::Store;
use crate::store::connection::{Connection, Writer};
use crate::store::engine::{Column, rows_lost_error, sql};
use crate::store::leases::{Leases, now};
use crate::store::machine_id::machine_id;

/// How long a lease lasts, in milliseconds: how long it takes until a dead driver's run can be taken up elsewhere.
const DURATION_MS: i64 = 15_000;
/// How often it is renewed.
const RENEW_INTERVAL: Duration = Duration::from_millis(DURATION_MS.unsigned_abs() / 3);

/// Taken if it is free, expired, or owned by a former process of this place: the caller holds the lock
/// of this place, so that process is dead.
const TAKE: &str = concat!(
    "INSERT INTO lease (run, owner, place, until_ms) VALUES ($1, $2, $3, ",
    now!(),
    " + $4) ON CONFLICT (run) DO UPDATE \
     SET owner = excluded.owner, place = excluded.place, until_ms = excluded.until_ms \
     WHERE lease.place = excluded.place OR lease.until_ms <= ",
    now!()
);
const RENEW: &str = concat!("UPDATE lease SET until_ms = ", now!(), " + $3 WHERE run = $1 AND owner = $2");
const OURS: &str = concat!("SELECT run FROM lease WHERE run = $1 AND owner = $2 AND until_ms > ", now!());
const UNTIL: &str = concat!("SELECT until_ms FROM lease WHERE run = $1 AND until_ms > ", now!(), " - $2");

/// The row of a run that this process drives. Dropping it takes the row away.
pub(super) struct Lease {
    connection: Weak<Mutex<Connection>>,
    end: Option<oneshot::Sender<Arc<Mutex<Connection>>>>,
}

/// The task that renews a lease.
struct Renewer {
    run: Name,
    owner: String,
    leases: Leases,
    connection: Weak<Mutex<Connection>>,
}

impl Lease {
    /// Takes a run's lease; if another process has it, returns its expiry.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) async fn acquire(store: &Store, run: &Name) -> Result<Result<Lease, i64>, Error> {
        let owner = entropy::run_id().to_string();
        let place = machine_id(store.dir());
        let taken = {
            let mut connection = store.writer().await;
            let leases = connection.leases.clone();
            take_in_transaction(&mut connection, &leases, run, &owner, &place)
                .await
                .map_err(|error| store.error(error))?
        };
        Ok(match taken {
            Err(until_ms) => Err(until_ms),
            Ok(leases) => {
                let (end, ended) = oneshot::channel();
                let connection = store.weak_connection();
                let keeper = Renewer { run: run.clone(), owner, leases, connection: connection.clone() };
                tokio::spawn(keeper.run(ended));
                Ok(Lease { connection, end: Some(end) })
            }
        })
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lease")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The keeper deletes the row. It is handed the connection, so that closing the ledger waits for it.
        if let (Some(end), Some(connection)) = (self.end.take(), self.connection.upgrade()) {
            let _ = end.send(connection);
        }
    }
}

impl Renewer {
    async fn run(self, mut ended: oneshot::Receiver<Arc<Mutex<Connection>>>) {
        loop {
            match tokio::time::timeout(RENEW_INTERVAL, &mut ended).await {
                Ok(Ok(connection)) => {
                    // A remaining row expires soon.
                    let _ = self.release(&connection).await;
                    self.leases.remove(&self.run);
                    return;
                }
                Ok(Err(_)) => return,
                Err(_) => {
                    let Some(connection) = self.connection.upgrade() else { return };
                    // Every append checks the lease again; the next one reopens a lost connection.
                    let _ = self.renew(&connection).await;
                }
            }
        }
    }

    async fn renew(&self, connection: &Arc<Mutex<Connection>>) -> Result<u64, sqlx::Error> {
        let mut connection = Writer::acquire(connection.clone()).await;
        let engine = connection.engine().await?;
        sql(RENEW).bind(&*self.run).bind(&*self.owner).bind(DURATION_MS).execute(engine).await
    }

    async fn release(&self, connection: &Arc<Mutex<Connection>>) -> Result<u64, sqlx::Error> {
        let mut connection = Writer::acquire(connection.clone()).await;
        let engine = connection.engine().await?;
        let release = sql("DELETE FROM lease WHERE run = $1 AND owner = $2");
        release.bind(&*self.run).bind(&*self.owner).execute(engine).await
    }
}

/// In a transaction, so that it is never concurrent with an append.
async fn take_in_transaction(
    connection: &mut Connection,
    leases: &Leases,
    run: &Name,
    owner: &str,
    place: &str,
) -> Result<Result<Leases, i64>, sqlx::Error> {
    let mut transaction = connection.begin(Durability::Written).await?;
    let engine = transaction.engine();
    let taken = sql(TAKE).bind(&**run).bind(owner).bind(place).bind(DURATION_MS).execute(engine).await?;
    if taken == 0 {
        // The row belongs to another process, and had not expired a moment ago.
        let until = sql(UNTIL).bind(&**run).bind(DURATION_MS).row(engine, &[Column::Int]).await?;
        return until.map(|row| Err(row.int(0))).ok_or_else(|| rows_lost_error("lease", 0, 1));
    }
    // A trigger can have put another's name into the row, or another time.
    let ours = sql(OURS).bind(&**run).bind(owner).row(engine, &[Column::Text]).await?;
    ours.ok_or_else(|| rows_lost_error("lease", 0, 1))?;
    transaction.commit().await?;
    leases.insert(run, owner);
    Ok(Ok(leases.clone()))
}
