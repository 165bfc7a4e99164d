//! What a review or a convening says after an interruption: what it came to, or how to go on with it.

use quorate_protocol::Name;

use super::convene;
use super::review::print_verdict;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::render::Format;
use crate::session::print_error;
use crate::terminal::Terminal;
use quorate::service::runs::{self, RunReport};
use quorate::service::session::LedgerSession;

/// Ends a command that was interrupted. A run whose outcome was recorded before that is over, and cannot be resumed: its
/// report is printed, with its exit code.
pub(super) async fn finish_interrupted(
    progress: &Progress,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    match decided_report(progress, session, terminal).await {
        Some(report) => print_report(&report, session, format, terminal),
        None => Exit::INTERRUPTED,
    }
}

/// What an interrupted run had come to before; where it had not, it is said how to go on with it.
pub(super) async fn decided_report(
    progress: &Progress,
    session: &LedgerSession,
    terminal: &Terminal,
) -> Option<RunReport> {
    session.interrupt();
    let Some(run) = progress.run() else {
        terminal.status("interrupted before anything was asked");
        return None;
    };
    match Box::pin(runs::decided_before_interruption(session, &Name::from(&*run))).await {
        Ok(Some(report)) => return Some(report),
        Ok(None) => {}
        Err(error) => drop(print_error(&error, session, Format::Human, terminal)),
    }
    let command = session.resume_command(&run);
    terminal.status(&format!("interrupted; what was answered is kept: {command}"));
    None
}

/// Prints a report; the exit code is the run's outcome.
pub(super) fn print_report(
    report: &RunReport,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    match report {
        RunReport::Review(report) => print_verdict(report, session, format, terminal),
        RunReport::Assembly(report) => convene::print_report(report, session, format, terminal),
    }
}
