//! The end of a command: exit codes, printed errors, and the ledger session that every command closes.
//!
//! This is the only place that turns verdicts and failures into numbers.

use std::process::ExitCode;

use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::redaction::CurrentRedactor;
use quorate::service::session::LedgerSession;

use super::render::{self, Format};
use super::terminal::Terminal;
use super::{environment, terminal};

#[cfg(not(all(
    feature = "mcp",
    feature = "metrics",
    feature = "nats",
    feature = "serve",
    feature = "postgres"
)))]
use quorate_diagnostics::{Body, codes};

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
    let redacted = terminal::status_text(&redacted);
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
    anstream::eprintln!("{}", terminal::status_text(&format!("quorate: {error}")));
    ExitCode::from(ExitClass::Bug.code())
}

/// Runs a command in a session and closes it.
pub(super) async fn with_session(
    opened: Result<LedgerSession, ServiceError>,
    format: Format,
    terminal: &Terminal,
    work: impl AsyncFnOnce(&LedgerSession) -> Result<Exit, ServiceError>,
) -> Exit {
    let session = match opened {
        Ok(session) => session,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let exit = match Box::pin(work(&session)).await {
        Ok(exit) => exit,
        Err(error) => print_error(&error, &session, format, terminal),
    };
    Box::pin(seal_and_close(session, terminal)).await;
    exit
}

/// Seals the appended records, prints failures as warnings, and closes the session.
pub(super) async fn seal_and_close(session: LedgerSession, terminal: &Terminal) {
    if session.store.has_appended() {
        Box::pin(session.seal()).await;
        print_warnings(&session, terminal);
    }
    Box::pin(session.close()).await;
}

/// Prints the result of a command in a session.
pub(super) fn print_result(text: &str, session: &LedgerSession, terminal: &Terminal) -> Exit {
    print_result_as(Format::Human, text, session, terminal)
}

/// Prints the result of a command in a session, in a format.
pub(super) fn print_result_as(
    format: Format,
    text: &str,
    session: &LedgerSession,
    terminal: &Terminal,
) -> Exit {
    print_warnings(session, terminal);
    terminal.data_as(format, text);
    Exit::DONE
}

/// Prints the error of a command in a session.
pub(super) fn print_error(
    error: &ServiceError,
    session: &LedgerSession,
    format: Format,
    terminal: &Terminal,
) -> Exit {
    if error.is_ledger_unavailable() {
        session.interrupt();
    }
    print_warnings(session, terminal);
    exit_with_error(error, format, terminal)
}

/// Prints the warnings of a session.
pub(super) fn print_warnings(session: &LedgerSession, terminal: &Terminal) {
    let report = session.take_warnings();
    if !report.is_empty() {
        terminal.status(&render::diagnostics(&report, Format::Human, terminal.stderr));
    }
}
