//! Connections to NATS servers. NATS carries what should be heard now; what must be true afterwards is in the ledger, so
//! users of events go on without it. The host gives the connection that the adapters of a runtime
//! share, so no manifest names an address. This file also owns the streams that adapters keep on the servers, and the
//! encoding of names in subjects.

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, RawMessageErrorKind, RetentionPolicy, StorageType, Stream,
};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use futures::StreamExt as _;
use percent_encoding::percent_decode_str;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{ConfigError, Servers};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::http::install_tls_provider;

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

/// The credentials for a server that asks for them.
#[derive(Clone, PartialEq, Eq)]
enum Login {
    Token(String),
    User { name: String, password: String },
}

/// Why connecting failed.
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
    let server: ServerAddr = text.parse().map_err(|_| "it is not a URL".to_owned())?;
    if server.host().is_empty() {
        return Err("it names no host".to_owned());
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(String::from);
    let decoded = |text: &str| decoded(text).map_err(|_| "its user or password is not UTF-8".to_owned());
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
        let connected = options(address, name, changed).await?.connect(&address.servers[..]).await;
        let client = connected.map_err(|error| match error.kind() {
            ConnectErrorKind::Dns | ConnectErrorKind::TimedOut | ConnectErrorKind::Io
                if !is_encryption(&error) =>
            {
                ConnectError::Absent(error.to_string())
            }
            _ => ConnectError::Refused(error.to_string()),
        })?;
        Ok(Connection { client })
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
        let connected = options.connect(&address.servers[..]).await;
        let client = connected.map_err(|error| ConnectError::Refused(error.to_string()))?;
        Ok(Connection { client })
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

/// The longest name that stands in a subject verbatim, in bytes; a longer name is replaced by its hash.
const MAX_BYTES: usize = 120;

/// A name as one part of a subject, different for different names: letters, digits, `-` and `_` verbatim, every other
/// byte as `=` with two digits.
pub(crate) fn token(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => token.push(char::from(byte)),
            // Writing to a string does not fail.
            byte => drop(write!(token, "={byte:02x}")),
        }
    }
    match token.is_empty() || token.len() > MAX_BYTES {
        true => format!("=={}", sha256_hex(name.as_bytes())),
        false => token,
    }
}

/// How long a server may be away, or a cluster without a leader.
const AWAY_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before the next try.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How many copies a cluster keeps, unless the manifest says.
const CLUSTER_REPLICAS: usize = 3;

/// The configuration of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) description: String,
    /// All its subjects, with a wildcard.
    pub(crate) subjects: String,
    /// Whether only the last message of each subject is kept.
    pub(crate) keeps_last: bool,
    /// How many servers of a cluster have a copy.
    pub(crate) replicas: Option<usize>,
}

/// A stream that is made when it is first needed.
pub(crate) struct LazyStream {
    nats: Arc<SharedNats>,
    settings: Settings,
    opened: OnceCell<OpenStream>,
}

#[derive(Clone)]
struct OpenStream {
    context: Context,
    stream: Stream,
}

/// What became of a message.
pub(crate) enum Published {
    /// It has this number in the stream.
    At(u64),
    /// The subject has another one, where it was to be the first.
    Occupied,
    /// The message is longer than the servers take, in bytes.
    TooLong { limit: usize },
}

/// What was attempted, for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StreamError(String);

impl StreamError {
    pub(crate) fn new(what: impl ToString) -> Self {
        StreamError(what.to_string())
    }
}

/// Why an attempt has no answer.
enum Obstacle {
    /// It may pass: no server, no leader, no answer in time.
    Away(String),
    Refused(String),
}

impl LazyStream {
    pub(crate) fn new(nats: Arc<SharedNats>, settings: Settings) -> Self {
        LazyStream { nats, settings, opened: OnceCell::new() }
    }

