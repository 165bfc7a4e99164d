//! The outcome of an installation, and its refusals.

use quorate_diagnostics::{Body, Report, codes};

use super::change::{Action, Change, ChangeError};
use super::files::FileError;
use super::options::WriteMode;
use super::setup::Error;
use crate::service::diff;
use crate::service::error::{ExitClass, ServiceError};

/// The result.
#[derive(Debug)]
pub struct Outcome {
    pub slug: String,
    pub version: String,
    /// The version that was installed before, if another was.
    pub previous: Option<String>,
    /// Whether this continued the work of a crashed process.
    pub resumed: bool,
    /// The target folder, as shown to the user.
    pub target: String,
    pub run: WriteMode,
    /// Whether neither a file nor the setup changed.
    pub idle: bool,
    /// The change of each file.
    pub files: Vec<FileReport>,
    /// Refusals and warnings. With a refusal, nothing was written.
    pub report: Report,
}

/// The change of a file; in a dry run, the planned change.
#[derive(Debug)]
pub struct FileReport {
    pub dest: String,
    /// How it combined with the earlier file.
    pub strategy: &'static str,
    pub action: Action,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// For an edited file, the difference between the installed and the existing content. In a dry run, the difference
    /// between the existing and the planned content. Otherwise empty.
    pub diff: String,
}

impl FileReport {
    pub(super) fn of(change: &Change, run: WriteMode) -> FileReport {
        let found = change.found.as_ref().map(|found| &*found.bytes);
        let diff = match (&change.expected, run) {
            (Some(expected), _) => diff::unified(&change.dest, Some(expected), found),
            (None, WriteMode::DryRun) => diff::unified(&change.dest, found, change.result()),
            (None, WriteMode::Apply) => String::new(),
        };
        FileReport {
            dest: change.dest.clone(),
            strategy: change.strategy.as_str(),
            action: change.action,
            notes: change.notes.clone(),
            diff,
        }
    }
}

/// The refusal of a profile that is not installed.
pub(super) fn not_installed(slug: &str, target: &str, installed: &[String]) -> ServiceError {
    let place = if target == "." { "here".to_owned() } else { format!("in {target}") };
    let body = Body::new(format!("no profile `{slug}` is installed {place}"));
    let help = match installed {
        [] => "name another folder with `--into`: no profile is installed".to_owned(),
        some => format!("the installed profiles are {}", some.join(", ")),
    };
    ServiceError::not_found(codes::PROFILE_UNKNOWN, body.help(help))
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> ServiceError {
        match &error {
            Error::Corrupt { .. } => {
                let help = "restore the file from a copy; `quorate explain setup_corrupt` describes it";
                ServiceError::configuration(codes::SETUP_CORRUPT, Body::new(error.to_string()).help(help))
            }
            Error::Target { file_error: FileError::Obstructed(_), .. } => {
                ServiceError::new(ExitClass::Refused, codes::PROFILE_TARGET, Body::new(error.to_string()))
            }
            Error::Target { .. } => {
                ServiceError::configuration(codes::PROFILE_TARGET, Body::new(format!("cannot use {error}")))
            }
        }
    }
}

/// Adds refusals to a report; an unreadable file is an error.
pub(super) fn refuse(report: &mut Report, cannot: ChangeError) -> Result<(), ServiceError> {
    match cannot {
        ChangeError::Refused { code, body, text } => {
            if let (Some(text), Some(place)) = (text, &body.place) {
                report.add_source(place.file.clone(), text);
            }
            report.refuse(code, *body);
            Ok(())
        }
        ChangeError::Setup(error) => Err(error.into()),
    }
}

/// Refuses files that were edited since.
pub(super) fn refuse_edited(report: &mut Report, changes: &[Change], help: &str) {
    for change in changes.iter().filter(|change| change.action == Action::Edited) {
        let body = Body::new(format!("{} was edited since it was installed", change.dest));
        report.refuse(codes::PROFILE_DRIFT, body.help(help));
    }
}
