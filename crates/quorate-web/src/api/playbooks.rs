//! `GET /api/v1/playbooks` and `GET /api/v1/playbooks/{slug}`.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use quorate::playbook::{PlaybookList, PlaybookView};
use quorate::{Error, Outcome};

use crate::Server;
use crate::endpoint::{Answer, Call, Endpoint, Method, Nothing};
use crate::failure::Failure;

/// The playbooks, active ones first; the warnings are about files.
pub(crate) async fn list(server: &Arc<Server>) -> Result<Outcome<PlaybookList>, Failure> {
    let playbooks = server.quorate.playbooks();
    let listed = server.run_computation(Box::pin(async move { playbooks.list() })).await?;
    Ok(listed.map(PlaybookList::in_weaving_order))
}

pub(crate) struct GetPlaybooks;

impl Endpoint for GetPlaybooks {
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/api/v1/playbooks";
    const ABOUT: &'static str = "Lists the playbooks of the workspace";
    type Query = Nothing;
    type Body = Nothing;

    fn answer() -> Answer {
        Answer::json::<PlaybookList>("The playbooks")
    }

    async fn call(server: Arc<Server>, _: Call<Self>) -> Result<Response, Failure> {
        Ok(Json(list(&server).await?.value).into_response())
    }
}

/// A playbook.
pub(crate) async fn load_playbook(server: &Arc<Server>, slug: String) -> Result<PlaybookView, Failure> {
    let quorate = server.reader.open_if_present().await?;
    let view = async move { Ok::<_, Error>(quorate.playbooks().view(&slug).await?.value) };
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
