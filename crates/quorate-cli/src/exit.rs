//! The end of a command: exit codes, and printed outcomes and errors.
//!
//! This is the only place that turns verdicts and failures into numbers.

use std::process::ExitCode;

use quorate::runs::Recorded;
use quorate::view::{Doc, Extent};
use quorate::{Error, Outcome};
use quorate_diagnostics::Report;
use serde::Serialize;

use super::render::{self, Format};
use super::terminal::Terminal;
use super::{environment, terminal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit(pub(super) u8);

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
    /// The command line is wrong.
    const USAGE: Exit = Exit(64);
    /// A bug.
    const BUG: Exit = Exit(70);
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}

/// Prints the error of a command, after its warnings, to standard error; in a machine's format to standard output.
pub(super) fn exit_with_error(error: &Error, format: Format, terminal: &Terminal) -> Exit {
    warn(error.warnings(), terminal);
    let report = error.report();
    if error.exit_code() == Exit::INTERRUPTED.0 {
        let body = report.refusals.first().map(|refusal| &refusal.body);
        terminal.status(body.map_or("", |body| &body.message));
        // The last line is the command that continues the run.
        terminal.status(body.and_then(|body| body.help.as_deref()).unwrap_or_default());
        return Exit::INTERRUPTED;
    }
    match format {
        Format::Human | Format::Short | Format::Markdown => warn(report, terminal),
        // Each entry of a report needs a place in the repository, which an error lacks.
        Format::Gitlab => {
            warn(report, terminal);
            terminal.data(&render::gitlab(&[]));
        }
        Format::Json | Format::Sarif | Format::Github => {
            terminal.data_as(format, &render::diagnostics(report, format, terminal.stdout));
        }
    }
    Exit(error.exit_code())
}

/// The end of a command: its exit, or the error that it fails with.
pub(super) type Ended = Result<Exit, Error>;

/// Prints the warnings of an outcome, and its text.
pub(super) fn print_outcome<T>(outcome: &Outcome<T>, text: &str, terminal: &Terminal) -> Ended {
    warn(&outcome.warnings, terminal);
    terminal.data_as(terminal.format, text);
    Ok(Exit::DONE)
}

/// Prints the outcome of a command: as the document that `doc` makes of it, or as JSON.
pub(super) fn show<T: Serialize>(
    outcome: Result<Outcome<T>, Error>,
    doc: impl FnOnce(&T) -> Doc,
    terminal: &Terminal,
) -> Ended {
    let outcome = outcome?;
    print_outcome(&outcome, &render::human_or_json(&outcome.value, doc, terminal), terminal)
}

/// Prints the report of a run, whose outcome is the exit.
pub(super) fn print_recorded(recorded: &Outcome<Recorded>, terminal: &Terminal) -> Ended {
    // Formats that cannot show an assembly were refused before the run.
    if let Some(text) = render::recorded(recorded, Extent::Screen, terminal) {
        print_outcome(recorded, &text, terminal)?;
    }
    Ok(Exit(match &**recorded {
        Recorded::Review(review) => review.exit,
        Recorded::Decision(decision) => decision.exit,
    }))
}

/// Prints warnings to standard error.
pub(super) fn warn(report: &Report, terminal: &Terminal) {
    if !report.is_empty() {
        terminal.status(&render::diagnostics(report, Format::Human, terminal.stderr));
    }
}

/// The error of a program that was built without a feature.
#[cfg(not(all(
    feature = "mcp",
    feature = "metrics",
    feature = "nats",
    feature = "serve",
    feature = "postgres"
)))]
pub(super) fn feature_missing(feature: &str) -> Error {
    use quorate_diagnostics::{Body, codes};

    let body = Body::new(format!("this program was built without the feature `{feature}`"))
        .help(format!("build it with `cargo install --path crates/quorate-cli --features {feature}`"));
    Error::new(quorate::ErrorKind::Configuration, codes::FEATURE_MISSING, body)
}

/// Prints an error of the command line, or the requested help.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    let redacted = environment::from_process().build_unvalidated().map(|quorate| quorate.redact_text(&text));
    let redacted = redacted.unwrap_or_default();
    let redacted = terminal::status_text(&redacted);
    // The text quotes the command line. If standard error is closed, there is nothing left to do.
    match error.exit_code() != 0 && *redacted != *text {
        true => anstream::eprint!("{redacted}"),
        false => drop(error.print()),
    }
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ => Exit::USAGE.into(),
    }
}

/// Reports an internal error.
pub(super) fn bug(error: &dyn std::error::Error) -> Exit {
    anstream::eprintln!("{}", terminal::status_text(&format!("quorate: {error}")));
    Exit::BUG
}
