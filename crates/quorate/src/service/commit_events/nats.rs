//! Commit events over NATS: after a commit `{run, n, kind, at}` of each record on `q1.<tenant>.ev.run.<run>`, after tasks
//! were queued a message on `q1.<tenant>.ev.queue`, and subscriptions to those of all. Nothing waits for NATS: where it is away, readers look into the ledger as they do
//! without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorate_adapters::nats::{Address, Change, ConnectError, Connection};
use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy;
use quorate_ledger::store::CommittedRecords;
use quorate_manifest::timestamp;
use quorate_protocol::Name;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::{CommitEvent, CommitEvents, DEFAULT_TENANT};
use crate::service::environment::NatsServers;
use crate::service::error::ServiceError;

/// The subjects of all tenants and runs.
const ALL_RUNS: &str = "q1.*.ev.run.*";
/// The subjects of all tenants' queues.
const ALL_QUEUES: &str = "q1.*.ev.queue";
/// How many messages wait for a connection that is slow or lost; what is more is dropped.
const MAX_OUTGOING: usize = 10_000;
/// The largest message that is read, in bytes.
const MAX_MESSAGE: usize = 4096;
/// What the server's monitoring shows.
const CLIENT_NAME: &str = "quorate";
/// How long connecting and an event to oneself may take.
const ROUND_TRIP_TIMEOUT: Duration = Duration::from_secs(8);
/// How long the last messages may take to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long those who queue wait for the servers: workers look every second without them.
#[cfg(feature = "postgres")]
const TELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Where the servers are, who connects, and what for.
#[derive(Clone)]
pub struct NatsOptions {
    pub servers: NatsServers,
    /// Whether to tell others of what this process commits.
    pub publishes: bool,
    /// What to hear of that others commit.
    pub listens: Option<Heard>,
}

/// What is heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// New records of runs.
    Runs,
    /// New tasks in the queue.
    Tasks,
}

/// What is sent of a record. More is in the ledger.
#[derive(Debug, Deserialize)]
struct Message {
    run: Name,
}

/// A connection of this process's commit events. Without it they go on within the process.
pub struct NatsEvents {
    events: CommitEvents,
    notices: UnboundedReceiver<String>,
    sending: Option<JoinHandle<()>>,
    listening: Option<JoinHandle<()>>,
}

impl NatsEvents {
    /// Connects. A server that does not answer is said, and tried again and again.
    ///
    /// # Errors
    /// [`codes::NATS_UNUSABLE`] for an address that is none, credentials that cannot be read, and a server that refuses.
    pub async fn connect(events: &CommitEvents, options: &NatsOptions) -> Result<NatsEvents, ServiceError> {
        let address = events_address(&options.servers)?;
        let (notice, notices) = mpsc::unbounded_channel();
        let link = Arc::new(Link::new(events.clone(), address, notice));
        let refused = |error| refused(&link.address, &error);
        let connection = connect(&link).await.map_err(refused)?;
        let sending = options.publishes.then(|| publish(events, connection.clone()));
        let listening = match options.listens {
            Some(heard) => Some(listen(link.clone(), &connection, heard).await.map_err(refused)?),
            None => None,
        };
        Ok(NatsEvents { events: events.clone(), notices, sending, listening })
    }

    /// The next sentence for the user: that the server is away, or back, or refuses something.
    pub async fn notice(&mut self) -> String {
        match self.notices.recv().await {
            Some(notice) => notice,
            None => std::future::pending().await,
        }
    }

    /// Sends what is not sent yet, for a moment, and disconnects.
    pub async fn close(self) {
        *self.events.publish() = None;
        if let Some(sending) = self.sending {
            let _ = timeout(FLUSH_TIMEOUT, sending).await;
        }
        if let Some(listening) = self.listening {
            listening.abort();
        }
    }
}

/// The address of servers; the error is a sentence about it.
pub(crate) fn address(servers: &NatsServers) -> Result<Address, String> {
    let NatsServers { urls, credentials, inbox } = servers;
    Address::parse(urls, credentials.clone(), inbox.clone())
}

