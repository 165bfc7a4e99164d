//! The `guilde-mcp` substrate: a conversation behind an MCP server that has `post_message` and `get_messages`. This file
//! owns its block and the port. In `guilde_mcp/`: requests for messages (`conversation`), their form on the wire
//! (`message`), the order that the server lists them in (`order`), their authors (`authors`), the metadata that is written with a turn
//! (`turn_metadata`), what was read before (`read_history`), and the port's verbs (`reading`, `posting`, `waiting`).
//!
//! Requests use `after`, `before`, `waitMs`, `idempotencyKey` and `metadata` if the server takes them. A server that takes
//! none of them returns only its newest messages: then the messages newer than a turn are known only while that turn is
//! among them; if it is not, reading fails.
//!
//! Order and ids are the server's (K17). Clocks decide nothing: a message may have any time, or none. A message without an
//! author is a turn of `system`.
//!
//! Whether the server stores metadata is known only after it was connected; [`Substrate::about`] returns [`Keeps::Turns`]
//! until then. A participant without `meta.operatorId`, in a block without `asOperatorId`, can be impersonated by everyone
//! who may write metadata into the conversation.

mod authors;
mod conversation;
mod message;
mod order;
mod posting;
mod read_history;
mod reading;
mod turn_metadata;
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
use crate::mcp::{self, ServerTools};
use authors::{AuthorMap, SYSTEM};
use conversation::{Conversation, POST_TOOL};
use order::{Direction, ListingOrder};
use posting::UncertainPosts;
use read_history::ReadHistory;

/// The kind that a manifest names.
pub const KIND: &str = crate::optional_kinds::MCP_SUBSTRATE;

const KEYS: &[&str] =
    &["kind", mcp::SERVER_KEY, "conversationId", "asOperatorId", "fetchLimit", "order", "pollMs"];

/// The most messages of one request.
const MAX_FETCH: usize = 500;
const DEFAULT_FETCH: usize = 50;
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_millis(2_000);

/// Builds the substrate from its block.
///
/// # Errors
/// When the block has an unknown key or a value that does not fit, or when the server that it names is not configured.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    let block = Block::parse(build.block, KEYS)?;
    let conversation = block.text("conversationId")?.ok_or_else(|| {
        ConfigError::for_key("conversationId", "`conversationId` is missing")
            .with_help("the id of the conversation, as the server knows it")
    })?;
    let initial_fetch = match block.count("fetchLimit")? {
        Some(count) if count > MAX_FETCH => {
            return Err(ConfigError::for_key("fetchLimit", format!("`fetchLimit` is {count}"))
                .with_help(format!("a number from 1 to {MAX_FETCH}")));
        }
        written => written.unwrap_or(DEFAULT_FETCH),
    };
    let poll_interval =
        block.count("pollMs")?.map_or(DEFAULT_POLL_INTERVAL, |ms| Duration::from_millis(ms as u64));
    let order = match block.text("order")? {
        Some(named) => Some(Direction::parse(named).ok_or_else(|| {
            ConfigError::for_key("order", format!("`order` is `{named}`"))
                .with_help("write `newest-first` or `oldest-first`, or leave it out: the server is asked")
        })?),
        None => None,
    };
    if build.participants.iter().any(|participant| &*participant.id == SYSTEM) {
        let message = format!("a participant has the id `{SYSTEM}`, the author of messages without one");
        return Err(ConfigError::for_block(message).with_help("rename the participant"));
    }
    let connection = mcp::connection(&block, build.servers, build.dir)?;
    let authors = AuthorMap::new(build.participants, block.text("asOperatorId")?);
    let conversation = Conversation::new(connection, conversation, authors, ListingOrder::new(order));
    Ok(Arc::new(GuildeSubstrate {
        conversation,
        initial_fetch,
        poll_interval,
        read_history: ReadHistory::default(),
        uncertain_posts: UncertainPosts::default(),
    }))
}

struct GuildeSubstrate {
    conversation: Conversation,
    /// The number of messages in the first request.
    initial_fetch: usize,
    /// How often a server that cannot wait is asked for new messages.
    poll_interval: Duration,
    read_history: ReadHistory,
    uncertain_posts: UncertainPosts,
}

/// Whether the server stores metadata with a message.
fn keeps_of(offer: &ServerTools) -> Keeps {
    if offer.accepts(POST_TOOL, "metadata") { Keeps::Stamps } else { Keeps::Turns }
}

#[async_trait]
impl Substrate for GuildeSubstrate {
    fn about(&self) -> About {
        About {
            kind: KIND,
            capabilities: Capability::ALL.into_iter().collect(),
            keeps: self.conversation.last_tools().map_or(Keeps::Turns, |offer| keeps_of(&offer)),
            lifetime: Lifetime::Persistent,
            place: self.conversation.stable_name(),
            conversation: Some(self.conversation.conversation_id().to_owned()),
        }
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, Error> {
        self.post(turn).await
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, Error> {
        self.read_newer(since, limit).await
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, Error> {
        self.window_ending_at(at, count).await
    }

    async fn changed(&self) -> Result<(), Error> {
        self.wait_for_news().await
    }
}
