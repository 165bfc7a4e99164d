//! Commands on the ledger as a whole: checkpoints, accepted keys and rollbacks, trusted keys, statistics. Exports,
//! proofs, erasure and verification have files of their own.
//!
//! A ledger whose key was replaced without the old key, because that was lost (D3, D12), or that was restored from a
//! backup (D12), continues only after a person has accepted it.

pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod prove;
pub(crate) mod verify;

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::ledger::{Durability, Entry};
use quorate_kernel::record::{AcceptedKey, GivenUp, RolledBack};
use quorate_ledger::files::wal_path;
use quorate_ledger::keys::KeyPurpose;
use quorate_ledger::prove::TrustedKey;
use quorate_ledger::signing::{KeyId, PublicKey, SecretKey, SigningContext, Voucher};
use quorate_ledger::stats::LedgerCounts;
use quorate_ledger::store::{CheckpointRecord, STREAM, Succession};
use quorate_ledger::verify::{Divergence, LedgerPart};
use serde::Serialize;

use super::disk::{self, absolute, display_ledger};
use super::environment::Environment;
use super::error::{Error, ErrorKind, error_chain};
use super::keys::{SigningKey, WorkspaceKeys, public_key};
use super::sealing::{self, SealResult, Sealer};
use super::session::LedgerSession;

/// The contents of a ledger, in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct LedgerStats {
    /// The ledger's path as shown to the user.
    pub ledger: String,
    /// The size of its files, or of its tables on a server, in bytes.
    pub file_bytes: u64,
    /// The numbers.
    #[serde(flatten)]
    pub counts: LedgerCounts,
}

/// Counts the records, texts and runs of a ledger.
///
/// # Errors
/// If the ledger does not answer.
#[crate::boxed]
pub(crate) async fn stats(session: &LedgerSession) -> Result<LedgerStats, Error> {
    let address = session.store.address();
    let bytes = match address.file() {
        Some(path) => file_bytes(path),
        None => session.store.server_bytes().await?.unwrap_or_default(),
    };
    Ok(LedgerStats {
        ledger: display_ledger(&session.environment, address),
        file_bytes: bytes,
        counts: session.store.stats(session.environment.clock.now_ms()).await?,
    })
}

/// The size of a SQLite file with its log.
fn file_bytes(path: &Path) -> u64 {
    let sizes = [path, &wal_path(path)].map(|file| std::fs::metadata(file).map_or(0, |found| found.len()));
    sizes.iter().sum()
}

/// Keys of ledgers: each value is a verifier's line, a public key, or a file of such lines.
///
/// # Errors
/// If a value has none of these forms.
pub(crate) fn ledger_keys(environment: &Environment, given: &[String]) -> Result<Vec<TrustedKey>, Error> {
    parse_keys(environment, given, TrustedKey::from_text)
}

/// Keys of signers of records: each value is a public key or a file of such lines.
///
/// # Errors
/// If a value is neither.
pub(crate) fn signer_keys(environment: &Environment, given: &[String]) -> Result<Vec<PublicKey>, Error> {
    parse_keys(environment, given, |line| {
        PublicKey::from_text(line.trim()).map_err(|error| error.to_string())
    })
}

fn parse_keys<T>(
    environment: &Environment,
    given: &[String],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    for value in given {
        let path = absolute(&environment.directory, Path::new(value));
        let unusable = |why: &str| {
            let help =
                "`quorate keys export ledger` prints a ledger's key, and `quorate keys export` a signer's";
            Error::configuration(
                codes::KEY_UNUSABLE,
                Body::new(format!("`{value}` is not a public key: {why}")).help(help),
            )
        };
        let text = match path.is_file() {
            true => disk::read_text(&path).map_err(|error| unusable(&error_chain(&error)))?,
            false => Some(value.clone()),
        };
        let Some(text) = text else { return Err(unusable("the file does not exist")) };
        let before = all.len();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            all.push(read(line).map_err(|why| match path.is_file() {
                true => unusable(&why),
                false => unusable(&format!("{why}, and no file has this name")),
            })?);
        }
        if all.len() == before {
            return Err(unusable("it is empty"));
        }
    }
    Ok(all)
}