    /// The number of the last message; 0 without one.
    pub(crate) async fn last_number(&self) -> Result<u64, StreamError> {
        let number = |opened: OpenStream| async move {
            let info = opened.stream.get_info().await.map_err(|error| Obstacle::Away(error.to_string()))?;
            Ok(info.state.last_sequence)
        };
        self.patiently(number).await
    }

    /// The message with a number, if there is one.
    pub(crate) async fn message(&self, number: u64) -> Result<Option<StreamMessage>, StreamError> {
        let get = |opened: OpenStream| async move { found(opened.stream.get_raw_message(number).await) };
        self.patiently(get).await
    }

    /// The last message of a subject, if there is one.
    pub(crate) async fn last_of(&self, subject: &str) -> Result<Option<StreamMessage>, StreamError> {
        let get = |opened: OpenStream| async move {
            found(opened.stream.get_last_raw_message_by_subject(subject).await)
        };
        self.patiently(get).await
    }

    /// Adds a message, synced as the server is configured; with `is_first` only where its subject has none. Where no answer
    /// comes, it is sent again: without `is_first` it may be there twice.
    pub(crate) async fn publish(
        &self,
        subject: &str,
        payload: Vec<u8>,
        is_first: bool,
    ) -> Result<Published, StreamError> {
        let send = |OpenStream { context, .. }| {
            let message =
                PublishMessage::build().expected_stream(&self.settings.name).payload(payload.clone().into());
            let message = if is_first { message.expected_last_subject_sequence(0) } else { message };
            async move {
                let sent = match context.send_publish(subject.to_owned(), message).await {
                    Ok(acknowledgement) => acknowledgement.await,
                    Err(error) => Err(error),
                };
                let error = match sent {
                    Ok(acknowledged) => return Ok(Published::At(acknowledged.sequence)),
                    Err(error) => error,
                };
                match error.kind() {
                    PublishErrorKind::WrongLastSequence => Ok(Published::Occupied),
                    PublishErrorKind::MaxPayloadExceeded => {
                        Ok(Published::TooLong { limit: context.client().server_info().max_payload })
                    }
                    // A stream that no server has answered for has no leader at the moment, and one whose leader has just
                    // taken another message for this subject does not know its number yet.
                    _ => Err(Obstacle::Away(error_text(&error))),
                }
            }
        };
        self.patiently(send).await
    }

    /// A subscription to what is sent to the stream's subjects. The server tells it before the stream has a message, and does
    /// not tell it at all while the connection is lost.
    pub(crate) async fn listen(&self) -> Result<async_nats::Subscriber, StreamError> {
        let subscribe = |opened: OpenStream| async move {
            let subscribed = opened.context.client().subscribe(self.settings.subjects.clone()).await;
            subscribed.map_err(|error| Obstacle::Refused(error_text(&error)))
        };
        self.patiently(subscribe).await
    }

    async fn patiently<T, F: Future<Output = Result<T, Obstacle>>>(
        &self,
        attempt: impl Fn(OpenStream) -> F,
    ) -> Result<T, StreamError> {
        let began = Instant::now();
        loop {
            let done = match self.opened.get_or_try_init(|| self.open()).await {
                Ok(opened) => attempt(opened.clone()).await,
                Err(obstacle) => Err(obstacle),
            };
            match done {
                Ok(done) => return Ok(done),
                Err(Obstacle::Away(_)) if began.elapsed() < AWAY_TIMEOUT => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(Obstacle::Away(why) | Obstacle::Refused(why)) => return Err(StreamError(why)),
            }
        }
    }

    /// The stream, which is made where it is not there.
    async fn open(&self) -> Result<OpenStream, Obstacle> {
        // Servers that never answered are not waited for: their address may be wrong.
        let context = self.nats.jetstream().await.map_err(|error| Obstacle::Refused(error.to_string()))?;
        let wanted = self.settings.config(&context);
        let found = context.get_or_create_stream(wanted.clone()).await;
        let stream = found.map_err(|error| match error.kind() {
            // Where another one was faster, the next try finds the stream.
            CreateStreamErrorKind::JetStream(error)
                if is_refusal(&error) && error.error_code() != ErrorCode::STREAM_NAME_EXIST =>
            {
                Obstacle::Refused(format!(
                    "the stream {} with {} copies cannot be made: {error}",
                    wanted.name, wanted.num_replicas
                ))
            }
            _ => Obstacle::Away(error_text(&error)),
        })?;
        check(&stream.cached_info().config, &wanted)?;
        Ok(OpenStream { context, stream })
    }
}

