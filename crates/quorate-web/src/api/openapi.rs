//! `GET /api/v1/openapi.json`: the description of this API.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;
use crate::openapi;

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
