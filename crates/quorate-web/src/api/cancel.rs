//! `POST /api/v1/runs/{run}/cancel`: ends the job of this server that holds a run.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use quorate::service::live::LiveState;
use quorate_diagnostics::codes;
use quorate_protocol::Name;
use schemars::JsonSchema;
use serde::Serialize;

use super::live;
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// The job that held the run.
#[derive(Debug, Serialize, JsonSchema)]
struct Cancelled {
    job: String,
    /// Whether it was ended; false if it had ended before
    cancelled: bool,
}

pub(crate) struct PostCancel;

impl Endpoint for PostCancel {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/runs/{run}/cancel";
    const ABOUT: &'static str =
        "Ends the work on a run that this server started, with its members; the run can be resumed";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Cancelled>("Whether it was ended")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let run = server.ledger().await?.find_run(call.part("run")).await?.run;
        let Some((job, _)) = server.jobs.find_by_run(&run) else {
            return Err(not_held(&run, live::load(&server, run.to_string()).await?.state));
        };
        let cancelled = server.jobs.cancel(&job).await?;
        Ok(Json(Cancelled { job, cancelled }).into_response())
    }
}

/// The refusal for a run that no job of this server works on.
fn not_held(run: &Name, state: LiveState) -> Failure {
    let help = match state {
        LiveState::Elsewhere => "end it where it was started: Ctrl-C in that terminal".to_owned(),
        LiveState::Remote => "end it on that machine: Ctrl-C where it was started".to_owned(),
        LiveState::Interrupted => {
            format!(
                "there is nothing to end; `POST /api/v1/runs/{run}/resume` or `quorate resume {run}` continues it"
            )
        }
        LiveState::Imported => "end it where it was recorded".to_owned(),
        // A job of this server that ended a moment ago.
        LiveState::Here | LiveState::Ended => {
            format!("there is nothing to end; `GET /api/v1/runs/{run}` says what it came to")
        }
    };
    let message = format!("this server does not work on run {run}: {}", state.sentence());
    Failure::new(StatusCode::CONFLICT, codes::RUN_NOT_HELD, message, help)
}