impl Settings {
    fn config(&self, context: &Context) -> Config {
        let is_cluster = context.client().server_info().cluster.is_some();
        Config {
            name: self.name.clone(),
            description: Some(self.description.clone()),
            subjects: vec![self.subjects.clone()],
            retention: RetentionPolicy::Limits,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: self.replicas.unwrap_or(if is_cluster { CLUSTER_REPLICAS } else { 1 }),
            max_messages_per_subject: if self.keeps_last { 1 } else { -1 },
            max_messages: -1,
            max_bytes: -1,
            // A reader must see what was acknowledged: only the leader knows it.
            allow_direct: false,
            deny_delete: true,
            ..Config::default()
        }
    }
}

/// Refuses a stream with other settings, which might lose turns or show old ones.
fn check(found: &Config, wanted: &Config) -> Result<(), Obstacle> {
    let differs = [
        ("its subjects", found.subjects != wanted.subjects),
        ("its storage", found.storage != wanted.storage),
        ("its retention", found.retention != wanted.retention || !found.max_age.is_zero()),
        ("`max_msgs` or `max_bytes`", found.max_messages > 0 || found.max_bytes > 0),
        (
            "`max_msgs_per_subject`",
            found.max_messages_per_subject.max(0) != wanted.max_messages_per_subject.max(0),
        ),
        ("`allow_direct`, with which readers miss turns", found.allow_direct),
        ("`deny_delete`", !found.deny_delete),
        ("`no_ack`", found.no_ack),
    ];
    match differs.iter().find(|(_, differs)| *differs) {
        None => Ok(()),
        Some((what, _)) => Err(Obstacle::Refused(format!(
            "the stream {} has other settings than Quorate gives it: {what}",
            found.name
        ))),
    }
}

/// Whether trying again does not help: the account, or the configuration of the server, forbids it.
fn is_refusal(error: &async_nats::jetstream::Error) -> bool {
    // 408 and 503 are answers of servers that have no leader, or have no JetStream at all.
    let has_none = [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT]
        .contains(&error.error_code());
    has_none || !matches!(error.code(), 408 | 503)
}

fn found(
    answer: Result<StreamMessage, async_nats::error::Error<RawMessageErrorKind>>,
) -> Result<Option<StreamMessage>, Obstacle> {
    match answer {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(Obstacle::Away(error_text(&error))),
    }
}

/// An error with its causes.
fn error_text(error: &(dyn std::error::Error + 'static)) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors.map(ToString::to_string).collect::<Vec<_>>().join(": ")
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

#[cfg(test)]
mod shared_tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(version("2.12.3"), MIN_VERSION);
        assert!(version("2.9.10") < MIN_VERSION && version("") < MIN_VERSION);
        assert!(version("2.15.1") > MIN_VERSION && version("3.0.0-beta.1") > MIN_VERSION);
    }
}

#[cfg(test)]
mod subject_tests {
    use super::token;

    #[test]
    fn different_names_are_different_tokens() {
        let long = "x".repeat(1000);
        let names =
            ["a", "A", "a ", "=41", "é", "e\u{301}", "..", "a.b", "a=2eb", "", "=", ">", "*", "\0", &long];
        let mut tokens: Vec<String> = names.iter().map(|name| token(name)).collect();
        assert!(tokens.iter().all(|token| {
            !token.is_empty()
                && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte))
        }));
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), names.len());
        assert_eq!(token("release-Council_7"), "release-Council_7");
    }
}
