//! The connection to a server, which is made again when it is lost.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::ports::ledger::Durability;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _, Postgres};
use tokio::time::Instant;

use crate::store::timeouts::{RESPONSE_TIMEOUT, RESTART_TIMEOUT, Timeouts};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long disconnecting may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long rewriting a table may take.
const REWRITE_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Settings of a connection. A wait for a lock ends at the server before the client gives the server up, and is then
/// begun again; a client that has the lock and is silent loses it, and so does one whose machine is gone. No statement goes
/// on for long after its client is gone. A server that acknowledges before it has synced is configured not to.
const SESSION: &str = "SET lock_timeout = '15s'; SET statement_timeout = '10min'; \
    SET idle_in_transaction_session_timeout = '30s'; \
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '25s'; \
    SET client_min_messages = 'warning'; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// A writer is alone until the end of its transaction: the key is the table's own. While a table is being rewritten
/// nothing can be written to it: that is waited for here, where a wait that took too long can be begun again.
macro_rules! lock {
    () => {
        "SELECT pg_advisory_xact_lock(8173521 * 4294967296 + CAST('record'::regclass::oid AS BIGINT)); \
         LOCK TABLE record, body IN ROW EXCLUSIVE MODE"
    };
}

/// A connection to a server.
pub(crate) struct Server {
    /// Dropped as soon as it is lost, so that the server rolls back its transaction and releases its locks.
    connection: Option<PgConnection>,
    options: PgConnectOptions,
    log_index: SqliteConnection,
    timeouts: Arc<Timeouts>,
    /// Whether a transaction is open, or was when its connection was lost: what belongs to it must not be done outside of
    /// it, so nothing connects again before it has been given up.
    in_transaction: bool,
    /// How often it has connected.
    connects: u64,
}

/// What is done to begin a transaction that writes. What was looked up before it began may be out of date; what is looked
/// up after it has the lock is not.
pub(in crate::store) fn begin_statement(durability: Durability) -> &'static str {
    match durability {
        // The server's process writes it later: it survives the death of this process, not that of the server.
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
    /// When the server does not answer, or the log's index cannot be opened.
    pub(super) async fn connect(
        options: PgConnectOptions,
        log_index: impl Future<Output = Result<SqliteConnection, sqlx::Error>>,
        timeouts: Arc<Timeouts>,
    ) -> Result<Server, sqlx::Error> {
        let connection = Some(open(&options, &timeouts).await?);
        Ok(Server {
            connection,
            options,
            log_index: log_index.await?,
            timeouts,
            in_transaction: false,
            connects: 1,
        })
    }

    /// The connection, with what waits for the server on it; an error where it was lost.
    pub(in crate::store) fn connection_and_wait(&mut self) -> Result<(&mut PgConnection, Wait), sqlx::Error> {
        let wait = Wait { timeouts: self.timeouts.clone(), limit: RESPONSE_TIMEOUT };
        match &mut self.connection {
            Some(connection) => Ok((connection, wait)),
            None => {
                Err(io_error(io::ErrorKind::NotConnected, "the connection to the server was lost".to_owned()))
            }
        }
    }

    /// Begins to read in one snapshot, waiting for tables that are being rewritten.
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

    /// Pauses before something is tried again that another process was in the way of since `began`; `false` where that
    /// has been going on for too long.
    pub(in crate::store) async fn pause_before_retry(&self, began: tokio::time::Instant) -> bool {
        self.timeouts.pause_before_retry(began).await
    }

    /// Whether there is a connection: one that was lost is made again by the next use.
    pub(in crate::store) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// How often it has connected: what was seen on an earlier connection may be gone.
    pub(in crate::store) fn connects(&self) -> u64 {
        self.connects
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

    /// All rows of an answer.
    pub(in crate::store) async fn all_rows(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let (connection, wait) = self.connection_and_wait()?;
        let done = wait.on(query.fetch_all(connection)).await;
        self.track_result(done)
    }

    pub(in crate::store) fn log_index(&mut self) -> &mut SqliteConnection {
        &mut self.log_index
    }

    /// Notes the result of a statement.
    pub(in crate::store) fn track_result<T>(
        &mut self,
        done: Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        if done.as_ref().is_err_and(is_lost) {
            self.connection = None;
        }
        done
    }

    /// Connects again where the connection was lost. A server that refuses is waited for, since it may be about to start;
    /// one that is silent is not, since that took its time.
    pub(in crate::store) async fn reconnect(&mut self) -> Result<(), sqlx::Error> {
        let began = Instant::now();
        while self.connection.is_none() {
            match open(&self.options, &self.timeouts).await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.in_transaction = false;
                    self.connects += 1;
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
        let closed = match self.connection {
            Some(connection) => {
                Wait { timeouts: self.timeouts, limit: CLOSE_TIMEOUT }.on(connection.close()).await
            }
            None => Ok(()),
        };
        self.log_index.close().await.and(closed)
    }
}

/// A wait for the server.
pub(in crate::store) struct Wait {
    timeouts: Arc<Timeouts>,
    limit: Duration,
}

impl Wait {
    pub(super) fn new(timeouts: Arc<Timeouts>, limit: Duration) -> Wait {
        Wait { timeouts, limit }
    }

    /// Waits for an answer; a server that is silent for too long counts as lost.
    pub(in crate::store) async fn on<T>(
        &self,
        answer: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let began = tokio::time::Instant::now();
        self.timeouts
            .within(self.limit, answer)
            .await
            .unwrap_or_else(|| {
                let what = format!("the server did not answer within {:.0?}", began.elapsed());
                Err(io_error(io::ErrorKind::TimedOut, what))
            })
            .map_err(super::server_error::without_line_number)
    }
}

fn io_error(kind: io::ErrorKind, what: String) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(kind, what))
}

/// Whether the server says that a lock was not available in time.
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

pub(super) async fn open(
    options: &PgConnectOptions,
    patience: &Arc<Timeouts>,
) -> Result<PgConnection, sqlx::Error> {
    let connecting = async {
        let mut connection = options.connect().await?;
        sqlx::raw_sql(SESSION).execute(&mut connection).await?;
        Ok(connection)
    };
    Wait { timeouts: patience.clone(), limit: CONNECT_TIMEOUT }.on(connecting).await
}

/// Whether a server is not there, or not ready: it refuses connections, ends them, starts or stops.
pub(in crate::store) fn is_absent(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        sqlx::Error::Io(error) => error.kind() != io::ErrorKind::TimedOut,
        _ => false,
    }
}

/// Whether the connection is lost, or in an unknown state: an error of the system or of the
/// protocol, or of classes 08 (connection) and 57P (ended by the operator) of Postgres.
pub(in crate::store) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("57P") || code == "25P03"),
        error => matches!(error, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_)),
    }
}
