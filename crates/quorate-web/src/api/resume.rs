//! `POST /api/v1/runs/{run}/resume`: continues a run that was stopped.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use quorate::service::jobs::progress::Reporter;
use quorate::service::resume;
use quorate::service::run_options::RunOptions;
use quorate::service::runs::{self, RunReport};
use quorate_diagnostics::codes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::started::{self, Limits, Started};
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// How a run is continued. The answers that it has are kept.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    /// In place of the run's own
    budget: Option<Limits>,
}

pub(crate) struct PostResume;

impl Endpoint for PostResume {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/runs/{run}/resume";
    const ABOUT: &'static str =
        "Continues a run that a crash, an interruption or a missing answer stopped: a job";
    type Query = Nothing;
    type Body = Body;

    fn answer() -> Answer {
        Answer::accepted::<Started>("The job that continues it")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let session = server.ledger().await?;
        let run = session.find_run(call.part("run")).await?.run;
        let (within, body, path) = (server.clone(), call.body.clone(), format!("/api/v1/runs/{run}/resume"));
        let work = |observer: Arc<Reporter<Failure>>| async move {
            if let Some((job, _)) = within.jobs.find_by_run(&run) {
                return Err(Failure::new(
                    StatusCode::CONFLICT,
                    codes::RUN_MOVED,
                    format!("this server works on run {run} already, in the job {job}"),
                    format!(
                        "wait for it with `GET /api/v1/jobs/{job}`, or end it with `POST /api/v1/runs/{run}/cancel`"
                    ),
                ));
            }
            observer.continues(&run);
            let opened = runs::open_run_as_recorded(&within.environment, within.places.clone(), &run);
            let (session, run) = Box::pin(opened).await?;
            let caps = body.budget.map(|budget| budget.caps(&session.workspace.host)).transpose();
            let resumed = match caps {
                Ok(caps) => {
                    let options = RunOptions { caps: caps.unwrap_or_default(), ..RunOptions::default() };
                    let resumed = resume::resume(&session, &run, &options, None, observer);
                    Box::pin(resumed).await.map_err(Failure::from)
                }
                Err(failure) => Err(failure),
            };
            session.close().await;
            Ok(match resumed? {
                RunReport::Review(report) => report.json(),
                RunReport::Assembly(report) => report.json(),
            })
        };
        started::start(&server, &call, &path, work).await
    }
}
