//! Sealing the ledger: a checkpoint signed by the ledger's key, and a witness that keeps a copy elsewhere. A ledger
//! that does not extend the checkpoints that this machine keeps of it is not sealed (D12).

use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::ledger::Durability;
use quorate_ledger::Store;
use quorate_ledger::keys::{self, KeyPurpose};
use quorate_ledger::local_checkpoints::{CheckpointFiles, LocalCheckpoints};
use quorate_ledger::note::Checkpoint;
use quorate_ledger::signing::{PublicKey, SecretKey, SigningContext, Voucher};
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::store::{CheckpointRecord, Succession};

use super::disk::display_path;
use super::environment::Environment;
use super::error::{Error, ErrorKind, error_chain};
use super::witness::{SubmitContext, Witness};

/// The variable with the ledger's key, for several machines that seal one ledger. It overrides the key file.
pub(crate) const LEDGER_KEY_VARIABLE: &str = "QUORATE_LEDGER_KEY";

const MISSING_KEY_HELP: &str = "checkpoints are unsigned until it is restored; if it is lost, `quorate explain \
                                quorate:ledger_key_missing` explains how to continue the ledger with another key";

/// How long a finished command waits for sealing and closing. Neither loses records: the next command seals, and
/// written records survive without closing.
const SEAL_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The ledger, key and witness that sealing needs.
pub struct Sealer<'a> {
    pub environment: &'a Environment,
    pub store: &'a Store,
    /// The witness, if one is configured.
    pub witness: Option<&'a Witness>,
}

/// This machine's key of the ledger, with the reason why it may sign.
pub(super) struct OwnKey {
    pub key: Arc<SecretKey>,
    /// The vouchers that lead to it from the keys of the last signed checkpoint; empty if it is one of them.
    pub vouched: Vec<Voucher>,
}

/// A checkpoint, and warnings.
pub(crate) struct SealResult {
    pub sealed: CheckpointRecord,
    pub report: Report,
}

/// Records that this machine created a new ledger. If that fails, hooks refuse the ledger until a person accepts it.
pub(super) fn note_begun(environment: &Environment, ledger: &StoreAddress) {
    let files = CheckpointFiles::new(ledger, environment.checkpoint_dir());
    let key = match key_from_environment(environment) {
        Some(text) => SecretKey::from_text(text).ok(),
        None => keys::KeyDirectory::new(ledger.dir()).load(KeyPurpose::Ledger).ok().flatten(),
    };
    if let Some(key) = key {
        let _ = files.note_begun(&key.public());
    }
}

