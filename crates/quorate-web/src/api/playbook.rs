//! `GET /api/v1/playbooks/{slug}`: a playbook with its versions, its evidence, and what it changes in prompts.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::playbook::overview::{self, PlaybookView};
use quorate::service::playbook::promote::unknown_playbook;

use super::playbooks::library;
use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// A playbook.
pub(crate) async fn load(server: &Arc<Server>, slug: String) -> Result<PlaybookView, Failure> {
    let ledger = server.reader.session(&server.environment, &server.places).await?;
    let within = server.clone();
    let view = async move {
        let library = library(&within)?;
        let file = library.book(&slug).ok_or_else(|| unknown_playbook(&slug))?;
        overview::view(&library, file, ledger.as_deref(), within.environment.clock.now_ms()).await
    };
    Ok(server.run_computation(Box::pin(view)).await?)
}

pub(crate) struct GetPlaybook;

impl Endpoint for GetPlaybook {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/playbooks/{slug}";
    const ABOUT: &'static str =
        "A playbook: its versions, the evidence of its gate, and what it changes in prompts";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<PlaybookView>("The playbook")
    }

    async fn call(server: Arc<Server>, call: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(load(&server, call.part("slug").to_owned()).await?).into_response())
    }
}
