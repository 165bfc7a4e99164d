//! The connections that a runtime's adapters share: the database of its ledger.

use quorate_kernel::ports::executor::Servers;
use quorate_ledger::store::address::Address;

/// Adds the connections to the servers that adapters are given. Nothing is connected yet.
pub(super) fn add(servers: Servers, ledger: &Address) -> Servers {
    match ledger {
        #[cfg(feature = "postgres")]
        Address::Postgres { .. } => servers.with_connection(std::sync::Arc::new(postgres::shared(ledger))),
        _ => servers,
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::sync::Arc;

    use async_trait::async_trait;
    use quorate_adapters::postgres::{Database, Error, PgArguments, PgRow, SharedDatabase};
    use quorate_ledger::store::SharedConnection;
    use quorate_ledger::store::address::Address;

    struct LedgerDatabase(SharedConnection);

    pub(super) fn shared(ledger: &Address) -> SharedDatabase {
        SharedDatabase(Arc::new(LedgerDatabase(SharedConnection::new(ledger.clone()))))
    }

    #[async_trait]
    impl Database for LedgerDatabase {
        async fn run(&self, text: &'static str, arguments: PgArguments) -> Result<Vec<PgRow>, Error> {
            self.0.run(text, arguments).await
        }
    }
}
