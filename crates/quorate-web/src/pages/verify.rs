//! `/verify`: checks a proof or a report that the reader drops. The page's script reads the file, and nothing is sent.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::{Frame, respond};
use crate::{Server, assets};

#[derive(Template)]
#[template(path = "verify.html")]
struct VerifyPage {
    frame: Frame,
    verify: String,
}

/// The page.
pub(super) fn show(server: &Arc<Server>) -> Response {
    let frame =
        Frame::new(server, "Verify", "verify", "quorate ledger check-proof FILE --key KEY".to_owned());
    respond(server, Ok(VerifyPage { frame, verify: assets::url("verify.js") }))
}
