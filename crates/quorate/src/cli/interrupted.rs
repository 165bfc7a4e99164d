//! What a review or a convening says after an interruption: what it came to, or how to go on with it.

use quorate_protocol::Name;

use super::convene;
use super::desk::failed;
use super::exit::Exit;
use super::progress::Progress;
use super::render::Format;
use super::review::judged;
use super::terminal::Terminal;
use crate::service::runs::{self, RunReport};
use crate::service::session::LedgerSession;

/// Ends a command that was interrupted. A run whose outcome was recorded before that is over, and cannot be resumed: its
/// report is printed, with its exit code.
pub(super) async fn interrupted(
    progress: &Progress,
    desk: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    match decided(progress, desk, terminal).await {
        Some(report) => shown(&report, desk, format, terminal),
        None => Exit::INTERRUPTED,
    }
}

/// What an interrupted run had come to before; where it had not, it is said how to go on with it.
pub(super) async fn decided(
    progress: &Progress,
    desk: &LedgerSession,
    terminal: &Terminal,
) -> Option<RunReport> {
    desk.interrupt();
    let Some(run) = progress.run() else {
        terminal.talk("interrupted before anything was asked");
        return None;
    };
    match Box::pin(runs::decided_before_interruption(desk, &Name::from(&*run))).await {
        Ok(Some(report)) => return Some(report),
        Ok(None) => {}
        Err(stop) => drop(failed(&stop, desk, Format::Human, terminal)),
    }
    let command = desk.resume_command(&run);
    terminal.talk(&format!("interrupted; what was answered is kept: {command}"));
    None
}

/// Prints a report; the exit code is the run's outcome.
pub(super) fn shown(report: &RunReport, desk: &LedgerSession, format: Format, terminal: &Terminal) -> Exit {
    match report {
        RunReport::Review(report) => judged(report, desk, format, terminal),
        RunReport::Assembly(report) => convene::decided(report, desk, format, terminal),
    }
}
