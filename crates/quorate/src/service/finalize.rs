//! What follows an outcome: log lines or overlays and the record of the end, a person's decision beside the council's,
//! and closing an interrupted review whose draft has changed.

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Durability, Entry, LedgerError};
use quorate_kernel::record::{Outcome, Override, RunEnded};
use quorate_ledger::council_log;
use quorate_ledger::council_log::line::{LogEvent, SUPERSEDED};
use quorate_ledger::retention::Period;
use quorate_protocol::Name;
use quorate_protocol::policy::Verdict;

use super::artifact::Artifact;
use super::error::{Error, ErrorKind};
use super::live::{self, LiveState};
use super::report::{self, Review};
use super::run_opened::{self, is_assembly};
use super::session::LedgerSession;
use super::signer::KeySource;
use super::{environment, overlays};

/// Finalizes a run: log line or overlays, then the record that the run ended. Idempotent. Returns the whole history.
///
/// # Errors
/// If the ledger does not answer. A log that cannot be written is a warning; a later start writes the line.
#[crate::boxed]
pub(crate) async fn finalize(session: &LedgerSession, run: &Name) -> Result<History, Error> {
    conclude(session, session.partial_history(run).await?).await
}

/// As [`finalize`], for a history that holds all records so far.
///
/// # Errors
/// As [`finalize`].
#[crate::boxed]
pub(super) async fn conclude(session: &LedgerSession, mut history: History) -> Result<History, Error> {
    if history.outcome().is_none() || (history.ended.is_some() && history.unlogged == 0) {
        return Ok(history);
    }
    if !session.resume_signing(&mut history, KeySource::Recorded).await? {
        // Another process finalizes it.
        return Ok(history);
    }
    let of_assembly = is_assembly(&history);
    if of_assembly {
        overlays::add_from_run(session, &history).await?;
    } else if !append_pending_lines(session, &history).await {
        // A later start writes the lines.
        return Ok(history);
    }
    // The machine that queued a review logs it.
    let logged = !of_assembly && history.opened.queued.is_none();
    // The answers are erased at the end of the command, after the convener has read them: see `ledger/gc.rs`.
    if !drops_answers_at_end(&history) {
        record_run_ended(session, &mut history, logged).await?;
    }
    Ok(history)
}

/// Whether the run's answers are erased when it ends (D5).
pub(crate) fn drops_answers_at_end(history: &History) -> bool {
    Period::from_opened(&history.opened, None) == Period::UntilEnd
}

/// Records the end of a run.
pub(super) async fn record_run_ended(
    session: &LedgerSession,
    history: &mut History,
    logged: bool,
) -> Result<(), Error> {
    let log_path = session.logged_elsewhere(history).filter(|_| logged);
    let ended = RunEnded { logged, log_path, opened: Some(history.opened.without_directories()) };
    let state = |history: &History| (history.decided_ms, history.overrides.len());
    let before = state(history);
    for _ in 0..MAX_ATTEMPTS {
        let at_ms = session.environment.clock.now_ms();
        let entry = Entry::of(&ended, at_ms);
        if session.append(&history.run, history.next, entry, Durability::Written).await?.is_some() {
            history.end(ended, at_ms);
            break;
        }
        // A cancelled call was recorded after the outcome, or another process has added to the run.
        *history = session.partial_history(&history.run).await?;
        // Another process resumes the run, or a person's decision has a line that the next start writes.
        if history.ended.is_some() || state(history) != before {
            break;
        }
    }
    session.seal_run().await;
    Ok(())
}

/// Appends a review's lines that the log lacks: its verdict, and later decisions of people. Returns `false`, after a
/// warning, if the log cannot be written.
async fn append_pending_lines(session: &LedgerSession, history: &History) -> bool {
    let is_here = history.opened.queued.is_none();
    if history.ended.is_none() && is_here && !append_review_line(session, history).await {
        return false;
    }
    let (_, decisions) = history.overrides.split_at(history.overrides.len() - history.unlogged);
    for (at_ms, decision) in decisions {
        if !session.append_line(history, council_log::override_line(history, *at_ms, decision)).await {
            return false;
        }
    }
    true
}

/// Appends the log line of a decided review.
pub(crate) async fn append_review_line(session: &LedgerSession, history: &History) -> bool {
    let incomplete = history.outcome().is_some_and(|outcome| outcome.is_incomplete());
    let line = match (history.reopened, incomplete) {
        // The log already has INCOMPLETE, and that is still true.
        (true, true) => None,
        (true, false) => council_log::review_line(history, LogEvent::Resumed),
        (false, _) => council_log::review_line(history, LogEvent::Verdict),
    };
    match line {
        Some(line) => session.append_line(history, line).await,
        None => true,
    }
}

