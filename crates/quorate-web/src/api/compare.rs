//! `GET /api/v1/compare`: two runs on one artifact, as `quorate compare --format json` prints them.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::compare::{self, Comparison};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// Which runs are compared.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// The run that is compared: an id, the beginning of one, or latest. By default the run before b on the same artifact
    #[serde(default)]
    pub(crate) a: Option<String>,
    /// The run that it is compared with
    pub(crate) b: String,
}

/// The comparison that a query asks for.
pub(crate) async fn load(server: &Arc<Server>, query: Query) -> Result<Comparison, Failure> {
    let session = server.ledger().await?;
    let compared = server.run_computation(Box::pin(async move {
        let a = query.a.as_deref().filter(|a| !a.is_empty());
        compare::compare_named(&session, a, &query.b).await
    }));
    Ok(compared.await?)
}

pub(crate) struct GetCompare;

impl Endpoint for GetCompare {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/compare";
    const ABOUT: &'static str =
        "Compares two runs on one artifact: findings kept, new and gone, and who changed position";
    type Query = Query;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Comparison>("The comparison")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(load(&server, call.query).await?).into_response())
    }
}
