//! `DELETE /api/v1/jobs/{job}`: ends a job, with its members.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// What became of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct Cancelled {
    /// Whether it was ended; false if it had ended before
    cancelled: bool,
}

pub(crate) struct DeleteJob;

impl Endpoint for DeleteJob {
    const METHOD: Method = Method::Delete;
    const PATH: &'static str = "/api/v1/jobs/{job}";
    const ABOUT: &'static str = "Ends a job, with its members; a run that was recorded can be resumed";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Cancelled>("Whether it was ended")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(Cancelled { cancelled: server.jobs.cancel(call.part("job")).await? }).into_response())
    }
}
