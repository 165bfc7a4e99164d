//! A review or an assembly run that was interrupted: its report, or how to resume it.

use quorate_protocol::Name;

use crate::progress::Progress;
use crate::render::Format;
use crate::session::print_error;
use crate::terminal::Terminal;
use quorate::service::runs::{self, RunReport};
use quorate::service::session::LedgerSession;

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
    match session.environment.keeps_ledgers {
        true => terminal
            .status(&format!("interrupted; what was answered is kept: {}", session.resume_command(&run))),
        false => terminal.status("interrupted"),
    }
    None
}
