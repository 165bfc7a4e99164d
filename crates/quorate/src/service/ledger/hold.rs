//! Legal holds: texts of a run on hold are not erased, whatever their age, until the run is released.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::ledger::Entry;
use quorate_kernel::record::{Held, Released};
use quorate_ledger::retention::LegalHold;
use quorate_protocol::Name;

use crate::service::error::{ExitClass, ServiceError};
use crate::service::session::LedgerSession;

/// The hold of a run, and whether it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldChange {
    pub run: Name,
    /// Whether the run is on hold now.
    pub held: bool,
    /// Whether this command changed it.
    pub fresh: bool,
}

/// Puts a run on hold. Idempotent.
///
/// # Errors
/// If there is no such run, the reason is empty, or the ledger rejects the record.
#[crate::boxed]
pub async fn hold(
    session: &LedgerSession,
    prefix: &str,
    reason: Option<&str>,
) -> Result<HoldChange, ServiceError> {
    if reason.is_some_and(|reason| reason.trim().is_empty()) {
        let body = Body::new("the reason of a hold is empty").help("give a reason, or leave `--reason` out");
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body));
    }
    let reason = reason.map(|reason| session.workspace.redaction.redactor.redact(reason.trim()).0);
    set_hold(session, prefix, true, reason).await
}

/// Releases a run. Idempotent.
///
/// # Errors
/// If there is no such run, or the ledger rejects the record.
#[crate::boxed]
pub async fn release(session: &LedgerSession, prefix: &str) -> Result<HoldChange, ServiceError> {
    set_hold(session, prefix, false, None).await
}

/// The runs on hold, the oldest hold first.
///
/// # Errors
/// If the ledger does not answer.
#[crate::boxed]
pub async fn holds(session: &LedgerSession) -> Result<Vec<LegalHold>, ServiceError> {
    Ok(session.store.holds().await?)
}

async fn set_hold(
    session: &LedgerSession,
    prefix: &str,
    held: bool,
    reason: Option<String>,
) -> Result<HoldChange, ServiceError> {
    let run = find_run_or_stream(session, prefix).await?;
    let fresh = session.store.is_on_hold(&run).await? != held;
    if fresh {
        let (name, by) = (run.to_string(), session.environment.user.clone());
        let at_ms = session.environment.clock.now_ms();
        let entry = match held {
            true => Entry::of(&Held { run: name, by, reason }, at_ms),
            false => Entry::of(&Released { run: name, by }, at_ms),
        };
        let key = session.sealer().required_key().await?;
        session.store.append_ledger_record(entry, &key).await?;
    }
    Ok(HoldChange { run, held, fresh })
}

/// A run by prefix, or a conversation's stream by its full name.
async fn find_run_or_stream(session: &LedgerSession, prefix: &str) -> Result<Name, ServiceError> {
    match session.store.streams("turns/").await?.into_iter().find(|stream| **stream == *prefix) {
        Some(stream) => Ok(stream),
        None => Ok(session.find_run(prefix).await?.run),
    }
}
