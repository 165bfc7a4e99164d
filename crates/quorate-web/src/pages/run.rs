//! `/runs/{run}`: what a run came to, and why. While it is open the page follows it.

use std::sync::Arc;

use axum::response::Response;
use quorate::service::runs::RunReport;

use super::{assembly_run, respond, review_run};
use crate::Server;
use crate::api::run::report;

/// The page.
pub(super) async fn show(server: &Arc<Server>, run: &str) -> Response {
    match report(server, run.to_owned()).await {
        Ok(RunReport::Review(report)) => respond(server, Ok(review_run::page(server, *report))),
        Ok(RunReport::Assembly(report)) => respond(server, Ok(assembly_run::page(server, *report))),
        Err(failure) => respond(server, Err::<review_run::ReviewPage, _>(failure)),
    }
}
