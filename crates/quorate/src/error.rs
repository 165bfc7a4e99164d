//! The one error of the library.

use std::fmt;

use quorate_diagnostics::render::concise;
use quorate_diagnostics::{Body, Report, codes};

use crate::service::error::{ExitClass, ServiceError};

/// What kind of error it is: what a program decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was named is not there: a text, a run.
    NotFound,
    /// A manifest, a proof or an export was looked at and does not hold.
    Refused,
    /// A file of the workspace names something that would be run or sent, and nobody trusted it.
    Untrusted,
    /// Configuration or input cannot be used.
    Configuration,
    /// The ledger does not answer, or cannot say whether it took what it was given.
    Ledger,
    /// What was asked for contradicts itself.
    InvalidRequest,
    /// A defect of Quorate.
    Bug,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::NotFound => "not found",
            ErrorKind::Refused => "refused",
            ErrorKind::Untrusted => "not trusted",
            ErrorKind::Configuration => "unusable configuration or input",
            ErrorKind::Ledger => "the ledger does not answer",
            ErrorKind::InvalidRequest => "invalid request",
            ErrorKind::Bug => "a defect of Quorate",
        })
    }
}

/// Why something was not done. The [kind](Error::kind) is for programs, the [report](Error::report) for people: codes,
/// places and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub struct Error {
    kind: ErrorKind,
    report: Box<Report>,
}

impl Error {
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Everything that is wrong, each with a code, a place and a help where there is one.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The code of the first thing that is wrong, as `quorate explain` knows it.
    pub fn code(&self) -> &str {
        self.report.refusals.first().map_or("", |one| one.code.as_str())
    }

    /// What was asked for contradicts itself.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message)).into()
    }
}

/// One line for each thing that is wrong.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(concise(&self.report).trim_end())
    }
}

impl std::error::Error for Error {}

impl From<ServiceError> for Error {
    fn from(error: ServiceError) -> Self {
        let untrusted = error.report.refusals.iter().any(|one| one.code == codes::WORKSPACE_UNTRUSTED);
        let kind = match error.class {
            _ if untrusted => ErrorKind::Untrusted,
            _ if error.is_ledger_unavailable() => ErrorKind::Ledger,
            ExitClass::NotFound => ErrorKind::NotFound,
            ExitClass::Refused => ErrorKind::Refused,
            ExitClass::Configuration => ErrorKind::Configuration,
            ExitClass::Usage => ErrorKind::InvalidRequest,
            ExitClass::Bug => ErrorKind::Bug,
        };
        Error { kind, report: error.report }
    }
}
