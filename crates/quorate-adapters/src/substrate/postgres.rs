//! The `postgres` substrate: conversations in the database of the ledger, each under a name, by default the runtime's id.
//! Several machines can take part in one.
//!
//! An append is one statement, which is durable when it returns. Ids, authors and times are those of a journal, so that a
//! transcript is the same in both.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, Appended, IdProof, Page, Substrate, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::{check_turn, id_proof, next_millisecond, persistent, turn_id};
use crate::block::Block;
use crate::postgres::{self, Database, Statement, statement};

/// The kind that manifests name.
pub const KIND: &str = crate::optional_kinds::POSTGRES;

/// How often a waiter looks for turns of other machines.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Builds the substrate from its block.
///
/// # Errors
/// When the block has an unknown key, or the ledger is not on a Postgres server.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Substrate>, ConfigError> {
    let block = Block::parse(build.block, &["kind", "conversation"])?;
    let conversation = block.text("conversation")?.unwrap_or(build.runtime);
    // The server's texts have no NUL.
    if conversation.is_empty() || conversation.contains(char::is_control) {
        return Err(ConfigError::for_key(
            "conversation",
            "`conversation` is empty or has a control character",
        )
        .with_help("a name, for example `conversation: release-council`"));
    }
    Ok(Arc::new(PostgresSubstrate {
        database: postgres::shared(build.servers)?,
        conversation: conversation.to_owned(),
        last_delivered: AtomicI64::new(-1),
    }))
}

struct PostgresSubstrate {
    database: Arc<dyn Database>,
    conversation: String,
    /// The number of the last turn that `read` returned; -1 before the first call.
    last_delivered: AtomicI64,
}

/// A turn on its way into the table.
struct Insertion {
    turn: Turn,
    meta: String,
    stamp: Option<String>,
    /// A random name.
    added_as: String,
}

impl PostgresSubstrate {
    async fn run(&self, statement: Statement) -> Result<Vec<PgRow>, SubstrateError> {
        statement.run(&*self.database).await.map_err(|error| {
            SubstrateError::unavailable(
                format!("the conversation `{}` in the ledger's database does not answer", self.conversation),
                error,
            )
        })
    }

    async fn turn_number(&self, id: &str) -> Result<Option<i64>, SubstrateError> {
        let number = statement("SELECT n FROM conversation_turn WHERE conversation = $1 AND id = $2");
        let rows = self.run(number.bind(&self.conversation).bind(id)).await?;
        rows.first().map(|row| row.try_get(0)).transpose().map_err(unreadable)
    }

    /// The number of the last turn; 0 without turns.
    async fn last_number(&self) -> Result<i64, SubstrateError> {
        let last = statement("SELECT COALESCE(MAX(n), 0) FROM conversation_turn WHERE conversation = $1");
        let rows = self.run(last.bind(&self.conversation)).await?;
        rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(unreadable)
    }

    /// The turn with a key or an id, and what the one that added it called this.
    async fn find(&self, by: Statement) -> Result<Option<(Turn, String)>, SubstrateError> {
        let rows = self.run(by).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some((turn_from_row(row)?, row.try_get(6).map_err(unreadable)?)))
    }

    async fn turn_by_key(&self, key: &str) -> Result<Option<(Turn, String)>, SubstrateError> {
        let by_key = statement(
            "SELECT id, participant, said_at, content, meta, stamp, added_as FROM conversation_turn \
             WHERE conversation = $1 AND stamp_key = $2",
        );
        self.find(by_key.bind(&self.conversation).bind(key)).await
    }

    async fn turn_by_id(&self, id: &str) -> Result<Option<(Turn, String)>, SubstrateError> {
        let by_id = statement(
            "SELECT id, participant, said_at, content, meta, stamp, added_as FROM conversation_turn \
             WHERE conversation = $1 AND id = $2",
        );
        self.find(by_id.bind(&self.conversation).bind(id)).await
    }

    /// Adds a turn after the last one, unless another one has this number, the id or the key: says whether it was added.
    /// Who adds at the same time waits for the other, so that turns become visible in the order of their numbers.
    async fn insert(&self, insertion: &Insertion) -> Result<bool, SubstrateError> {
        let Insertion { turn, meta, stamp, added_as } = insertion;
        let insert = statement(
            "INSERT INTO conversation_turn \
             (conversation, n, id, participant, said_at, content, meta, stamp_key, stamp, added_as) \
             SELECT $1, COALESCE(MAX(n), 0) + 1, $2, $3, $4, $5, $6, $7, $8, $9 \
             FROM conversation_turn WHERE conversation = $1 ON CONFLICT DO NOTHING RETURNING n",
        );
        let insert = insert
            .bind(&self.conversation)
            .bind(&*turn.id)
            .bind(&*turn.participant)
            .bind(&*turn.timestamp)
            .bind(turn.content.as_bytes())
            .bind(meta)
            .bind(turn.stamp.as_ref().map(|stamp| &*stamp.key))
            .bind(stamp.as_ref())
            .bind(added_as);
        Ok(!self.run(insert).await?.is_empty())
    }
}

