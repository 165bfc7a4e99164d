//! Exit codes: verdicts and failures become numbers here and nowhere else.

use std::process::ExitCode;

use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::redaction::CurrentRedactor;

use super::environment;
use super::render::{self, Format};
use super::terminal::Terminal;
use super::workflow;

/// How the process exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit(u8);

impl Exit {
    /// It did what was asked for.
    pub(super) const DONE: Exit = Exit(0);
    /// Skipped because of its tier, or not due.
    pub(super) const SKIPPED: Exit = Exit(6);
    /// Somebody who was asked has not answered.
    pub(super) const INCOMPLETE: Exit = Exit(3);
    /// Interrupted.
    pub(super) const INTERRUPTED: Exit = Exit(130);
    /// The result could not be written.
    pub(super) const UNREADABLE: Exit = Exit(5);
    /// What was checked does not hold.
    pub(super) const REFUSED: Exit = Exit(1);

    /// Its number.
    pub(super) const fn code(self) -> u8 {
        self.0
    }

    /// The code of a verdict.
    pub(super) const fn verdict(code: u8) -> Exit {
        Exit(code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}

/// Says why a use case stopped, on standard error; with a machine's format on standard output.
pub(super) fn exit_with_error(error: &ServiceError, format: Format, terminal: &Terminal) -> Exit {
    match format {
        Format::Human | Format::Markdown => {
            terminal.status(&render::diagnostics(&error.report, Format::Human, terminal.stderr))
        }
        Format::Json | Format::Sarif | Format::Github => {
            terminal.data_as(format, &render::diagnostics(&error.report, format, terminal.stdout))
        }
    }
    Exit(error.class.code())
}

/// The command line could not be read, or help was asked for.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let said = error.to_string();
    let shown = CurrentRedactor::new(environment::variables()).redact_text(&said);
    let shown = workflow::status_text(&shown);
    // It quotes what was typed. Nothing is left to do when standard error is gone.
    match error.exit_code() != 0 && *shown != *said {
        true => anstream::eprint!("{shown}"),
        false => drop(error.print()),
    }
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(ExitClass::Usage.code()),
    }
}

/// Something that never happens did.
pub(super) fn bug(error: &dyn std::error::Error) -> ExitCode {
    anstream::eprintln!("{}", workflow::status_text(&format!("quorate: {error}")));
    ExitCode::from(ExitClass::Bug.code())
}
