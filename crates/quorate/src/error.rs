//! The one error of the library.

use std::fmt;

use quorate_diagnostics::render::concise;
use quorate_diagnostics::{Body, RefusalCode, Report, codes};

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
    /// The ledger or a run differs from what was recorded.
    Altered,
    /// Another process works on the run or the files.
    Moved,
    /// The state of the run does not permit the operation.
    Conflict,
    /// Too many jobs are running.
    Busy,
    /// The request contradicts itself.
    InvalidRequest,
    /// A bug in Quorate.
    Bug,
    /// The caller interrupted the operation; the message says how to resume it.
    Interrupted,
}

impl ErrorKind {
    /// The exit code of a command that ends with an error of this kind.
    pub fn code(self) -> u8 {
        match self {
            ErrorKind::Refused => 1,
            ErrorKind::NotFound => 4,
            ErrorKind::Untrusted
            | ErrorKind::Configuration
            | ErrorKind::Ledger
            | ErrorKind::Altered
            | ErrorKind::Moved
            | ErrorKind::Conflict
            | ErrorKind::Busy => 5,
            ErrorKind::InvalidRequest => 64,
            ErrorKind::Bug => 70,
            ErrorKind::Interrupted => 130,
        }
    }
}

/// Why an operation failed. The [kind](Error::kind) is for programs, the [report](Error::report) for people: codes,
/// places and help.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    /// Its problems; never empty.
    #[doc(hidden)]
    pub report: Box<Report>,
    warnings: Box<Report>,
}

impl Error {
    /// An error with one problem.
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
        let mut report = Report::new();
        report.refuse(code, body);
        Error::from_report(kind, report)
    }

    /// An error with these problems. The report must contain a refusal.
    pub fn from_report(kind: ErrorKind, report: Report) -> Self {
        Error { kind, report: Box::new(report), warnings: Box::default() }
    }

    /// Invalid configuration or input.
    pub fn configuration(code: RefusalCode, body: Body) -> Self {
        Error::new(ErrorKind::Configuration, code, body)
    }

    /// Something that was named does not exist.
    pub fn not_found(code: RefusalCode, body: Body) -> Self {
        Error::new(ErrorKind::NotFound, code, body)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Error::usage(Body::new(message))
    }

    /// A request that contradicts itself or names an unknown word.
    pub(crate) fn usage(body: Body) -> Self {
        Error::new(ErrorKind::InvalidRequest, codes::USAGE, body)
    }

    /// An error in the program itself.
    pub(crate) fn bug(message: impl Into<String>) -> Self {
        let help = "report this as a bug of Quorate, with the run's id and the output of `quorate --version`";
        Error::new(ErrorKind::Bug, codes::BUG, Body::new(message.into()).help(help))
    }

    /// A write to a ledger that was opened read-only.
    pub(crate) fn ledger_closed(ledger: &str, why: &str) -> Self {
        let body = Body::new(format!("cannot write to the ledger {ledger}: {why}"));
        let help = "make it writable or pass another ledger with `--ledger`; `quorate show RUN` and `quorate ledger verify` still read this one";
        Error::configuration(codes::LEDGER_CLOSED, body.help(help))
    }

    /// Turns an altered ledger into a negative answer (exit 1) instead of unusable input, and keeps the report.
    pub(crate) fn corrupt_as_refused(self) -> Self {
        self.with_kind(ErrorKind::Altered, ErrorKind::Refused)
    }

    /// Turns a refused manifest into unusable input, where exit code 1 would look like an answer.
    pub(crate) fn refused_as_configuration(self) -> Self {
        self.with_kind(ErrorKind::Refused, ErrorKind::Configuration)
    }

    /// Replaces one kind by another.
    fn with_kind(self, old: ErrorKind, new: ErrorKind) -> Self {
        Error { kind: if self.kind == old { new } else { self.kind }, ..self }
    }

    /// Decides how a program reacts; the report may hold several codes.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the ledger does not answer; the command then skips later queries.
    pub(crate) fn is_ledger_unavailable(&self) -> bool {
        self.kind == ErrorKind::Ledger
    }

    /// Every problem, each with a code, and a place and a help if known.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The warnings of the workspace and of the call, which did not cause the error.
    pub fn warnings(&self) -> &Report {
        &self.warnings
    }

    pub(crate) fn with_warnings(error: Error, warnings: Report) -> Self {
        Error { warnings: Box::new(warnings), ..error }
    }

    /// The code of the first problem, which `quorate explain` describes.
    pub fn code(&self) -> &str {
        self.report.refusals.first().map_or("", |refusal| refusal.code.as_str())
    }

    /// The message of the first problem.
    pub fn first_message(&self) -> String {
        self.report.refusals.first().map_or_else(String::new, |refusal| refusal.body.message.clone())
    }

    /// The exit code of a command that ends with this error.
    pub fn exit_code(&self) -> u8 {
        self.kind.code()
    }
}

/// One line for each problem.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(concise(self.report()).trim_end())
    }
}

impl std::error::Error for Error {}