/// The keys of this ledger, retired ones included, since it trusts its own signatures.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn own_keys(keys: &WorkspaceKeys) -> Result<Vec<TrustedKey>, Error> {
    let all = keys.directory().public_keys(KeyPurpose::Ledger).map_err(|error| {
        let body = Body::new(error_chain(&error)).help("see `quorate keys list`");
        Error::configuration(codes::KEY_UNUSABLE, body)
    })?;
    Ok(all.into_iter().map(TrustedKey::Public).collect())
}

/// The public keys that may have signed records here: the keyring's, the signing key's, and retired keys. Skips
/// unreadable keys.
#[crate::boxed]
pub(crate) async fn known_signers(session: &LedgerSession) -> Vec<PublicKey> {
    let keys = session.keys();
    let ring = keys.load_keyring().unwrap_or_default();
    let mut known: Vec<PublicKey> = ring.keys.iter().filter_map(public_key).collect();
    if let Ok(SigningKey::Available(secret, _)) = keys.signing_key().await {
        known.push(secret.public());
    }
    known.extend(keys.directory().retired(KeyPurpose::Signing).unwrap_or_default());
    known
}

/// A request to accept keys.
#[derive(Debug, Clone, Default)]
pub struct AcceptKeyRequest {
    /// Why no earlier key can vouch.
    pub reason: String,
    /// Keys that the person has from the ledger's owner, besides this machine's, in the format of `--key`.
    pub keys: Vec<String>,
}

/// Accepted keys of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptedKeys {
    /// The keys that count from now on; empty if an earlier key vouched for each of the ledger's keys.
    #[serde(rename = "accepted")]
    pub keys: Vec<KeyId>,
    /// The size of the last checkpoint.
    pub size: u64,
}

