//! Reads a review's report back from the ledger.

use std::path::Path;
use std::sync::Arc;

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_protocol::policy::Verdict;
use quorate_protocol::{Name, PartKind};

use super::budget;
use super::error::ServiceError;
use super::paths::{display_ledger, display_path};
use super::report::{LedgerLocation, Report};
use super::repository_path::repository_path;
use super::session::LedgerSession;

/// The note of an incomplete run of the queue.
pub(super) const QUEUED_NOTE: &str = "Everything answered so far is kept, and a worker asks again only for what is missing; once the task is dead, \
    `quorate queue retry` has it tried again.";

/// The report of a run.
///
/// # Errors
/// If its records are missing or corrupt, or the ledger does not answer.
#[crate::boxed]
pub async fn load(session: &LedgerSession, run: &Name) -> Result<Report, ServiceError> {
    load_from(session, &session.partial_history(run).await?).await
}

/// The report of a review, from a history that is already loaded.
///
/// # Errors
/// If the ledger does not answer.
#[crate::boxed]
pub async fn load_from(session: &LedgerSession, history: &History) -> Result<Report, ServiceError> {
    let artifact = history.inputs().into_iter().find(|(kind, ..)| *kind == PartKind::Artifact);
    let text = match artifact {
        Some((.., sha256)) => session.store.body(&sha256).await?,
        None => None,
    };
    let imported = session.store.is_imported(&history.run).await?;
    Ok(report(session, history, text, imported))
}

/// The report of a review that this process has run to its end, with the recorded text of the artifact. Reads nothing.
pub(super) fn of_own_run(session: &LedgerSession, history: &History, text: Arc<str>) -> Report {
    report(session, history, Some(text), false)
}

fn report(session: &LedgerSession, history: &History, text: Option<Arc<str>>, imported: bool) -> Report {
    let mut report = Report::of(history, text);
    report.repository_path = match &*report.artifact {
        "-" => None,
        named => repository_path(&session.environment.directory, Path::new(named)),
    };
    let near = |path: String| display_path(&session.environment, Path::new(&path));
    report.council = report.council.map(near);
    let ledger = session.store.address();
    report.ledger = session.environment.keeps_ledgers.then(|| LedgerLocation {
        ledger: ledger.to_string(),
        shown: display_ledger(&session.environment, ledger),
        flag: session.ledger_flag().to_owned(),
    });
    report.imported = imported;
    if report.verdict == Some(Verdict::Incomplete) && report.queued {
        report.notes.push(QUEUED_NOTE.to_owned());
    } else if report.verdict == Some(Verdict::Incomplete)
        && session.environment.keeps_ledgers
        && !report.imported
        && history.erased.records == 0
    {
        let resume = session.resume_command(&history.run);
        report.notes.push(budget::resume_note(session.workspace.host.budget.wall, history, &resume));
    }
    report
}