fn unreadable(error: sqlx::Error) -> SubstrateError {
    SubstrateError::unavailable("a turn in the ledger's database cannot be read", error)
}

fn turn_from_row(row: &PgRow) -> Result<Turn, SubstrateError> {
    let text = |at: usize| row.try_get::<&str, _>(at).map_err(unreadable);
    let id = text(0)?;
    let broken = |error: serde_json::Error| {
        SubstrateError::unavailable(
            format!("the metadata of turn {id} in the ledger's database is not JSON"),
            error,
        )
    };
    let content = std::str::from_utf8(row.try_get(3).map_err(unreadable)?);
    let stamp = row.try_get::<Option<&str>, _>(5).map_err(unreadable)?;
    Ok(Turn {
        id: id.into(),
        participant: text(1)?.into(),
        timestamp: text(2)?.into(),
        content: content
            .map_err(|error| {
                SubstrateError::unavailable(format!("the text of the turn {id} is not UTF-8"), error)
            })?
            .into(),
        meta: serde_json::from_str(text(4)?).map_err(broken)?,
        stamp: stamp.map(serde_json::from_str).transpose().map_err(broken)?,
    })
}

#[async_trait]
impl Substrate for PostgresSubstrate {
    fn about(&self) -> About {
        // Without the server's name, which may differ from machine to machine: the ledger's lease of the stream
        // that is called after this is what lets one machine at a time run the conversation.
        persistent(KIND, format!("{KIND}#{}", self.conversation))
    }

    fn id_proof(&self, turn: &Turn) -> IdProof {
        id_proof(turn)
    }

    async fn append(&self, turn: NewTurn) -> Result<Appended, SubstrateError> {
        check_turn(&turn)?;
        let NewTurn { participant, content, timestamp, meta, stamp } = turn;
        let unwritable =
            |error| SubstrateError::Refused(format!("the turn's metadata cannot be written: {error}"));
        let id = turn_id(&participant, &timestamp, &content);
        let mut insertion = Insertion {
            meta: serde_json::to_string(&meta).map_err(unwritable)?,
            stamp: stamp.as_ref().map(serde_json::to_string).transpose().map_err(unwritable)?,
            turn: Turn { id, participant, timestamp: timestamp.into(), content, meta, stamp },
            added_as: entropy::hex(&entropy::bytes::<8>()),
        };
        loop {
            if self.insert(&insertion).await? {
                return Ok(Appended { turn: insertion.turn, fresh: true });
            }
            if let Some(stamp) = &insertion.turn.stamp
                && let Some((turn, added_as)) = self.turn_by_key(&stamp.key).await?
            {
                return Ok(Appended { turn, fresh: added_as == insertion.added_as });
            }
            // If there is none, a turn that was added meanwhile has the number.
            let Some((turn, added_as)) = self.turn_by_id(&insertion.turn.id).await? else { continue };
            if added_as == insertion.added_as {
                return Ok(Appended { turn, fresh: true });
            }
            let turn = &mut insertion.turn;
            turn.timestamp = next_millisecond(&turn.timestamp)?.into();
            turn.id = turn_id(&turn.participant, &turn.timestamp, &turn.content);
        }
    }

    async fn read(&self, since: Option<&Name>, limit: usize) -> Result<Page, SubstrateError> {
        let at = match since {
            Some(since) => self.turn_number(since).await?,
            None => None,
        };
        let newer = statement(
            "SELECT id, participant, said_at, content, meta, stamp, n FROM conversation_turn \
             WHERE conversation = $1 AND n > $2 ORDER BY n LIMIT $3",
        );
        let newer = newer.bind(&self.conversation).bind(at.unwrap_or(0)).bind(as_limit(limit));
        let rows = self.run(newer).await?;
        let last = rows.last().map_or(Ok(at.unwrap_or(0)), |row| row.try_get(6)).map_err(unreadable)?;
        self.last_delivered.store(last, Ordering::SeqCst);
        let turns = rows.iter().map(turn_from_row).collect::<Result<_, _>>()?;
        Ok(Page { turns, known: since.is_none() || at.is_some() })
    }

    async fn window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, SubstrateError> {
        let window = statement(
            "SELECT id, participant, said_at, content, meta, stamp FROM conversation_turn WHERE conversation = $1 \
             AND n <= (SELECT n FROM conversation_turn WHERE conversation = $1 AND id = $2) \
             ORDER BY n DESC LIMIT $3",
        );
        let window = window.bind(&self.conversation).bind(&**at).bind(as_limit(count));
        self.run(window).await?.iter().rev().map(turn_from_row).collect()
    }

    async fn changed(&self) -> Result<(), SubstrateError> {
        while self.last_number().await? == self.last_delivered.load(Ordering::SeqCst) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

fn as_limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
