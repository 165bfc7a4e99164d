//! `GET /api/v1/runs`: the runs of the ledger, open ones first, in each part the newest first.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::runs::{self, ListedRun, RunPage};
use quorate::service::since;
use quorate_ledger::runs::RunFilter;
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
    #[schemars(schema_with = "openapi::verdict")]
    pub(crate) verdict: Option<String>,
    /// Only this type of artifact
    #[serde(rename = "type")]
    pub(crate) artifact_type: Option<String>,
    /// Only reviews (council), or assemblies of this mode: advisory, voting, peer, hierarchy
    #[schemars(schema_with = "openapi::mode")]
    pub(crate) mode: Option<String>,
    /// Only runs on what this operator made
    pub(crate) producer: Option<String>,
    /// Only runs opened since then: 24h, 7d, a date, or all
    #[schemars(schema_with = "openapi::since")]
    pub(crate) since: Option<String>,
    /// Where the page begins: the `next` of the answer before
    pub(crate) before: Option<String>,
    /// The most runs: default 50
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) limit: Option<u32>,
}

/// Runs, open ones first, in each part the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Runs {
    pub(crate) runs: Vec<ListedRun>,
    /// The `before` that lists the next ones, if there may be more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl Query {
    fn filter(&self, server: &Server) -> Result<RunFilter, Failure> {
        // Forms send what is not filled in as empty texts.
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let since_ms = match given(&self.since) {
            Some(text) => since::parse(&text, server.environment.clock.now_ms()).map_err(|error| {
                Failure::usage(format!("`since`: {error}"), "write 24h, 7d, a date, or all")
            })?,
            None => None,
        };
        let verdict = one_of("verdict", given(&self.verdict), &runs::VERDICTS)?;
        let mode = one_of("mode", given(&self.mode), &runs::MODES)?;
        Ok(RunFilter {
            since_ms,
            verdict,
            artifact_type: given(&self.artifact_type),
            mode,
            producer: given(&self.producer),
            after: given(&self.before).map(|cursor| cursor.as_str().into()),
        })
    }
}

/// A word of a list, in small letters.
fn one_of(name: &str, given: Option<String>, words: &[&str]) -> Result<Option<String>, Failure> {
    let word = given.map(|word| word.to_lowercase());
    match word {
        Some(word) if !words.contains(&&*word) => {
            Err(Failure::usage(format!("`{name}` is {word}"), format!("it is one of {}", words.join(", "))))
        }
        word => Ok(word),
    }
}

/// The runs that a query names.
pub(crate) async fn list(server: &Server, query: &Query) -> Result<RunPage, Failure> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Failure::usage(format!("`limit` is {limit}"), format!("it is 1 to {MAX_LIMIT}")));
    }
    let filter = query.filter(server)?;
    match server.reader.session(&server.environment, &server.places).await? {
        Some(session) => Ok(runs::list(&session, &filter, limit).await?),
        None => match &filter.after {
            Some(cursor) => Err(runs::unknown_cursor(cursor).into()),
            None => Ok(RunPage::default()),
        },
    }
}

pub(crate) struct GetRuns;

impl Endpoint for GetRuns {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs";
    const ABOUT: &'static str =
        "Lists the runs of the ledger: open ones first, in each part the newest first";
    type Query = Query;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Runs>("The runs")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let page = list(&server, &call.query).await?;
        let next = page.next.map(|cursor| cursor.to_string());
        Ok(Json(Runs { runs: page.runs.iter().map(ListedRun::from).collect(), next }).into_response())
    }
}