fn events_address(servers: &NatsServers) -> Result<Address, ServiceError> {
    address(servers).map_err(|why| unusable(format!("the address of `--events` cannot be used: {why}")))
}

fn refused(address: &Address, error: &ConnectError) -> ServiceError {
    unusable(format!("{address} cannot be used: {error}"))
}

fn unusable(what: String) -> ServiceError {
    let help = "give `--events nats://host:4222`, with `tls://` where the connection is encrypted, and \
                `--events-creds FILE` where the server asks for credentials";
    ServiceError::configuration(codes::NATS_UNUSABLE, Body::new(what).help(help))
}

/// Sends an event of no run and waits for it; says which server carried it, and how fast.
///
/// # Errors
/// [`codes::NATS_UNUSABLE`] where it does not come back.
pub async fn round_trip(servers: &NatsServers) -> Result<String, ServiceError> {
    let address = events_address(servers)?;
    let run: Name = format!("doctor-{}", entropy::run_id()).into();
    let travels = async {
        let connection = Connection::open(&address, CLIENT_NAME, |_| {}).await?;
        let mut subscription =
            connection.subscribe(ALL_RUNS.to_owned()).await.map_err(ConnectError::Refused)?;
        connection.flush().await;
        let sent = Instant::now();
        let message = json!({"run": &*run}).to_string().into_bytes();
        connection.publish(subject(DEFAULT_TENANT, &run), message).await.map_err(ConnectError::Refused)?;
        while let Some(payload) = subscription.next().await {
            if serde_json::from_slice::<Message>(&payload).is_ok_and(|message| message.run == run) {
                let took = sent.elapsed().as_secs_f64() * 1e3;
                return Ok(format!("{address}, {}: an event came back in {took:.1} ms", connection.server()));
            }
        }
        Err(ConnectError::Absent("the connection was lost".to_owned()))
    };
    match timeout(ROUND_TRIP_TIMEOUT, travels).await {
        Ok(done) => done.map_err(|error| refused(&address, &error)),
        Err(_) => Err(unusable(format!(
            "{address} cannot be used: an event did not come back within {} s; this user needs to publish and subscribe to \
             `q1.>`",
            ROUND_TRIP_TIMEOUT.as_secs()
        ))),
    }
}

/// What the state of the connection means for readers.
struct Link {
    events: CommitEvents,
    address: Address,
    notice: UnboundedSender<String>,
    is_subscribed: AtomicBool,
    is_connected: AtomicBool,
    /// The server refuses the subscription.
    is_refused: AtomicBool,
    /// It was said that the server does not answer.
    is_away: AtomicBool,
}

impl Link {
    fn new(events: CommitEvents, address: Address, notice: UnboundedSender<String>) -> Link {
        let [is_subscribed, is_connected, is_refused, is_away] = [const { AtomicBool::new(false) }; 4];
        Link { events, address, notice, is_subscribed, is_connected, is_refused, is_away }
    }

    fn changed(&self, change: Change) {
        match change {
            Change::Connected => {
                self.is_connected.store(true, Ordering::SeqCst);
                self.is_refused.store(false, Ordering::SeqCst);
                if self.is_away.swap(false, Ordering::SeqCst) {
                    self.say("answers again");
                }
            }
            Change::Lost => self.is_gone("the connection was lost"),
            Change::Missed => return self.events.tell(CommitEvent::All),
            Change::Refused(why) => {
                self.is_refused.store(true, Ordering::SeqCst);
                self.say(&format!("refuses events: {why}"));
            }
        }
        self.update();
    }

    fn is_gone(&self, why: &str) {
        self.is_connected.store(false, Ordering::SeqCst);
        if !self.is_away.swap(true, Ordering::SeqCst) {
            self.say(&format!(
                "does not answer ({why}): runs go on, watchers ask the ledger itself, and it is tried again"
            ));
        }
    }

    fn say(&self, what: &str) {
        let _ = self.notice.send(format!("{} {what}", self.address));
    }

    fn update(&self) {
        let is = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        self.events.set_listening(is(&self.is_subscribed) && is(&self.is_connected) && !is(&self.is_refused));
    }
}

