//! `GET /api/v1/playbooks` and `GET /api/v1/playbooks/{slug}`.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::playbook::{PlaybookList, PlaybookView};
use quorate::{Error, Outcome};

use crate::Server;
use crate::endpoint::{Answer, Call, Method, Route};
use crate::failure::Failure;

/// The routes.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::Get,
            "/api/v1/playbooks",
            "Lists the playbooks of the workspace",
            Answer::json::<PlaybookList>("The playbooks"),
            get_playbooks,
        ),
        Route::new(
            Method::Get,
            "/api/v1/playbooks/{slug}",
            "A playbook: its versions, the evidence of its gate, and what it changes in prompts",
            Answer::json::<PlaybookView>("The playbook"),
            get_playbook,
        ),
    ]
}

/// The playbooks, active ones first; the warnings are about files.
pub(crate) async fn list(server: &Arc<Server>) -> Result<Outcome<PlaybookList>, Failure> {
    let playbooks = server.quorate.playbooks();
    let listed = server.jobs.compute(async move { playbooks.list() }).await?;
    Ok(listed.map(PlaybookList::in_weaving_order))
}

async fn get_playbooks(server: Arc<Server>, _: Call) -> Result<Response, Failure> {
    Ok(Json(list(&server).await?.value).into_response())
}

/// A playbook.
pub(crate) async fn load_playbook(server: &Arc<Server>, slug: String) -> Result<PlaybookView, Failure> {
    let quorate = server.reader.open_if_present().await?;
    let view = async move { Ok::<_, Error>(quorate.playbooks().view(&slug).await?.value) };
    Ok(server.jobs.compute(view).await?)
}

async fn get_playbook(server: Arc<Server>, call: Call) -> Result<Response, Failure> {
    Ok(Json(load_playbook(&server, call.part("slug").to_owned()).await?).into_response())
}
