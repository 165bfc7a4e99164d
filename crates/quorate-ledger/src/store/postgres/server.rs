//! The connection to a server, which is reopened after a loss, and the server's functions that write.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::ports::ledger::Durability;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions as _, Connection as _, Postgres, Row as _};
use tokio::time::Instant;

use crate::store::timeouts::{RESPONSE_TIMEOUT, RESTART_TIMEOUT, Timeouts};

/// The timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for disconnecting.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for rewriting a table.
const REWRITE_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Settings of a connection. A wait for a lock times out on the server before the client gives up on the server, and is
/// then retried. A client that has the lock and is silent loses it, and so does one whose machine disappears. No
/// statement continues for long after its client disappears. A server configured to acknowledge before it syncs is set
/// to sync first.
const SESSION: &str = "SET lock_timeout = '15s'; SET statement_timeout = '10min'; \
    SET idle_in_transaction_session_timeout = '30s'; \
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '25s'; \
    SET client_min_messages = 'warning'; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// Locks out other writers until the end of the transaction; the key is the table's own. Nothing can be written to a
/// table that is being rewritten, so writers wait for that here, where they can retry after a timeout.
macro_rules! lock {
    () => {
        "SELECT pg_advisory_xact_lock(8173521 * 4294967296 + CAST('record'::regclass::oid AS BIGINT)); \
         LOCK TABLE record, body IN ROW EXCLUSIVE MODE"
    };
}

/// A connection to a server.
pub(crate) struct Server {
    /// Dropped on a connection loss, so that the server rolls back its transaction and releases its locks.
    connection: Option<PgConnection>,
    options: PgConnectOptions,
    timeouts: Arc<Timeouts>,
    /// Whether a transaction is open, or was when its connection was lost. Its statements must not run outside of it,
    /// so the connection is reopened only after the transaction was given up.
    in_transaction: bool,
    /// Whether the connection was reopened since a caller last asked. Facts from an earlier one may be outdated.
    pub(in crate::store) was_reconnected: bool,
}

/// Begins a writing transaction. Values read before it began may be outdated; values read while it holds the lock are
/// not.
pub(in crate::store) fn begin_statement(durability: Durability) -> &'static str {
    match durability {
        // The server's process writes it later: it survives a crash of this process, but not of the server.
        Durability::Written => {
            concat!("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off; ", lock!())
        }
        Durability::Synced => concat!("BEGIN ISOLATION LEVEL READ COMMITTED; ", lock!()),
    }
}

impl Server {
    /// Connects to a server.
    ///
    /// # Errors
    /// If the server does not answer.
    pub(super) async fn connect(
        options: PgConnectOptions,
        timeouts: Arc<Timeouts>,
    ) -> Result<Server, sqlx::Error> {
        let connection = Some(open(&options, &timeouts).await?);
        Ok(Server { connection, options, timeouts, in_transaction: false, was_reconnected: false })
    }

    /// The connection, with the timeouts for waits on it; an error if it was lost.
    pub(in crate::store) fn connection_and_wait(&mut self) -> Result<(&mut PgConnection, Wait), sqlx::Error> {
        let wait = Wait { timeouts: self.timeouts.clone(), limit: RESPONSE_TIMEOUT };
        match &mut self.connection {
            Some(connection) => Ok((connection, wait)),
            None => {
                Err(io_error(io::ErrorKind::NotConnected, "the connection to the server was lost".to_owned()))
            }
        }
    }

