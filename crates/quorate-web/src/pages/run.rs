//! `/runs/{run}`: what a run came to, and why. While it is open the page follows it.

use std::sync::Arc;

use axum::response::Response;
use quorate::service::runs::RunReport;
use quorate::service::{self, compare};
use quorate_protocol::policy::Verdict;

use super::live_run::LiveView;
use super::surroundings::Surroundings;
use super::{assembly_run, respond, review_run};
use crate::Server;
use crate::api::live;
use crate::api::run::report;
use crate::failure::Failure;

/// The page.
pub(super) async fn show(server: &Arc<Server>, run: &str) -> Response {
    match load(server, run).await {
        Ok((RunReport::Review(report), around)) => {
            respond(server, Ok(review_run::page(server, *report, around)))
        }
        Ok((RunReport::Assembly(report), around)) => {
            respond(server, Ok(assembly_run::page(server, *report, around)))
        }
        Err(failure) => respond(server, Err::<review_run::ReviewPage, _>(failure)),
    }
}

async fn load(server: &Arc<Server>, run: &str) -> Result<(RunReport, Surroundings), Failure> {
    let report = report(server, run.to_owned()).await?;
    let (run, is_open, is_incomplete) = match &report {
        RunReport::Review(report) => (
            report.run.clone(),
            report.verdict.is_none() && !report.is_superseded(),
            report.verdict == Some(Verdict::Incomplete),
        ),
        RunReport::Assembly(report) => {
            (report.run.clone(), report.verdict.is_none(), report.verdict.as_deref() == Some("incomplete"))
        }
    };
    let session = server.ledger().await?;
    let live = match is_open {
        true => Some(LiveView::of(server, &live::load(server, run.clone()).await?)),
        false => None,
    };
    let is_driven = match &live {
        Some(live) => live.is_driven,
        None => is_incomplete && service::live::driver(&session, &run.as_str().into()).await?.is_driven(),
    };
    let previous = compare::previous(&session, &run.as_str().into()).await?;
    Ok((report, Surroundings { live, is_driven, previous: previous.map(|previous| previous.to_string()) }))
}
