//! `GET /api/v1/ledger`: what the ledger holds.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::ledger::stats;
use quorate_kernel::entropy;
use quorate_ledger::store::CheckpointRecord;
use quorate_manifest::timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// What the ledger holds.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ledger {
    /// Where it is
    pub(crate) ledger: String,
    /// The size of its files, or of its tables on a server, in bytes
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    /// How many of the records were erased
    pub(crate) erased: u64,
    pub(crate) runs: u64,
    /// How many of the runs are not ended
    pub(crate) open: u64,
    /// How many of the runs have signed records
    pub(crate) signed: u64,
    /// How many of the runs came from other ledgers
    pub(crate) imported: u64,
    /// How many of the runs are under a legal hold
    pub(crate) held: u64,
    /// The last checkpoint; null without one
    pub(crate) checkpoint: Option<Checkpoint>,
    /// How many records no checkpoint covers yet
    pub(crate) unsealed: u64,
}

/// A checkpoint: size and root of the ledger's Merkle tree, signed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Checkpoint {
    /// The ledger's name
    pub(crate) origin: String,
    /// How many records it covers
    pub(crate) size: u64,
    /// The root of the tree, in hexadecimal digits
    pub(crate) root: String,
    /// When it was made, RFC 3339 in UTC
    pub(crate) at: String,
    /// The signed note; null if it is unsigned
    pub(crate) note: Option<String>,
    /// The keys that verify it, one line each: compare them with what the ledger's owner gave you
    pub(crate) keys: Vec<String>,
}

impl Checkpoint {
    fn of(checkpoint: &CheckpointRecord, at_ms: i64) -> Checkpoint {
        Checkpoint {
            origin: checkpoint.origin.clone(),
            size: checkpoint.tree.size,
            root: entropy::hex(&checkpoint.tree.root),
            at: timestamp::format(at_ms),
            note: checkpoint.note.clone(),
            keys: checkpoint.keys.clone(),
        }
    }
}

/// Counts what the ledger holds.
pub(crate) async fn load(server: &Arc<Server>) -> Result<Ledger, Failure> {
    let session = server.ledger().await?;
    let counted = server.run_computation(Box::pin(async move { stats::stats(&session).await })).await?;
    let stats = counted.stats;
    Ok(Ledger {
        ledger: counted.ledger,
        bytes: counted.file_bytes,
        records: stats.records,
        erased: stats.erased,
        runs: stats.runs,
        open: stats.open,
        signed: stats.signed,
        imported: stats.imported,
        held: stats.held,
        checkpoint: stats.last_checkpoint.map(|(checkpoint, at_ms)| Checkpoint::of(&checkpoint, at_ms)),
        unsealed: stats.since_checkpoint,
    })
}

pub(crate) struct GetLedger;

impl Endpoint for GetLedger {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/ledger";
    const ABOUT: &'static str = "What the ledger holds, and how much of it is sealed";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Ledger>("The counts")
    }

    async fn call(server: Arc<Server>, _: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(load(&server).await?).into_response())
    }
}
