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
use super::{Asked, Frame};
use crate::api::ledger::{Checkpoint, load};
use crate::failure::Failure;
use crate::report;
use crate::{Server, assets};

#[derive(Template)]
#[template(path = "ledger.html")]
pub(super) struct LedgerPage {
    frame: Frame,
    /// Its address; `None` before the first run.
    ledger: Option<String>,
    counts: Vec<(&'static str, String)>,
    checkpoint: Option<Checkpoint>,
    unsealed: u64,
}

/// The page.
pub(super) async fn page(server: Arc<Server>, _: Asked) -> Result<LedgerPage, Failure> {
    let frame = Frame::new(&server, "Ledger", "ledger", "quorate ledger stats".to_owned());
    let held = match load(&server).await {
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
pub(super) struct ProofPage {
    frame: Frame,
    verify: String,
    run: String,
    proof: VerifiedProof,
}

/// The page.
pub(super) async fn proof_page(server: Arc<Server>, asked: Asked) -> Result<ProofPage, Failure> {
    let file = collect(&server, asked.part("run")).await?;
    let run = file.content.run.to_string();
    let frame = Frame::new(&server, format!("Proof of {run}"), "runs", format!("quorate ledger prove {run}"));
    Ok(ProofPage {
        frame: frame.with_json(format!("/api/v1/runs/{run}/proof")),
        verify: assets::url("verify.js"),
        proof: file.proven,
        run,
    })
}

/// The report, as a file to save.
pub(super) async fn report_file(server: Arc<Server>, asked: Asked) -> Result<Response, Failure> {
    let file = collect(&server, asked.part("run")).await?;
    let html = report::draw(&file).map_err(|why| {
        let body = Body::new(format!("the report cannot be drawn: {why}"));
        Error::new(ErrorKind::Configuration, codes::PROOF_INVALID, body)
    })?;
    // A run's id has letters and digits alone.
    let name = format!("attachment; filename=\"quorate-{}.html\"", file.content.run);
    let head = [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((head, html).into_response())
}

async fn collect(server: &Arc<Server>, run: String) -> Result<ReportFile, Failure> {
    let quorate = server.reading().await?;
    let collected = async move { quorate.report_file(&run, ReportScope::Everything).await };
    Ok(server.jobs.compute(collected).await?.value)
}

#[derive(Template)]
#[template(path = "verify.html")]
pub(super) struct VerifyPage {
    frame: Frame,
    verify: String,
}

/// The page.
pub(super) fn verify_page(server: &Server) -> Result<VerifyPage, Failure> {
    let frame =
        Frame::new(server, "Verify", "verify", "quorate ledger check-proof FILE --key KEY".to_owned());
    Ok(VerifyPage { frame, verify: assets::url("verify.js") })
}
