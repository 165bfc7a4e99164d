//! The one error of the library.

use std::fmt;

use quorate_diagnostics::render::concise;
use quorate_diagnostics::{Body, RefusalCode, Report, codes};

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
    /// The caller interrupted the operation; the message says how to resume it.
    Interrupted,
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
            ErrorKind::Interrupted => "interrupted",
        })
    }
}

/// Why an operation failed. The [kind](Error::kind) is for programs, the [report](Error::report) for people: codes,
/// places and help.
#[derive(Debug)]
pub struct Error {
    error: ServiceError,
    warnings: Box<Report>,
}

impl Error {
    /// An error with one problem, for front ends and extensions. A [`Ledger`](ErrorKind::Ledger) or
    /// [`Untrusted`](ErrorKind::Untrusted) error is recognized by its code.
    ///
    /// ```
    /// use quorate::{Error, ErrorKind};
    /// use quorate_diagnostics::{Body, codes};
    ///
    /// let body = Body::new("there is no text").help("name a file");
    /// let error = Error::new(ErrorKind::InvalidRequest, codes::USAGE, body);
    /// assert_eq!((error.kind(), error.exit_code()), (ErrorKind::InvalidRequest, 64));
    /// ```
    pub fn new(kind: ErrorKind, code: RefusalCode, body: Body) -> Self {
        let class = match kind {
            ErrorKind::NotFound => ExitClass::NotFound,
            ErrorKind::Refused => ExitClass::Refused,
            ErrorKind::Untrusted | ErrorKind::Configuration | ErrorKind::Ledger => ExitClass::Configuration,
            ErrorKind::InvalidRequest => ExitClass::Usage,
            ErrorKind::Bug => ExitClass::Bug,
            ErrorKind::Interrupted => ExitClass::Interrupted,
        };
        ServiceError::new(class, code, body).into()
    }

    /// Decides how a program reacts; the report may hold several codes.
    pub fn kind(&self) -> ErrorKind {
        let untrusted =
            self.error.report.refusals.iter().any(|refusal| refusal.code == codes::WORKSPACE_UNTRUSTED);
        match self.error.class {
            _ if untrusted => ErrorKind::Untrusted,
            _ if self.error.is_ledger_unavailable() => ErrorKind::Ledger,
            ExitClass::NotFound => ErrorKind::NotFound,
            ExitClass::Refused => ErrorKind::Refused,
            ExitClass::Configuration => ErrorKind::Configuration,
            ExitClass::Usage => ErrorKind::InvalidRequest,
            ExitClass::Bug => ErrorKind::Bug,
            ExitClass::Interrupted => ErrorKind::Interrupted,
        }
    }

    /// Every problem, each with a code, and a place and a help if known.
    pub fn report(&self) -> &Report {
        &self.error.report
    }

    /// The warnings of the workspace and of the call, which did not cause the error.
    pub fn warnings(&self) -> &Report {
        &self.warnings
    }

    pub(crate) fn with_warnings(error: ServiceError, warnings: Report) -> Self {
        Error { error, warnings: Box::new(warnings) }
    }

    /// The code of the first problem, which `quorate explain` describes.
    pub fn code(&self) -> &str {
        self.report().refusals.first().map_or("", |refusal| refusal.code.as_str())
    }

    pub(crate) fn first_message(&self) -> String {
        self.error.first_message()
    }

    /// The exit code of a command that ends with this error.
    pub fn exit_code(&self) -> u8 {
        self.error.class.code()
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::InvalidRequest, codes::USAGE, Body::new(message))
    }
}

/// One line for each problem.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(concise(self.report()).trim_end())
    }
}

impl std::error::Error for Error {}

impl From<ServiceError> for Error {
    fn from(error: ServiceError) -> Self {
        Error { error, warnings: Box::default() }
    }
}

/// For the front ends that still call the hidden `service`.
impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        error.error
    }
}
