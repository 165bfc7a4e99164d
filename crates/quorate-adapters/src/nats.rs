//! Connections to NATS servers. NATS carries what should be heard now; what must be true afterwards is in the ledger, so
//! users of events go on without it. `nats/shared.rs` is the connection of a runtime's adapters, `nats/stream.rs` what some of
//! them keep on the servers, `nats/subject.rs` the names of both.

pub(crate) mod shared;
pub(crate) mod stream;
pub(crate) mod subject;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use futures::StreamExt as _;
use percent_encoding::percent_decode_str;

use crate::http::install_tls_provider;

pub use shared::SharedNats;

/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait between two attempts to connect again.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(4);

/// Where servers of one cluster are, and who connects.
#[derive(Clone)]
pub struct Address {
    servers: Vec<ServerAddr>,
    login: Option<Login>,
    /// A `.creds` file.
    credentials: Option<PathBuf>,
    /// What the subjects of answers begin with.
    inbox: Option<String>,
}

/// What a server is told that asks who connects.
#[derive(Clone, PartialEq, Eq)]
enum Login {
    Token(String),
    User { name: String, password: String },
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The address, the credentials or the encryption do not fit the server: trying again does not help.
    #[error("{0}")]
    Refused(String),
    /// No server answers now.
    #[error("{0}")]
    Absent(String),
}

/// A change of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is there again; what was sent meanwhile was missed.
    Connected,
    Lost,
    /// Messages were dropped because this process was slow.
    Missed,
    /// The server refuses something: a subject that this user may not use.
    Refused(String),
}

/// A connection, which is made again when it is lost.
#[derive(Clone)]
pub struct Connection {
    client: Client,
}

/// Messages of a subject.
pub struct Subscription {
    subscriber: async_nats::Subscriber,
}

impl Address {
    /// Reads the addresses of servers: `nats://host:4222`, `tls://host`, several with commas. A user and password, or a
    /// token, may stand before the host. `credentials` is a `.creds` file, `inbox` what the subjects of answers begin with in
    /// place of `_INBOX`.
    ///
    /// # Errors
    /// If one is of another kind, or they name different users. The text names no password.
    pub fn parse(text: &str, credentials: Option<PathBuf>, inbox: Option<String>) -> Result<Address, String> {
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || "*>".contains(c);
        if inbox
            .as_ref()
            .is_some_and(|inbox| inbox.is_empty() || inbox.contains(is_odd) || inbox.ends_with('.'))
        {
            return Err("its prefix for the subjects of answers is none".to_owned());
        }
        let parts: Result<Vec<_>, String> = text.split(',').map(|part| server(part.trim())).collect();
        let (servers, mut logins): (Vec<_>, Vec<_>) = parts?.into_iter().unzip();
        logins.dedup();
        match logins.pop() {
            Some(login) if logins.is_empty() => Ok(Address { servers, login, credentials, inbox }),
            _ => Err("its servers are given different users or passwords".to_owned()),
        }
    }
}

