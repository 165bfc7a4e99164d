//! The errors of inner crates as errors of the library.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::ledger;
use quorate_kernel::{driver, history};

pub(crate) use crate::error::{Error, ErrorKind};

impl From<ledger::LedgerError> for Error {
    fn from(error: ledger::LedgerError) -> Self {
        match error {
            ledger::LedgerError::Conflict { run } => Error::new(
                ErrorKind::Moved,
                codes::RUN_MOVED,
                Body::new(format!("run {run} does not end where this process left it")).help(format!(
                    "another process has appended to it, or the ledger's server stopped before it had synced the last \
                     records: `quorate show {run}` shows it, and `quorate resume {run}` continues it"
                )),
            ),
            ledger::LedgerError::Corrupt { .. } => {
                Error::new(ErrorKind::Altered, codes::LEDGER_CORRUPT, Body::new(error_chain(&error)))
            }
            ledger::LedgerError::NoSigningKey { .. } => Error::configuration(
                codes::SIGNING_KEY_MISSING,
                Body::new(error.to_string()).help(
                    "make the key available that signs this run; `quorate keys list` shows the available keys",
                ),
            ),
            ledger::LedgerError::InDoubt { run, what } => {
                let help = match run.contains('/') || &*run == quorate_ledger::store::STREAM {
                    false => format!(
                        "once the ledger answers, `quorate resume {run}` reads the recorded answers and continues"
                    ),
                    true => "repeat the command once the ledger answers: it reads first what was written"
                        .to_owned(),
                };
                Error::new(ErrorKind::Ledger, codes::LEDGER_IN_DOUBT, Body::new(what).help(help))
            }
            ledger::LedgerError::InvalidRecord { .. } => {
                let help =
                    "use a key that may sign (see `quorate keys list`); nothing was written";
                Error::configuration(
                    codes::SIGNING_KEY_MISSING,
                    Body::new(error.to_string()).help(help),
                )
            }
            ledger::LedgerError::ForeignSchema { what, remove } => {
                let backup = "restore the ledger from a backup";
                let help = match remove {
                    Some(remove) => format!(
                        "find out who made it; then remove it (`{remove}` in sqlite3) or {backup}, and let `quorate ledger \
                         verify` report whether the records are unchanged"
                    ),
                    None => format!("find out what changed it, and {backup}: a table is missing or was replaced"),
                };
                Error::new(ErrorKind::Altered, codes::LEDGER_DIVERGES, Body::new(what).help(help))
            }
            ledger::LedgerError::Unavailable { .. } => {
                let help = "acknowledged records are kept; once the ledger answers, `quorate runs` lists the runs, and `quorate resume RUN` continues one";
                Error::new(
                    ErrorKind::Ledger,
                    codes::LEDGER_UNAVAILABLE,
                    Body::new(error_chain(&error)).help(help),
                )
            }
        }
    }
}

impl From<history::HistoryError> for Error {
    fn from(error: history::HistoryError) -> Self {
        match error {
            history::HistoryError::Unknown(run) => {
                Error::not_found(codes::RUN_UNKNOWN, Body::new(format!("run {run} does not exist")))
            }
            history::HistoryError::Erased { .. } => {
                let body =
                    Body::new(error.to_string()).help("`quorate show RUN` shows what remains of the run");
                Error::configuration(codes::BODY_EVICTED, body)
            }
            history::HistoryError::Unreadable { .. } => {
                Error::new(ErrorKind::Altered, codes::LEDGER_CORRUPT, Body::new(error.to_string()))
            }
        }
    }
}

impl From<driver::DriverError> for Error {
    fn from(error: driver::DriverError) -> Self {
        match error {
            driver::DriverError::Ledger(error) => error.into(),
            driver::DriverError::ReplayMismatch { .. } => {
                Error::configuration(codes::REPLAY_DIFFERS, Body::new(error.to_string()))
            }
            driver::DriverError::Stalled(_) | driver::DriverError::NoExecutor { .. } => {
                Error::bug(error.to_string())
            }
        }
    }
}

/// An error and its causes, on one line.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text.push_str(&format!(": {inner_text}"));
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_run_and_a_member_without_an_executor_are_bugs() {
        let stalled = driver::DriverError::Stalled("r7k2".into());
        let no_executor = driver::DriverError::NoExecutor { run: "r7k2".into(), member: "skeptic".into() };
        for error in [stalled, no_executor] {
            let stopped = Error::from(error);
            assert_eq!(stopped.exit_code(), 70);
            assert_eq!(stopped.report.refusals[0].code, codes::BUG);
        }
    }
}
