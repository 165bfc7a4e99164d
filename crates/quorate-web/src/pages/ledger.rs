//! `/ledger`: what the ledger holds, its last checkpoint, and what that proves.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::wording::grouped;
use super::{Frame, respond};
use crate::Server;
use crate::api::ledger::{Checkpoint, load};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPage {
    frame: Frame,
    ledger: String,
    counts: Vec<(&'static str, String)>,
    checkpoint: Option<Checkpoint>,
    unsealed: u64,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>) -> Response {
    respond(server, page(server).await)
}

async fn page(server: &Arc<Server>) -> Result<LedgerPage, Failure> {
    let held = load(server).await?;
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
    let frame = Frame::new(server, "Ledger", "ledger", "quorate ledger stats".to_owned());
    Ok(LedgerPage {
        frame: frame.with_json("/api/v1/ledger".to_owned()),
        ledger: held.ledger,
        counts: counts.into_iter().map(|(name, count)| (name, grouped(count))).collect(),
        checkpoint: held.checkpoint,
        unsealed: held.unsealed,
    })
}
