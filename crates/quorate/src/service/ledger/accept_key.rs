//! Continues with a ledger whose key was replaced without the old key, because that was lost (D3, D12).

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::ledger::Durability;
use quorate_kernel::record::AcceptedKey;
use quorate_ledger::signing::{SigningContext, KeyId, PublicKey, Voucher};
use quorate_ledger::store::Succession;
use quorate_ledger::verify::LedgerPart;

use super::{checkpoint, trust, verify};
use crate::service::error::{ExitClass, ServiceError, error_chain};
use crate::service::sealing::{Sealer, local_checkpoints};
use crate::service::session::LedgerSession;

/// A request to accept keys.
#[derive(Debug, Clone)]
pub struct Request {
    /// Why no earlier key can vouch.
    pub reason: String,
    /// Keys that the person has from the ledger's owner, besides this machine's, in the format of `--key`.
    pub keys: Vec<String>,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedKeys {
    /// The keys that count from now on; empty if an earlier key vouched for each of the ledger's keys.
    pub keys: Vec<KeyId>,
    /// The size of the last checkpoint.
    pub size: u64,
}

/// Accepts this machine's key for a ledger that another key signed, and the later keys of the ledger for which no earlier
/// key vouched. A checkpoint records the person and the reason, and this machine keeps the accepted keys outside of the
/// ledger. Accepts only keys that the person has: a ledger that names another one is refused.
///
/// # Errors
/// If the reason is empty, no key is usable, the ledger differs in another way from its records, or a file cannot be
/// written.
#[crate::boxed]
pub async fn accept(session: &LedgerSession, request: &Request) -> Result<AcceptedKeys, ServiceError> {
    let reason = request.reason.trim();
    if reason.is_empty() {
        let body = Body::new("cannot accept a key: the reason is empty")
            .help("state in `--reason` why the earlier key cannot sign any more");
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body));
    }
    session.ensure_writable()?;
    let sealing = session.sealer();
    let signed = session.store.checkpoint_keys().await?;
    let (Some(signers), Some(last)) = (signed, session.store.last_checkpoint().await?) else {
        let done = checkpoint::checkpoint(session).await?;
        let size = done.sealed.tree.size;
        session.absorb(done.report);
        return Ok(AcceptedKeys { keys: Vec::new(), size });
    };
    let own = own_key(&sealing)?;
    let public = own.public();
    let vouchers = session.keys().directory().vouchers();
    let signers = signers.iter().map(|verifier| *verifier.key());
    let follows = Voucher::chain_to(SigningContext::LEDGER_VOUCHER, public.id(), signers, &vouchers);
    let mut candidates = trust::ledger_keys(&session.environment, &request.keys)?
        .iter()
        .map(verify::to_public_key)
        .collect::<Vec<_>>();
    candidates.push(public);
    candidates.extend(
        session.keys().directory().retired(quorate_ledger::keys::KeyPurpose::Ledger).unwrap_or_default(),
    );
    // A rollback has its own command, which needs a key that counts.
    let is_rollback = |part: LedgerPart| part == LedgerPart::LocalCheckpoint;
    let changes = verify::ensure_acceptable(session, candidates, |one| !is_rollback(one.part)).await?;
    if follows.is_none() && (sealing.replaced_key(&public) || changes.signers.contains(&public)) {
        let body =
            Body::new(format!("{} is an old key of the ledger: another key has replaced it", public.id()));
        let help = "put the newer key back; where that is lost, too, move the old one away and make another with \
                    `quorate keys init`";
        return Err(ServiceError::configuration(codes::LEDGER_UNSIGNED, body.help(help)));
    }
    let mut accepted = changes.pending;
    if follows.is_none() {
        accepted.push(public);
    }
    if accepted.is_empty() {
        let done = checkpoint::checkpoint(session).await?;
        let size = done.sealed.tree.size;
        session.absorb(done.report);
        return Ok(AcceptedKeys { keys: Vec::new(), size });
    }
    // Kept before the ledger needs them: if the process is killed in between, the ledger still verifies.
    let copies = sealing.copies();
    copies.accept_keys(&last.origin, &accepted).map_err(|error| {
        let body = Body::new(format!("cannot keep the accepted key: {}", error_chain(&error)));
        let help = "make `keys/checkpoints/` and the state directory writable, and repeat the command";
        ServiceError::configuration(codes::FILE_UNWRITABLE, body.help(help))
    })?;
    let reason = session.workspace.redaction.redactor.redact(reason).0;
    let says = accepted.iter().map(|key| AcceptedKey {
        key: key.to_string(),
        by: session.environment.user.clone(),
        reason: reason.to_string(),
    });
    let succession = Succession { vouched: follows.unwrap_or_default(), accepted: says.collect() };
    let (signer, now_ms) = ([own], session.environment.clock.now_ms());
    session.store.seal_with(&signer, now_ms, true, Durability::Synced, succession).await?;
    // The next checkpoint seals the record of this one.
    let sealed =
        session.store.seal_with(&signer, now_ms, true, Durability::Synced, Succession::default()).await?;
    let kept = copies.read(Some(&last.origin));
    let mut report = Report::new();
    match local_checkpoints::rollback_reason(&session.environment, &session.store, &kept).await? {
        None => sealing.publish(&sealed, &mut report).await,
        Some(why) => {
            let help = "where a backup was restored on purpose, `quorate ledger accept-rollback --reason \"…\"` continues \
                        from the present ledger";
            report.warn(codes::CHECKPOINT_MISSING, Body::new(why).help(help));
        }
    }
    session.absorb(report);
    Ok(AcceptedKeys { keys: accepted.iter().map(PublicKey::id).collect(), size: sealed.tree.size })
}

/// This machine's key.
fn own_key(sealing: &Sealer<'_>) -> Result<std::sync::Arc<quorate_ledger::signing::SecretKey>, ServiceError> {
    let (key, from) = sealing.load_key(false);
    let why = match key {
        Ok(Some(key)) => return Ok(std::sync::Arc::new(key)),
        Ok(None) => format!("{from} does not exist"),
        Err(error) => format!("{from}: {error}"),
    };
    let body = Body::new(format!("no key can sign the ledger: {why}"));
    let help = "restore the ledger's key; if it is lost, run `quorate keys init` to make another one, then this command accepts it";
    Err(ServiceError::configuration(codes::LEDGER_UNSIGNED, body.help(help)))
}
