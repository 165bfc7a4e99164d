//! The one error of the library.

use std::fmt;

use quorate_diagnostics::render::concise;
use quorate_diagnostics::{Body, Report, codes};

use super::service::error::{ExitClass, ServiceError};

/// The kind of an error, for programs to match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A named text or run does not exist.
    NotFound,
    /// A manifest, a proof or an export is invalid.
    Refused,
    /// A workspace file names a command or a server that is not trusted.
    Untrusted,
    /// Configuration or input is invalid.
    Configuration,
    /// The ledger does not answer, or cannot say whether a write succeeded.
    Ledger,
    /// The request contradicts itself.
    InvalidRequest,
    /// A bug in Quorate.
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
            ErrorKind::Bug => "a bug in Quorate",
        })
    }
}

/// Why an operation failed. The [kind](Error::kind) is for programs, the [report](Error::report) for people: codes,
/// places and help.
#[derive(Debug)]
#[non_exhaustive]
pub struct Error {
    kind: ErrorKind,
    report: Box<Report>,
}

impl Error {
    /// Decides how a program reacts; the report may hold several codes.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Every problem, each with a code, and a place and a help if known.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The code of the first problem, which `quorate explain` describes.
    pub fn code(&self) -> &str {
        self.report.refusals.first().map_or("", |refusal| refusal.code.as_str())
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message)).into()
    }
}

/// One line for each problem.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(concise(&self.report).trim_end())
    }
}

impl std::error::Error for Error {}

impl From<ServiceError> for Error {
    fn from(error: ServiceError) -> Self {
        let untrusted =
            error.report.refusals.iter().any(|refusal| refusal.code == codes::WORKSPACE_UNTRUSTED);
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
