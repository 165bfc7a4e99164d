//! Opens a session. An opened one that can write finalizes the runs of processes that died after an outcome.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::council_log;
use quorate_ledger::runs::RunRow;

use super::environment::Environment;
use super::error::Error;
use super::finalize::finalize;
use super::keys::WorkspaceKeys;
use super::ledger::gc;
use super::session::LedgerSession;
use super::workspace::{self, Workspace};

/// Opens ledger and log.
///
/// # Errors
/// If the ledger cannot be opened.
#[crate::boxed]
pub(crate) async fn open(environment: Environment, workspace: Workspace) -> Result<LedgerSession, Error> {
    let keys = WorkspaceKeys::of(&environment, &workspace);
    Box::pin(open_with(environment, keys, workspace)).await
}

/// As [`open`], with keys that may be those of another workspace.
///
/// # Errors
/// As [`open`].
#[crate::boxed]
pub(crate) async fn open_with(
    environment: Environment,
    keys: WorkspaceKeys,
    workspace: Workspace,
) -> Result<LedgerSession, Error> {
    let session = Box::pin(LedgerSession::open(environment, keys, workspace)).await?;
    if session.store.read_only_reason().is_none() {
        Box::pin(reconcile(&session)).await?;
    }
    Ok(session)
}

/// As [`open`], for work that is logged: checks that the log can be appended to before any work is done.
///
/// # Errors
/// As [`open`], and if the log cannot be appended to.
#[crate::boxed]
pub(crate) async fn open_for_writing(
    environment: Environment,
    workspace: Workspace,
) -> Result<LedgerSession, Error> {
    // If both would be created in one directory, the ledger's error says more.
    let is_log_separate = workspace.log.exists() || workspace.log.parent() != Some(workspace.ledger.dir());
    let can = if is_log_separate { council_log::can_append(&workspace.log) } else { Ok(()) };
    can.map_err(|error| workspace::log_unwritable(&environment, &workspace.log, &error))?;
    workspace.witness.as_ref().map_or(Ok(()), |witness| witness.ensure_file(&environment))?;
    let session = open(environment, workspace).await?;
    session.ensure_writable()?;
    Ok(session)
}

/// How often a ledger that another process is making is tried again, and how long to wait in between.
const ATTEMPTS: u32 = 5;
const INTERVAL: Duration = Duration::from_millis(100);

/// Opens a ledger for reading. One that another process is making has no tables for a moment, so it is tried again.
pub(crate) async fn open_once_made<T, F>(mut open: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 0..ATTEMPTS {
        let opened = open().await;
        if !opened.as_ref().is_err_and(Error::is_ledger_unavailable) {
            return opened;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    open().await
}

async fn reconcile(session: &LedgerSession) -> Result<(), Error> {
    let unended = session.store.decided_unfinished().await?;
    let driven = match unended.is_empty() {
        true => BTreeSet::new(),
        false => session.store.runs_driven_elsewhere().await?,
    };
    for run in unended {
        if driven.contains(&run.run) || belongs_to_another_log(session, &run) {
            continue;
        }
        // One run with invalid records must not block the others.
        let concluded = async { gc::after_run(session, finalize(session, &run.run).await?).await };
        if let Err(error) = concluded.await {
            let why = error
                .report
                .refusals
                .first()
                .map_or_else(String::new, |refusal| refusal.body.message.clone());
            let body =
                Body::new(format!("run {} has a verdict, but its line cannot be logged: {why}", run.run));
            session.warn(codes::LOG_BEHIND, body);
        }
    }
    #[cfg(all(feature = "cluster", feature = "postgres"))]
    crate::cluster::queue::lines::write_log_lines(session).await?;
    Ok(())
}

/// Whether a run's line belongs to a log of another workspace, which this one does not write. If that log no longer
/// exists, it was moved along with the ledger.
fn belongs_to_another_log(session: &LedgerSession, run: &RunRow) -> bool {
    let log = Path::new(&run.log_path);
    !run.log_path.is_empty() && !session.owns_log(log) && (session.store.is_shared() || log.exists())
}
