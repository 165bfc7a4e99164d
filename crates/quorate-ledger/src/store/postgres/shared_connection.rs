//! A second connection to the ledger's database, for what others keep in its schema: conversations and state of runtimes.
//! It has the ledger's settings and patience.

use std::sync::Arc;

use sqlx::Connection as _;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::server::{Wait, is_absent, is_lost, open};
use super::{SCHEMAS, connect_options};
use crate::store::Store;
use crate::store::address::Address;
use crate::store::timeouts::{RESPONSE_TIMEOUT, RESTART_TIMEOUT, Timeouts};

/// A connection that is made when it is first needed, and again when it is lost.
pub struct SharedConnection {
    address: Address,
    timeouts: Arc<Timeouts>,
    connection: Mutex<Option<PgConnection>>,
}

impl SharedConnection {
    /// Connects to nothing yet.
    pub fn new(address: Address) -> SharedConnection {
        SharedConnection { address, timeouts: Arc::default(), connection: Mutex::default() }
    }

    /// Runs one statement in a transaction of its own, and gives its rows. Where the connection is lost, it is run again on
    /// another one: the server may do it twice.
    ///
    /// # Errors
    /// If the server refuses it, is silent, or is away for longer than a restart takes.
    pub async fn run(&self, text: &'static str, arguments: PgArguments) -> Result<Vec<PgRow>, sqlx::Error> {
        let began = Instant::now();
        let mut held = self.connection.lock().await;
        loop {
            // It is taken out, so that a caller that gives up in the middle of an answer leaves none behind.
            let connected = match held.take() {
                Some(connection) => Ok(connection),
                None => self.connect().await,
            };
            let error = match connected {
                Ok(mut connection) => {
                    let wait = Wait::new(self.timeouts.clone(), RESPONSE_TIMEOUT);
                    let query = sqlx::query_with(text, arguments.clone());
                    match wait.on(query.fetch_all(&mut connection)).await {
                        Ok(rows) => {
                            *held = Some(connection);
                            return Ok(rows);
                        }
                        Err(error) if is_lost(&error) => error,
                        Err(error) => {
                            *held = Some(connection);
                            return Err(error);
                        }
                    }
                }
                Err(error) => error,
            };
            let may_return = is_absent(&error) && began.elapsed() < RESTART_TIMEOUT;
            if !may_return || !self.timeouts.pause_before_retry(began).await {
                return Err(error);
            }
        }
    }

    /// A connection to the ledger's tables, which are made where they are not there.
    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let refused = |error: Box<dyn std::error::Error + Send + Sync>| sqlx::Error::Configuration(error);
        let Address::Postgres { url, .. } = &self.address else {
            return Err(refused("the ledger is not on a server".into()));
        };
        let options = connect_options(url).map_err(|error| refused(error.into()))?;
        let mut connection = open(&options, &self.timeouts).await?;
        if !has_tables(&mut connection).await? {
            connection.close().await?;
            let opened = Box::pin(Store::open_at(&self.address)).await;
            opened.map_err(|error| refused(error.into()))?.store.close().await;
            connection = open(&options, &self.timeouts).await?;
        }
        Ok(connection)
    }
}

/// Whether the schema is at least this program's.
async fn has_tables(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let version = sqlx::query_scalar("SELECT CAST(MAX(version) AS BIGINT) FROM quorate_schema");
    let version: Result<Option<i64>, _> = version.fetch_one(connection).await;
    match version {
        Ok(version) => Ok(version.and_then(|version| usize::try_from(version).ok()) >= Some(SCHEMAS.len())),
        // There is no such table yet.
        Err(error)
            if error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("42P01")) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
