//! `GET /api/v1/playbooks`: the playbooks of the workspace, as `quorate playbook list --format json` prints them.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::service::error::ServiceError;
use quorate::service::playbook::library::Library;
use quorate::service::playbook::overview::{ListedPlaybook, sorted};
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
    Library::open(&server.environment, &server.places, Some(server.root.dir()), &server.host)
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
