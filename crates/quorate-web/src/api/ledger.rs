//! Routes below `/api/v1` on the ledger: its state, its last checkpoint, and the proof of a run.

use std::sync::Arc;

use axum::Json;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use quorate::ledger::{CheckpointRecord, LedgerStats};
use quorate::view::wording::instant;
use quorate::{Error, ErrorKind};
use quorate_diagnostics::{Body, codes};
use schemars::JsonSchema;
use serde::Serialize;

use crate::endpoint::{Answer, Call, Method, Route};
use crate::failure::Failure;
use crate::{Server, openapi};

/// The routes.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::Get,
            "/api/v1/ledger",
            "What the ledger holds, and how much of it is sealed",
            Answer::json::<Ledger>("The counts"),
            get_ledger,
        ),
        Route::new(
            Method::Get,
            "/api/v1/checkpoint",
            "The last checkpoint of the ledger",
            Answer::json::<Checkpoint>("The checkpoint"),
            get_checkpoint,
        ),
        Route::new(
            Method::Get,
            "/api/v1/runs/{run}/proof",
            "Proves the records of a run: the bytes that `quorate ledger check-proof` checks without the ledger",
            Answer { schema: openapi::object, ..Answer::json::<()>("The proof, as canonical JSON") },
            get_proof,
        ),
    ]
}

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
    fn of(checkpoint: CheckpointRecord, at_ms: i64) -> Checkpoint {
        let root = checkpoint.root();
        let CheckpointRecord { origin, tree, note, keys, .. } = checkpoint;
        Checkpoint { origin, size: tree.size, root, at: instant(at_ms), note, keys }
    }
}

/// Counts what the ledger holds.
pub(crate) async fn load(server: &Arc<Server>) -> Result<Ledger, Failure> {
    let quorate = server.reading().await?;
    let counted = server.jobs.compute(async move { quorate.ledger_stats().await }).await?;
    let LedgerStats { ledger, file_bytes, counts: stats } = counted.value;
    let at_ms = stats.checkpoint_at_ms.unwrap_or_default();
    Ok(Ledger {
        ledger,
        bytes: file_bytes,
        records: stats.records,
        erased: stats.erased,
        runs: stats.runs,
        open: stats.open,
        signed: stats.signed,
        imported: stats.imported,
        held: stats.held,
        checkpoint: stats.checkpoint.map(|checkpoint| Checkpoint::of(checkpoint, at_ms)),
        unsealed: stats.unsealed,
    })
}

async fn get_ledger(server: Arc<Server>, _: Call) -> Result<Response, Failure> {
    Ok(Json(load(&server).await?).into_response())
}

async fn get_checkpoint(server: Arc<Server>, _: Call) -> Result<Response, Failure> {
    let Some(checkpoint) = load(&server).await?.checkpoint else {
        let body =
            Body::new("the ledger has no checkpoint yet").help("`quorate ledger checkpoint` makes one");
        return Err(Error::new(ErrorKind::NotFound, codes::RECORD_UNSEALED, body).into());
    };
    Ok(Json(checkpoint).into_response())
}

async fn get_proof(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    let quorate = server.reading().await?;
    let run = call.part("run").to_owned();
    let proof =
        server.jobs.compute(async move { quorate.prove(&quorate.find_run(&run).await?).await }).await?;
    let text = proof.text().expect("a proof is JSON");
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response())
}