    /// Begins to read in one snapshot. Waits for tables that are being rewritten.
    pub(in crate::store) async fn begin_read(&mut self) -> Result<(), sqlx::Error> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
            LOCK TABLE record, body IN ACCESS SHARE MODE";
        let began = tokio::time::Instant::now();
        loop {
            match self.execute_raw(BEGIN).await {
                Err(error) if is_locked(&error) => {
                    self.execute_raw("ROLLBACK").await?;
                    if !self.pause_before_retry(began).await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Pauses before a retry of an operation that another process has blocked since `began`; `false` after a timeout.
    pub(in crate::store) async fn pause_before_retry(&self, began: tokio::time::Instant) -> bool {
        self.timeouts.pause_before_retry(began).await
    }

    /// Whether the connection is open. The next use reopens a lost one.
    pub(in crate::store) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Whether a transaction is open, or was when its connection was lost.
    pub(in crate::store) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// A statement without values or answers.
    pub(in crate::store) async fn execute_raw(&mut self, text: &'static str) -> Result<(), sqlx::Error> {
        if text.starts_with("BEGIN") {
            self.in_transaction = true;
        }
        let (connection, mut wait) = self.connection_and_wait()?;
        let done = if text.starts_with("VACUUM") {
            wait.limit = REWRITE_TIMEOUT;
            wait.on(rewrite(connection, text)).await
        } else {
            wait.on(sqlx::raw_sql(text).execute(connection)).await.map(drop)
        };
        if text.ends_with("COMMIT") || text == "ROLLBACK" {
            self.in_transaction = false;
        }
        self.track_result(done)
    }

    /// All rows of a result.
    pub(in crate::store) async fn all_rows(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let (connection, wait) = self.connection_and_wait()?;
        let done = wait.on(query.fetch_all(connection)).await;
        self.track_result(done)
    }

    /// Records the result of a statement.
    pub(in crate::store) fn track_result<T>(
        &mut self,
        done: Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        if done.as_ref().is_err_and(is_lost) {
            self.connection = None;
        }
        done
    }

    /// Reconnects if the connection was lost. Retries a server that refuses connections, because it may be starting,
    /// but not a silent one, which already used up its timeout.
    pub(in crate::store) async fn reconnect(&mut self) -> Result<(), sqlx::Error> {
        let began = Instant::now();
        while self.connection.is_none() {
            match open(&self.options, &self.timeouts).await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.in_transaction = false;
                    self.was_reconnected = true;
                }
                Err(error) if is_absent(&error) && began.elapsed() < RESTART_TIMEOUT => {
                    if !self.pause_before_retry(began).await {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(in crate::store) async fn close(self) -> Result<(), sqlx::Error> {
        let Some(connection) = self.connection else { return Ok(()) };
        Wait { timeouts: self.timeouts, limit: CLOSE_TIMEOUT }.on(connection.close()).await
    }
}

/// Waits for the server.
pub(in crate::store) struct Wait {
    timeouts: Arc<Timeouts>,
    limit: Duration,
}

impl Wait {
    /// Waits for an answer. A server that is silent for too long counts as lost.
    pub(in crate::store) async fn on<T>(
        &self,
        answer: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let began = tokio::time::Instant::now();
        self.timeouts.within(self.limit, answer).await.unwrap_or_else(|| {
            let what = format!("the server did not answer within {:.0?}", began.elapsed());
            Err(io_error(io::ErrorKind::TimedOut, what))
        })
    }
}

fn io_error(kind: io::ErrorKind, what: String) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(kind, what))
}

/// Whether the server reports a lock timeout.
pub(in crate::store) fn is_locked(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("55P03"))
}

/// Rewrites a table, which may take longer than any other statement.
async fn rewrite(connection: &mut PgConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("SET statement_timeout = 0").execute(&mut *connection).await?;
    let done = sqlx::raw_sql(statement).execute(&mut *connection).await;
    let restored = sqlx::raw_sql("SET statement_timeout = '10min'").execute(connection).await;
    done.and(restored).map(drop)
}

async fn open(options: &PgConnectOptions, patience: &Arc<Timeouts>) -> Result<PgConnection, sqlx::Error> {
    let connecting = async {
        let mut connection = options.connect().await?;
        sqlx::raw_sql(SESSION).execute(&mut connection).await?;
        Ok(connection)
    };
    Wait { timeouts: patience.clone(), limit: CONNECT_TIMEOUT }.on(connecting).await
}

/// Whether a server is missing or not ready: it refuses connections, closes them, starts or stops.
pub(in crate::store) fn is_absent(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        sqlx::Error::Io(error) => error.kind() != io::ErrorKind::TimedOut,
        _ => false,
    }
}

/// Whether the connection is lost or in an unknown state: an error of the system or of the protocol, or an error of
/// Postgres's class 08 (connection) or 57P (operator intervention).
pub(in crate::store) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("57P") || code == "25P03"),
        error => matches!(error, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_)),
    }
}

/// The position of the last record, which is in each row of a writing function's result.
pub(in crate::store) fn last_place(rows: &[PgRow]) -> Result<i64, sqlx::Error> {
    rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get("place")
}

/// Whether a function refused to write after a gap.
pub(in crate::store) fn is_gap(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("QU001"))
}
