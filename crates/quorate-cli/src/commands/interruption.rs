//! The end of a review or a convening that was interrupted: its report, or how to resume it.

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

/// Ends a command that was interrupted. If the run's outcome was recorded before, the run is over and cannot be resumed:
/// prints its report, with its exit code.
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

/// The report of an interrupted run with an outcome; without one, tells how to resume it.
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
