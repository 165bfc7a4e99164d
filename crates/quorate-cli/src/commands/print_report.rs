//! Prints the report of a run; the exit code is the run's outcome.

use quorate::service::runs::RunReport;
use quorate::service::session::LedgerSession;
use quorate::service::{convene, report};

use crate::exit::Exit;
use crate::render::{self, Extent, Format};
use crate::session::print_warnings;
use crate::terminal::Terminal;

pub(super) fn any(report: &RunReport, session: &LedgerSession, format: Format, terminal: &Terminal) -> Exit {
    match report {
        RunReport::Review(report) => review(report, session, format, terminal),
        RunReport::Assembly(report) => assembly(report, session, format, terminal),
    }
}

/// Prints an interrupted run. A run with a recorded outcome is over and cannot be resumed.
pub(super) fn interrupted(
    report: Option<&RunReport>,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    report.map_or(Exit::INTERRUPTED, |report| any(report, session, format, terminal))
}

pub(super) fn review(
    report: &report::Report,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    print_warnings(session, terminal);
    terminal.data_as(format, &render::report(report, format, Extent::Screen, terminal.stdout));
    Exit::verdict(report.exit_code())
}

pub(super) fn assembly(
    report: &convene::report::Report,
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