fn server(text: &str) -> Result<(ServerAddr, Option<Login>), String> {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    if !["nats", "tls"].contains(&scheme) {
        return Err("it does not begin with nats:// or tls://".to_owned());
    }
    let server: ServerAddr = text.parse().map_err(|_| "it is no URL".to_owned())?;
    if server.host().is_empty() {
        return Err("it names no host".to_owned());
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(String::from);
    let decoded = |text: &str| decoded(text).map_err(|_| "its user or password is no UTF-8".to_owned());
    let login = match (server.username(), server.password()) {
        (None, None) => None,
        (Some(token), None) => Some(Login::Token(decoded(token)?)),
        (name, Some(password)) => {
            Some(Login::User { name: decoded(name.unwrap_or_default())?, password: decoded(password)? })
        }
    };
    Ok((server, login))
}

/// Schemes, hosts and ports: no user, password or token.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, server) in self.servers.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let (scheme, host, port) = (server.scheme(), server.host(), server.port());
            match host.contains(':') {
                true => write!(f, "{comma}{scheme}://[{host}]:{port}")?,
                false => write!(f, "{comma}{scheme}://{host}:{port}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl Connection {
    /// Connects, under a name that the server's monitoring shows. `changed` is told of later changes; it must not block.
    ///
    /// # Errors
    /// [`ConnectError`]; where no server answers, [`Connection::in_background`] goes on trying.
    pub async fn open(
        address: &Address,
        name: &str,
        changed: impl Fn(Change) + Send + Sync + 'static,
    ) -> Result<Connection, ConnectError> {
        Connection::connect(address, options(address, name, changed).await?).await
    }

    /// A connection that is made as soon as a server answers.
    ///
    /// # Errors
    /// [`ConnectError::Refused`] if the credentials cannot be read.
    pub async fn in_background(
        address: &Address,
        name: &str,
        changed: impl Fn(Change) + Send + Sync + 'static,
    ) -> Result<Connection, ConnectError> {
        let options = options(address, name, changed).await?.retry_on_initial_connect();
        Connection::connect(address, options).await
    }

    async fn connect(address: &Address, options: ConnectOptions) -> Result<Connection, ConnectError> {
        match options.connect(&address.servers[..]).await {
            Ok(client) => Ok(Connection { client }),
            Err(error) => {
                let text = error.to_string();
                Err(match error.kind() {
                    _ if is_encryption(&error) => ConnectError::Refused(text),
                    ConnectErrorKind::Dns | ConnectErrorKind::TimedOut | ConnectErrorKind::Io => {
                        ConnectError::Absent(text)
                    }
                    _ => ConnectError::Refused(text),
                })
            }
        }
    }

    /// Sends a message to those who listen now.
    ///
    /// # Errors
    /// If the subject is not valid, or the connection has been closed.
    pub async fn publish(&self, subject: String, payload: Vec<u8>) -> Result<(), String> {
        self.client.publish(subject, payload.into()).await.map_err(|error| error.to_string())
    }

    /// Listens.
    ///
    /// # Errors
    /// If the subject is not valid, or the connection has been closed.
    pub async fn subscribe(&self, subject: String) -> Result<Subscription, String> {
        let subscriber = self.client.subscribe(subject).await.map_err(|error| error.to_string())?;
        Ok(Subscription { subscriber })
    }

    /// The server's version, and whether it has JetStream.
    pub fn server(&self) -> String {
        let server = self.client.server_info();
        let has = if server.jetstream { "with" } else { "without" };
        format!("NATS {} {has} JetStream", server.version)
    }

    /// Waits until what was sent has reached the server.
    pub async fn flush(&self) {
        // Where it has not, nothing depends on it.
        let _ = self.client.flush().await;
    }
}

impl Subscription {
    /// The next message; `None` after the connection has been closed.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.subscriber.next().await.map(|message| message.payload.to_vec())
    }
}

/// Whether the encryption failed: a certificate that is not trusted, or a server that does not encrypt.
fn is_encryption(error: &(dyn std::error::Error + 'static)) -> bool {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(|error| error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()))
}

async fn options(
    address: &Address,
    name: &str,
    changed: impl Fn(Change) + Send + Sync + 'static,
) -> Result<ConnectOptions, ConnectError> {
    install_tls_provider();
    let changed = Arc::new(changed);
    let options = ConnectOptions::new()
        .name(name)
        .connection_timeout(CONNECT_TIMEOUT)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| {
            let exponent = u32::try_from(attempts).unwrap_or(u32::MAX).min(6);
            (Duration::from_millis(100) * 2_u32.pow(exponent)).min(MAX_RECONNECT_DELAY)
        })
        .event_callback(move |event| {
            let change = match event {
                Event::Connected => Some(Change::Connected),
                Event::Disconnected | Event::Closed => Some(Change::Lost),
                Event::SlowConsumer(_) => Some(Change::Missed),
                Event::ServerError(ServerError::Other(what)) => Some(Change::Refused(what)),
                Event::ServerError(error) => Some(Change::Refused(error.to_string())),
                Event::ClientError(_) | Event::LameDuckMode | Event::Draining => None,
            };
            change.into_iter().for_each(|change| changed(change));
            std::future::ready(())
        });
    let options = match &address.inbox {
        Some(inbox) => options.custom_inbox_prefix(inbox),
        None => options,
    };
    let options = match address.login.clone() {
        None => options,
        Some(Login::Token(token)) => options.token(token),
        Some(Login::User { name, password }) => options.user_and_password(name, password),
    };
    let Some(path) = &address.credentials else { return Ok(options) };
    options.credentials_file(path).await.map_err(|error| {
        ConnectError::Refused(format!("the credentials {} cannot be read: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_is_secret_in_it() {
        let address =
            Address::parse("nats://ada:s3%20cret@one, tls://ada:s3%20cret@[::1]:5222", None, None).unwrap();
        assert_eq!(address.to_string(), "nats://one:4222,tls://[::1]:5222");
        let login = Login::User { name: "ada".to_owned(), password: "s3 cret".to_owned() };
        assert!(address.login == Some(login));
        assert!(
            Address::parse("nats://t0ken@one", None, None).unwrap().login
                == Some(Login::Token("t0ken".to_owned()))
        );
        for text in [
            "",
            "one:4222",
            "ws://one",
            "http://one",
            "nats://",
            "nats://a:b@c:d",
            "nats://one,",
            "nats://a@one,nats://two",
        ] {
            assert!(Address::parse(text, None, None).is_err(), "{text}");
        }
    }
}
