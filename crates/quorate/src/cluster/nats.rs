//! Commit events over NATS. A commit publishes `{run, n, kind, at}` for each record on `q1.<tenant>.ev.run.<run>`, and
//! queueing tasks publishes a message on `q1.<tenant>.ev.queue`. Listeners subscribe to the subjects of all tenants. No
//! work waits for NATS: while it is unreachable, readers poll the ledger.

use std::sync::{Arc, Mutex, PoisonError};
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

use crate::error::Error;
use crate::service::commit_events::{CommitEvent, CommitEvents, DEFAULT_TENANT};
use crate::service::environment::NatsServers;

/// The subjects of all tenants and runs.
const ALL_RUNS: &str = "q1.*.ev.run.*";
/// The subjects of all tenants' queues.
const ALL_QUEUES: &str = "q1.*.ev.queue";
/// How many messages wait for a slow or lost connection; further messages are dropped.
const MAX_OUTGOING: usize = 10_000;
/// The largest message that a listener reads, in bytes.
const MAX_MESSAGE: usize = 4096;
/// The client name in the server's monitoring.
const CLIENT_NAME: &str = "quorate";
/// The timeout of [`round_trip`], connecting included.
const ROUND_TRIP_TIMEOUT: Duration = Duration::from_secs(8);
/// How long the last messages may take to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a command that queues tasks waits for the servers. Workers also poll every second.
#[cfg(feature = "postgres")]
const TELL_TIMEOUT: Duration = Duration::from_secs(1);

/// The servers, the credentials, and what the connection is for.
#[derive(Clone)]
pub struct NatsOptions {
    /// The servers.
    pub servers: NatsServers,
    /// Whether to announce this process's commits to others.
    pub publishes: bool,
    /// Which events of other processes to subscribe to.
    pub listens: Option<Heard>,
}

/// The events that a process subscribes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// New records of runs.
    Runs,
    /// New tasks in the queue.
    Tasks,
}

/// The part of a message that listeners read.
#[derive(Debug, Deserialize)]
struct Message {
    run: Name,
}

/// Connects this process's commit events to other processes. Events within the process do not need it.
pub struct NatsEvents {
    events: CommitEvents,
    notices: UnboundedReceiver<String>,
    sending: Option<JoinHandle<()>>,
    listening: Option<JoinHandle<()>>,
}

impl NatsEvents {
    /// Connects. If no server answers, sends a notice and keeps trying in the background.
    ///
    /// # Errors
    /// [`codes::NATS_UNUSABLE`] for an invalid address, unreadable credentials, or a server that refuses the connection.
    #[doc(hidden)]
    pub async fn connect(events: &CommitEvents, options: &NatsOptions) -> Result<NatsEvents, Error> {
        let address = events_address(&options.servers)?;
        let (notice, notices) = mpsc::unbounded_channel();
        let link = Arc::new(Link { events: events.clone(), address, notice, state: Mutex::default() });
        let refused = |error| refused(&link.address, &error);
        let connection = connect(&link).await.map_err(refused)?;
        let sending = options.publishes.then(|| publish(events, connection.clone()));
        let listening = match options.listens {
            Some(heard) => Some(listen(link.clone(), &connection, heard).await.map_err(refused)?),
            None => None,
        };
        Ok(NatsEvents { events: events.clone(), notices, sending, listening })
    }

    /// The next notice for the user: the server does not answer, answers again, or refuses a request.
    pub async fn notice(&mut self) -> String {
        match self.notices.recv().await {
            Some(notice) => notice,
            None => std::future::pending().await,
        }
    }

