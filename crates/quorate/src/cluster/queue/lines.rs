//! Logs the verdicts of queued reviews in the workspace that queued them, since the log of a worker is another one.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_protocol::Name;

use crate::error::Error;
use crate::service::disk::{self, display_path};
use crate::service::finalize::append_review_line;
use crate::service::run_opened::is_assembly;
use crate::service::session::LedgerSession;

/// The file beside the ledger's other local files that names this workspace in the queue.
const NAME_FILE: &str = "queue-name";

/// The log of the workspace that queues.
#[derive(Debug, Clone)]
pub(super) struct QueueingLog {
    /// The workspace's name in the queue, since another machine may have a log at the same path.
    pub(super) name: String,
    /// The redacted path of the log, and its length.
    pub(super) path: String,
    pub(super) bytes: u64,
}

impl QueueingLog {
    /// The log of a session's workspace. Creates the file with the workspace's name if it is missing.
    ///
    /// # Errors
    /// If the file cannot be read or created.
    pub(super) fn of(session: &LedgerSession, bytes: u64) -> Result<QueueingLog, Error> {
        let file = session.store.dir().join(NAME_FILE);
        // Another process may create the file first.
        let made = disk::write_new(&file, &format!("{}\n", entropy::nonce(&entropy::bytes())));
        let named = match made {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => known_name(session),
        };
        let name = named.map_err(|error| {
            let shown = display_path(&session.environment, &file);
            let what = format!("cannot keep {shown}, which names this workspace in the queue: {error}");
            Error::configuration(codes::FILE_UNWRITABLE, Body::new(what).help("make its folder writable"))
        })?;
        let path = session.workspace.log.to_string_lossy();
        Ok(QueueingLog { name, path: session.workspace.redaction.redactor.redact(&path).0, bytes })
    }
}

/// The name of this workspace in the queue. Fails if the workspace has never queued a review.
fn known_name(session: &LedgerSession) -> std::io::Result<String> {
    let bytes = disk::read(&session.store.dir().join(NAME_FILE))?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Appends the lines of queued reviews that have ended since the last call. If the log cannot be written, the next command
/// tries again.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub(crate) async fn write_log_lines(session: &LedgerSession) -> Result<(), Error> {
    if !session.store.is_shared() || session.store.read_only_reason().is_some() {
        return Ok(());
    }
    let Ok(log) = known_name(session) else { return Ok(()) };
    for run in session.store.unlogged_tasks(&log).await? {
        if !append_run_lines(session, &run).await? {
            return Ok(());
        }
        session.store.mark_task_logged(&run).await?;
    }
    Ok(())
}

/// Appends a line for each outcome of a run; returns `false` if the log cannot be written. A task without a run has no
/// lines.
async fn append_run_lines(session: &LedgerSession, run: &Name) -> Result<bool, Error> {
    let records = session.store.records(run).await?;
    let mut is_decided = false;
    for (at, record) in records.iter().enumerate() {
        is_decided |= record.is(Kind::Outcome);
        if record.is(Kind::RunEnded) && std::mem::take(&mut is_decided) {
            // The history at the time of that end.
            let history = History::from_remaining_records(run, records[..at].to_vec())?;
            if !is_assembly(&history) && !append_review_line(session, &history).await {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
