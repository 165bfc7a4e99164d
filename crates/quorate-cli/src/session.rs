//! Runs commands in a ledger session: opens it, prints the result, and closes it in any case.

use super::exit::{Exit, exit_with_error};
use super::render::{self, Format};
use super::terminal::Terminal;
use quorate::service::error::ServiceError;
use quorate::service::session::LedgerSession;

/// Runs a command in a session and closes it.
pub(super) async fn with_session(
    opened: Result<LedgerSession, ServiceError>,
    format: Format,
    terminal: &Terminal,
    work: impl AsyncFnOnce(&LedgerSession) -> Result<Exit, ServiceError>,
) -> Exit {
    let session = match opened {
        Ok(session) => session,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let exit = match Box::pin(work(&session)).await {
        Ok(exit) => exit,
        Err(error) => print_error(&error, &session, format, terminal),
    };
    Box::pin(seal_and_close(session, terminal)).await;
    exit
}

/// Seals the appended records, prints failures as warnings, and closes the session.
pub(super) async fn seal_and_close(session: LedgerSession, terminal: &Terminal) {
    if session.store.has_appended() {
        Box::pin(session.seal()).await;
        print_warnings(&session, terminal);
    }
    Box::pin(session.close()).await;
}

/// Prints the result of a command in a session.
pub(super) fn print_result(text: &str, session: &LedgerSession, terminal: &Terminal) -> Exit {
    print_result_as(Format::Human, text, session, terminal)
}

/// Prints the result of a command in a session, in a format.
pub(super) fn print_result_as(
    format: Format,
    text: &str,
    session: &LedgerSession,
    terminal: &Terminal,
) -> Exit {
    print_warnings(session, terminal);
    terminal.data_as(format, text);
    Exit::DONE
}

/// Prints the error of a command in a session.
pub(super) fn print_error(
    error: &ServiceError,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    if error.is_ledger_unavailable() {
        session.interrupt();
    }
    print_warnings(session, terminal);
    exit_with_error(error, format, terminal)
}

/// Prints the warnings of a session.
pub(super) fn print_warnings(session: &LedgerSession, terminal: &Terminal) {
    let report = session.take_warnings();
    if !report.is_empty() {
        terminal.status(&render::diagnostics(&report, Format::Human, terminal.stderr));
    }
}
