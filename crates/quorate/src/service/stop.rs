//! Why a use case did not give a result: coded refusals, and the exit class they belong to.

use quorate_diagnostics::{Body, RefusalCode, Report, codes};
use quorate_kernel::driver;
use quorate_kernel::history;
use quorate_kernel::ports::ledger;

/// The exit classes that every command shares (INTERFACES).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// What was named is not there.
    NotFound,
    /// A manifest that was asked for is refused.
    Refused,
    /// Configuration or input is unusable.
    Configuration,
    /// The command line is wrong.
    Usage,
    /// A bug of ours.
    Bug,
}

impl Class {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Class::Refused => 1,
            Class::NotFound => 4,
            Class::Configuration => 5,
            Class::Usage => 64,
            Class::Bug => 70,
        }
    }
}

/// A use case that stopped.
#[derive(Debug)]
pub struct Stop {
    /// How the process is to exit.
    pub class: Class,
    /// What is to be said; refuses.
    pub report: Box<Report>,
}

impl Stop {
    /// One refusal.
    pub fn new(class: Class, code: RefusalCode, body: Body) -> Self {
        let mut report = Report::new();
        report.refuse(code, body);
        Stop { class, report: Box::new(report) }
    }

    /// A report that refuses.
    pub fn report(class: Class, report: Report) -> Self {
        Stop { class, report: Box::new(report) }
    }

    /// The first thing that is to be said, in one line.
    pub fn first(&self) -> String {
        self.report.refusals.first().map_or_else(String::new, |one| one.body.message.clone())
    }

    /// Whether the ledger does not answer: what it is asked at the end of a command is not waited for, either.
    pub fn is_ledgers(&self) -> bool {
        let of_ledger = [codes::LEDGER_UNAVAILABLE, codes::LEDGER_IN_DOUBT];
        self.report.refusals.iter().any(|one| of_ledger.contains(&one.code))
    }

    /// Something is unusable.
    pub fn configuration(code: RefusalCode, body: Body) -> Self {
        Stop::new(Class::Configuration, code, body)
    }

    /// A ledger that is only read was to be written to.
    pub fn closed(ledger: &str, why: &str) -> Self {
        let body = Body::new(format!("cannot write to the ledger {ledger}: {why}"));
        let help = "make it writable or name another one with `--ledger`; what this one holds can be shown and verified";
        Stop::configuration(codes::LEDGER_CLOSED, body.help(help))
    }

    /// As it is, but a ledger that is not what it was is an answer to the question (exit 1), and no unusable input.
    pub fn or_diverges(self) -> Self {
        let corrupt = self.report.refusals.first().is_some_and(|one| one.code == codes::LEDGER_CORRUPT);
        Stop { class: if corrupt { Class::Refused } else { self.class }, ..self }
    }

    /// Something is not there.
    pub fn not_found(code: RefusalCode, body: Body) -> Self {
        Stop::new(Class::NotFound, code, body)
    }
}

impl From<ledger::Error> for Stop {
    fn from(error: ledger::Error) -> Self {
        match error {
            ledger::Error::Moved { run } => Stop::configuration(
                codes::RUN_MOVED,
                Body::new(format!("run {run} was moved on by another process"))
                    .help(format!("see what it came to with `quorate show {run}`")),
            ),
            ledger::Error::Corrupt { .. } => {
                Stop::configuration(codes::LEDGER_CORRUPT, Body::new(chain(&error)))
            }
            ledger::Error::Unsigned { .. } => Stop::configuration(
                codes::SIGNING_KEY_MISSING,
                Body::new(error.to_string()).help(
                    "make the key available that signs this run; `quorate keys list` says what is there",
                ),
            ),
            ledger::Error::InDoubt { run, what } => {
                let help = match run.contains('/') || &*run == quorate_ledger::store::STREAM {
                    false => format!(
                        "once the ledger answers, `quorate resume {run}` reads what was written and goes on from there"
                    ),
                    true => "repeat the command once the ledger answers: it reads first what was written"
                        .to_owned(),
                };
                Stop::configuration(codes::LEDGER_IN_DOUBT, Body::new(what).help(help))
            }
            ledger::Error::Unsignable { .. } => {
                let help = "`quorate keys list` says which keys may sign; nothing was written, so go on with one that may";
                Stop::configuration(codes::SIGNING_KEY_MISSING, Body::new(error.to_string()).help(help))
            }
            ledger::Error::Unavailable { .. } => {
                let help = "what was acknowledged is kept; once the ledger answers, `quorate resume` goes on with a run";
                Stop::configuration(codes::LEDGER_UNAVAILABLE, Body::new(chain(&error)).help(help))
            }
        }
    }
}

impl From<history::Error> for Stop {
    fn from(error: history::Error) -> Self {
        match error {
            history::Error::Unknown(run) => {
                Stop::not_found(codes::RUN_UNKNOWN, Body::new(format!("there is no run {run}")))
            }
            history::Error::Erased { .. } => {
                let body = Body::new(error.to_string()).help("`quorate show` shows what is left of the run");
                Stop::configuration(codes::BODY_EVICTED, body)
            }
            history::Error::Unreadable { .. } => {
                Stop::configuration(codes::LEDGER_CORRUPT, Body::new(error.to_string()))
            }
        }
    }
}

impl From<driver::Error> for Stop {
    fn from(error: driver::Error) -> Self {
        match error {
            driver::Error::Ledger(error) => error.into(),
            driver::Error::Diverged { .. } => {
                Stop::configuration(codes::REPLAY_DIFFERS, Body::new(error.to_string()))
            }
            driver::Error::Stalled(_) | driver::Error::NoSeat { .. } => {
                Stop::new(Class::Bug, codes::LEDGER_CORRUPT, Body::new(error.to_string()))
            }
        }
    }
}

/// An error with what caused it, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
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
