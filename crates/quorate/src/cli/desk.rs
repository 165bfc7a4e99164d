//! Commands at a desk: it is opened, something is done and said, and it is closed, whatever came of it.

use super::exit::{Exit, stopped};
use super::render::{self, Format};
use super::terminal::Terminal;
use crate::service::error::ServiceError;
use crate::service::session::LedgerSession;

/// Works at a desk and closes it.
pub(super) async fn at_desk(
    opened: Result<LedgerSession, ServiceError>,
    format: Format,
    terminal: &Terminal,
    work: impl AsyncFnOnce(&LedgerSession) -> Result<Exit, ServiceError>,
) -> Exit {
    let desk = match opened {
        Ok(desk) => desk,
        Err(stop) => return stopped(&stop, format, terminal),
    };
    let exit = match work(&desk).await {
        Ok(exit) => exit,
        Err(stop) => failed(&stop, &desk, format, terminal),
    };
    Box::pin(sealed_and_closed(desk, terminal)).await;
    exit
}

/// Seals what was appended, says what is wrong with that, and closes the desk.
pub(super) async fn sealed_and_closed(desk: LedgerSession, terminal: &Terminal) {
    if desk.store.has_appended() {
        Box::pin(desk.seal()).await;
        warnings(&desk, terminal);
    }
    Box::pin(desk.close()).await;
}

/// Prints what was done at a desk.
pub(super) fn done(text: &str, desk: &LedgerSession, terminal: &Terminal) -> Exit {
    done_in(Format::Human, text, desk, terminal)
}

/// Prints what was done at a desk, in a format.
pub(super) fn done_in(format: Format, text: &str, desk: &LedgerSession, terminal: &Terminal) -> Exit {
    warnings(desk, terminal);
    terminal.data_in(format, text);
    Exit::DONE
}

/// Prints why a command at a desk stopped.
pub(super) fn failed(stop: &ServiceError, desk: &LedgerSession, format: Format, terminal: &Terminal) -> Exit {
    if stop.is_ledger_unavailable() {
        desk.interrupt();
    }
    warnings(desk, terminal);
    stopped(stop, format, terminal)
}

/// Prints what a desk has to say besides the result.
pub(super) fn warnings(desk: &LedgerSession, terminal: &Terminal) {
    let report = desk.take_warnings();
    if !report.is_empty() {
        terminal.talk(&render::diagnostics(&report, Format::Human, terminal.stderr));
    }
}
