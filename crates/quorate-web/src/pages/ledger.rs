//! `/ledger`, `/runs/{run}/proof`, the report file of a run, and `/verify`, which checks a dropped file.

use std::sync::Arc;

use askama::Template;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use quorate::ledger::VerifiedProof;
use quorate::reports::{ReportFile, ReportScope};
use quorate::{Error, ErrorKind};
use quorate_diagnostics::{Body, codes};

use super::wording::digit_groups;
use super::{Frame, respond};
use crate::api::ledger::{Checkpoint, load};
use crate::failure::Failure;
use crate::report;
use crate::{Server, assets};

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPage {
    frame: Frame,
    /// Its address; `None` before the first run.
    ledger: Option<String>,
    counts: Vec<(&'static str, String)>,
    checkpoint: Option<Checkpoint>,
    unsealed: u64,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>) -> Response {
    respond(server, page(server).await)
}

async fn page(server: &Arc<Server>) -> Result<LedgerPage, Failure> {
    let frame = Frame::new(server, "Ledger", "ledger", "quorate ledger stats".to_owned());
    let held = match load(server).await {
        Err(failure) if failure.problem.code == codes::RUN_UNKNOWN.as_str() => {
            return Ok(LedgerPage { frame, ledger: None, counts: Vec::new(), checkpoint: None, unsealed: 0 });
        }
        held => held?,
    };
    let counts = [
        ("Records", held.records),
        ("of them erased", held.erased),
        ("Runs", held.runs),
        ("of them open", held.open),
        ("signed", held.signed),
        ("imported", held.imported),
        ("held", held.held),
        ("Bytes", held.bytes),
    ];
    Ok(LedgerPage {
        frame: frame.with_json("/api/v1/ledger".to_owned()),
        ledger: Some(held.ledger),
        counts: counts.into_iter().map(|(name, count)| (name, digit_groups(count))).collect(),
        checkpoint: held.checkpoint,
        unsealed: held.unsealed,
    })
}

#[derive(Template)]
#[template(path = "proof.html")]
struct ProofPage {
    frame: Frame,
    verify: String,
    run: String,
    proof: VerifiedProof,
}

/// The page.
pub(super) async fn show_proof(server: &Arc<Server>, run: &str) -> Response {
    respond(server, proof_page(server, run).await)
}

/// The report, as a file to save.
pub(super) async fn show_report(server: &Arc<Server>, run: &str) -> Response {
    match draw_report(server, run).await {
        // A run's id has letters and digits alone.
        Ok((run, html)) => {
            let name = format!("attachment; filename=\"quorate-{run}.html\"");
            ([(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, name)], html)
                .into_response()
        }
        Err(failure) => respond(server, Err::<ProofPage, _>(failure)),
    }
}

async fn proof_page(server: &Arc<Server>, run: &str) -> Result<ProofPage, Failure> {
    let file = collect(server, run).await?;
    let run = file.content.run.to_string();
    let frame = Frame::new(server, format!("Proof of {run}"), "runs", format!("quorate ledger prove {run}"));
    Ok(ProofPage {
        frame: frame.with_json(format!("/api/v1/runs/{run}/proof")),
        verify: assets::url("verify.js"),
        proof: file.proven,
        run,
    })
}

async fn draw_report(server: &Arc<Server>, run: &str) -> Result<(String, String), Failure> {
    let file = collect(server, run).await?;
    let html = report::draw(&file).map_err(|why| {
        let body = Body::new(format!("the report cannot be drawn: {why}"));
        Error::new(ErrorKind::Configuration, codes::PROOF_INVALID, body)
    })?;
    Ok((file.content.run.to_string(), html))
}

async fn collect(server: &Arc<Server>, run: &str) -> Result<ReportFile, Failure> {
    let (quorate, run) = (server.reading().await?, run.to_owned());
    let collected = async move { quorate.report_file(&run, ReportScope::Everything).await };
    Ok(server.jobs.compute(collected).await?.value)
}

#[derive(Template)]
#[template(path = "verify.html")]
struct VerifyPage {
    frame: Frame,
    verify: String,
}

/// The page.
pub(super) fn show_verify(server: &Arc<Server>) -> Response {
    let frame =
        Frame::new(server, "Verify", "verify", "quorate ledger check-proof FILE --key KEY".to_owned());
    respond(server, Ok(VerifyPage { frame, verify: assets::url("verify.js") }))
}