/// Accepts this machine's key for a ledger that another key signed, and the later keys of the ledger for which no
/// earlier key vouched. A checkpoint records the person and the reason, and this machine keeps the accepted keys
/// outside of the ledger. Accepts only keys that the person has: a ledger that names another one is refused.
///
/// # Errors
/// If the reason is empty, no key is usable, the ledger differs in another way from its records, or a file cannot be
/// written.
#[crate::boxed]
pub(crate) async fn accept_key(
    session: &LedgerSession,
    request: &AcceptKeyRequest,
) -> Result<AcceptedKeys, Error> {
    let help = "state in `--reason` why the earlier key cannot sign any more";
    let reason = non_empty(&request.reason, "cannot accept a key: the reason is empty", help)?;
    session.ensure_writable()?;
    let sealing = session.sealer();
    let signed = session.store.checkpoint_keys().await?;
    let (Some(signers), Some(last)) = (signed, session.store.last_checkpoint().await?) else {
        return Ok(AcceptedKeys { keys: Vec::new(), size: checkpoint(session).await?.tree.size });
    };
    let own = own_key(&sealing)?;
    let public = own.public();
    let vouchers = session.keys().directory().vouchers();
    let signers = signers.iter().map(|verifier| *verifier.key());
    let follows = Voucher::chain_to(SigningContext::LEDGER_VOUCHER, public.id(), signers, &vouchers);
    let given = ledger_keys(&session.environment, &request.keys)?;
    let retired = session.keys().directory().retired(KeyPurpose::Ledger).unwrap_or_default();
    let candidates = given.iter().map(verify::to_public_key).chain([public]).chain(retired).collect();
    // A rollback has its own command, which needs a key that counts.
    let is_rollback = |part: LedgerPart| part == LedgerPart::LocalCheckpoint;
    let changes = verify::ensure_acceptable(session, candidates, |one| !is_rollback(one.part)).await?;
    if follows.is_none() && (sealing.replaced_key(&public) || changes.signers.contains(&public)) {
        let body =
            Body::new(format!("{} is an old key of the ledger: another key has replaced it", public.id()));
        let help = "put the newer key back; where that is lost, too, move the old one away and make another with \
                    `quorate keys init`";
        return Err(Error::configuration(codes::LEDGER_UNSIGNED, body.help(help)));
    }
    let mut accepted = changes.pending;
    if follows.is_none() {
        accepted.push(public);
    }
    if accepted.is_empty() {
        return Ok(AcceptedKeys { keys: Vec::new(), size: checkpoint(session).await?.tree.size });
    }
    // Kept before the ledger needs them: if the process is killed in between, the ledger still verifies.
    let copies = sealing.copies();
    copies
        .accept_keys(&last.origin, &accepted)
        .map_err(|error| unsaved("cannot keep the accepted key", &error))?;
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
    match sealing::rollback_reason(&session.environment, &session.store, &kept).await? {
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

/// The error if the local state of the ledger cannot be changed.
fn unsaved(what: &str, error: &dyn std::error::Error) -> Error {
    let body = Body::new(format!("{what}: {}", error_chain(error)));
    let help = "make `keys/checkpoints/` and the state directory writable, and repeat the command";
    Error::configuration(codes::FILE_UNWRITABLE, body.help(help))
}

/// This machine's key.
fn own_key(sealing: &Sealer<'_>) -> Result<Arc<SecretKey>, Error> {
    let (key, from) = sealing.load_key(false);
    let why = match key {
        Ok(Some(key)) => return Ok(Arc::new(key)),
        Ok(None) => format!("{from} does not exist"),
        Err(error) => format!("{from}: {error}"),
    };
    let body = Body::new(format!("no key can sign the ledger: {why}"));
    let help = "restore the ledger's key; if it is lost, run `quorate keys init` to make another one, then this command accepts it";
    Err(Error::configuration(codes::LEDGER_UNSIGNED, body.help(help)))
}

/// The last checkpoint of a ledger, after new records were sealed.
#[derive(Debug, Clone, Serialize)]
pub struct Sealed {
    /// The checkpoint.
    #[serde(flatten)]
    pub checkpoint: CheckpointRecord,
    /// Whether it was made now.
    #[serde(rename = "fresh")]
    pub is_new: bool,
    /// The numbers of the ledger's own records that were signed belatedly, if that was requested.
    #[serde(skip)]
    pub signed: Option<Vec<u64>>,
}

impl Sealed {
    /// The signed note; for an unsigned checkpoint the content of a note.
    pub fn note(&self) -> String {
        self.checkpoint.note.clone().unwrap_or_else(|| self.checkpoint.unsigned_text())
    }
}

/// Verifies the whole ledger, and seals it as [`checkpoint`] does; with `signs_unsigned`, first signs the ledger's own
/// records that an older version left unsigned. The user who runs it accepts the ledger: from now on this machine knows
/// it.
///
/// # Errors
/// As [`checkpoint`], and if the ledger differs from its records.
#[crate::boxed]
pub(crate) async fn checkpoint_verified(
    session: &LedgerSession,
    signs_unsigned: bool,
) -> Result<Sealed, Error> {
    let signed = match signs_unsigned {
        true => Some(accept_unsigned(session).await?),
        false => None,
    };
    let sealed = async {
        // A rollback has its own help, which differs from that for an altered ledger.
        session.sealer().check_continuity().await?;
        verify::ensure_sealable(session, |_| true).await?;
        checkpoint(session).await
    };
    let checkpoint = match sealed.await {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            if let Some(signed) = signed.filter(|signed| !signed.is_empty()) {
                let records: Vec<String> = signed.iter().map(u64::to_string).collect();
                let why = format!("the records {} are signed now, but not sealed", records.join(", "));
                session.warn(codes::CHECKPOINT_MISSING, Body::new(why));
            }
            return Err(error);
        }
    };
    accept_here(session, &checkpoint);
    Ok(Sealed { is_new: checkpoint.is_new, checkpoint, signed })
}

/// Records that a person accepted this ledger on this machine.
fn accept_here(session: &LedgerSession, sealed: &CheckpointRecord) {
    if let Err(error) = session.sealer().copies().note_known(&sealed.origin) {
        let help = "make the state directory writable: hooks refuse a ledger that this machine does not know";
        session.warn(codes::CHECKPOINT_UNKEPT, Body::new(error_chain(&error)).help(help));
    }
}

/// Seals new records and updates the witness. Verifies only the records since the last signed checkpoint.
///
/// # Errors
/// If the ledger does not answer, or does not extend its last checkpoint.
#[crate::boxed]
pub(crate) async fn checkpoint(session: &LedgerSession) -> Result<CheckpointRecord, Error> {
    Ok(warned(session, session.sealer().seal().await?))
}

/// The checkpoint; its warnings go to the session.
fn warned(session: &LedgerSession, SealResult { sealed, report }: SealResult) -> CheckpointRecord {
    session.absorb(report);
    sealed
}

/// A person's reason, which must have words.
fn non_empty<'a>(reason: &'a str, what: &str, help: &str) -> Result<&'a str, Error> {
    match reason.trim() {
        "" => Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, Body::new(what).help(help))),
        reason => Ok(reason),
    }
}

