//! `/playbooks`: the playbooks of the workspace.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::playbook::overview::ListedPlaybook;

use super::{Frame, respond};
use crate::Server;
use crate::api::playbooks::list;
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "playbooks.html")]
struct PlaybooksPage {
    frame: Frame,
    playbooks: Vec<ListedPlaybook>,
    problems: Vec<String>,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>) -> Response {
    respond(server, page(server).await)
}

async fn page(server: &Arc<Server>) -> Result<PlaybooksPage, Failure> {
    let frame = Frame::new(server, "Playbooks", "playbooks", "quorate playbook list".to_owned());
    let (playbooks, problems) = list(server).await?;
    Ok(PlaybooksPage { frame: frame.with_json("/api/v1/playbooks".to_owned()), playbooks, problems })
}
