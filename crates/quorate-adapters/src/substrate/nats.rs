//! The `nats` substrate: a conversation in a JetStream stream, for participants that do not reach the ledger's database.
//!
//! A turn is a message on a subject of its own: of its key, or of a random name where it has none. It is added only if its
//! subject has no message, so that a turn is stored once, however often it is sent. Everything is read from the stream's
//! leader. A message that is not a turn comes from another program and is skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::Subscriber;
use async_trait::async_trait;
use futures::StreamExt as _;
use futures::future::try_join_all;
use quorate_kernel::conversation::{MAX_TURN_BYTES, NewTurn, Stamp, Turn};
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, IdProof, Page, Substrate, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::{check_turn, persistent};
use crate::block::Block;
use crate::nats::{self, LazyStream, Published, Settings, SharedNats, StreamError, token};
use crate::substrate::turn_id;

/// The kind that manifests name.
pub const KIND: &str = crate::optional_kinds::NATS_SUBSTRATE;

/// How many messages are asked for at once.
const BATCH: u64 = 32;
/// How often a waiter looks though nothing was heard: a message is not told while the connection is lost.
const SLOW_POLL: Duration = Duration::from_secs(2);
/// How long a waiter that was told of a message looks for it in the stream, which has it a little later.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(500);
const SETTLE_PAUSE: Duration = Duration::from_millis(5);

/// Builds the substrate from its block.
///
/// # Errors
/// When the block has an unknown key or a value that does not fit, or no NATS servers are named.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    let block = Block::parse(build.block, &["kind", "conversation", "replicas"])?;
    let conversation = block.text("conversation")?.unwrap_or(build.runtime);
    if conversation.is_empty() {
        return Err(ConfigError::for_key("conversation", "`conversation` is empty")
            .with_help("a name, for example `conversation: release-council`"));
    }
    let replicas = block.count("replicas")?;
    if replicas.is_some_and(|replicas| !(1..=5).contains(&replicas)) {
        return Err(ConfigError::for_key("replicas", "`replicas` is not from 1 to 5").with_help(
            "on how many servers of the cluster the conversation is kept; 3 unless you say otherwise",
        ));
    }
    let nats = nats::shared(build.servers)?;
    let prefix = format!("q1.{}.c.{}", token(nats.tenant()), token(conversation));
    let settings = Settings {
        name: format!("q1-{}-c-{}", token(nats.tenant()), token(conversation)),
        description: "A conversation of Quorate".to_owned(),
        subjects: format!("{prefix}.*"),
        keeps_last: false,
        replicas,
    };
    Ok(Arc::new(NatsSubstrate {
        place: place(&nats, conversation),
        stream: LazyStream::new(nats, settings),
        prefix,
        last_delivered: AtomicU64::new(UNREAD),
        news: Mutex::default(),
    }))
}

fn place(nats: &SharedNats, conversation: &str) -> String {
    format!("{KIND}/{}#{conversation}", nats.tenant())
}

/// What `last_delivered` is before the first read.
const UNREAD: u64 = u64::MAX;

struct NatsSubstrate {
    place: String,
    stream: LazyStream,
    /// What every subject of it begins with.
    prefix: String,
    /// The number of the last message that `read` returned or passed over.
    last_delivered: AtomicU64,
    /// Hears of new messages.
    news: Mutex<Option<Subscriber>>,
}

impl From<StreamError> for SubstrateError {
    fn from(error: StreamError) -> Self {
        SubstrateError::unavailable("the conversation on the NATS servers does not answer", error)
    }
}

impl NatsSubstrate {
    /// The turn with a number; `None` if the message is missing or is not a turn.
    async fn turn(&self, number: u64) -> Result<Option<Turn>, SubstrateError> {
        let stored = self.stream.message(number).await?;
        Ok(stored.and_then(|stored| Message::parse(&stored.payload)).map(|message| message.into_turn(number)))
    }

    /// The number of a turn, if it is there.
    async fn number_of(&self, id: &str) -> Result<Option<u64>, SubstrateError> {
        let Some(number) = number_of(id) else { return Ok(None) };
        let turn = self.turn(number).await?;
        Ok(turn.filter(|turn| *turn.id == *id).map(|_| number))
    }

    /// The turns of a range of numbers, in order.
    async fn turns(
        &self,
        numbers: impl Iterator<Item = u64>,
    ) -> Result<Vec<(u64, Option<Turn>)>, SubstrateError> {
        try_join_all(numbers.map(|number| async move { Ok((number, self.turn(number).await?)) })).await
    }

    /// Waits until a message was sent, or a while; says whether one was.
    async fn hear(&self) -> Result<bool, SubstrateError> {
        let mut news = self.news.lock().await;
        let subscriber = match news.take() {
            Some(subscriber) => subscriber,
            // An earlier attempt may have stored the turn.
            None => {
                *news = Some(self.stream.listen().await?);
                return Ok(false);
            }
        };
        let subscriber = news.insert(subscriber);
        let heard = timeout(SLOW_POLL, subscriber.next()).await;
        if let Ok(None) = heard {
            *news = None;
        }
        Ok(heard.is_ok())
    }
}

#[async_trait]
impl Substrate for NatsSubstrate {
    fn about(&self) -> About {
        persistent(KIND, self.place.clone())
    }

