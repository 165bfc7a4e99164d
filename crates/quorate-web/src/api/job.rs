//! `GET /api/v1/jobs/{job}`: how far a job is, or what it came to.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::jobs::{JobStatus, Patient};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// The longest wait.
const MAX_WAIT_MS: u64 = 50_000;

/// How long to wait.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// How long to wait for the job's end, in milliseconds: default 0
    #[schemars(range(max = 50_000))]
    wait_ms: Option<u64>,
}

pub(crate) struct GetJob;

impl Endpoint for GetJob {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/jobs/{job}";
    const ABOUT: &'static str = "How far a job is, or its result; a job that failed answers with its failure";
    type Query = Query;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<JobStatus>("The job")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let wait_ms = call.query.wait_ms.unwrap_or(0);
        if wait_ms > MAX_WAIT_MS {
            return Err(Failure::usage(
                format!("`wait_ms` is {wait_ms}"),
                format!("it is at most {MAX_WAIT_MS}"),
            ));
        }
        let status = server.jobs.poll(call.part("job"), Duration::from_millis(wait_ms), &Patient).await?;
        Ok(Json(status).into_response())
    }
}
