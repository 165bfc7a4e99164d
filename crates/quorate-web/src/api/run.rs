//! `GET /api/v1/runs/{run}`: what a run came to, as `quorate show --format json` prints it.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::runs::{self, RunReport};

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::openapi;

/// The report of a run that an id, the beginning of one, or `latest` names.
pub(crate) async fn report(server: &Arc<Server>, run: String) -> Result<RunReport, Failure> {
    let session = server.ledger().await?;
    let loaded = server.run_computation(Box::pin(async move {
        let run = session.find_run(&run).await?.run;
        runs::load_report(&session, &run).await
    }));
    Ok(loaded.await?)
}

pub(crate) struct GetRun;

impl Endpoint for GetRun {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs/{run}";
    const ABOUT: &'static str = "What a run of a council or an assembly came to, and why";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer { schema: openapi::report_schema, ..Answer::json::<()>("The report") }
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let json = match report(&server, call.part("run").to_owned()).await? {
            RunReport::Review(report) => report.json(),
            RunReport::Assembly(report) => report.json(),
        };
        Ok(Json(json).into_response())
    }
}
