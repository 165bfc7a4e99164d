//! `POST /api/v1/runs/{run}/override`: a person's decision, beside the council's.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use quorate::service::override_run::{self, Decision};
use quorate::service::runs;
use quorate_protocol::policy::Verdict;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::openapi;

/// A person's decision.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    verdict: DecidedVerdict,
    /// Why: the next review learns from it
    #[schemars(length(min = 1, max = override_run::MAX_REASON_CHARS))]
    reason: String,
    /// Who decided; by default Git's `user.name <user.email>`
    #[schemars(length(max = override_run::MAX_BY_CHARS))]
    by: Option<String>,
}

/// What a person can decide
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum DecidedVerdict {
    Ship,
    Revise,
    Hold,
}

pub(crate) struct PostOverride;

impl Endpoint for PostOverride {
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/api/v1/runs/{run}/override";
    const ABOUT: &'static str = "Records a person's decision beside the council's verdict, with its reason";
    type Query = Nothing;
    type Body = Body;

    fn answer() -> Answer {
        Answer { schema: openapi::report_schema, ..Answer::json::<()>("The report, with the decision") }
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let run = server.ledger().await?.find_run(call.part("run")).await?.run;
        let (within, body, id) = (server.clone(), call.body.clone(), run.clone());
        let recorded = async {
            let decided = async move {
                let (session, run) =
                    runs::open_run_for_append(&within.environment, &within.places, &id).await?;
                let verdict = match body.verdict {
                    DecidedVerdict::Ship => Verdict::Ship,
                    DecidedVerdict::Revise => Verdict::Revise,
                    DecidedVerdict::Hold => Verdict::Hold,
                };
                let decision = Decision { verdict, reason: &body.reason, by: body.by.as_deref() };
                let decided = override_run::override_run(&session, &run, decision).await;
                session.close().await;
                decided
            };
            let report = server.run_computation(Box::pin(decided)).await?;
            Ok((StatusCode::OK, report.json()))
        };
        let route = format!("post /api/v1/runs/{run}/override");
        let (status, report) = server.answered.once(&route, &call.headers, &call.bytes, recorded).await?;
        Ok((status, Json(report)).into_response())
    }
}
