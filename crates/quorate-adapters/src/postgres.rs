//! The database of the ledger, for conversations and state that are kept in it. The host shares it, as a
//! [`SharedDatabase`], if the ledger is on a Postgres server; its address is the ledger's, so no manifest names one.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::ports::executor::{ConfigError, Servers};
use sqlx::error::BoxDynError;
use sqlx::{Arguments as _, Encode, Postgres, Type};

// The trait's signature has it.
pub use sqlx::Error;
pub use sqlx::postgres::{PgArguments, PgRow};

/// What runs statements in the database, each in a transaction of its own.
#[async_trait]
pub trait Database: Send + Sync {
    /// Runs a statement and gives its rows. Where the connection is lost it is made again, and the statement run again: the
    /// server may do it twice.
    ///
    /// # Errors
    /// If the server refuses it, or does not come back.
    async fn run(&self, text: &'static str, arguments: PgArguments) -> Result<Vec<PgRow>, Error>;
}

/// The database, shared by the adapters of a runtime.
#[derive(Clone)]
pub struct SharedDatabase(pub Arc<dyn Database>);

impl fmt::Debug for SharedDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedDatabase")
    }
}

/// The database that the host shares.
///
/// # Errors
/// If the ledger is not on a Postgres server.
pub(crate) fn shared(servers: &Servers) -> Result<Arc<dyn Database>, ConfigError> {
    match servers.connection::<SharedDatabase>() {
        Some(shared) => Ok(shared.0.clone()),
        None => Err(ConfigError::for_key(
            "kind",
            "the ledger is not in a Postgres database, in which this would be kept",
        )
        .with_help(
            "name the database with `--ledger postgres://…`, QUORATE_LEDGER or `ledger` of quorate.toml",
        )),
    }
}

/// A statement and its values.
pub(crate) struct Statement {
    text: &'static str,
    arguments: Result<PgArguments, BoxDynError>,
}

pub(crate) fn statement(text: &'static str) -> Statement {
    Statement { text, arguments: Ok(PgArguments::default()) }
}

impl Statement {
    pub(crate) fn bind<'v, T: Encode<'v, Postgres> + Type<Postgres> + 'v>(mut self, value: T) -> Self {
        self.arguments = self.arguments.and_then(|mut arguments| {
            arguments.add(value)?;
            Ok(arguments)
        });
        self
    }

    pub(crate) async fn run(self, database: &dyn Database) -> Result<Vec<PgRow>, Error> {
        database.run(self.text, self.arguments.map_err(Error::Encode)?).await
    }
}