/// Closes the open reviews of a changed file. Leaves open those that another process holds and those that this ledger
/// cannot close. `subject` is the file's name in the records.
///
/// # Errors
/// If the ledger does not answer.
pub(super) async fn close_outdated(
    session: &LedgerSession,
    artifact: &Artifact,
    subject: &str,
) -> Result<(), Error> {
    let Some(path) = &artifact.path else { return Ok(()) };
    for (run, sha256) in session.store.open_runs_on(subject).await? {
        if sha256 == artifact.sha256 {
            continue;
        }
        let Ok(_held) = session.acquire_run(&run).await else { continue };
        close_run(session, &run, path).await?;
    }
    Ok(())
}

async fn close_run(session: &LedgerSession, run: &Name, path: &Path) -> Result<(), Error> {
    let mut history = session.partial_history(run).await?;
    // Several directories may have a file of that name.
    let of_this_file = history.opened.artifact_path.as_deref() == path.to_str();
    if !of_this_file || run_opened::is_assembly(&history) || history.outcome().is_some() {
        return Ok(());
    }
    if !session.resume_signing(&mut history, KeySource::Recorded).await? {
        return Ok(());
    }
    let because = "The draft was changed before the council came to a verdict, and is reviewed anew.";
    let outcome = Outcome {
        kind: Some("verdict".to_owned()),
        verdict: Some(SUPERSEDED.to_owned()),
        because: Some(because.to_owned()),
        reasoning: Some(because.to_owned()),
        ..Outcome::default()
    };
    let entry = Entry::of(&outcome, session.environment.clock.now_ms());
    // Another process may have closed it first.
    if session.append(run, history.next, entry, Durability::Synced).await?.is_some() {
        finalize(session, run).await?;
    }
    Ok(())
}

/// The number of attempts to append while other processes append first.
const MAX_ATTEMPTS: usize = 50;

/// The maximum length of a reason, in characters.
pub const MAX_REASON_CHARS: usize = 8_000;
/// The maximum length of a decider's name, in characters.
pub const MAX_BY_CHARS: usize = 200;

/// A person's decision on a run.
#[derive(Debug, Clone)]
pub struct OverrideRequest {
    /// The run: its id, a prefix of it, or `latest`.
    pub run: String,
    /// The decision.
    pub verdict: Verdict,
    /// The reason; later reviews learn from it. At most [`MAX_REASON_CHARS`] characters.
    pub reason: String,
    /// The decider's name, at most [`MAX_BY_CHARS`] characters; `None` for the Git identity.
    pub by: Option<String>,
}

/// Records a person's decision and reason.
///
/// # Errors
/// If the run is unknown, undecided or imported, the reason is empty or too long, the decider is unknown, or the ledger
/// fails.
pub(crate) async fn override_run(
    session: &LedgerSession,
    request: &OverrideRequest,
) -> Result<Review, Error> {
    let OverrideRequest { run, verdict, reason, by } = request;
    let run = &session.find_own_run(run).await?;
    if reason.trim().is_empty() {
        let body = Body::new("an override needs a reason")
            .help("give the reason with `--reason`: the next review learns from it");
        return Err(Error::usage(body));
    }
    ensure_short("reason", reason, MAX_REASON_CHARS)?;
    ensure_short("by", by.as_deref().unwrap_or_default(), MAX_BY_CHARS)?;
    let decider = environment::decider(&session.environment, by.as_deref()).await?;
    session.ensure_writable()?;
    // Another person may append at the same time.
    for _ in 0..MAX_ATTEMPTS {
        if try_record(session, run, *verdict, reason, &decider).await? {
            finalize(session, run).await?;
            return report::load(session, run).await;
        }
    }
    Err(LedgerError::Conflict { run: run.clone() }.into())
}

/// Records a decision; `false` if another process appended first.
async fn try_record(
    session: &LedgerSession,
    run: &Name,
    verdict: Verdict,
    reason: &str,
    by: &str,
) -> Result<bool, Error> {
    let mut history = session.partial_history(run).await?;
    if run_opened::is_assembly(&history) {
        let body = Body::new(format!(
            "cannot override run {run}: it is an assembly's, and only a review's verdict can be overridden"
        ))
        .help("convene the assembly again, or decide otherwise where its outcome is used");
        return Err(Error::usage(body));
    }
    let Some(council) = history.outcome().and_then(|outcome| outcome.verdict) else {
        return Err(undecided_error(session, run, &history).await?);
    };
    if !session.resume_signing(&mut history, KeySource::Recorded).await? {
        return Ok(false);
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
    Ok(session.append(run, history.next, entry, Durability::Synced).await?.is_some())
}

/// The refusal of a run without a verdict. Its help depends on whether a process works on the run.
async fn undecided_error(session: &LedgerSession, run: &Name, history: &History) -> Result<Error, Error> {
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
    Ok(Error::new(ErrorKind::Conflict, codes::RUN_OPEN, body.help(help)))
}

fn ensure_short(name: &str, text: &str, limit: usize) -> Result<(), Error> {
    let count = text.trim().chars().count();
    if count <= limit {
        return Ok(());
    }
    let body = Body::new(format!("`{name}` has {count} characters; the limit is {limit}"))
        .help("shorten it, and name a document with the details");
    Err(Error::usage(body))
}
