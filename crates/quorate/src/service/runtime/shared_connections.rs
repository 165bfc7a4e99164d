//! The connections that a runtime's adapters share: the database of its ledger, and NATS servers.

use quorate_kernel::ports::executor::Servers;
use quorate_ledger::store::address::StoreAddress;

use crate::service::environment::Environment;

/// Adds the shared connections to the servers that adapters get. It does not connect yet.
pub(super) fn add(servers: Servers, environment: &Environment, ledger: &StoreAddress) -> Servers {
    // Unused in a build without the features.
    let _ = (environment, ledger);
    #[cfg(feature = "postgres")]
    let servers = match ledger {
        StoreAddress::Postgres { .. } => {
            servers.with_connection("the ledger's database", std::sync::Arc::new(postgres::shared(ledger)))
        }
        StoreAddress::File(_) => servers,
    };
    #[cfg(feature = "nats")]
    let servers = match &environment.nats {
        Some(nats) => servers.with_connection("the NATS servers", std::sync::Arc::new(nats::shared(nats))),
        None => servers,
    };
    servers
}

#[cfg(feature = "nats")]
pub(super) mod nats {
    use quorate_adapters::nats::SharedNats;

    use crate::service::commit_events::{DEFAULT_TENANT, nats::address};
    use crate::service::environment::NatsServers;

    pub(in crate::service::runtime) fn shared(servers: &NatsServers) -> SharedNats {
        SharedNats::new(address(servers), DEFAULT_TENANT)
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::sync::Arc;

    use async_trait::async_trait;
    use quorate_adapters::postgres::{Database, Error, PgArguments, PgRow, SharedDatabase};
    use quorate_ledger::store::SharedConnection;
    use quorate_ledger::store::address::StoreAddress;

    struct LedgerDatabase(SharedConnection);

    pub(super) fn shared(ledger: &StoreAddress) -> SharedDatabase {
        SharedDatabase(Arc::new(LedgerDatabase(SharedConnection::new(ledger.clone()))))
    }

    #[async_trait]
    impl Database for LedgerDatabase {
        async fn run(&self, text: &'static str, arguments: PgArguments) -> Result<Vec<PgRow>, Error> {
            self.0.run(text, arguments).await
        }
    }
}
