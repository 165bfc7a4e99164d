//! What follows from an outcome: the log lines of a review or the overlays of an assembly, then the record that all is done.

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Error, Ledger as _};
use quorate_kernel::record::RunEnded;
use quorate_ledger::council_log::line::Event;
use quorate_ledger::council_log::view;
use quorate_ledger::retention::Period;
use quorate_protocol::Name;

use super::error::ServiceError;
use super::overlays;
use super::run_opened::is_assembly;
use super::session::LedgerSession;
use super::signer::KeySource;

/// Does what follows from an outcome: the log line, then the record that all is done. Doing it again does
/// nothing.
///
/// # Errors
/// When the ledger does not answer. A log that cannot be written is a warning; the line is made good later.
pub async fn finalize(session: &LedgerSession, run: &Name) -> Result<(), ServiceError> {
    let mut history = session.partial_history(run).await?;
    if history.outcome().is_none() || (history.ended.is_some() && history.unlogged == 0) {
        return Ok(());
    }
    if !session.resume_signing(&mut history, KeySource::Recorded).await? {
        // Whoever was faster concludes it.
        return Ok(());
    }
    let of_assembly = is_assembly(&history);
    if of_assembly {
        overlays::add_from_run(session, &history).await?;
    } else if !append_pending_lines(session, &history).await {
        // The lines follow at the next start.
        return Ok(());
    }
    let logged = !of_assembly;
    match drops_answers_at_end(&history) {
        // They go when it ends, and whoever convened it is to see them before: see `ledger/gc.rs`.
        true => Ok(()),
        false => record_run_ended(session, &history, logged).await,
    }
}

/// Whether a run keeps no answers beyond its end (D5).
pub fn drops_answers_at_end(history: &History) -> bool {
    Period::from_opened(&history.opened, None) == Period::UntilEnd
}

/// Records that all that follows from a run's outcome is done.
pub(super) async fn record_run_ended(
    session: &LedgerSession,
    history: &History,
    logged: bool,
) -> Result<(), ServiceError> {
    let log_path = session.logged_elsewhere(history).filter(|_| logged);
    let entry = Entry::of(&RunEnded { logged, log_path }, session.environment.clock.now_ms());
    match session.store.append(Append::one(&history.run, history.next, entry, Durability::Written)).await {
        // Another process made it good at the same time.
        Ok(_) | Err(Error::Conflict { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    session.seal().await;
    Ok(())
}

/// Appends the lines of a review that are not known to stand in the log: of its verdict, and of what people decided
/// since. `false` when that failed, which is said.
async fn append_pending_lines(session: &LedgerSession, history: &History) -> bool {
    if history.ended.is_none() && !append_review_line(session, history).await {
        return false;
    }
    let (_, decisions) = history.overrides.split_at(history.overrides.len() - history.unlogged);
    for (at_ms, decision) in decisions {
        if !session.append_line(history, view::override_line(history, *at_ms, decision)).await {
            return false;
        }
    }
    true
}

/// Appends the log line of a review that came to a verdict.
async fn append_review_line(session: &LedgerSession, history: &History) -> bool {
    let incomplete = history.outcome().is_some_and(|outcome| outcome.is_incomplete());
    let line = match (history.reopened, incomplete) {
        // It was logged as INCOMPLETE when it first ended, and that still holds.
        (true, true) => None,
        (true, false) => view::review_line(history, Event::Resumed),
        (false, _) => view::review_line(history, Event::Verdict),
    };
    match line {
        Some(line) => session.append_line(history, line).await,
        None => true,
    }
}
