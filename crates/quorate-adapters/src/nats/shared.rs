//! The connection to NATS that the adapters of a runtime share. The host gives it, so no manifest names an address.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::{self, Context};
use quorate_kernel::ports::executor::{ConfigError, Servers};
use tokio::sync::OnceCell;

use super::{Address, ConnectError, Connection};

/// What the server's monitoring shows.
const CLIENT_NAME: &str = "quorate";
/// The first version with all that is asked of JetStream; older ones ignore what they do not know.
const MIN_VERSION: [u64; 3] = [2, 12, 3];
/// How long one answer may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that is made when it is first needed.
pub struct SharedNats {
    address: Result<Address, String>,
    tenant: String,
    connection: OnceCell<Connection>,
}

impl SharedNats {
    /// Connects to nothing yet. An invalid address is an error for the adapter that needs the connection.
    pub fn new(address: Result<Address, String>, tenant: &str) -> Self {
        SharedNats { address, tenant: tenant.to_owned(), connection: OnceCell::new() }
    }

    /// The tenant, which is the second part of every subject.
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The connection. Once made, it is made again by itself when it is lost.
    pub(crate) async fn client(&self) -> Result<Client, ConnectError> {
        let address = self.address.as_ref().map_err(|why| ConnectError::Refused(why.clone()))?;
        let connected = self.connection.get_or_try_init(|| Connection::open(address, CLIENT_NAME, |_| {}));
        let connection = connected.await.map_err(|error| match error {
            ConnectError::Refused(why) => ConnectError::Refused(format!("{address}: {why}")),
            ConnectError::Absent(why) => ConnectError::Absent(format!("{address}: {why}")),
        })?;
        Ok(connection.client.clone())
    }

    /// JetStream on the server.
    pub(crate) async fn jetstream(&self) -> Result<Context, ConnectError> {
        let client = self.client().await?;
        let server = client.server_info();
        if version(&server.version) < MIN_VERSION {
            let [major, minor, patch] = MIN_VERSION;
            return Err(ConnectError::Refused(format!(
                "the server is NATS {}; what is kept there needs {major}.{minor}.{patch} or newer",
                server.version
            )));
        }
        // In a cluster, another server may have it.
        if !server.jetstream && server.cluster.is_none() {
            return Err(ConnectError::Refused("the server has no JetStream: enable it there".to_owned()));
        }
        let context = jetstream::ContextBuilder::new().timeout(REQUEST_TIMEOUT).ack_timeout(REQUEST_TIMEOUT);
        Ok(context.build(client))
    }
}

impl fmt::Debug for SharedNats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedNats({:?})", self.address)
    }
}

/// The connection that the host shares.
///
/// # Errors
/// If no servers are named, or their addresses are none.
pub(crate) fn shared(servers: &Servers) -> Result<Arc<SharedNats>, ConfigError> {
    let help = "name the servers in QUORATE_NATS, for example `nats://nats.example.org:4222`";
    let Some(shared) = servers.connection::<SharedNats>() else {
        let message = "this is on NATS servers, and none are named";
        return Err(ConfigError::for_key("kind", message).with_help(help));
    };
    match &shared.address {
        Ok(_) => Ok(shared),
        Err(why) => {
            let message = format!("the NATS servers that are named cannot be used: {why}");
            Err(ConfigError::for_key("kind", message).with_help(help))
        }
    }
}

/// The numbers of a version, as `2.12.3-RC.1` has them.
fn version(text: &str) -> [u64; 3] {
    let mut numbers = text.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(version("2.12.3"), MIN_VERSION);
        assert!(version("2.9.10") < MIN_VERSION && version("") < MIN_VERSION);
        assert!(version("2.15.1") > MIN_VERSION && version("3.0.0-beta.1") > MIN_VERSION);
    }
}
