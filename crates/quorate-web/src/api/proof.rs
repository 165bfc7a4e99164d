//! `GET /api/v1/runs/{run}/proof`: proves what is recorded of a run to a reader without the ledger.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use quorate::service::error::ServiceError;
use quorate::service::ledger::prove;
use quorate_diagnostics::{Body, codes};

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::openapi;

pub(crate) struct GetProof;

impl Endpoint for GetProof {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs/{run}/proof";
    const ABOUT: &'static str =
        "Proves the records of a run: the bytes that `quorate ledger check-proof` checks without the ledger";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer { schema: openapi::object, ..Answer::json::<()>("The proof, as canonical JSON") }
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let session = server.ledger().await?;
        let run = call.part("run").to_owned();
        let proved = async move {
            let run = session.find_run(&run).await?.run;
            prove::prove(&session, &run).await
        };
        let proof = server.run_computation(Box::pin(proved)).await?;
        let text = proof.text().map_err(|error| {
            ServiceError::configuration(codes::PROOF_INVALID, Body::new(error.to_string()))
        })?;
        Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response())
    }
}