    /// Sends the remaining events for up to 2 s, and disconnects.
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

/// Parses the address of servers; the error is a message for the user.
pub(crate) fn address(servers: &NatsServers) -> Result<Address, String> {
    let NatsServers { urls, credentials, inbox } = servers;
    Address::parse(urls, credentials.clone(), inbox.clone())
}

fn events_address(servers: &NatsServers) -> Result<Address, Error> {
    address(servers).map_err(|why| unusable(format!("the address of `--events` cannot be used: {why}")))
}

fn refused(address: &Address, error: &ConnectError) -> Error {
    unusable(format!("{address} cannot be used: {error}"))
}

fn unusable(what: String) -> Error {
    let help = "give `--events nats://host:4222`, with `tls://` where the connection is encrypted, and \
                `--events-creds FILE` where the server asks for credentials";
    Error::configuration(codes::NATS_UNUSABLE, Body::new(what).help(help))
}

/// Sends an event of a run that does not exist, and waits for it. Returns a line with the server and the time it took.
///
/// # Errors
/// [`codes::NATS_UNUSABLE`] if the event does not come back.
pub(crate) async fn round_trip(servers: &NatsServers) -> Result<String, Error> {
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

/// Translates changes of the connection for readers and for the user.
struct Link {
    events: CommitEvents,
    address: Address,
    notice: UnboundedSender<String>,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    is_subscribed: bool,
    is_connected: bool,
    /// Whether the server refuses the subscription.
    is_refused: bool,
    /// Whether the user was told that the server does not answer.
    is_away: bool,
}

impl Link {
    fn changed(&self, change: Change) {
        self.update(|state| match change {
            Change::Connected => {
                (state.is_connected, state.is_refused) = (true, false);
                if std::mem::take(&mut state.is_away) {
                    self.say("answers again");
                }
            }
            Change::Lost => self.is_gone(state, "the connection was lost"),
            Change::Missed => self.events.tell(CommitEvent::All),
            Change::Refused(why) => {
                state.is_refused = true;
                self.say(&format!("refuses events: {why}"));
            }
        });
    }

    fn is_gone(&self, state: &mut LinkState, why: &str) {
        state.is_connected = false;
        if !std::mem::replace(&mut state.is_away, true) {
            self.say(&format!(
                "does not answer ({why}): runs go on, watchers ask the ledger itself, and it is tried again"
            ));
        }
    }

    fn say(&self, what: &str) {
        let _ = self.notice.send(format!("{} {what}", self.address));
    }

    fn update(&self, change: impl FnOnce(&mut LinkState)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        self.events.set_listening(state.is_subscribed && state.is_connected && !state.is_refused);
    }
}

async fn connect(link: &Arc<Link>) -> Result<Connection, ConnectError> {
    let changed = || {
        let link = link.clone();
        move |change| link.changed(change)
    };
    match Connection::open(&link.address, CLIENT_NAME, changed()).await {
        Err(ConnectError::Absent(why)) => {
            link.update(|state| link.is_gone(state, &why));
            Connection::in_background(&link.address, CLIENT_NAME, changed()).await
        }
        done => done,
    }
}

/// Publishes commits from a background task, which ends when [`NatsEvents::close`] removes the sender.
fn publish(events: &CommitEvents, connection: Connection) -> JoinHandle<()> {
    let (sender, mut outgoing) = mpsc::channel(MAX_OUTGOING);
    *events.publish() = Some(Arc::new(move |records: &CommittedRecords, tenant: &str| {
        let subject = subject(tenant, &records.run);
        for (n, (kind, at_ms)) in (records.from..).zip(&records.records) {
            let message =
                json!({"run": &*records.run, "n": n, "kind": kind, "at": timestamp::format(*at_ms)});
            // A full queue drops the event: the server has been unreachable for long.
            let _ = sender.try_send((subject.clone(), message.to_string().into_bytes()));
        }
    }));
    tokio::spawn(async move {
        while let Some((subject, message)) = outgoing.recv().await {
            // An event is a hint, so a failed one is dropped.
            let _ = connection.publish(subject, message).await;
        }
        connection.flush().await;
    })
}

/// Tells workers that a tenant has new tasks. If the servers do not answer within a second, workers find the tasks at
/// their next poll.
#[cfg(feature = "postgres")]
pub(crate) async fn tell_of_tasks(servers: &NatsServers, tenant: &str) {
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

/// The subject of a run. `/` replaces characters that a subject cannot contain, since a conversation may have any name;
/// the message carries the unchanged name.
fn subject(tenant: &str, run: &Name) -> String {
    format!("q1.{}.ev.run.{}", token(tenant), token(run))
}

fn token(name: &str) -> String {
    name.replace(|c: char| c.is_whitespace() || c.is_control() || ".*>".contains(c), "/")
}

/// Subscribes to runs or tasks, and forwards the events from a background task.
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
    link.update(|state| state.is_subscribed = true);
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
