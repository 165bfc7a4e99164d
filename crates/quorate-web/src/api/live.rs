//! `GET /api/v1/runs/{run}/live`: how far a run is: members and steps, and what was spent of its budget.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::error::ServiceError;
use quorate::service::live::{self, Live};
use quorate_kernel::ports::ledger::Ledger as _;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// How far a run is that an id, the beginning of one, or `latest` names.
pub(crate) async fn load(server: &Arc<Server>, run: String) -> Result<Live, Failure> {
    let session = server.ledger().await?;
    let read = async move {
        let run = session.find_run(&run).await?.run;
        let driver = live::driver(&session, &run).await?;
        let records = session.store.records(&run).await.map_err(ServiceError::from)?;
        live::live(&run, &records.into_iter().map(Arc::new).collect::<Vec<_>>(), driver)
    };
    let live = server.run_computation(Box::pin(read)).await?;
    Ok(with_job(server, live))
}

/// With what the job says that holds the run, if one of this server does.
pub(crate) fn with_job(server: &Server, live: Live) -> Live {
    match server.jobs.find_by_run(&live.run) {
        Some((job, state)) => live.with_job(&job, &state.borrow().progress),
        None => live,
    }
}

pub(crate) struct GetLive;

impl Endpoint for GetLive {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs/{run}/live";
    const ABOUT: &'static str = "How far a run is: each member's questions, and what was spent of the budget";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Live>("The run as it is now")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(load(&server, call.part("run").to_owned()).await?).into_response())
    }
}
