//! Accepts a ledger that was restored from a backup on purpose (D12).

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::ledger::Entry;
use quorate_kernel::record::{GivenUp, RolledBack};
use quorate_ledger::local_checkpoints::CheckpointFiles;

use super::checkpoint;
use crate::service::error::{ExitClass, ServiceError, error_chain};
use crate::service::sealing::local_checkpoints;
use crate::service::session::LedgerSession;

/// An accepted rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedRollback {
    /// How the ledger departs from its local copies; `None` if it does not, so that nothing changed.
    pub departs: Option<String>,
    /// The size of the checkpoint that replaces the copies.
    pub size: u64,
}

/// Accepts a rolled-back ledger. A record in the ledger's own stream has the person, the reason and the loss; the copies move
/// to `aside/`, and the next checkpoint replaces them.
///
/// # Errors
/// If the reason is empty, the ledger rejects the record, or a copy cannot be moved.
#[crate::boxed]
pub async fn accept(session: &LedgerSession, reason: &str) -> Result<AcceptedRollback, ServiceError> {
    if reason.trim().is_empty() {
        let body = Body::new("cannot accept a rollback: the reason is empty")
            .help("state in `--reason` what was restored, and from where");
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body));
    }
    let origin = session.store.last_checkpoint().await?.map(|sealed| sealed.origin);
    let copies = CheckpointFiles::new(session.store.address(), session.environment.state_dir.as_deref());
    let kept = copies.read(origin.as_deref());
    let departs = local_checkpoints::rollback_reason(&session.environment, &session.store, &kept).await?;
    if departs.is_some() {
        let key = session.sealer().required_key_after_rollback().await?;
        let reason = session.workspace.redaction.redactor.redact(reason.trim()).0;
        let given_up = kept.copies.iter().map(|copy| GivenUp { note: copy.note.as_ref().ok().cloned() });
        let accepted = RolledBack {
            reason,
            by: session.environment.user.clone(),
            given_up: given_up.collect(),
            replaced: kept.replaced_origin.clone(),
        };
        let entry = Entry::of(&accepted, session.environment.clock.now_ms());
        session.store.append_ledger_record(entry, &key).await?;
        copies.discard(origin.as_deref()).map_err(|error| {
            let body = Body::new(format!("cannot move the kept checkpoint aside: {}", error_chain(&error)));
            let help = "make `keys/checkpoints/` and the state directory writable, and repeat the command";
            ServiceError::configuration(codes::FILE_UNWRITABLE, body.help(help))
        })?;
    }
    let done = match departs {
        Some(_) => checkpoint::after_rollback(session).await?,
        None => checkpoint::checkpoint(session).await?,
    };
    checkpoint::accept_here(session, &done);
    let size = done.sealed.tree.size;
    session.absorb(done.report);
    Ok(AcceptedRollback { departs, size })
}
