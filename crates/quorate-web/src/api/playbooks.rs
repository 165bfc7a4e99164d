//! `GET /api/v1/playbooks` and `GET /api/v1/playbooks/{slug}`.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::error::ServiceError;
use quorate::service::playbook::library::Library;
use quorate::service::playbook::overview::{self, ListedPlaybook, PlaybookView, sorted};
use quorate::service::playbook::promote::unknown_playbook;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// The playbooks of the workspace.
#[derive(Debug, Serialize, JsonSchema)]
struct Playbooks {
    /// Active ones first, in the order of weaving
    playbooks: Vec<ListedPlaybook>,
}

/// The library of the workspace.
pub(crate) fn library(server: &Server) -> Result<Library, ServiceError> {
    Library::open(&server.environment, &server.places, Some(server.root.dir()), &server.registries)
}

/// The playbooks, active ones first, and what is wrong with the files of others.
pub(crate) async fn list(server: &Arc<Server>) -> Result<(Vec<ListedPlaybook>, Vec<String>), Failure> {
    let within = server.clone();
    let listed = async move {
        let library = library(&within)?;
        let now_ms = within.environment.clock.now_ms();
        let all =
            sorted(&library).into_iter().map(|file| ListedPlaybook::of(&library, file, now_ms)).collect();
        let report = library.integrity_report(None);
        let problems = report.refusals.iter().map(|refusal| refusal.body.message.clone());
        Ok::<_, ServiceError>((all, problems.collect()))
    };
    Ok(server.run_computation(Box::pin(listed)).await?)
}

pub(crate) struct GetPlaybooks;

impl Endpoint for GetPlaybooks {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/playbooks";
    const ABOUT: &'static str = "Lists the playbooks of the workspace";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<Playbooks>("The playbooks")
    }

    async fn call(server: Arc<Server>, _: Call<Self>) -> Result<Response, Failure> {
        let (playbooks, _) = list(&server).await?;
        Ok(Json(Playbooks { playbooks }).into_response())
    }
}

/// A playbook.
pub(crate) async fn load_playbook(server: &Arc<Server>, slug: String) -> Result<PlaybookView, Failure> {
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
        Ok(Json(load_playbook(&server, call.part("slug").to_owned()).await?).into_response())
    }
}
