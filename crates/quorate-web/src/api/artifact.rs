//! `GET /api/v1/runs/{run}/artifact`: the text that a council reviewed.

use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use quorate::service::error::ServiceError;
use quorate::service::runs::RunReport;
use quorate_diagnostics::{Body, codes};

use super::run;
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

const TEXT: &str = "text/plain; charset=utf-8";

pub(crate) struct GetArtifact;

impl Endpoint for GetArtifact {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/runs/{run}/artifact";
    const ABOUT: &'static str = "The text that a council reviewed, as it is kept: secrets are redacted";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer { content_type: TEXT, ..Answer::json::<String>("The text") }
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        let RunReport::Review(report) = run::report(&server, call.part("run").to_owned()).await? else {
            let message = "the run is an assembly's; only a review has a text";
            return Err(Failure::new(
                StatusCode::NOT_FOUND,
                codes::ARTIFACT_MISSING,
                message,
                "its records have what its members were shown",
            ));
        };
        let Some(text) = &report.text else {
            let body = Body::new(format!("the text of run {} is no longer kept", report.run));
            return Err(ServiceError::not_found(codes::BODY_EVICTED, body).into());
        };
        let kind = [(CONTENT_TYPE, HeaderValue::from_static(TEXT))];
        Ok((kind, text.to_string()).into_response())
    }
}
