//! `GET /api/v1/checkpoint`: the ledger's last checkpoint, which proofs rest on.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::error::ServiceError;
use quorate_diagnostics::{Body, codes};

use super::ledger::{self, Checkpoint};
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

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