/// Signs records that an older version left unsigned in the ledger's own stream, and returns their numbers.
///
/// # Errors
/// If the key is missing, the ledger does not answer, or anything else differs from the records: a signature would make
/// forged records look genuine.
#[crate::boxed]
async fn accept_unsigned(session: &LedgerSession) -> Result<Vec<u64>, Error> {
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

/// Makes a checkpoint that all these keys sign, even without new records: each key vouches for the others. `succession`
/// is the reason why they follow if none of them signed the last checkpoint.
///
/// # Errors
/// As [`checkpoint`].
#[crate::boxed]
pub(crate) async fn vouch(
    session: &LedgerSession,
    keys: &[Arc<SecretKey>],
    succession: Succession,
) -> Result<(), Error> {
    let sealing = session.sealer();
    let mut report = Report::new();
    if let Some(first_use) = sealing.check_continuity().await? {
        report.warn(codes::LEDGER_FIRST_USE, first_use);
    }
    let now_ms = session.environment.clock.now_ms();
    let sealed = session.store.seal_with(keys, now_ms, true, Durability::Synced, succession).await?;
    sealing.publish(&sealed, &mut report).await;
    session.absorb(report);
    Ok(())
}

/// Makes a checkpoint by the ledger's key alone, even without new records.
///
/// # Errors
/// As [`checkpoint`].
#[crate::boxed]
pub(crate) async fn seal_again(session: &LedgerSession) -> Result<CheckpointRecord, Error> {
    let sealing = session.sealer();
    sealing.check_continuity().await?;
    Ok(warned(session, sealing.seal_unchecked(true).await?))
}

/// An accepted rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptedRollback {
    /// Whether there was a rollback to accept.
    pub accepted: bool,
    /// How the ledger departs from its local copies; `None` if it does not, so that nothing changed.
    pub departs: Option<String>,
    /// The size of the checkpoint that replaces the copies.
    pub size: u64,
}

/// Accepts a rolled-back ledger. A record in the ledger's own stream has the person, the reason and the loss; the
/// copies move to `aside/`, and the next checkpoint replaces them.
///
/// # Errors
/// If the reason is empty, the ledger rejects the record, or a copy cannot be moved.
#[crate::boxed]
pub(crate) async fn accept_rollback(
    session: &LedgerSession,
    reason: &str,
) -> Result<AcceptedRollback, Error> {
    let help = "state in `--reason` what was restored, and from where";
    let reason = non_empty(reason, "cannot accept a rollback: the reason is empty", help)?;
    let origin = session.store.last_checkpoint().await?.map(|sealed| sealed.origin);
    let copies = session.sealer().copies();
    let kept = copies.read(origin.as_deref());
    let departs = sealing::rollback_reason(&session.environment, &session.store, &kept).await?;
    if departs.is_some() {
        let key = session.sealer().required_key_after_rollback().await?;
        let reason = session.workspace.redaction.redactor.redact(reason).0;
        let given_up = kept.copies.iter().map(|copy| GivenUp { note: copy.note.as_ref().ok().cloned() });
        let accepted = RolledBack {
            reason,
            by: session.environment.user.clone(),
            given_up: given_up.collect(),
            replaced: kept.replaced_origin.clone(),
        };
        let entry = Entry::of(&accepted, session.environment.clock.now_ms());
        session.store.append_ledger_record(entry, &key).await?;
        copies
            .discard(origin.as_deref())
            .map_err(|error| unsaved("cannot move the kept checkpoint aside", &error))?;
    }
    let sealed = match departs {
        // Checkpoints that were signed before the rollback do not count.
        Some(_) => warned(session, session.sealer().seal_unchecked(false).await?),
        None => checkpoint(session).await?,
    };
    accept_here(session, &sealed);
    Ok(AcceptedRollback { accepted: departs.is_some(), departs, size: sealed.tree.size })
}
