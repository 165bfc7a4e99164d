//! The severity of a finding, for tools with three levels.
//!
//! | verdict           | finding of a blocking member | of another |
//! |-------------------|------------------------------|------------|
//! | HOLD              | error                        | warning    |
//! | REVISE            | warning                      | note       |
//! | SHIP              | note                         | note       |
//! | INCOMPLETE, open  | warning                      | note       |
//!
//! The verdict itself is an error on HOLD, a warning on REVISE and if missing, and a note on SHIP. A missing answer is a note
//! on SHIP, and a warning otherwise.

use quorate_diagnostics::render::Level;
use quorate_protocol::policy::Verdict;

use super::deliberator_row;
use quorate::service::report::Report;

/// The level of a deliberator's findings.
pub(super) fn of_member(report: &Report, member: &str) -> Level {
    let blocks = deliberator_row::blocks(report, member);
    match (report.verdict, blocks) {
        (Some(Verdict::Hold), true) => Level::Error,
        (Some(Verdict::Ship), _) => Level::Note,
        (Some(Verdict::Hold), false) | (_, true) => Level::Warning,
        (_, false) => Level::Note,
    }
}

/// The level of a missing answer.
pub(super) fn of_failure(report: &Report) -> Level {
    if report.verdict == Some(Verdict::Ship) { Level::Note } else { Level::Warning }
}

pub(super) fn of_verdict(verdict: Option<Verdict>) -> Level {
    match verdict {
        Some(Verdict::Hold) => Level::Error,
        Some(Verdict::Ship) => Level::Note,
        Some(Verdict::Revise | Verdict::Incomplete) | None => Level::Warning,
    }
}
