//! Commands at a desk: it is opened, something is done and said, and it is closed, whatever came of it.

use super::exit::{Exit, exit_with_error};
use super::render::{self, Format};
use super::terminal::Terminal;
use quorate::service::error::ServiceError;
use quorate::service::session::LedgerSession;

/// Works at a desk and closes it.
pub(super) async fn with_session(
    opened: Result<LedgerSession, ServiceError>,
    format: Format,
    terminal: &Terminal,
    work: impl AsyncFnOnce(&LedgerSession) -> Result<Exit, ServiceError>,
) -> Exit {
    let desk = match opened {
        Ok(desk) => desk,
        Err(stop) => return exit_with_error(&stop, format, terminal),
    };
    let exit = match work(&desk).await {
        Ok(exit) => exit,
        Err(stop) => print_error(&stop, &desk, format, terminal),
    };
    Box::pin(seal_and_close(desk, terminal)).await;
    exit
}

/// Seals what was appended, says what is wrong with that, and closes the desk.
pub(super) async fn seal_and_close(desk: LedgerSession, terminal: &Terminal) {
    if desk.store.has_appended() {
        Box::pin(desk.seal()).await;
        print_warnings(&desk, terminal);
    }
    Box::pin(desk.close()).await;
}

/// Prints what was done at a desk.
pub(super) fn print_result(text: &str, desk: &LedgerSession, terminal: &Terminal) -> Exit {
    print_result_as(Format::Human, text, desk, terminal)
}

/// Prints what was done at a desk, in a format.
pub(super) fn print_result_as(format: Format, text: &str, desk: &LedgerSession, terminal: &Terminal) -> Exit {
    print_warnings(desk, terminal);
    terminal.data_as(format, text);
    Exit::DONE
}

/// Prints why a command at a desk stopped.
pub(super) fn print_error(
    stop: &ServiceError,
    desk: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    if stop.is_ledger_unavailable() {
        desk.interrupt();
    }
    print_warnings(desk, terminal);
    exit_with_error(stop, format, terminal)
}

/// Prints what a desk has to say besides the result.
pub(super) fn print_warnings(desk: &LedgerSession, terminal: &Terminal) {
    let report = desk.take_warnings();
    if !report.is_empty() {
        terminal.status(&render::diagnostics(&report, Format::Human, terminal.stderr));
    }
}
