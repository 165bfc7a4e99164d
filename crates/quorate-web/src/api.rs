//! The routes of the API, by topic, and the route that describes them. `routes.rs` lists all routes.

pub(crate) mod actions;
pub(crate) mod ledger;
pub(crate) mod playbooks;
pub(crate) mod runs;
pub(crate) mod talks;

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};

use crate::endpoint::{Answer, Call, Method, Route};
use crate::failure::Failure;
use crate::{Server, openapi};

/// The routes.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(
        Method::Get,
        "/api/v1/openapi.json",
        "This description of the API, as OpenAPI 3.1",
        Answer { schema: openapi::object, ..Answer::json::<()>("The description") },
        get_openapi,
    )]
}

async fn get_openapi(server: Arc<Server>, _: Call) -> Result<Response, Failure> {
    Ok(Json(server.openapi.get()).into_response())
}
