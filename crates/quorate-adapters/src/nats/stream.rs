//! A JetStream stream, read from its leader: what was acknowledged is what is read. A server that is away, and a cluster that
//! elects a leader, are waited for.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, RawMessageErrorKind, RetentionPolicy, StorageType, Stream,
};
use async_nats::jetstream::{Context, ErrorCode};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::shared::SharedNats;

/// How long a server may be away, or a cluster without a leader.
const AWAY_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before the next try.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How many copies a cluster keeps, unless the manifest says.
const CLUSTER_REPLICAS: usize = 3;

/// What a stream is to be.
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

/// What an attempt came to that is not an answer.
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
        let number = |opened: &OpenStream| {
            let stream = opened.stream.clone();
            async move {
                let info = stream.get_info().await;
                info.map(|info| info.state.last_sequence).map_err(|error| Obstacle::Away(error.to_string()))
            }
            .boxed()
        };
        self.patiently(number).await
    }

    /// The message with a number, if there is one.
    pub(crate) async fn message(&self, number: u64) -> Result<Option<StreamMessage>, StreamError> {
        let get = move |opened: &OpenStream| {
            let stream = opened.stream.clone();
            async move { found(stream.get_raw_message(number).await) }.boxed()
        };
        self.patiently(get).await
    }

    /// The last message of a subject, if there is one.
    pub(crate) async fn last_of(&self, subject: &str) -> Result<Option<StreamMessage>, StreamError> {
        let get = |opened: &OpenStream| {
            let (stream, subject) = (opened.stream.clone(), subject.to_owned());
            async move { found(stream.get_last_raw_message_by_subject(&subject).await) }.boxed()
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
        let send = |opened: &OpenStream| {
            let (context, subject, payload) = (opened.context.clone(), subject.to_owned(), payload.clone());
            let message =
                PublishMessage::build().expected_stream(&self.settings.name).payload(payload.into());
            let message = if is_first { message.expected_last_subject_sequence(0) } else { message };
            async move {
                let sent = match context.send_publish(subject, message).await {
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
                    _ => Err(Obstacle::Away(chain(&error))),
                }
            }
            .boxed()
        };
        self.patiently(send).await
    }

    /// A subscription to what is sent to the stream's subjects. The server tells it before the stream has a message, and does
    /// not tell it at all while the connection is lost.
    pub(crate) async fn listen(&self) -> Result<async_nats::Subscriber, StreamError> {
        let subscribe = |opened: &OpenStream| {
            let (client, subjects) = (opened.context.client(), self.settings.subjects.clone());
            async move { client.subscribe(subjects).await.map_err(|error| Obstacle::Refused(chain(&error))) }
                .boxed()
        };
        self.patiently(subscribe).await
    }

    async fn patiently<T>(
        &self,
        attempt: impl Fn(&OpenStream) -> BoxFuture<'static, Result<T, Obstacle>>,
    ) -> Result<T, StreamError> {
        let began = Instant::now();
        loop {
            let done = match self.opened.get_or_try_init(|| self.open()).await {
                Ok(opened) => attempt(opened).await,
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
        let mut made = false;
        loop {
            let error = match context.get_stream(&wanted.name).await {
                Ok(stream) => {
                    check(&stream.cached_info().config, &wanted)?;
                    return Ok(OpenStream { context, stream });
                }
                Err(error) => error,
            };
            match error.kind() {
                GetStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NOT_FOUND && !made =>
                {
                    made = true;
                }
                GetStreamErrorKind::JetStream(error) if is_refusal(&error) => {
                    return Err(Obstacle::Refused(error.to_string()));
                }
                _ => return Err(Obstacle::Away(chain(&error))),
            }
            match context.create_stream(wanted.clone()).await {
                Ok(_) => {}
                Err(error) => match error.kind() {
                    // Another one was faster.
                    CreateStreamErrorKind::JetStream(error)
                        if error.error_code() == ErrorCode::STREAM_NAME_EXIST => {}
                    CreateStreamErrorKind::JetStream(error) if is_refusal(&error) => {
                        return Err(Obstacle::Refused(format!(
                            "the stream {} with {} copies cannot be made: {error}",
                            wanted.name, wanted.num_replicas
                        )));
                    }
                    _ => return Err(Obstacle::Away(chain(&error))),
                },
            }
        }
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
        Err(error) => Err(Obstacle::Away(chain(&error))),
    }
}

/// An error with its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
