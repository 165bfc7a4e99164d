//! A person's decision: recorded beside the council's, which it does not overwrite.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Error, Ledger as _};
use quorate_kernel::record::Override;
use quorate_protocol::Name;
use quorate_protocol::policy::Verdict;

use super::error::{ExitClass, ServiceError};
use super::finalize::finalize;
use super::identity;
use super::live::{self, LiveState};
use super::load_report;
use super::report::Report;
use super::run_opened;
use super::session::LedgerSession;
use super::signer::KeySource;

/// The number of attempts to append while other processes append first.
const MAX_ATTEMPTS: usize = 50;

/// The maximum length of a reason and of a decider's name, in characters.
pub const MAX_REASON_CHARS: usize = 8_000;
pub const MAX_BY_CHARS: usize = 200;

#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    pub verdict: Verdict,
    pub reason: &'a str,
    /// The decider's name; `None` for the Git identity.
    pub by: Option<&'a str>,
}

/// Records a person's decision and reason.
///
/// # Errors
/// If the run is undecided, the reason is empty or too long, the decider is unknown, or the ledger fails.
pub async fn override_run(
    session: &LedgerSession,
    run: &Name,
    decision: Decision<'_>,
) -> Result<Report, ServiceError> {
    let Decision { verdict, reason, by } = decision;
    if reason.trim().is_empty() {
        let body = Body::new("an override needs a reason")
            .help("give the reason with `--reason`: the next review learns from it");
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body));
    }
    ensure_short("reason", reason, MAX_REASON_CHARS)?;
    ensure_short("by", by.unwrap_or_default(), MAX_BY_CHARS)?;
    let decider = identity::decider(&session.environment, by).await?;
    session.ensure_writable()?;
    // Another person may append at the same time.
    for _ in 0..MAX_ATTEMPTS {
        match try_record(session, run, verdict, reason, &decider).await {
            Err(RecordError::Conflict) => {}
            Err(RecordError::Failed(error)) => return Err(error),
            Ok(()) => {
                finalize(session, run).await?;
                return load_report::load(session, run).await;
            }
        }
    }
    Err(Error::Conflict { run: run.clone() }.into())
}

enum RecordError {
    /// Another process appended first.
    Conflict,
    Failed(ServiceError),
}

impl<E: Into<ServiceError>> From<E> for RecordError {
    fn from(error: E) -> Self {
        RecordError::Failed(error.into())
    }
}

async fn try_record(
    session: &LedgerSession,
    run: &Name,
    verdict: Verdict,
    reason: &str,
    by: &str,
) -> Result<(), RecordError> {
    let mut history = session.partial_history(run).await?;
    if run_opened::is_assembly(&history) {
        let body =
            Body::new(format!("cannot override run {run}: it is an assembly's, and only a review's verdict can be overridden"))
                .help("convene the assembly again, or decide otherwise where its outcome is used");
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body).into());
    }
    let Some(council) = history.outcome().and_then(|outcome| outcome.verdict) else {
        return Err(undecided_error(session, run, &history).await?.into());
    };
    if !session.resume_signing(&mut history, KeySource::Recorded).await? {
        return Err(RecordError::Conflict);
    }
    let redactor = &session.workspace.redaction.redactor;
    let decision = Override {
        verdict: verdict.as_str().to_owned(),
        reason: redactor.redact(reason.trim()).0,
        by: redactor.redact(by).0,
        council_verdict: Some(council),
        logged: Some(false),
    };
    let entry = Entry::of(&decision, session.environment.clock.now_ms());
    match session.store.append(Append::one(run, history.next, entry, Durability::Synced)).await {
        Err(Error::Conflict { .. }) => Err(RecordError::Conflict),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// The refusal of a run without a verdict. Its help depends on whether a process works on the run.
async fn undecided_error(
    session: &LedgerSession,
    run: &Name,
    history: &History,
) -> Result<ServiceError, ServiceError> {
    let state = match history.ended {
        Some(_) => LiveState::Ended,
        None => live::driver(session, run).await?,
    };
    let help = match state {
        LiveState::Interrupted if history.opened.queued.is_some() => {
            "it is a task of the queue, and a worker continues it: see `quorate queue list`".to_owned()
        }
        LiveState::Ended => "review the text again".to_owned(),
        LiveState::Interrupted => format!("`{}` continues it", session.resume_command(run)),
        _ => format!("wait until it ends; `quorate show {run}` shows its verdict"),
    };
    let body = Body::new(format!("run {run} has no verdict: {}", state.sentence()));
    Ok(ServiceError::configuration(codes::RUN_OPEN, body.help(help)))
}

fn ensure_short(name: &str, text: &str, limit: usize) -> Result<(), ServiceError> {
    let count = text.trim().chars().count();
    if count <= limit {
        return Ok(());
    }
    let body = Body::new(format!("`{name}` has {count} characters; the limit is {limit}"))
        .help("shorten it, and name a document with the details");
    Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body))
}
