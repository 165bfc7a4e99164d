//! Logs the verdicts of queued reviews in the workspace that queued them: a worker has another log.

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_protocol::Name;

use crate::service::error::ServiceError;
use crate::service::finalize::append_review_line;
use crate::service::run_opened::is_assembly;
use crate::service::session::LedgerSession;

/// The log's name in the queue.
pub(super) fn log_name(session: &LedgerSession) -> String {
    let log = session.workspace.log.to_string_lossy();
    session.workspace.redaction.redactor.redact(&log).0
}

/// Appends the lines of queued reviews that have ended since. A log that cannot be written is a warning; a later start
/// writes the line.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub async fn write(session: &LedgerSession) -> Result<(), ServiceError> {
    if !session.store.is_shared() || session.store.read_only_reason().is_some() {
        return Ok(());
    }
    for run in session.store.unlogged_tasks(&log_name(session)).await? {
        if !append_all(session, &run).await? {
            return Ok(());
        }
        session.store.mark_task_logged(&run).await?;
    }
    Ok(())
}

/// Appends a run's lines, one for each time that it came to an outcome; `false` where the log cannot be written. A task that
/// never came to a run has none.
async fn append_all(session: &LedgerSession, run: &Name) -> Result<bool, ServiceError> {
    let records = session.store.records(run).await?;
    let mut is_decided = false;
    for (at, record) in records.iter().enumerate() {
        is_decided |= record.is(Kind::Outcome);
        if record.is(Kind::RunEnded) && std::mem::take(&mut is_decided) {
            // As it was when it ended.
            let history = History::from_remaining_records(run, records[..at].to_vec())?;
            if !is_assembly(&history) && !append_review_line(session, &history).await {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