async fn connect(link: &Arc<Link>) -> Result<Connection, ConnectError> {
    let changed = || {
        let link = link.clone();
        move |change| link.changed(change)
    };
    match Connection::open(&link.address, CLIENT_NAME, changed()).await {
        Err(ConnectError::Absent(why)) => {
            link.is_gone(&why);
            Connection::in_background(&link.address, CLIENT_NAME, changed()).await
        }
        done => done,
    }
}

/// Has what is committed sent, by a task that ends when it is not told of commits any more.
fn publish(events: &CommitEvents, connection: Connection) -> JoinHandle<()> {
    let (sender, mut outgoing) = mpsc::channel(MAX_OUTGOING);
    *events.publish() = Some(Arc::new(move |records: &CommittedRecords, tenant: &str| {
        let subject = subject(tenant, &records.run);
        for (n, (kind, at_ms)) in (records.from..).zip(&records.records) {
            let message =
                json!({"run": &*records.run, "n": n, "kind": kind, "at": timestamp::format(*at_ms)});
            // A server that is away for long misses some.
            let _ = sender.try_send((subject.clone(), message.to_string().into_bytes()));
        }
    }));
    tokio::spawn(async move {
        while let Some((subject, message)) = outgoing.recv().await {
            // An event that cannot be sent is lost, as others may be.
            let _ = connection.publish(subject, message).await;
        }
        connection.flush().await;
    })
}

/// Tells workers that a tenant has new tasks. Without an answer of the servers within a moment they are not told, and find
/// the tasks when they next look.
#[cfg(feature = "postgres")]
pub(in crate::service) async fn tell_of_tasks(servers: &NatsServers, tenant: &str) {
    let telling = async {
        let address = address(servers).map_err(ConnectError::Refused)?;
        let connection = Connection::open(&address, CLIENT_NAME, |_| {}).await?;
        let subject = format!("q1.{}.ev.queue", token(tenant));
        connection.publish(subject, Vec::new()).await.map_err(ConnectError::Refused)?;
        connection.flush().await;
        Ok::<_, ConnectError>(())
    };
    match timeout(TELL_TIMEOUT, telling).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::info!(%error, "workers are not told of new tasks"),
        Err(_) => tracing::info!("workers are not told of new tasks: the servers do not answer"),
    }
}

/// The subject of a run. What would end a name there is a `/`: a conversation may be called anything, and its message has
/// the name as it is.
fn subject(tenant: &str, run: &Name) -> String {
    format!("q1.{}.ev.run.{}", token(tenant), token(run))
}

fn token(name: &str) -> String {
    name.replace(|c: char| c.is_whitespace() || c.is_control() || ".*>".contains(c), "/")
}

/// Hears of runs or tasks, in a task of its own.
async fn listen(
    link: Arc<Link>,
    connection: &Connection,
    heard: Heard,
) -> Result<JoinHandle<()>, ConnectError> {
    let subjects = match heard {
        Heard::Runs => ALL_RUNS,
        Heard::Tasks => ALL_QUEUES,
    };
    let subscribed = connection.subscribe(subjects.to_owned()).await;
    let mut subscription = subscribed.map_err(ConnectError::Refused)?;
    link.is_subscribed.store(true, Ordering::SeqCst);
    link.update();
    Ok(tokio::spawn(async move {
        while let Some(payload) = subscription.next().await {
            match heard {
                Heard::Tasks => link.events.tell(CommitEvent::Tasks),
                Heard::Runs if payload.len() > MAX_MESSAGE => {}
                Heard::Runs => {
                    if let Ok(message) = serde_json::from_slice::<Message>(&payload) {
                        link.events.tell(CommitEvent::Run(message.run));
                    }
                }
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_as_many_parts_whatever_the_names() {
        assert_eq!(subject("acme.eu", &"r1".into()), "q1.acme/eu.ev.run.r1");
        assert_eq!(subject("default", &"a talk.of > 2*\n".into()), "q1.default.ev.run.a/talk/of///2//");
    }
}