impl Sealer<'_> {
    /// Seals the ledger. The checkpoint is synced before it is shown or copied: otherwise the ledger would contradict
    /// the copy after a power loss.
    ///
    /// # Errors
    /// If the ledger does not answer, or does not extend its last checkpoint.
    pub(super) async fn seal(&self) -> Result<SealResult, Error> {
        let first_use = self.check_continuity().await?;
        let mut done = self.seal_unchecked(false).await?;
        // Without a key no copy is kept, and a warning about the missing key exists already.
        if let Some(first_use) = first_use
            && done.sealed.note.is_some()
        {
            done.report.warn(codes::LEDGER_FIRST_USE, first_use);
        }
        Ok(done)
    }

    /// Seals the ledger's current state; with `again`, even without new records.
    pub(super) async fn seal_unchecked(&self, again: bool) -> Result<SealResult, Error> {
        let mut report = Report::new();
        let (keys, vouched) = match self.key(&mut report).await? {
            Some(own) => (vec![own.key], own.vouched),
            None => (Vec::new(), Vec::new()),
        };
        let now_ms = self.environment.clock.now_ms();
        let succession = Succession { vouched, ..Succession::default() };
        let sealed = self.store.seal_with(&keys, now_ms, again, Durability::Synced, succession).await?;
        if !keys.is_empty() {
            self.publish(&sealed, &mut report).await;
        }
        Ok(SealResult { sealed, report })
    }

    /// Refuses to sign a ledger that does not extend the checkpoints that its key has signed (D12); returns a warning
    /// if no local copies exist.
    pub(super) async fn check_continuity(&self) -> Result<Option<Body>, Error> {
        let origin = self.store.last_checkpoint().await?.map(|sealed| sealed.origin);
        let copies = self.copies();
        let found = copies.read(origin.as_deref());
        if let Some(why) = rollback_reason(self.environment, self.store, &found).await? {
            let help = "`quorate ledger verify` says what differs; where a backup was restored or another ledger was \
                        begun on purpose, `quorate ledger accept-rollback --reason \"…\"` continues from the present ledger";
            return Err(Error::new(ErrorKind::Altered, codes::LEDGER_CORRUPT, Body::new(why).help(help)));
        }
        if let Some(origin) = origin
            && found.copies.is_empty()
            && self.store.checkpoint_keys().await?.is_some()
        {
            let body = Body::new(format!(
                "this machine has no checkpoint of the ledger {origin}, so it cannot detect earlier losses"
            ));
            let help = "this is expected at the first use of a ledger on a machine; from now on the machine keeps its last checkpoint";
            return Ok(Some(body.help(help)));
        }
        Ok(None)
    }

    pub(super) fn copies(&self) -> CheckpointFiles {
        CheckpointFiles::new(self.store.address(), self.environment.checkpoint_dir())
    }

    /// Stores a checkpoint on this machine and sends it to the witness.
    pub(super) async fn publish(&self, sealed: &CheckpointRecord, report: &mut Report) {
        let Some(note) = &sealed.note else { return };
        let copies = self.copies();
        let signers =
            || sealed.verifiers().unwrap_or_default().iter().map(|signer| *signer.key()).collect::<Vec<_>>();
        let known = match !copies.is_known(&sealed.origin) && copies.was_begun(&signers()) {
            true => copies.note_known(&sealed.origin),
            false => Ok(()),
        };
        for error in copies.save(note).err().into_iter().flatten().chain(known.err()) {
            let body = Body::new(error_chain(&error));
            let help = "the checkpoint is in the ledger; make the directory writable, so that rollbacks are detected";
            report.warn(codes::CHECKPOINT_UNKEPT, body.help(help));
        }
        if let Some(witness) = self.witness {
            let telling = SubmitContext { environment: self.environment, store: self.store, copies: &copies };
            witness.submit(&telling, sealed, report).await;
        }
    }

    /// Seals the ledger. Failures become warnings, since no record depends on a seal. The refusal of a ledger is reported
    /// once, until it is sealed again; `quorate ledger verify` and `checkpoint` repeat it.
    #[crate::boxed]
    pub async fn seal_or_warn(&self) -> Report {
        // A witness over HTTP gets the same time in addition.
        let limit = match self.witness {
            Some(Witness::Service(_)) => SEAL_TIMEOUT * 2,
            Some(Witness::File(_)) | None => SEAL_TIMEOUT,
        };
        let (why, help) = match tokio::time::timeout(limit, Box::pin(self.seal())).await {
            Ok(Ok(done)) => return done.report,
            Ok(Err(error)) if is_refused(&error) && !self.copies().note_told() => return Report::new(),
            Ok(Err(error)) => {
                let help = error.report.refusals.first().and_then(|refusal| refusal.body.help.clone());
                let other = || "run `quorate ledger verify` for details".to_owned();
                (error.first_message(), help.unwrap_or_else(other))
            }
            Err(_) => (
                format!("it did not answer within {} s", limit.as_secs()),
                "run `quorate ledger checkpoint` when no other process keeps the ledger busy".to_owned(),
            ),
        };
        let mut report = Report::new();
        let body = Body::new(format!("cannot seal the ledger: {why}"));
        report.warn(codes::CHECKPOINT_MISSING, body.help(help));
        report
    }

    /// The ledger's key, which signs changes to the ledger itself.
    ///
    /// # Errors
    /// If it is missing or does not follow the last signing key: an unsigned record would not count.
    #[crate::boxed]
    pub async fn required_key(&self) -> Result<Arc<SecretKey>, Error> {
        let own = self.signing_key().await?;
        if !own.vouched.is_empty() {
            // A record by a key that no checkpoint names yet would not verify.
            self.check_continuity().await?;
            self.seal_unchecked(true).await?;
        }
        Ok(own.key)
    }

    /// As [`Sealer::required_key`], for a ledger whose rollback a person accepts: no copy of it exists yet.
    ///
    /// # Errors
    /// As [`Sealer::required_key`].
    pub(super) async fn required_key_after_rollback(&self) -> Result<Arc<SecretKey>, Error> {
        let OwnKey { key, vouched } = self.signing_key().await?;
        if !vouched.is_empty() {
            let now_ms = self.environment.clock.now_ms();
            let succession = Succession { vouched, ..Succession::default() };
            self.store.seal_with(&[Arc::clone(&key)], now_ms, true, Durability::Synced, succession).await?;
        }
        Ok(key)
    }

    /// The ledger's key, and the reason why it may sign.
    ///
    /// # Errors
    /// As [`Sealer::required_key`].
    pub(super) async fn signing_key(&self) -> Result<OwnKey, Error> {
        let mut report = Report::new();
        if let Some(own) = self.key(&mut report).await? {
            return Ok(own);
        }
        let (why, help) = report.warnings.first().map_or_else(Default::default, |warning| {
            (warning.body.message.clone(), warning.body.help.clone().unwrap_or_default())
        });
        let body = Body::new(format!("the ledger's key cannot sign: {why}"));
        Err(Error::configuration(codes::LEDGER_UNSIGNED, body.help(help)))
    }

    /// The ledger's key, if it signed the last checkpoint or vouchers of the earlier keys lead to it.
    pub(super) async fn key(&self, report: &mut Report) -> Result<Option<OwnKey>, Error> {
        let known = self.store.checkpoint_keys().await?;
        let directory = keys::KeyDirectory::new(self.store.dir());
        let (key, from) = self.load_key(known.is_none());
        let mut missing = |what: String, help: &str| {
            report.warn(codes::LEDGER_KEY_MISSING, Body::new(what).help(help));
            Ok(None)
        };
        let loaded = match key {
            Ok(Some(key)) => key,
            Ok(None) => return missing(format!("the ledger's key {from} does not exist"), MISSING_KEY_HELP),
            Err(error) => {
                return missing(format!("cannot use the ledger's key ({from}): {error}"), MISSING_KEY_HELP);
            }
        };
        let Some(known) = known else {
            let founding = self.store.founding_key().await?;
            let is_named = key_from_environment(self.environment).is_some();
            let follows = |founding: &PublicKey| {
                let (id, vouchers) = (loaded.public().id(), directory.vouchers());
                Voucher::chain_to(SigningContext::LEDGER_VOUCHER, id, [*founding], &vouchers).is_some()
            };
            if let Some(founding) = founding.filter(|founding| !is_named && !follows(founding)) {
                let what = format!(
                    "{from} is not {}, the key of the machine that created the ledger",
                    founding.id()
                );
                return missing(what, MISSING_KEY_HELP);
            }
            return Ok(Some(OwnKey { key: Arc::new(loaded), vouched: Vec::new() }));
        };
        let signers = known.iter().map(|verifier| *verifier.key());
        let public = loaded.public();
        let vouchers = directory.vouchers();
        if let Some(vouched) =
            Voucher::chain_to(SigningContext::LEDGER_VOUCHER, public.id(), signers, &vouchers)
        {
            return Ok(Some(OwnKey { key: Arc::new(loaded), vouched }));
        }
        let (what, help) = match self.replaced_key(&public) {
            true => (
                "is an old key: another key has replaced it",
                "checkpoints are unsigned until the newer key is restored, from the machine that rotated it or from a backup",
            ),
            false => ("is not the key that signed the last checkpoint", MISSING_KEY_HELP),
        };
        missing(format!("{from} {what}"), help)
    }

    /// Whether another key has replaced this one in the key directory.
    pub(super) fn replaced_key(&self, key: &PublicKey) -> bool {
        let retired = keys::KeyDirectory::new(self.store.dir()).retired(KeyPurpose::Ledger);
        retired.unwrap_or_default().contains(key)
    }

    /// The key in the environment or in its file, and its source. `makes` tells whether to create a missing key: an
    /// older version created ledgers without a key. A database's key belongs to the machine that created its tables; a
    /// new key made here would lock that machine out.
    pub(super) fn load_key(&self, makes: bool) -> (Result<Option<SecretKey>, String>, String) {
        if let Some(text) = key_from_environment(self.environment) {
            let key = SecretKey::from_text(text).map(Some);
            return (key.map_err(|error| error_chain(&error)), format!("the variable {LEDGER_KEY_VARIABLE}"));
        }
        let directory = keys::KeyDirectory::new(self.store.dir());
        let key = match directory.load(KeyPurpose::Ledger) {
            Ok(None) if makes && !self.store.is_shared() => directory.create(KeyPurpose::Ledger).map(Some),
            loaded => loaded,
        };
        let file = display_path(self.environment, &directory.key_path(KeyPurpose::Ledger));
        (key.map_err(|error| error_chain(&error)), file)
    }
}

