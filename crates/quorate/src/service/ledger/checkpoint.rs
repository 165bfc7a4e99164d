//! Commands on checkpoints: verify and seal, sign unsigned records, vouch for keys.

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::ledger::Durability;
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::{STREAM, Succession};
use quorate_ledger::verify::{Divergence, LedgerPart};

use super::verify;
use crate::service::error::{ServiceError, error_chain};
use crate::service::sealing::SealResult;
use crate::service::session::LedgerSession;

/// Verifies the whole ledger, and seals it as [`checkpoint`] does. The user who runs it accepts the ledger: from now on this
/// machine knows it.
///
/// # Errors
/// As [`checkpoint`], and if the ledger differs from its records.
#[crate::boxed]
pub async fn checkpoint_verified(session: &LedgerSession) -> Result<SealResult, ServiceError> {
    let sealing = session.sealer();
    // A rollback has its own help, which differs from that for an altered ledger.
    sealing.check_continuity().await?;
    verify::ensure_sealable(session, |_| true).await?;
    let sealed = sealing.seal().await?;
    accept_here(session, &sealed);
    Ok(sealed)
}

/// Records that a person accepted this ledger on this machine.
pub(super) fn accept_here(session: &LedgerSession, sealed: &SealResult) {
    if let Err(error) = session.sealer().copies().note_known(&sealed.sealed.origin) {
        let help = "make the state directory writable: hooks refuse a ledger that this machine does not know";
        session.warn(codes::CHECKPOINT_UNKEPT, Body::new(error_chain(&error)).help(help));
    }
}

/// Seals new records and updates the witness. Verifies only the records since the last signed checkpoint.
///
/// # Errors
/// If the ledger does not answer, or does not extend its last checkpoint.
#[crate::boxed]
pub async fn checkpoint(session: &LedgerSession) -> Result<SealResult, ServiceError> {
    session.sealer().seal().await
}

/// As [`checkpoint`], for a ledger whose rollback a person accepted: checkpoints signed before it do not count.
///
/// # Errors
/// As [`checkpoint`].
#[crate::boxed]
pub async fn after_rollback(session: &LedgerSession) -> Result<SealResult, ServiceError> {
    session.sealer().seal_unchecked(false).await
}

/// Signs records that an older version left unsigned in the ledger's own stream, and returns their numbers.
///
/// # Errors
/// If the key is missing, the ledger does not answer, or anything else differs from the records: a signature would make
/// forged records look genuine.
#[crate::boxed]
pub async fn accept_unsigned(session: &LedgerSession) -> Result<Vec<u64>, ServiceError> {
    let key = session.sealer().required_key().await?;
    let unsigned = session.store.unsigned_ledger_records().await?;
    let is_unsigned = |divergence: &Divergence| {
        divergence.part == LedgerPart::Signature
            && divergence.run.as_deref() == Some(STREAM)
            && divergence.n.is_some_and(|n| unsigned.contains(&n))
    };
    verify::ensure_sealable(session, |one| !is_unsigned(one)).await?;
    Ok(session.store.sign_unsigned_ledger_records(&key).await?)
}

/// Makes a checkpoint that all these keys sign, even without new records: each key vouches for the others. `succession` is
/// the reason why they follow if none of them signed the last checkpoint.
///
/// # Errors
/// As [`checkpoint`].
#[crate::boxed]
pub async fn vouch(
    session: &LedgerSession,
    keys: &[Arc<SecretKey>],
    succession: Succession,
) -> Result<Report, ServiceError> {
    let sealing = session.sealer();
    let mut report = Report::new();
    if let Some(first_use) = sealing.check_continuity().await? {
        report.warn(codes::LEDGER_FIRST_USE, first_use);
    }
    let now_ms = session.environment.clock.now_ms();
    let sealed = session.store.seal_with(keys, now_ms, true, Durability::Synced, succession).await?;
    sealing.publish(&sealed, &mut report).await;
    Ok(report)
}

/// Makes a checkpoint by the ledger's key alone, even without new records.
///
/// # Errors
/// As [`checkpoint`].
#[crate::boxed]
pub async fn seal_again(session: &LedgerSession) -> Result<Report, ServiceError> {
    let sealing = session.sealer();
    sealing.check_continuity().await?;
    Ok(sealing.seal_unchecked(true).await?.report)
}
