//! Closes an interrupted review whose draft has changed: it cannot be resumed, since its text no longer exists.

use std::path::Path;

use quorate_kernel::ports::ledger::{Append, Durability, Entry, Ledger as _};
use quorate_kernel::record::Outcome;
use quorate_ledger::council_log::line::SUPERSEDED;
use quorate_protocol::Name;

use super::artifact::Artifact;
use super::error::ServiceError;
use super::finalize::finalize;
use super::run_opened;
use super::session::LedgerSession;
use super::signer::KeySource;

/// Closes the open reviews of a changed file. Leaves open those that another process holds and those that this ledger cannot
/// close. `subject` is the file's name in the records.
///
/// # Errors
/// If the ledger does not answer.
pub(super) async fn close_outdated(
    session: &LedgerSession,
    artifact: &Artifact,
    subject: &str,
) -> Result<(), ServiceError> {
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

async fn close_run(session: &LedgerSession, run: &Name, path: &Path) -> Result<(), ServiceError> {
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
    match session.store.append(Append::one(run, history.next, entry, Durability::Synced)).await {
        Ok(_) => finalize(session, run).await.map(drop),
        // Another process closed it first.
        Err(quorate_kernel::ports::ledger::Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
