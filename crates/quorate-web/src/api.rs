//! The routes of the API, by topic, and the route that describes them. `routes.rs` lists all routes.

pub(crate) mod actions;
pub(crate) mod ledger;
pub(crate) mod playbooks;
pub(crate) mod runs;
pub(crate) mod talks;

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};

use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::{Server, openapi};

pub(crate) struct GetOpenapi;

impl Endpoint for GetOpenapi {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/openapi.json";
    const ABOUT: &'static str = "This description of the API, as OpenAPI 3.1";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer { schema: openapi::object, ..Answer::json::<()>("The description") }
    }

    async fn call(server: Arc<Server>, _: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(server.openapi.get()).into_response())
    }
}
