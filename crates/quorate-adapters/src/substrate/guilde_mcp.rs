//! The `guilde-mcp` substrate: a conversation behind an MCP server that has `post_message` and `get_messages`. This
//! file owns its block and the port; the parts are in `guilde_mcp/`: asking for messages (`room`), what one looks like
//! on the wire (`message`) and in which order they are (`order`), whose they are (`people`), what we write beside a
//! turn (`marks`), what was read already (`memory`), and the port's verbs (`reading`, `posting`, `waiting`).
//!
//! A server that takes `after`, `before`, `waitMs`, `idempotencyKey` and `metadata` is asked with them. One that takes
//! none of them gives its newest messages alone: then what is newer than a turn is known only while that turn is among
//! them, and where it is not, reading is refused rather than guessed.
//!
//! What the server keeps is known only once it was connected; [`Substrate::about`] says [`Keeps::Turns`] until then.
//! Where neither `meta.operatorId` nor `asOperatorId` says whom a participant posts as, whoever may write metadata into
//! the conversation can speak for it.

mod marks;
mod memory;
mod message;
mod order;
mod people;
mod posting;
mod reading;
mod room;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, NewTurn, Turn};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, Error, Keeps, Lifetime, Page, Substrate};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;

use crate::block::Block;
use crate::mcp::{self, Offer};
use memory::Memory;
use people::People;
use posting::Doubts;
use room::{POST, Room};

/// The kind that a manifest names.
pub const KIND: &str = crate::needs_mcp::SUBSTRATE;

const KEYS: &[&str] = &["kind", mcp::SERVER, "conversationId", "asOperatorId", "fetchLimit", "pollMs"];

/// The most messages that are asked for at once.
const LARGEST_FETCH: usize = 500;
const FETCH: usize = 50;
const POLL: Duration = Duration::from_millis(2_000);

/// Builds the substrate from its block.
///
/// # Errors
/// When the block has an unknown key or a value that does not fit, or when the server that it names is not configured.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    let block = Block::of(build.block, KEYS)?;
    let conversation = block.text("conversationId")?.ok_or_else(|| {
        ConfigError::for_key("conversationId", "`conversationId` is missing")
            .with_help("the id of the conversation, as the server knows it")
    })?;
    let fetch = match block.count("fetchLimit")? {
        Some(count) if count > LARGEST_FETCH => {
            return Err(ConfigError::for_key("fetchLimit", format!("`fetchLimit` is {count}"))
                .with_help(format!("a number from 1 to {LARGEST_FETCH}")));
        }
        written => written.unwrap_or(FETCH),
    };
    let poll = block.count("pollMs")?.map_or(POLL, |ms| Duration::from_millis(ms as u64));
    let connection = mcp::connection(&block, build.servers, build.dir)?;
    let people = People::new(build.participants, block.text("asOperatorId")?);
    let room = Room::new(connection, conversation, people);
    Ok(Arc::new(Guilde { room, fetch, poll, memory: Memory::default(), doubts: Doubts::default() }))
}

/// A conversation behind a server.
struct Guilde {
    room: Room,
    /// How many messages are asked for first.
    fetch: usize,
    /// How often a server that cannot wait is asked for news.
    poll: Duration,
    memory: Memory,
    doubts: Doubts,
}

/// Whether the server keeps what we write beside a turn.
fn keeps(offer: &Offer) -> Keeps {
    if offer.takes(POST, "metadata") { Keeps::Stamps } else { Keeps::Turns }
}

#[async_trait]
impl Substrate for Guilde {
    fn about(&self) -> About {
        About {
            kind: KIND,
            capabilities: Capability::ALL.into_iter().collect(),
            keeps: self.room.offered().map_or(Keeps::Turns, |offer| keeps(&offer)),
            lifetime: Lifetime::Persistent,
            place: self.room.place(),
            conversation: Some(self.room.conversation().to_owned()),
        }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, Error> {
        self.post(turn).await
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        self.newer(since, limit).await
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, Error> {
        self.ending_with(at, count).await
    }

    async fn changed(&self) -> Result<(), Error> {
        self.news().await
    }
}
