//! `/runs/{run}/proof`: what the ledger proves of a run, what it does not, and the key to compare. `/runs/{run}/report.html` is
//! the run as a file to save.

use std::sync::Arc;

use askama::Template;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use quorate::service::error::ServiceError;
use quorate::service::report_file::{self, ReportFile, Scope};
use quorate_diagnostics::{Body, codes};

use super::{Frame, respond};
use crate::failure::Failure;
use crate::report::{self, ProofFacts};
use crate::{Server, assets};

#[derive(Template)]
#[template(path = "proof.html")]
struct ProofPage {
    frame: Frame,
    verify: String,
    run: String,
    proof: ProofFacts,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>, run: &str) -> Response {
    respond(server, page(server, run).await)
}

/// The report, as a file to save.
pub(super) async fn report(server: &Arc<Server>, run: &str) -> Response {
    match drawn(server, run).await {
        // A run's id has letters and digits alone.
        Ok((run, html)) => {
            let name = format!("attachment; filename=\"quorate-{run}.html\"");
            ([(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, name)], html)
                .into_response()
        }
        Err(failure) => respond(server, Err::<ProofPage, _>(failure)),
    }
}

async fn page(server: &Arc<Server>, run: &str) -> Result<ProofPage, Failure> {
    let file = collect(server, run).await?;
    let run = file.content.run.to_string();
    let frame = Frame::new(server, format!("Proof of {run}"), "runs", format!("quorate ledger prove {run}"));
    Ok(ProofPage {
        frame: frame.with_json(format!("/api/v1/runs/{run}/proof")),
        verify: assets::url("verify.js"),
        proof: ProofFacts::of(&file.proven),
        run,
    })
}

async fn drawn(server: &Arc<Server>, run: &str) -> Result<(String, String), Failure> {
    let file = collect(server, run).await?;
    let html = report::draw(&file).map_err(|why| {
        ServiceError::configuration(
            codes::PROOF_INVALID,
            Body::new(format!("the report cannot be drawn: {why}")),
        )
    })?;
    Ok((file.content.run.to_string(), html))
}

async fn collect(server: &Arc<Server>, run: &str) -> Result<ReportFile, Failure> {
    let session = server.ledger().await?;
    let run = run.to_owned();
    let collected = async move {
        let run = session.find_run(&run).await?.run;
        report_file::collect(&session, &run, Scope::Everything).await
    };
    Ok(server.run_computation(Box::pin(collected)).await?)
}
