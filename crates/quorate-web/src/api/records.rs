//! `GET /api/v1/runs/{run}/records`: everything that is recorded of a run.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_manifest::timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// The most records of one answer.
const MAX_RECORDS: usize = 1_000;

/// A record of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShownRecord {
    /// Its number in the run, from 0
    n: u64,
    /// What it is: `run.opened`, `consultation`, `outcome`, …
    kind: String,
    /// When it happened, RFC 3339 in UTC
    at: String,
    /// What it says; null where it was erased
    data: Option<Map<String, Value>>,
}

impl From<&Record> for ShownRecord {
    fn from(record: &Record) -> Self {
        ShownRecord {
            n: record.n,
            kind: record.kind.clone(),
            at: timestamp::format(record.at_ms),
            data: record.data.clone(),
        }
    }
}

/// Which records are given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// Only records after the one with this number
    after: Option<u64>,
}

/// Records of a run, in order.
#[derive(Debug, Serialize, JsonSchema)]
struct Records {
    records: Vec<ShownRecord>,
    /// The `after` that gives the next ones, if there are more
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub(crate) struct GetRecords;

impl Endpoint for GetRecords {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs/{run}/records";
    const ABOUT: &'static str = "What is recorded of a run, in order, at most 1,000 records at once";
    type Query = Query;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Records>("The records")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let session = server.ledger().await?;
        let (run, after) = (call.part("run").to_owned(), call.query.after);
        let read = async move {
            let run = session.find_run(&run).await?.run;
            Ok::<_, Failure>(
                session.store.records(&run).await.map_err(quorate::service::error::ServiceError::from)?,
            )
        };
        let all = server.run_computation(Box::pin(read)).await?;
        let wanted = all.iter().filter(|record| after.is_none_or(|after| record.n > after));
        let records: Vec<ShownRecord> = wanted.take(MAX_RECORDS).map(ShownRecord::from).collect();
        let last = records.last().map(|record| record.n);
        let next = last.filter(|last| all.last().is_some_and(|record| record.n > *last));
        Ok(Json(Records { records, next }).into_response())
    }
}
