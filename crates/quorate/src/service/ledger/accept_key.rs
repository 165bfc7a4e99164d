//! Goes on with a ledger whose key was replaced without the old one, since that was lost (D3, D12).

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::ledger::Durability;
use quorate_kernel::record::AcceptedKey;
use quorate_ledger::signing::{Context, KeyId, PublicKey, Voucher};
use quorate_ledger::store::Succession;
use quorate_ledger::verify::Part;

use super::{checkpoint, trust, verify};
use crate::service::error::{ExitClass, ServiceError, error_chain};
use crate::service::sealing::{Sealer, local_checkpoints};
use crate::service::session::LedgerSession;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Why no earlier key can vouch.
    pub reason: String,
    /// Keys that the person has from the ledger's owner, besides those that are here: as `--key` names them.
    pub keys: Vec<String>,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedKeys {
    /// The keys that count from now on; none where all of the ledger's keys followed from the ones before them.
    pub keys: Vec<KeyId>,
    /// The size of the last checkpoint.
    pub size: u64,
}

/// Accepts the key that is here for a ledger that another one signed, and the keys in the ledger that followed without the
/// word of an earlier one. A checkpoint says who accepted them and why, and this machine keeps them outside of the ledger.
/// Only keys that the person has count: a ledger that names another one is not accepted.
///
/// # Errors
/// If the reason is empty, there is no usable key, the ledger differs otherwise from what was recorded, or a file cannot be
/// written.
#[crate::boxed]
pub async fn accept(session: &LedgerSession, request: &Request) -> Result<AcceptedKeys, ServiceError> {
    let reason = request.reason.trim();
    if reason.is_empty() {
        let body = Body::new("cannot accept a key: the reason is empty")
            .help("say why the earlier key cannot sign any more");
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
    let follows = Voucher::chain_to(Context::LEDGER_VOUCHER, public.id(), signers, &vouchers);
    let mut candidates = trust::ledger_keys(&session.environment, &request.keys)?
        .iter()
        .map(verify::to_public_key)
        .collect::<Vec<_>>();
    candidates.push(public);
    candidates.extend(
        session.keys().directory().retired(quorate_ledger::keys::Purpose::Ledger).unwrap_or_default(),
    );
    // A rollback has its own command, which needs a key that counts.
    let is_rollback = |part: Part| part == Part::LocalCheckpoint;
    let changes = verify::ensure_acceptable(session, candidates, |one| !is_rollback(one.part)).await?;
    if follows.is_none() && (sealing.replaced_key(&public) || changes.signers.contains(&public)) {
        let body =
            Body::new(format!("{} is an old key of the ledger: another one has replaced it", public.id()));
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
    // Kept before the ledger needs them: a process that is killed in between leaves a ledger that verifies.
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
    // The record of a checkpoint is sealed by the next one.
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

/// The key that is here.
fn own_key(sealing: &Sealer<'_>) -> Result<std::sync::Arc<quorate_ledger::signing::SecretKey>, ServiceError> {
    let (key, from) = sealing.load_key(false);
    let why = match key {
        Ok(Some(key)) => return Ok(std::sync::Arc::new(key)),
        Ok(None) => format!("{from} does not exist"),
        Err(error) => format!("{from}: {error}"),
    };
    let body = Body::new(format!("there is no key that could sign the ledger: {why}"));
    let help = "put the ledger's key back; where it is lost, `quorate keys init` makes another one, and this command accepts it";
    Err(ServiceError::configuration(codes::LEDGER_UNSIGNED, body.help(help)))
}
