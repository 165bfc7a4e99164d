//! `GET /api/v1/checkpoint`: the ledger's last checkpoint, which proofs rest on.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::error::ServiceError;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy;
use quorate_ledger::store::CheckpointRecord;
use quorate_manifest::timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::ledger;
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

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
    pub(super) fn of(checkpoint: &CheckpointRecord, at_ms: i64) -> Checkpoint {
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

pub(crate) struct GetCheckpoint;

impl Endpoint for GetCheckpoint {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/checkpoint";
    const ABOUT: &'static str = "The last checkpoint of the ledger";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Checkpoint>("The checkpoint")
    }

    async fn call(server: Arc<Server>, _: Call<Self>) -> Result<Response, Failure> {
        let Some(checkpoint) = ledger::load(&server).await?.checkpoint else {
            let body =
                Body::new("the ledger has no checkpoint yet").help("`quorate ledger checkpoint` makes one");
            return Err(ServiceError::not_found(codes::RECORD_UNSEALED, body).into());
        };
        Ok(Json(checkpoint).into_response())
    }
}