/// Whether the ledger does not extend its checkpoints, or differs from its records.
fn is_refused(error: &Error) -> bool {
    error.kind() == ErrorKind::Altered
}

/// The time limits of an interrupted command for sealing and for closing.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the last steps of a command; `None` if the command was interrupted and they take too long.
pub(crate) async fn within_deadline<T>(store: &Store, work: impl Future<Output = T>) -> Option<T> {
    match store.is_interrupted() {
        // The next command repeats the abandoned work.
        true => tokio::time::timeout(INTERRUPTED_TIMEOUT, work).await.ok(),
        false => Some(work.await),
    }
}

/// Closes a ledger. If it does not answer in time, the system closes its files when the process exits.
#[crate::boxed]
pub(crate) async fn close_within_deadline(store: Store) {
    let limit = if store.is_interrupted() { INTERRUPTED_TIMEOUT } else { CLOSE_TIMEOUT };
    let _ = tokio::time::timeout(limit, Box::pin(store.close())).await;
}

/// The key in the environment, as text.
pub(crate) fn key_from_environment(environment: &Environment) -> Option<&str> {
    environment.variables.get(LEDGER_KEY_VARIABLE).filter(|text| !text.is_empty())
}

/// How a ledger departs from its local copies, in words; `None` if it extends every copy.
///
/// # Errors
/// If the store does not answer.
pub(crate) async fn rollback_reason(
    environment: &Environment,
    store: &Store,
    kept: &LocalCheckpoints,
) -> Result<Option<String>, Error> {
    // Another process may have made the first checkpoint meanwhile.
    if let Some(origin) = &kept.replaced_origin
        && store.last_checkpoint().await?.is_none_or(|sealed| sealed.origin != *origin)
    {
        return Ok(Some(format!(
            "another ledger has replaced the ledger {origin}, which this machine knows"
        )));
    }
    for copy in &kept.copies {
        let file = display_path(environment, &copy.path);
        let checkpoint = match copy.note.clone().and_then(|note| Checkpoint::from_note(&note)) {
            Ok(checkpoint) => checkpoint,
            Err(why) => {
                return Ok(Some(format!("{file} is not a checkpoint that the ledger's key signed: {why}")));
            }
        };
        if !store.has_checkpoint(&checkpoint).await? {
            return Ok(Some(format!(
                "it does not extend the checkpoint over {} records of {} that its key signed ({file})",
                checkpoint.tree().size,
                checkpoint.origin()
            )));
        }
    }
    Ok(None)
}
