//! `GET /api/v1/audit`: verdicts, members' behaviour and agreement, producers, drift, overrides and cost, as `quorate audit --format json` prints them.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::audit::json::AuditReport;
use quorate::service::audit::{self, Audit, Request};
use quorate::service::since;
use quorate_ledger::council_log::stats::LogFilter;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::openapi;

/// What is counted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// Start of the period: 24h, 7d, 2w, a date, or all
    #[schemars(schema_with = "openapi::since")]
    pub(crate) since: Option<String>,
    /// Only this type of artifact
    #[serde(rename = "type")]
    pub(crate) artifact_type: Option<String>,
}

/// The audit of the workspace's log and ledger.
pub(crate) async fn load(server: &Arc<Server>, query: Query) -> Result<Audit, Failure> {
    let given = |value: Option<String>| value.filter(|value| !value.is_empty());
    let since_ms = match given(query.since) {
        Some(text) => since::parse(&text, server.environment.clock.now_ms())
            .map_err(|error| Failure::usage(format!("`since`: {error}"), "write 24h, 7d, a date, or all"))?,
        None => None,
    };
    let filter = LogFilter { since_ms, verdict: None, artifact_type: given(query.artifact_type) };
    let request = Request { filter, reindex: false };
    if let Some(empty) = audit::empty(&server.environment, &server.places, &request)? {
        return Ok(empty);
    }
    let session = server.ledger().await?;
    Ok(server.run_computation(Box::pin(async move { audit::audit(&session, request).await })).await?)
}

pub(crate) struct GetAudit;

impl Endpoint for GetAudit {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/audit";
    const ABOUT: &'static str =
        "Verdicts, members' behaviour and agreement, producers, drift, overrides and cost of a period";
    type Query = Query;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<AuditReport>("The audit")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let audit = load(&server, call.query).await?;
        Ok(Json(AuditReport::from(&audit)).into_response())
    }
}
