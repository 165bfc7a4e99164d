//! Prints the report of a run, also of an interrupted one; the exit code is the run's outcome.

use quorate::Outcome;
use quorate::service::runs::{self, Recorded};
use quorate::service::session::LedgerSession;
use quorate::service::{convene, report};
use quorate_protocol::Name;

use crate::exit::{Exit, print_error, print_outcome, print_warnings};
use crate::progress::Progress;
use crate::render::{self, Extent, Format};
use crate::terminal::Terminal;

pub(super) fn any(report: &Recorded, session: &LedgerSession, format: Format, terminal: &Terminal) -> Exit {
    match report {
        Recorded::Review(report) => review(report, session, format, terminal),
        Recorded::Decision(report) => assembly(report, session, format, terminal),
    }
}

/// The report in a format; `None` for an assembly's in a format for findings in files.
pub(super) fn text(
    recorded: &Recorded,
    format: Format,
    extent: Extent,
    terminal: &Terminal,
) -> Option<String> {
    match recorded {
        Recorded::Review(review) => Some(render::report(review, format, extent, terminal.stdout)),
        Recorded::Decision(decision) => render::convene::report(decision, format, extent, terminal.stdout),
    }
}

/// Prints the report of a run.
pub(super) fn recorded(recorded: &Outcome<Recorded>, format: Format, terminal: &Terminal) -> Exit {
    // Formats that cannot show an assembly were refused before the run.
    if let Some(text) = text(recorded, format, Extent::Screen, terminal) {
        print_outcome(recorded, format, &text, terminal);
    }
    Exit::verdict(match &**recorded {
        Recorded::Review(review) => review.exit_code(),
        Recorded::Decision(decision) => decision.exit_code(),
    })
}

/// Prints an interrupted run. A run with a recorded outcome is over and cannot be resumed.
pub(super) fn interrupted(
    report: Option<&Recorded>,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    report.map_or(Exit::INTERRUPTED, |report| any(report, session, format, terminal))
}

pub(super) fn review(
    report: &report::Review,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    print_warnings(session, terminal);
    terminal.data_as(format, &render::report(report, format, Extent::Screen, terminal.stdout));
    Exit::verdict(report.exit_code())
}

pub(super) fn assembly(
    report: &convene::report::Decision,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    print_warnings(session, terminal);
    // Formats that cannot show an assembly were refused before the run.
    if let Some(text) = render::convene::report(report, format, Extent::Screen, terminal.stdout) {
        terminal.data(&text);
    }
    Exit::verdict(report.exit_code())
}

/// The report of an interrupted run with an outcome; without one, tells how to resume it.
pub(super) async fn decided_report(
    progress: &Progress,
    session: &LedgerSession,
    terminal: &Terminal,
) -> Option<Recorded> {
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
