//! Prints the report of a run; the exit code is the run's outcome.

use quorate::Outcome;
use quorate::runs::Recorded;

use crate::exit::{Exit, print_outcome};
use crate::render::{self, Extent, Format};
use crate::terminal::Terminal;

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
        Recorded::Review(review) => review.exit,
        Recorded::Decision(decision) => decision.exit,
    })
}
