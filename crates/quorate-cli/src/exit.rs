//! Exit codes: the only place that turns verdicts and failures into numbers.

use std::process::ExitCode;

use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::redaction::CurrentRedactor;
#[cfg(not(all(
    feature = "mcp",
    feature = "metrics",
    feature = "nats",
    feature = "serve",
    feature = "postgres"
)))]
use quorate_diagnostics::{Body, codes};

use super::environment;
use super::render::{self, Format};
use super::terminal::Terminal;
use super::workflow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit(u8);

impl Exit {
    /// The command succeeded.
    pub(super) const DONE: Exit = Exit(0);
    /// Skipped because of its tier, or not due.
    pub(super) const SKIPPED: Exit = Exit(6);
    /// A participant that was asked has not answered.
    pub(super) const INCOMPLETE: Exit = Exit(3);
    pub(super) const INTERRUPTED: Exit = Exit(130);
    /// An input could not be read, a required file is missing, or the result could not be written.
    pub(super) const UNUSABLE: Exit = Exit(5);
    /// A check has failed.
    pub(super) const CHECK_FAILED: Exit = Exit(1);
    /// A hook tells its tool to stop and read the reason.
    pub(super) const BLOCKED: Exit = Exit(2);

    pub(super) const fn code(self) -> u8 {
        self.0
    }

    pub(super) const fn verdict(code: u8) -> Exit {
        Exit(code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}

/// Prints the error of a command to standard error; in a machine's format to standard output.
pub(super) fn exit_with_error(error: &ServiceError, format: Format, terminal: &Terminal) -> Exit {
    match format {
        Format::Human | Format::Markdown => {
            terminal.status(&render::diagnostics(&error.report, Format::Human, terminal.stderr))
        }
        // Each entry of a report needs a place in the repository, which an error lacks.
        Format::Gitlab => {
            terminal.status(&render::diagnostics(&error.report, Format::Human, terminal.stderr));
            terminal.data(&render::gitlab_of(&[]));
        }
        Format::Json | Format::Sarif | Format::Github => {
            terminal.data_as(format, &render::diagnostics(&error.report, format, terminal.stdout))
        }
    }
    Exit(error.class.code())
}

/// Reports that this program was built without a feature that the command needs.
#[cfg(not(all(feature = "mcp", feature = "serve", feature = "postgres")))]
pub(super) fn exit_without_feature(feature: &str, terminal: &Terminal) -> Exit {
    exit_with_error(&feature_missing(feature), Format::Human, terminal)
}

/// The error of a program that was built without a feature.
#[cfg(not(all(
    feature = "mcp",
    feature = "metrics",
    feature = "nats",
    feature = "serve",
    feature = "postgres"
)))]
pub(super) fn feature_missing(feature: &str) -> ServiceError {
    let body = Body::new(format!("this program was built without the feature `{feature}`"))
        .help(format!("build it with `cargo install --path crates/quorate-cli --features {feature}`"));
    ServiceError::configuration(codes::FEATURE_MISSING, body)
}

/// Prints an error of the command line, or the requested help.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    let redacted = CurrentRedactor::new(environment::variables()).redact_text(&text);
    let redacted = workflow::status_text(&redacted);
    // The text quotes the command line. If standard error is closed, there is nothing left to do.
    match error.exit_code() != 0 && *redacted != *text {
        true => anstream::eprint!("{redacted}"),
        false => drop(error.print()),
    }
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(ExitClass::Usage.code()),
    }
}

/// Reports an internal error.
pub(super) fn bug(error: &dyn std::error::Error) -> ExitCode {
    anstream::eprintln!("{}", workflow::status_text(&format!("quorate: {error}")));
    ExitCode::from(ExitClass::Bug.code())
}
