//! `GET /api/v1/talks`: the conversations of the workspace.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::talks::{self, Talk};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// The conversations of the workspace.
#[derive(Debug, Serialize, JsonSchema)]
struct Talks {
    talks: Vec<Talk>,
}

/// The conversations, by the paths of their manifests.
pub(crate) async fn list(server: &Arc<Server>) -> Result<Vec<Talk>, Failure> {
    let within = server.clone();
    let listed = async move { talks::list(&within.environment, &within.root, &within.host) };
    Ok(server.run_computation(Box::pin(listed)).await?)
}

pub(crate) struct GetTalks;

impl Endpoint for GetTalks {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/talks";
    const ABOUT: &'static str = "Lists the conversations of the workspace: one for each runtime manifest";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Talks>("The conversations")
    }

    async fn call(server: Arc<Server>, _: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(Talks { talks: list(&server).await? }).into_response())
    }
}
