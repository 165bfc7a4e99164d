//! Finalizes a run after its outcome: writes a review's log lines or an assembly's overlays, then records the end.

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Error, Ledger as _};
use quorate_kernel::record::RunEnded;
use quorate_ledger::council_log;
use quorate_ledger::council_log::line::LogEvent;
use quorate_ledger::retention::Period;
use quorate_protocol::Name;

use super::error::ServiceError;
use super::overlays;
use super::run_opened::is_assembly;
use super::session::LedgerSession;
use super::signer::KeySource;

/// Finalizes a run: log line or overlays, then the record that the run ended. Idempotent. Returns the whole history.
///
/// # Errors
/// If the ledger does not answer. A log that cannot be written is a warning; a later start writes the line.
#[crate::boxed]
pub async fn finalize(session: &LedgerSession, run: &Name) -> Result<History, ServiceError> {
    let mut history = session.partial_history(run).await?;
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
pub fn drops_answers_at_end(history: &History) -> bool {
    Period::from_opened(&history.opened, None) == Period::UntilEnd
}

/// Records the end of a run.
pub(super) async fn record_run_ended(
    session: &LedgerSession,
    history: &mut History,
    logged: bool,
) -> Result<(), ServiceError> {
    let log_path = session.logged_elsewhere(history).filter(|_| logged);
    let (ended, at_ms) = (RunEnded { logged, log_path }, session.environment.clock.now_ms());
    let entry = Entry::of(&ended, at_ms);
    match session.store.append(Append::one(&history.run, history.next, entry, Durability::Written)).await {
        Ok(_) => history.end(ended, at_ms),
        // Another process recorded it at the same time.
        Err(Error::Conflict { .. }) => {}
        Err(error) => return Err(error.into()),
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
pub(super) async fn append_review_line(session: &LedgerSession, history: &History) -> bool {
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
