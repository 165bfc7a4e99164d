//! `/talks`: the conversations of the workspace.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::talks::Talk;

use super::{Frame, respond};
use crate::Server;
use crate::api::talks::list;
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "talks.html")]
struct TalksPage {
    frame: Frame,
    talks: Vec<Talk>,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>) -> Response {
    respond(server, page(server).await)
}

async fn page(server: &Arc<Server>) -> Result<TalksPage, Failure> {
    let frame = Frame::new(server, "Conversations", "talks", "quorate log MANIFEST".to_owned());
    Ok(TalksPage { frame: frame.with_json("/api/v1/talks".to_owned()), talks: list(server).await? })
}
