//! `GET /api/v1/runs`: the runs of the ledger, newest first.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::runs::{self, ListedRun};
use quorate::service::since;
use quorate_ledger::runs::{Filter, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::openapi;

/// The most runs of one answer.
const MAX_LIMIT: u32 = 1_000;

/// The runs of an answer, unless the request says otherwise.
const DEFAULT_LIMIT: u32 = 50;

/// Which runs are listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// Only this verdict or outcome, for example hold or pass; open for undecided runs
    pub(crate) verdict: Option<String>,
    /// Only this type of artifact
    #[serde(rename = "type")]
    pub(crate) artifact_type: Option<String>,
    /// Only runs opened since then: 24h, 7d, a date, or all
    #[schemars(schema_with = "openapi::since")]
    pub(crate) since: Option<String>,
    /// Only runs recorded before this one: the last one of the answer before
    pub(crate) before: Option<String>,
    /// The most runs: default 50
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) limit: Option<u32>,
}

/// Runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Runs {
    pub(crate) runs: Vec<ListedRun>,
    /// The `before` that lists the next ones, if there may be more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl Query {
    fn filter(&self, server: &Server) -> Result<Filter, Failure> {
        // Forms send what is not filled in as empty texts.
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let since_ms = match given(&self.since) {
            Some(text) => since::parse(&text, server.environment.clock.now_ms()).map_err(|error| {
                Failure::usage(format!("`since`: {error}"), "write 24h, 7d, a date, or all")
            })?,
            None => None,
        };
        Ok(Filter {
            since_ms,
            verdict: given(&self.verdict),
            artifact_type: given(&self.artifact_type),
            before: given(&self.before).map(|run| run.as_str().into()),
        })
    }
}

/// The runs that a query names, and the `before` of the next ones.
pub(crate) async fn list(server: &Server, query: &Query) -> Result<(Vec<Run>, Option<String>), Failure> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Failure::usage(format!("`limit` is {limit}"), format!("it is 1 to {MAX_LIMIT}")));
    }
    let filter = query.filter(server)?;
    let Some(session) = server.reader.session(&server.environment, &server.places).await? else {
        return Ok((Vec::new(), None));
    };
    let mut listed = runs::list(&session, &filter, limit + 1).await?;
    let more = listed.len() > limit as usize;
    listed.truncate(limit as usize);
    let next = listed.last().filter(|_| more).map(|last| last.run.to_string());
    Ok((listed, next))
}

pub(crate) struct GetRuns;

impl Endpoint for GetRuns {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs";
    const ABOUT: &'static str = "Lists the runs of the ledger, newest first";
    type Query = Query;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Runs>("The runs")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let (listed, next) = list(&server, &call.query).await?;
        Ok(Json(Runs { runs: listed.iter().map(ListedRun::from).collect(), next }).into_response())
    }
}