    /// Ids are made of the content whenever a turn is read.
    fn id_proof(&self, _turn: &Turn) -> IdProof {
        IdProof::Holds
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        check_turn(&turn)?;
        let message = Message::new(turn, entropy::hex(&entropy::bytes::<16>()));
        let subject = format!("{}.{}", self.prefix, message.subject());
        let payload = message.write()?;
        loop {
            match self.stream.publish(&subject, payload.clone(), true).await? {
                Published::At(number) => {
                    return Ok(Appended { turn: message.into_turn(number), fresh: true });
                }
                Published::TooLong { limit } => {
                    return Err(SubstrateError::Refused(format!(
                        "the turn with its metadata has {} bytes, and the NATS servers take {limit}: raise their `max_payload`",
                        payload.len()
                    )));
                }
                Published::Occupied => {}
            }
            // It was purged since then where it is not there.
            let Some(stored) = self.stream.last_of(&subject).await? else { continue };
            let Some(first) = Message::parse(&stored.payload) else {
                return Err(SubstrateError::Refused(format!(
                    "another program has stored a message that is not a turn in the turn's place, {subject}"
                )));
            };
            let fresh = first.is_same_append(&message);
            return Ok(Appended { turn: first.into_turn(stored.sequence), fresh });
        }
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let at = match since {
            Some(since) => self.number_of(since).await?,
            None => None,
        };
        let last = self.stream.last_number().await?;
        let mut turns = Vec::new();
        let mut seen = at.unwrap_or(0);
        while seen < last && turns.len() < limit {
            for (number, turn) in self.turns(seen + 1..=last.min(seen + BATCH)).await? {
                if turns.len() == limit {
                    break;
                }
                turns.extend(turn);
                seen = number;
            }
        }
        self.last_delivered.store(seen, Ordering::SeqCst);
        Ok(Page { turns, known: since.is_none() || at.is_some() })
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        let Some(mut number) = self.number_of(at).await? else { return Ok(Vec::new()) };
        let mut turns = Vec::new();
        while number > 0 && turns.len() < count {
            let first = number.saturating_sub(BATCH - 1).max(1);
            let batch = self.turns((first..=number).rev()).await?;
            if batch.iter().all(|(_, turn)| turn.is_none()) {
                // Older ones were purged.
                break;
            }
            turns.extend(batch.into_iter().filter_map(|(_, turn)| turn));
            number = first - 1;
        }
        turns.truncate(count);
        turns.reverse();
        Ok(turns)
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        let is_new = async || -> Result<bool, SubstrateError> {
            Ok(self.stream.last_number().await? != self.last_delivered.load(Ordering::SeqCst))
        };
        while !is_new().await? {
            if !self.hear().await? {
                continue;
            }
            let heard = Instant::now();
            while heard.elapsed() < SETTLE_TIMEOUT {
                if is_new().await? {
                    return Ok(());
                }
                sleep(SETTLE_PAUSE).await;
            }
        }
        Ok(())
    }
}

struct Message {
    head: Head,
    content: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    participant: Name,
    timestamp: String,
    meta: Map<String, Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Stamp>,
    /// A random name, by which the one that sends a turn recognizes it.
    added_as: String,
}

impl Message {
    fn new(turn: NewTurn, added_as: String) -> Message {
        let NewTurn { participant, content, timestamp, meta, stamp } = turn;
        Message { head: Head { participant, timestamp, meta, stamp, added_as }, content }
    }

    /// Reads a message; `None` if it is not a turn that a substrate would have accepted.
    fn parse(payload: &[u8]) -> Option<Message> {
        let end = payload.iter().position(|byte| *byte == b'\n')?;
        let (head, content) = payload.split_at(end);
        if content.len() > MAX_TURN_BYTES + 1 {
            return None;
        }
        let head: Head = serde_json::from_slice(head).ok()?;
        let content: Arc<str> = std::str::from_utf8(&content[1..]).ok()?.into();
        let turn = NewTurn {
            participant: head.participant.clone(),
            content: content.clone(),
            timestamp: head.timestamp.clone(),
            meta: head.meta.clone(),
            stamp: head.stamp.clone(),
        };
        check_turn(&turn).ok().map(|()| Message { head, content })
    }

    fn write(&self) -> Result<Vec<u8>, SubstrateError> {
        let mut text = serde_json::to_vec(&self.head).map_err(|error| {
            SubstrateError::Refused(format!("the turn's metadata cannot be written: {error}"))
        })?;
        text.push(b'\n');
        text.extend_from_slice(self.content.as_bytes());
        Ok(text)
    }

    /// The last part of its subject: the same for turns with the same key.
    fn subject(&self) -> String {
        match &self.head.stamp {
            Some(stamp) => sha256_hex(stamp.key.as_bytes()),
            None => format!("-{}", self.head.added_as),
        }
    }

    fn is_same_append(&self, other: &Message) -> bool {
        self.head.added_as == other.head.added_as
    }

    /// The turn, as the message with this number. Its id has the hash that it has everywhere, and the number, by which it
    /// is found.
    fn into_turn(self, number: u64) -> Turn {
        let Message { head: Head { participant, timestamp, meta, stamp, .. }, content } = self;
        let hash = turn_id(&participant, &timestamp, &content);
        let id = format!("{hash}_{number}").into();
        Turn { id, participant, timestamp: timestamp.into(), content, meta, stamp }
    }
}

/// The number in a turn's id.
fn number_of(id: &str) -> Option<u64> {
    let (_, digits) = id.strip_prefix("t_")?.split_once('_')?;
    digits.parse().ok()
}
